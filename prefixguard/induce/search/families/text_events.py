"""Which heads begin events together, and the pieces of text that they make."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise

from prefixguard.induce.search.families.heads import HeadLine, LogLines
from prefixguard.induce.search.families.text_logs import RunSplit
from prefixguard.induce.search.spoken_names import role_of
from prefixguard.stepview.schema import MOST_PATTERN

#: Heads of one spec; events that are looked at.
MOST_HEADS, MOST_EVENTS = 14, 4000
#: Code points that the name of a head takes in an expression.
LONGEST_NAME = 36


@dataclass(frozen=True, slots=True)
class TextEvent:
    """A piece of the samples as the spec will see it. kind: key of its head. run: number of its run. number: the last
    one in its head, "" where there is none."""

    kind: str
    body: str
    run: int
    number: str = ""


def head_sets(lines: LogLines, marks: Sequence[HeadLine], split: RunSplit, names: bool) -> list[tuple[str, ...]]:
    """Sets of heads that may begin events, the likeliest first."""
    counts = Counter(mark.head.key for mark in marks)
    heads = {key: lines.heads[key] for key in counts}
    runs = len(split.starts)

    def plain(key: str) -> bool:  # a line of words, with nothing that makes it a head
        head = heads[key]
        if head.tokens[0][0] in ("time", "sign") or not head.whole:
            return False
        if not head.worded:
            return counts[key] > 1.5 * runs  # else a line of figures that ends runs
        return not (key.rstrip().endswith(":") or (head.words.isupper() and len(head.words) < 30))

    able = [key for key in counts if counts[key] >= 2 and not plain(key)]
    stamped = {key for key in able if any(kind == "time" for kind, _ in heads[key].tokens[:2])}
    if sum(counts[key] for key in stamped) >= 0.6 * sum(counts[key] for key in able):
        often = sorted(stamped, key=lambda key: (-counts[key], key))[: MOST_HEADS - 1]
        bare = [key for key in counts if [kind for kind, _ in heads[key].tokens] == ["time"] and key not in often]
        return [_fitting(lines, (*often, *bare))]
    again = [key for key in able if counts[key] >= 1.5 * runs]
    styles = Counter(mark.head.skeleton for mark in marks if mark.head.key in again)
    main = styles.most_common(1)[0][0] if styles else ""
    role = {key: role_of(heads[key].words) if names else "" for key in able}
    named = {key for key in again if role[key]}
    strong = {key for key in again if heads[key].strong and heads[key].tokens[0][0] != "num"}
    of_style = {key for key in again if heads[key].skeleton == main}
    fences = {key for key in again if key.startswith("```")}
    whole = {key for key in strong | of_style if lines.spread(key) >= 0.5} | named
    if any(heads[key].worded for key in fences):  # blocks of a language are frames of calls
        whole -= fences
    options = [whole, whole - fences]
    core = {heads[key].skeleton for key in named if role[key] in ("call", "result")}
    if {"call", "result"} <= {role[key] for key in named}:  # they and what looks like them, then all
        kin = {key for key in able if heads[key].skeleton in core and (role[key] in ("call", "result") or key in named)}
        kin |= {key for key in whole if key[0] == "<"}
        options = [kin, *(kin | option for option in options)]
    turns = _in_turns(lines, marks, again, counts) if not named else set()
    kin = {key for key in again if heads[key].skeleton in {heads[one].skeleton for one in turns}}
    options = [*_counted(lines, marks, split, role), *([kin, turns] if turns else []), *options]
    starts = sorted(split.starts)
    per_run: dict[int, list[str]] = {}
    for mark in marks:
        per_run.setdefault(bisect_right(starts, (mark.doc, mark.line)), []).append(mark.head.key)
    reach: Counter[str] = Counter()  # runs that have the head, and those that have it before or behind all others
    outside: Counter[str] = Counter()
    for mine in per_run.values():
        inside = [i for i, key in enumerate(mine) if key in options[0]] or [0]
        reach.update(set(mine))
        outside.update({*mine[: inside[0]], *mine[inside[-1] + 1 :]})
    once = [
        key for key in able if key not in again and counts[key] <= 1.2 * reach[key] and key != split.own
        and reach[key] >= (0.3 if role[key] in ("user", "noise") else 0.8) * runs and outside[key] >= 0.7 * reach[key]
    ]  # fmt: skip
    kin = {heads[key].skeleton for key in options[0]}
    once.sort(key=lambda key: (not role[key], heads[key].skeleton not in kin, -counts[key], key))
    once = once[:4] if len(once) <= 12 else []
    out: list[tuple[str, ...]] = []
    for option in options:
        kept = _fitting(lines, (*sorted(option, key=lambda key: (-counts[key], key))[:MOST_HEADS], *once))
        if kept and kept not in out:
            out.append(kept)
    return out


def _in_turns(
    lines: LogLines, marks: Sequence[HeadLine], again: Sequence[str], counts: Mapping[str, int]
) -> set[str]:
    """Two heads of one form, with words, that take turns in all parts of the samples; none where there are none."""
    often = [key for key in sorted(again, key=lambda key: (-counts[key], key)) if lines.heads[key].worded][:8]
    for a, b in combinations([key for key in often if lines.spread(key) >= 0.9], 2):
        seen = [mark.head.key for mark in marks if mark.head.key in (a, b)]
        turns = sum(one != two for one, two in pairwise(seen))
        if lines.heads[a].skeleton == lines.heads[b].skeleton and turns >= 0.9 * len(seen):
            return {a, b}
    return set()


def _counted(lines: LogLines, marks: Sequence[HeadLine], split: RunSplit, role: Mapping[str, str]) -> list[set[str]]:
    """Heads that count the steps of runs, 1, 2, 3, each with a head of another side that stands once between two of
    them: what is printed around them is no event."""
    starts = sorted(split.starts)
    places: dict[str, list[int]] = {}
    counted: Counter[str] = Counter()
    last: dict[str, tuple[int, int]] = {}
    for i, mark in enumerate(marks):
        number = re.search(r"\d{1,6}", lines.docs[mark.doc][mark.line][: mark.size]) if mark.head.worded else None
        if number is not None:
            key, run = mark.head.key, bisect_right(starts, (mark.doc, mark.line))
            places.setdefault(key, []).append(i)
            counted[key] += last.get(key) == (run, int(number[0]) - 1)
            last[key] = run, int(number[0])
    out = []
    for key, at in places.items():
        if counted[key] >= max(4, 0.7 * len(at)) and lines.spread(key) >= 0.25:
            gaps = [Counter(mark.head.key for mark in marks[a + 1 : b]) for a, b in pairwise([*at, len(marks)])]
            others = [other for other, said in role.items() if said in ("user", "result", "tool")]
            out += [{key, one} for one in others if sum(gap[one] == 1 for gap in gaps) >= 0.7 * len(gaps)]
    return out


def _fitting(lines: LogLines, heads: tuple[str, ...]) -> tuple[str, ...]:
    """As many of the heads, from the first, as one expression may hold."""
    sizes = accumulate(len(lines.heads[key].regex()) + LONGEST_NAME for key in heads)
    return tuple(key for key, size in zip(heads, sizes, strict=True) if size <= MOST_PATTERN)


def events_of(lines: LogLines, marks: Sequence[HeadLine], heads: frozenset[str], split: RunSplit) -> list[TextEvent]:
    starts = sorted(split.starts)
    at = set(starts)
    kept = [mark for mark in marks if mark.head.key in heads or (mark.doc, mark.line) in at]
    out: list[TextEvent] = []
    for i, mark in enumerate(kept):
        after = kept[i + 1] if i + 1 < len(kept) else None
        run = bisect_right(starts, (mark.doc, mark.line)) - 1
        if mark.head.key not in heads or run < 0:
            continue
        whole = lines.docs[mark.doc]
        stop = after.line if after is not None and after.doc == mark.doc else len(whole)
        text = "\n".join([whole[mark.line][mark.size :], *whole[mark.line + 1 : stop]])
        out.append(TextEvent(mark.head.key, text[:12_000].strip(), run, mark.number))
        if len(out) >= MOST_EVENTS:
            break
    return out


def inner_heads(events: Sequence[TextEvent]) -> frozenset[str]:
    """Heads that only stand right under a head without text of its own: they are its text."""
    tally = Counter(event.kind for event in events)
    pairs = Counter((one.kind, two.kind) for one, two in pairwise(events) if not one.body and one.run == two.run)
    found = {}
    for kind in tally:
        above = {one for (one, two), n in pairs.items() if two == kind and one != kind and n >= 0.9 * tally[one]}
        if above and sum(pairs[one, kind] for one in above) >= 0.9 * tally[kind]:
            found[kind] = above
    return frozenset(kind for kind, above in found.items() if not above & found.keys())
