"""Kinds of events: which field tells them apart, by what else depends on it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.places import Place, own_leaves, spell
from prefixguard.induce.offline.speakers import part_of
from prefixguard.lexicon import Meaning, affinity

#: Most values a field that tells kinds apart may have.
MOST_KINDS = 40


@dataclass(frozen=True, slots=True)
class Kind:
    """Elements that one condition picks. when: places and the values they have (True: present, False: absent).
    members: positions in the list that was divided."""

    when: tuple[tuple[Place, Any], ...]
    members: tuple[int, ...]

    @property
    def label(self) -> str:
        return ", ".join(f"{spell('@', place)} = {value}" for place, value in self.when) or "all"


class _Test:
    """Stands where a condition has no value: the field is there, or it is not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


PRESENT, ABSENT = _Test("present"), _Test("absent")
#: Stands for an object or a list, which no condition can name as a value.
HOLDS = _Test("an object or a list")


def divide(
    elements: Sequence[Any],
    runs: Sequence[int] | None = None,
    *,
    hint: str | None = None,
    depth: int = 2,
    reach: int = 2,
) -> list[Kind]:
    """Kinds of the elements (objects). runs: run of each element, in order, where the order means something. hint:
    path of the field that tells them apart. depth: fields, one inside another. reach: how deep a place may lie to speak
    for a division."""
    members = [i for i, element in enumerate(elements) if isinstance(element, dict)]
    shapes = {i: _shape(elements[i], reach) for i in members}
    return _divide(elements, members, shapes, runs, hint, depth, ())


def _divide(
    elements: Sequence[Any],
    members: Sequence[int],
    shapes: Mapping[int, Mapping[Place, Any]],
    runs: Sequence[int] | None,
    hint: str | None,
    depth: int,
    used: tuple[Place, ...],
) -> list[Kind]:
    whole = [Kind((), tuple(members))]
    if depth == 0 or len(members) < 2:
        return whole
    place = _best(members, shapes, runs, hint, used)
    if place is None:
        key = _telling_key(members, shapes) if not used and runs is not None else None
        if key is None:
            return whole
        have = tuple(i for i in members if shapes[i].get(key) not in (None, "", "[]", "{}"))
        lack = tuple(i for i in members if i not in set(have))
        return [Kind(((key, PRESENT),), have), Kind(((key, ABSENT),), lack)]
    parts: dict[Any, list[int]] = defaultdict(list)
    for i in members:
        parts[_value(shapes[i].get(place))].append(i)
    out = []
    for value, inside in sorted(parts.items(), key=lambda kv: (-len(kv[1]), str(kv[0]))):
        for kind in _divide(elements, inside, shapes, runs, None, depth - 1, (*used, place)):
            test = (place, value) if value is not None else (place, ABSENT)
            out.append(Kind((test, *kind.when), kind.members))
    return out


def _shape(element: dict[str, Any], reach: int) -> dict[Place, Any]:
    """Places of the element with their scalars; objects and lists as HOLDS."""
    found: dict[Place, Any] = {}
    for place, value in own_leaves(element):
        if len(found) > 200:
            break
        if len(place) > reach + 1:
            place, value = place[: reach + 1], HOLDS
        if isinstance(value, list):
            found[place] = HOLDS if value else None
        else:
            found[place] = value
        for cut in range(1, len(place)):
            found.setdefault(place[:cut], HOLDS)
    return found


def _value(value: Any) -> Any:
    return value if isinstance(value, str | bool) and value != "" else None


def _entropy(items: Sequence[Hashable]) -> float:
    n = len(items)
    return -sum(k / n * math.log(k / n) for k in Counter(items).values()) if n else 0.0


def _gain(labels: Sequence[Hashable], by: Sequence[Hashable]) -> float:
    """Share of the labels' entropy that knowing `by` removes."""
    whole = _entropy(labels)
    if whole <= 1e-9:
        return 0.0
    groups: dict[Hashable, list[Hashable]] = defaultdict(list)
    for label, key in zip(labels, by, strict=True):
        groups[key].append(label)
    return 1 - sum(len(group) / len(labels) * _entropy(group) for group in groups.values()) / whole


