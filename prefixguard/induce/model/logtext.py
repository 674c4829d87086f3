"""Excerpts of text logs: how their lines begin, and pieces of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import re2

from prefixguard.escalate import Masker
from prefixguard.induce.model.excerpt import ERROR_WORDS, MARGIN

_NUMBER = re2.compile(rb"[0-9]+")
#: How a line that begins something looks: a time, a word or two and a mark, a bracket, a rule, a number in it.
_HEAD = re2.compile(
    rb"^\s{0,3}(?:\[?0(?:[-:./T ,]+0)+Z?[\s\-\]]*[^\n:\]>]{0,38}[:\]>][^\s:]{0,20}:?|[#=*>\-_~]{2,}.{0,60}|"
    rb"\[?[\w#(][^\n:\]>]{0,38}[:\]>]|(?:[A-Z][\w-]*)(?: [\w-]+){0,3} 0\b)"
)
_LINES_LOOKED_AT = 200_000
#: A head, or a line, is told when it is met so often; most that are told, and of lines that begin alike.
_AGAIN, _HEADS, _LINES, _ALIKE = 3, 24, 16, 4
#: Characters of a line that is counted whole.
_SHORTEST, _LONGEST = 6, 90


def lines_again(texts: Sequence[str], masker: Masker) -> tuple[list[str], list[str]]:
    """What stands in the texts at least three times, digits as 0, with counts, frequent ones first: how lines begin,
    each with the first such line; and short lines that say more than how they begin: verdicts, empty answers."""
    heads: Counter[bytes] = Counter()
    first: dict[bytes, tuple[int, str]] = {}
    whole: Counter[bytes] = Counter()
    each = _LINES_LOOKED_AT // max(len(texts), 1)
    for text in texts:
        for number, line in enumerate(text.split("\n", each)[:each], 1):
            plain = _NUMBER.sub(b"0", line[:120].encode("utf-8", "replace"))
            match = _HEAD.search(plain)
            if match is not None:
                head = match.group(0).strip()
                heads[head] += 1
                first.setdefault(head, (number, line))
            says_more = match is None or match.end() < len(plain.rstrip())
            if _SHORTEST <= len(line) <= _LONGEST and says_more and any(map(str.isalpha, line)):
                whole[plain.strip()] += 1
    begin = []
    for head, n in heads.most_common(_HEADS):
        number, line = first[head]
        where = f"first in line {number}" if len(texts) == 1 else "such as"
        begin += [f"{n:,} x {_shown(head)!r}, {where}: {masker.mask(line[:300])[:100]!r}"] * (n >= _AGAIN)
    alike: Counter[bytes] = Counter()
    again: list[str] = []
    for plain, n in sorted(whole.items(), key=lambda item: (-item[1], item[0])):
        alike[plain.split(b" ", 1)[0]] += 1
        if n >= _AGAIN and len(again) < _LINES and alike[plain.split(b" ", 1)[0]] <= _ALIKE:
            again.append(f"{n:,} x {masker.mask(_shown(plain))!r}")
    return begin, again


def _shown(plain: bytes) -> str:
    return plain.decode("utf-8", "replace")


def pieces(text: str, room: int, masker: Masker) -> str:
    """Head, a middle with an error where there is one, and tail of a text, in about `room` characters."""
    if len(text) <= room:
        return masker.mask(text)
    head, tail = room // 2, room // 5
    middle = room - head - tail - 200
    parts = [masker.mask(text[: head + MARGIN])[:head]]
    last = len(text) - tail
    if middle > 200 and last - head > 2 * middle:
        window = text[head : min(last - middle, head + 2_000_000)].lower()
        found = [at for at in map(window.find, ERROR_WORDS) if at >= 0]
        begin = max(head + min(found) - middle // 2, head) if found else (len(text) - middle) // 2
        begin = text.rfind("\n", head, begin) + 1 or begin
        parts += [_gap(begin - head, text, begin), masker.mask(text[begin : begin + middle + MARGIN])[:middle]]
        head = begin + middle
    parts += [_gap(last - head, text, last), masker.mask(text[-(tail + MARGIN) :])[-tail:]]
    return "".join(parts)


def _gap(missing: int, text: str, until: int) -> str:
    line = text.count("\n", 0, until) + 1
    return f"\n<... {missing:,} of {len(text):,} characters cut; goes on in line {line:,} ...>\n"
