"""Excerpts of text logs: how their lines begin, and pieces of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import re2

from prefixguard.escalate import Masker

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_NUMBER = re2.compile(rb"[0-9]+", _OPTIONS)
#: How a line that begins something looks: a time, a word or two and a mark, a bracket, a rule, a number in it.
_HEAD = re2.compile(
    rb"^\s{0,3}(?:\[?0(?:[-:./T ,]+0)+Z?[\s\-\]]*[^\n:\]>]{0,38}[:\]>][^\s:]{0,20}:?|[#=*>\-_~]{2,}.{0,60}|"
    rb"\[?[\w#(][^\n:\]>]{0,38}[:\]>]|(?:[A-Z][\w-]*)(?: [\w-]+){0,3} 0\b)",
    _OPTIONS,
)
_LINES_LOOKED_AT = 200_000
#: Characters of a line that is counted whole.
_SHORTEST, _LONGEST = 6, 90
_ERROR = ("error", "traceback", "exception", "failed", "invalid", "could not")


def line_heads(texts: Sequence[str], masker: Masker, most: int = 24) -> list[str]:
    """How lines begin that begin alike (digits as 0) at least three times: with counts and the first such line."""
    counts: dict[bytes, list[int]] = {}
    lines = _lines(texts)
    for number, line in enumerate(lines):
        match = _HEAD.search(_NUMBER.sub(b"0", line[:120].encode("utf-8", "replace")))
        if match is None:
            continue
        entry = counts.setdefault(match.group(0).rstrip(), [0, number])
        entry[0] += 1
    often = sorted(counts.items(), key=lambda item: (-item[1][0], item[1][1]))
    out = []
    for head, (n, first) in [item for item in often if item[1][0] >= 3][:most]:
        begin = head.decode("utf-8", "replace").strip()
        where = f"first in line {first + 1}" if len(texts) == 1 else "such as"
        out.append(f"{n:,} x {begin!r}, {where}: {masker.mask(lines[first][:300])[:100]!r}")
    return out


def _lines(texts: Sequence[str]) -> list[str]:
    """Lines of all texts, of each an equal share of those that are looked at."""
    each = _LINES_LOOKED_AT // max(len(texts), 1)
    return [line for text in texts for line in text.split("\n", each)[:each]]


def repeated_lines(texts: Sequence[str], masker: Masker, most: int = 16) -> list[str]:
    """Short lines that stand in the texts at least three times (digits as 0) and say more than how they begin:
    verdicts, errors, empty answers. With counts, frequent ones first, at most four that begin alike."""
    counts: Counter[str] = Counter()
    for line in _lines(texts):
        if _SHORTEST <= len(line) <= _LONGEST:
            plain = _NUMBER.sub(b"0", line.strip().encode("utf-8", "replace"))
            match = _HEAD.search(plain)
            if any(map(str.isalpha, line)) and (match is None or match.end() < len(plain)):
                counts[plain.decode("utf-8", "replace")] += 1
    alike: Counter[str] = Counter()
    out: list[str] = []
    for line, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        begin = line.split(" ", 1)[0]
        alike[begin] += 1
        if n >= 3 and len(out) < most and alike[begin] <= 4:
            out.append(f"{n:,} x {masker.mask(line)!r}")
    return out


def pieces(text: str, room: int, masker: Masker) -> str:
    """Head, a middle with an error where there is one, and tail of a text, in about `room` characters."""
    if len(text) <= room:
        return masker.mask(text)
    head, tail = room // 2, room // 5
    middle = room - head - tail - 200
    parts = [masker.mask(text[: head + 400])[:head]]
    at = _error_after(text, head, len(text) - tail - max(middle, 0)) if middle > 200 else -1
    if middle > 200 and len(text) - tail - head > 2 * middle:
        begin = max(at - middle // 2, head) if at >= 0 else (len(text) - middle) // 2
        begin = text.rfind("\n", head, begin) + 1 or begin
        parts.append(_gap(begin - head, text, begin))
        parts.append(masker.mask(text[begin : begin + middle + 400])[:middle])
        head = begin + middle
    parts.append(_gap(len(text) - tail - head, text, len(text) - tail))
    parts.append(masker.mask(text[-(tail + 400) :])[-tail:])
    return "".join(parts)


def _gap(missing: int, text: str, until: int) -> str:
    line = text.count("\n", 0, until) + 1
    return f"\n<... {missing:,} of {len(text):,} characters cut; goes on in line {line:,} ...>\n"


def _error_after(text: str, begin: int, end: int) -> int:
    """Position of the first word of error in the middle of a text; -1 where there is none."""
    window = text[begin : min(end, begin + 2_000_000)].lower()
    found = [window.find(word) for word in _ERROR]
    there = [at for at in found if at >= 0]
    return begin + min(there) if there else -1