def _best(
    members: Sequence[int],
    shapes: Mapping[int, Mapping[Place, Any]],
    runs: Sequence[int] | None,
    hint: str | None,
    used: tuple[Place, ...],
) -> Place | None:
    n = len(members)
    there: Counter[Place] = Counter()
    values: dict[Place, Counter[Any]] = defaultdict(Counter)
    for i in members:
        for place, value in shapes[i].items():
            if len(place) > 5 or place in used or None in place:
                continue
            if isinstance(value, str | bool) and value != "" and len(str(value)) <= 60:
                there[place] += 1
                if len(values[place]) <= MOST_KINDS:
                    values[place][value] += 1
    if hint is not None:
        return next((place for place in there if spell("@", place) == hint), None)
    signatures = _signatures(members, shapes)
    best: tuple[float, str, Place] | None = None
    for place, present in there.items():
        distinct = values[place]
        k = len(distinct)
        name = spell("@", place)
        if affinity(name, Meaning.AFTER_END) >= 0.9:
            continue  # why the model stopped, how it ended: not what the event is
        if not 2 <= k + (present < n) <= MOST_KINDS or k < 1:
            continue
        if k > max(2, n / 3) and (k >= n or _spoken(distinct) <= 0.6):
            continue  # few share a value, and the values do not say who speaks
        if present < 0.9 * n and not (present >= 0.25 * n and _spoken(distinct) > 0.6):
            continue
        worded = sum(count for value, count in distinct.items() if isinstance(value, str) and value.count(" ") > 2)
        if worded > 0.5 * present:
            continue  # sentences
        by = [_value(shapes[i].get(place)) for i in members]
        gain = _gain(signatures, by) if used or _entropy(signatures) > 0.05 else 0.0
        follow = _follows(members, by, runs) if runs is not None else 0.0
        spoken = _spoken(distinct)
        rarely = sum(count for count in distinct.values() if count == 1) / present
        score = 0.6 * gain + 0.35 * follow + 0.9 * spoken + 0.25 * affinity(name, Meaning.ROLE)
        turns = follow >= 0.9 and k <= 4 and not any(c.isdigit() for value in distinct for c in str(value))
        score += 0.15 * turns  # few values, in strict turns, and no counter
        score -= 0.3 * (present < 0.9 * n) + 0.5 * rarely + 0.01 * k + 0.03 * len(place)
        score -= 0.5 * all(isinstance(value, bool) for value in distinct)
        named = affinity(name, Meaning.TOOL) >= 0.5 and affinity(name, Meaning.ROLE) < 0.9
        least = 2 if runs is None and _has_ids(members, shapes) else 3
        if spoken < 0.5 and named and _decides_keys(members, shapes, place, least):
            continue  # it names the tool
        if runs is None and spoken < 0.5 and (k > 8 or affinity(name, Meaning.TOOL) > affinity(name, Meaning.ROLE)):
            continue
        if used and (k < 2 or (spoken < 0.5 and (gain < 0.5 or affinity(name, Meaning.ROLE) < 0.5))):
            continue
        if best is None or (-score, name) < (-best[0], best[1]):
            best = score, name, place
    return best[2] if best is not None and best[0] > (0.45 if used else 0.35) else None


def _has_ids(members: Sequence[int], shapes: Mapping[int, Mapping[Place, Any]]) -> bool:
    """Has every element a text of its own at some place without blanks, as calls have?"""
    first = [place for place, value in shapes[members[0]].items() if isinstance(value, str) and len(place) == 1]
    for place in first:
        found = {str(shapes[i].get(place)) for i in members}
        if len(found) == len(members) >= 4 and not any(" " in value for value in found):
            return True
    return False


def _decides_keys(members: Sequence[int], shapes: Mapping[int, Mapping[Place, Any]], place: Place, least: int) -> bool:
    """Do the values of the place decide which keys an object beside it has, as a tool decides its arguments? least:
    names, and sets of keys, that there must be."""
    beside = {p[: len(place)] for i in members for p in shapes[i] if len(p) == len(place) + 1 and p[:-2] == place[:-1]}
    for holder in sorted(beside, key=str):
        by: dict[Any, Counter[frozenset[Place]]] = defaultdict(Counter)
        for i in members:
            keys = frozenset(p for p in shapes[i] if p[:-1] == holder)
            if keys and place in shapes[i]:
                by[shapes[i][place]][keys] += 1
        usual = sum(counts.most_common(1)[0][1] for counts in by.values())
        kinds = {keys for counts in by.values() for keys in counts}
        if len(by) >= least and len(kinds) >= least and usual >= 0.7 * sum(counts.total() for counts in by.values()):
            return True
    return False


def _signatures(members: Sequence[int], shapes: Mapping[int, Mapping[Place, Any]]) -> list[frozenset[Place]]:
    """Which of the places that some have and some have not each element has: the 24 most telling of the outermost
    level that tells anything. Further in, the arguments of calls differ, and say nothing of kinds."""
    n = len(members)
    count: Counter[Place] = Counter()
    for i in members:
        for place, value in shapes[i].items():
            if value is not None and value != "":
                count[place] += 1
    varied = [place for place, k in count.items() if 0.02 * n < k < 0.98 * n]
    level = min((len(place) for place in varied), default=0)
    telling = sorted((p for p in varied if len(p) == level), key=lambda p: (abs(count[p] / n - 0.5), str(p)))[:24]
    return [
        frozenset(place for place in telling if shapes[i].get(place) is not None and shapes[i].get(place) != "")
        for i in members
    ]


def _spoken(distinct: Counter[Any]) -> float:
    """Share of the elements whose value is a word for who speaks, if at least two parts are named."""
    total = sum(distinct.values())
    parts = set()
    said = 0.0
    for value, count in distinct.items():
        found = part_of(value) if isinstance(value, str) else None
        if found is not None:
            parts.add(found[0])
            said += count * found[1]
    return said / total if len(parts) >= 2 else 0.3 * said / total


def _follows(members: Sequence[int], by: Sequence[Any], runs: Sequence[int]) -> float:
    """How much of a value the value before it tells."""
    before, after = [], []
    for a, b, x, y in zip(members, members[1:], by, by[1:], strict=False):
        if runs[a] == runs[b]:
            before.append(x)
            after.append(y)
    return _gain(after, before) if after else 0.0


def _telling_key(members: Sequence[int], shapes: Mapping[int, Mapping[Place, Any]]) -> Place | None:
    """The key that best divides elements which no field names: some have it, others have others."""
    n = len(members)
    signatures = _signatures(members, shapes)
    if _entropy(signatures) < 0.4:
        return None
    best: tuple[float, str, Place] | None = None
    for place in sorted({place for signature in signatures for place in signature}, key=str):
        if len(place) > 2 or None in place:
            continue
        by = [place in signature for signature in signatures]
        share = sum(by) / n
        if not 0.1 <= share <= 0.9:
            continue
        score = _gain(signatures, by)
        if best is None or (-score, str(place)) < (-best[0], best[1]):
            best = score, str(place), place
    return best[2] if best is not None and best[0] > 0.5 else None
