"""Lists in JSON samples that could be events: of objects, of short lists, or parallel lists of texts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from prefixguard.induce.offline.places import DEEPEST, Place, find, own_leaves, text_size
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import decode, decode_text

#: Nodes of a document that are walked; what comes later in it counts as not there.
MOST_NODES = 400_000
#: Characters of one string that count: a patch or a page beside the events shall not make them look small.
LONGEST = 4000
#: Stands in a place for "the JSON that this string holds".
INSIDE = "\x00json"


@dataclass(slots=True)
class EventArray:
    """A list at one place over all documents.

    columns: names of parallel lists, () where the list is one; pads, optional: those of them that may be one shorter,
    or missing. size: characters of all strings inside, of each at most LONGEST. lengths: elements of each instance.
    documents: positions of the documents that have one.
    """

    place: Place
    columns: tuple[str, ...] = ()
    pads: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    size: int = 0
    lengths: list[int] = field(default_factory=list)
    documents: set[int] = field(default_factory=set)


def survey(values: Sequence[Any]) -> tuple[list[EventArray], int]:
    """Lists of the documents that could be events, the largest first, and the characters of all strings walked, counted
    as in `EventArray.size`."""
    arrays: dict[tuple[Place, tuple[str, ...]], EventArray] = {}
    zips: dict[Place, list[tuple[int, dict[str, int], int]]] = defaultdict(list)
    walked = sum(_walk(value, (), number, arrays, zips, [MOST_NODES]) for number, value in enumerate(values))
    for place, instances in sorted(zips.items(), key=lambda kv: str(kv[0])):
        array = _zip_of(place, instances)
        if array is not None:
            arrays[place, array.columns] = array
    return sorted(arrays.values(), key=lambda array: (-array.size, str(array.place))), walked


def is_map(value: dict[str, Any]) -> bool:
    """Is the object a list in disguise: keys are ids, values alike?

    >>> is_map({"0": {"a": 1}, "1": {"a": 2}, "2": {"a": 3}})
    True
    """
    if not value or not all(isinstance(item, dict) for item in value.values()):
        return False
    if all(key.isdecimal() for key in value):
        return True
    if len(value) < 3:
        return False
    shapes = [frozenset(item) for item in list(value.values())[:50]]
    common = frozenset.intersection(*shapes)
    union = frozenset.union(*shapes)
    if not common or len(common) < 0.5 * len(union):
        return False
    numbered = all(re.search(r"\d", key) for key in list(value)[:50])
    return numbered or len(value) >= 8


def _walk(
    value: Any,
    place: Place,
    number: int,
    arrays: dict[tuple[Place, tuple[str, ...]], EventArray],
    zips: dict[Place, list[tuple[int, dict[str, int], int]]],
    left: list[int],
) -> int:
    """Characters of the strings in the value, as far as it is walked."""
    left[0] -= 1
    if left[0] < 0 or len(place) > DEEPEST:
        return 0
    if isinstance(value, dict):
        if is_map(value):
            return _list(list(value.values()), place, number, arrays, zips, left)
        size = 0
        lists: dict[str, list[Any]] = {}
        for key, item in value.items():
            if isinstance(item, list) and item and not any(isinstance(one, dict | list) for one in item[:50]):
                lists[str(key)] = item
            else:
                size += _walk(item, (*place, str(key)), number, arrays, zips, left)
        if lists:
            texts = sum(_text(one) for items in lists.values() for one in items)
            zips[place].append((number, {key: len(item) for key, item in lists.items()}, texts))
            size += texts
        return size
    if isinstance(value, list):
        return _list(value, place, number, arrays, zips, left)
    if isinstance(value, str):
        if len(value) > 40 and value.lstrip()[:1] in ("[", "{") and (inner := parse_inside(value)) is not None:
            _walk(inner, (*place, INSIDE), number, arrays, zips, left)
        return _text(value)
    return 0


def _text(value: Any) -> int:
    return min(len(value), LONGEST) if isinstance(value, str) else 0


def parse_inside(value: str) -> Any:
    """The list or object that a string holds as JSON; None where it holds none."""
    try:
        try:
            inner = decode(value.encode("utf-8"))
        except UnicodeEncodeError:
            inner = decode_text(value)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, dict | list) else None


def _list(
    items: list[Any],
    place: Place,
    number: int,
    arrays: dict[tuple[Place, tuple[str, ...]], EventArray],
    zips: dict[Place, list[tuple[int, dict[str, int], int]]],
    left: list[int],
) -> int:
    """The same of a list, or of the values of an object that is one in disguise."""
    inside = (*place, None)
    if items and all(isinstance(item, dict) and set(item) == {"key", "value"} for item in items):
        return text_size(items)  # typed attributes: one object, not a list
    size = sum(_walk(item, inside, number, arrays, zips, left) for item in items)
    objects = sum(isinstance(item, dict) for item in items)
    pairs = sum(isinstance(item, list) and 2 <= len(item) <= 4 for item in items)
    if items and (objects >= 0.8 * len(items) or pairs >= 0.9 * len(items)):
        array = arrays.setdefault((inside, ()), EventArray(inside))
        array.size += size
        array.lengths.append(len(items))
        array.documents.add(number)
    return size


def _zip_of(place: Place, instances: list[tuple[int, dict[str, int], int]]) -> EventArray | None:
    """Parallel lists: those that are as long as the longest, or nearly, in most of the objects that hold them."""
    together: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for _, sizes, _ in instances:
        longest = max(sizes.values())
        for name, n in sizes.items():
            there[name] += 1
            together[name] += longest - 1 <= n <= longest
    names = sorted(
        name for name, n in together.items() if n >= 0.8 * there[name] and there[name] >= 0.05 * len(instances)
    )
    if len(names) < 2:
        return None
    pads = [
        name
        for name in names
        if any(name in sizes and sizes[name] < max(sizes.get(other, 0) for other in names) for _, sizes, _ in instances)
    ]
    if len(pads) == len(names):
        return None
    holders = [sizes for _, sizes, _ in instances if any(name in sizes for name in names)]
    optional = [name for name in names if there[name] < len(holders)]
    if len(optional) == len(names):
        return None
    array = EventArray(place, tuple(names), tuple(pads), tuple(optional))
    for number, sizes, size in instances:
        if any(name in sizes for name in names):
            array.size += size
            array.lengths.append(max(sizes.get(name, 0) for name in names))
            array.documents.add(number)
    return array


def levels(place: Place, values: Sequence[Any]) -> list[Place]:
    """Places that can be the run for events at `place`: the document, and elements of outer lists whose own fields
    differ from one to the next."""
    out: list[Place] = [()]
    stars = [i for i, step in enumerate(place) if step is None]
    for i in stars[:-1] if place and place[-1] is None else stars:
        level = place[: i + 1]
        if INSIDE not in level and _independent(level, values):
            out.append(level)
    return out


def _independent(level: Place, values: Sequence[Any]) -> bool:
    """Have the elements fields of their own, at any depth outside lists, that differ and do not just count them? What
    is called an id may count."""
    seen: dict[Place, set[Any]] = defaultdict(set)
    telling: set[Place] = set()
    n = 0
    for value in values:
        for i, element in enumerate(find(value, level)[:200]):
            n += 1
            if not isinstance(element, dict):
                return False
            for place, item in islice(own_leaves(element), 200):
                if isinstance(item, str | int | float | bool) and len(str(item)) < 400:
                    seen[place].add(item)
                    counts = item in (i, i + 1) and not isinstance(item, str | bool)
                    if not counts or affinity(place[-1] or "", Meaning.RUN_ID) >= 0.5:
                        telling.add(place)
        if n > 2000:
            break
    return n >= 2 and any(len(items) > 1 and place in telling for place, items in seen.items())
