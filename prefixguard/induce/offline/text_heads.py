"""Which heads of lines begin events: those that alternate, and those of the same logger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.induce.offline.text_headers import headers_of
from prefixguard.induce.offline.text_lines import PROMPTS, Head, heads_of, tokens_of
from prefixguard.induce.offline.text_noise import blocked_lines, repeated_blocks
from prefixguard.induce.offline.text_roles import role_of_name

#: Lines that are looked at, and heads that are compared.
MOST_LINES = 120_000
MOST_HEADS = 32
#: Sets of heads that are told of; one more where a prompt is none of them.
MOST_SETS = 5
_SMALL = 24


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that begins with a head. doc, line: where. length: of the head, in code points."""

    doc: int
    line: int
    head: str
    length: int


@dataclass(frozen=True, slots=True)
class HeadSet:
    """Heads that begin events together. keys: of the heads, most frequent first. score: how well they alternate and how
    often they occur; only for comparing."""

    keys: tuple[str, ...]
    score: float
    why: str


class Lines:
    """All lines of some texts with the heads they may have."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.docs: list[list[str]] = []
        self.heads: dict[str, Head] = {}
        self.places: dict[str, list[tuple[int, int]]] = {}
        self._alone: dict[str, frozenset[tuple[int, int]]] = {}
        self.noise, self.spinners = _repeating(texts)
        self.headers = headers_of(texts)
        self.blocks = repeated_blocks(texts)
        blocked = blocked_lines(texts, self.blocks)
        total = 0
        for number, text in enumerate(texts):
            lines = text.split("\n")[: MOST_LINES - total]
            total += len(lines)
            self.docs.append(lines)
            for at, line in enumerate(lines):
                if not line or line.isspace():
                    continue
                if (
                    at < self.headers.sizes[number]
                    or (number, at) in blocked
                    or (self.spinners and words_of(line) in self.spinners)
                ):
                    lines[at] = ""  # the spec reads or cuts it otherwise, so nothing else is to be found there
                    continue
                if self.noise and words_of(line) in self.noise:
                    continue
                for head in heads_of(line):
                    key = head.key
                    self.heads.setdefault(key, head)
                    self.places.setdefault(key, []).append((number, at))
            if total >= MOST_LINES:
                break
        self.total = sum(1 for lines in self.docs for line in lines if line.strip())

    def count(self, key: str) -> int:
        return len(self.places.get(key, ()))

    def alone(self, key: str) -> frozenset[tuple[int, int]]:
        """Lines that are nothing but this head."""
        if key not in self._alone:
            size = len(self.heads[key].tokens)
            self._alone[key] = frozenset(
                (doc, at)
                for doc, at in self.places[key]
                if "".join(token.text for token in tokens_of(self.docs[doc][at][:72])[:size])
                == self.docs[doc][at].rstrip()
            )
        return self._alone[key]


def words_of(line: str) -> str:
    """A short line without the sign it begins with: what a spinner or a progress line says over and over."""
    return re.sub(r"^[^\w\s]\s+|\d+(?:\.\d+)?", "", line.strip()) if len(line) < 100 else ""


def _repeating(texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """What short lines say that stand three and more times in a row, nearly always; and what spinners say: the same
    after one of many signs."""
    total: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    signs: dict[str, set[str]] = {}
    for text in texts:
        last, n = "", 0
        for line in text.split("\n")[:MOST_LINES]:
            said = words_of(line) if line and not line.isspace() else ""
            if said and said == last:
                n += 1
            else:
                if n >= 3:
                    rows[last] += n
                last, n = said, 1
            if said:
                total[said] += 1
                if line[0] > "\x7f":
                    signs.setdefault(said, set()).add(line[0])
        if n >= 3:
            rows[last] += n
    spinners = frozenset(said for said, found in signs.items() if len(found) >= 4 and total[said] >= 6)
    rowed = frozenset(said for said, n in rows.items() if n >= 6 and n >= 0.5 * total[said] and len(said) >= 6)
    return rowed | spinners, spinners


def marks(lines: Lines, keys: Sequence[str]) -> list[Mark]:
    """Lines that begin with one of these heads, in order; of two heads of a line the longer counts."""
    best: dict[tuple[int, int], tuple[int, str]] = {}
    for key in keys:
        size = len(lines.heads[key].tokens)
        for place in lines.places[key]:
            if place not in best or best[place][0] < size:
                best[place] = (size, key)
    return [Mark(doc, at, key, size) for (doc, at), (size, key) in sorted(best.items())]


def head_sets(lines: Lines) -> list[HeadSet]:
    """Candidates, best first: cycles of heads that alternate, and whole families that share a skeleton."""
    least = 2 if lines.total < 60 else 3
    usable = [key for key, places in lines.places.items() if len(places) >= least and _may_begin(lines, key)]
    usable = [key for key in usable if not _doubled(lines, key) and not _valued(lines, key)]
    usable.sort(key=lambda key: (-lines.count(key), key))
    usable = usable[: 2 * MOST_HEADS]
    usable = [key for key in usable if not _nested(lines, usable, key)][:MOST_HEADS]
    found: dict[frozenset[str], HeadSet] = {}
    for one in _families(lines):
        found.setdefault(frozenset(one.keys), one)
    for one in _cycles(lines, usable):
        found.setdefault(frozenset(one.keys), one)
    for one in _prompts(lines, usable):
        found.setdefault(frozenset(one.keys), one)
    ordered = sorted(found.values(), key=lambda one: (-one.score, one.keys))
    prompt = next((one for one in ordered[MOST_SETS:] if len(one.keys) == 1), None)
    return ordered[:MOST_SETS] + ([prompt] if prompt is not None else [])


def _doubled(lines: Lines, key: str) -> bool:
    """Of a head that is all of its line, and the same where more may follow, the one that says more is kept."""
    other = key.removesuffix("$") if lines.heads[key].whole else f"{key}$"
    if other not in lines.places or len(lines.heads[other].tokens) != len(lines.heads[key].tokens):
        return False
    whole, open_ = (key, other) if lines.heads[key].whole else (other, key)
    always = lines.count(whole) >= 0.98 * lines.count(open_)
    return always != lines.heads[key].whole


def _valued(lines: Lines, key: str) -> bool:
    """Is it a label and one of its values, such as `Action: reset`, where the label stands with others too?"""
    head = lines.heads[key]
    if not head.whole or head.tokens[-1].kind not in ("word", "num"):
        return False
    return any(
        other.words and lines.count(other.key) >= 1.3 * lines.count(key)
        for other in (Head(head.tokens[: i + 1], False) for i in range(len(head.tokens) - 1))
        if other.tokens[-1].kind == "sign"
    )


def _nested(lines: Lines, usable: Sequence[str], key: str) -> bool:
    """Does it open the text of another head, whose line is bare?"""
    n = lines.count(key)
    return any(
        other != key and 0.6 * n <= lines.count(other) <= 1.7 * n and _inside(lines, (other,), key) for other in usable
    )


def _may_begin(lines: Lines, key: str) -> bool:
    """Rulers, fences, numbers alone and lines of mere signs begin no event."""
    head = lines.heads[key]
    if head.tokens[0].text.startswith("```"):
        return False
    if head.words:
        return True
    signs = [token.text for token in head.tokens if token.kind == "sign"]
    return not head.whole and bool(signs) and signs[-1] in PROMPTS and head.numbers == 0


def _families(lines: Lines) -> list[HeadSet]:
    """Heads with one skeleton that is more than `word:`, with few words that repeat, on a good part of the lines."""
    members: dict[str, list[str]] = {}
    for key, head in lines.heads.items():
        if head.strong and head.words:
            members.setdefault(head.skeleton, []).append(key)
    found = []
    for skeleton, keys in sorted(members.items()):
        total = sum(lines.count(key) for key in keys)
        if total < 4 or total < 0.01 * lines.total:
            continue
        common = [key for key in keys if lines.count(key) >= max(2, 0.01 * total)]
        common.sort(key=lambda key: (-lines.count(key), key))
        share = sum(lines.count(key) for key in common) / total
        if not 2 <= len(common) <= _SMALL or share < 0.9:
            continue
        kept = [key for key in keys if lines.count(key) >= max(1, 0.002 * total)] if len(keys) <= 40 else common
        kept.sort(key=lambda key: (-lines.count(key), key))
        order = order_of([mark.head for mark in marks(lines, common)])
        score = total * (0.3 + 0.7 * order) * (1.3 if lines.heads[common[0]].strong else 1.0)
        found.append(HeadSet(tuple(kept), score, f"{len(kept)} heads like {skeleton!r}, on {total} lines"))
    return found


def order_of(kinds: Sequence[str]) -> float:
    """How well each kind foretells the next, in [0, 1]: share of steps that go where most from that kind go, with
    steps to the same kind counted as half."""
    if len(kinds) < 2:
        return 0.0
    follow: dict[str, Counter[str]] = {}
    for one, two in pairwise(kinds):
        follow.setdefault(one, Counter())[two] += 1
    good = sum(max(n * (0.5 if other == kind else 1.0) for other, n in nexts.items()) for kind, nexts in follow.items())
    return good / (len(kinds) - 1)


def alternation(lines: Lines, one: str, two: str) -> float:
    """Share of neighbours among the marks of two heads that are not of the same head."""
    found = sorted(
        [(place, 0) for place in lines.places[one][:2000]] + [(place, 1) for place in lines.places[two][:2000]]
    )
    pairs = [(a[1], b[1]) for a, b in pairwise(found) if a[0][0] == b[0][0]]
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0


def _cycles(lines: Lines, usable: Sequence[str]) -> list[HeadSet]:
    pairs = []
    for i, one in enumerate(usable):
        for two in usable[i + 1 :]:
            n, m = lines.count(one), lines.count(two)
            if m < 0.4 * n or _same_lines(lines, one, two):
                continue
            turns = alternation(lines, one, two)
            if turns < 0.8:
                continue
            if _empty_share(lines, (one, two)) > 0.4:
                continue
            score = (n + m) * turns**4 * _weight(lines, one) * _weight(lines, two)
            score *= 0.1 + max(_diversity(lines, one), _diversity(lines, two))
            pairs.append((score, one, two))
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    found = []
    for score, one, two in pairs[:4]:
        names = f"{lines.heads[one].name!r} and {lines.heads[two].name!r} take turns"
        found.append(HeadSet((one, two), score, names))
        keys = _extended(lines, [one, two], usable)
        gained = sum(lines.count(key) for key in keys) / (lines.count(one) + lines.count(two))
        names = ", ".join(repr(lines.heads[key].name) for key in keys)
        found.append(HeadSet(tuple(keys), score * gained, f"{names} take turns"))
    return found


def _same_lines(lines: Lines, one: str, two: str) -> bool:
    """Is one the beginning of the other?"""
    first, second = one.removesuffix("$"), two.removesuffix("$")
    return first.startswith(second) or second.startswith(first)


def _inside(lines: Lines, keys: Sequence[str], key: str) -> bool:
    """Do its lines come right after a line that is nothing but one of the heads? Then it opens their text."""
    n = sum(any((doc, at - 1) in lines.alone(one) for one in keys) for doc, at in lines.places[key])
    return n >= 0.7 * lines.count(key)


def _opens(lines: Lines, keys: Sequence[str], key: str) -> bool:
    """Does it stand before the first of the heads in most texts?"""
    first: dict[int, int] = {}
    for one in keys:
        for doc, at in lines.places[one]:
            first[doc] = min(first.get(doc, at), at)
    docs = {doc for doc, at in lines.places[key] if at < first.get(doc, -1)}
    return len(docs) >= 0.5 * max(1, len(first))


def _empty_share(lines: Lines, keys: Sequence[str]) -> float:
    """Share of the marks without any text: the head is all of its line, and the next line is a head again."""
    found = marks(lines, keys)
    n = 0
    for one, two in pairwise(found):
        line = lines.docs[one.doc][one.line]
        head = lines.heads[one.head]
        n += one.doc == two.doc and two.line == one.line + 1 and (head.whole or len(line.strip()) < 4)
    return n / max(1, len(found))


def _weight(lines: Lines, key: str) -> float:
    head = lines.heads[key]
    weight = 1.4 if role_of_name(head.name) else 1.0
    if head.strong:
        weight *= 1.15
    return weight


def _extended(lines: Lines, keys: list[str], usable: Sequence[str]) -> list[str]:
    """With heads that always stand at the same place of the cycle, or are of the same make."""
    base = min(lines.count(key) for key in keys)
    skeletons = {lines.heads[key].skeleton for key in keys if lines.heads[key].strong}
    for key in usable:
        head = lines.heads[key]
        if key in keys or any(_same_lines(lines, key, other) for other in keys):
            continue
        role = role_of_name(head.name)
        known = bool(role) and len(head.words) <= 2
        if role in ("task", "end") and not head.strong:
            known = known and _opens(lines, keys, key)
        if head.tokens[0].text.startswith("<") or _inside(lines, keys, key):
            continue
        same_make = head.skeleton in skeletons
        often = lines.count(key) >= 0.6 * base
        if not (known or same_make or often) or (not same_make and lines.count(key) > 1.6 * base):
            continue
        if same_make or _has_a_place(lines, keys, key, known):
            keys = [*keys, key]
    more = [
        key
        for key, head in lines.heads.items()
        if key not in keys
        and not key.startswith("<")
        and head.strong
        and head.skeleton in skeletons
        and not any(_same_lines(lines, key, other) for other in keys)
    ]
    if len(more) <= _SMALL:
        keys = [*keys, *sorted(more, key=lambda key: (-lines.count(key), key))]
    return sorted(keys, key=lambda key: (-lines.count(key), key))


def _has_a_place(lines: Lines, keys: Sequence[str], key: str, known: bool) -> bool:
    """Does it always stand between the same two heads, and never twice?"""
    found = [mark.head for mark in marks(lines, (*keys, key))]
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for one, two in pairwise(found):
        if two == key:
            before[one] += 1
        if one == key:
            after[two] += 1
    n = lines.count(key)
    least = 0.6 if known else 0.9
    steady = (
        max(before.values(), default=0) >= least * (n - 1)
        and max(after.values(), default=0) >= least * (n - 1)
        and before[key] <= 0.1 * n
    )
    if not steady:
        return False
    if known:
        return True
    # A label inside the text of an event also stands between the same heads: it is another's line, not its own.
    return _starts_block(lines, key) >= 0.8 and _starts_block(lines, keys[0]) >= 0.8


def _diversity(lines: Lines, key: str) -> float:
    """Share of different texts right after a head: what says the same every time is no step."""
    places = lines.places[key][:400]
    said = set()
    for doc, at in places:
        size = sum(len(token.text) for token in lines.heads[key].tokens)
        rest = lines.docs[doc][at][size : size + 80].strip()
        nexts = " ".join(lines.docs[doc][at + 1 : at + 3])[:120] if len(rest) < 12 else ""
        said.add(rest + nexts)
    return len(said) / max(1, len(places))


def _starts_block(lines: Lines, key: str) -> float:
    """Share of its lines that come after a blank line, at the start, or after another head of its make."""
    n = 0
    for doc, at in lines.places[key]:
        n += at == 0 or not lines.docs[doc][at - 1].strip()
    return n / max(1, lines.count(key))


def _prompts(lines: Lines, usable: Sequence[str]) -> list[HeadSet]:
    """One head alone, whose lines are what was typed and whose following lines are what came back."""
    found = []
    for key in usable:
        head = lines.heads[key]
        signs = [token.text for token in head.tokens if token.kind == "sign"]
        if head.whole or not signs or signs[-1] not in PROMPTS:
            continue
        n = lines.count(key)
        share = n / max(1, lines.total)
        if n >= 3 and 0.02 <= share <= 0.6:
            found.append(HeadSet((key,), 0.4 * n, f"{head.name!r} is a prompt: what follows its line came back"))
    return found
