"""What elements of a list hold: fields with their values, lists inside them, and ways to tell kinds of elements apart.

A node is a set of elements that a rule can act on: the events of one kind, or the elements of a list inside them. Its
fields are places in an element; lists of objects inside it are nodes of their own.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from prefixguard.induce.search.places import Place, spell
from prefixguard.stepview import canonical, decode_text

#: Stands in a path for "the JSON that this string holds".
#: Names below an element that are looked at; fields of one node; nodes below each other.
INSIDE = "\x00json"
_REACH, _MOST_FIELDS, _DEEPEST = 5, 120, 3
#: JSON texts up to this length are kept opened, the last few thousand of them.
_LONGEST_KEPT = 5_000
#: Names of a field's object beyond which they are data.
_MOST_NAMES = 40
#: Values of a field below which the kind of the field is that of the whole.
_FEW = 8
#: Values of a discriminator.
MOST_KINDS = 24
#: What tells kinds apart that are parts inside parts.
PARTS = "keys inside"
_IDENTIFIER = re.compile(r"[^\W\d][\w.:/\-]{0,63}\Z")


@dataclass(slots=True, eq=False)
class Field:
    """A place in the elements of a node. values: by position of the element, only where something is there (not null,
    not empty). n: elements of the node. also: the other place, where some elements have it elsewhere."""

    place: Place
    values: dict[int, Any]
    n: int
    also: Field | None = None
    _kind: str = ""

    @property
    def share(self) -> float:
        """Share of the elements that have something there."""
        return len(self.values) / max(1, self.n)

    @property
    def name(self) -> str:
        return spell("@", self.place)

    @property
    def kind(self) -> str:
        """`flag`, `number`, `object`, `json` (a string that spells an object or a list), `list`, `id`, `word` or
        `text`."""
        if not self._kind:
            self._kind = _kind_of(list(self.plain.values()))
        return self._kind

    @property
    def is_mixed(self) -> bool:
        """Texts in some elements, lists of objects in others?"""
        kinds = {type(value) for value in self.values.values()}
        return str in kinds and list in kinds and any(_of_objects(value) for value in self.values.values())

    @property
    def plain(self) -> dict[int, Any]:
        """The values; of a field that holds texts or lists of objects, the texts."""
        return {i: v for i, v in self.values.items() if isinstance(v, str)} if self.is_mixed else self.values

    @property
    def distinct(self) -> int:
        return len({_key(value) for value in self.values.values()})

    @property
    def mass(self) -> int:
        """Characters of its texts, each text once."""
        return sum({hash(v): min(len(v), 2000) for v in self.values.values() if isinstance(v, str)}.values())


def _of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _key(value: Any) -> Hashable:
    return value if isinstance(value, str | int | float) else repr(value)[:200]


def opened_json(text: Any) -> Any:
    """The object or list that a string spells; None where it spells none."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return None
    return _opened(text) if len(text) <= _LONGEST_KEPT else _opened.__wrapped__(text)


@lru_cache(maxsize=4096)
def _opened(text: str) -> Any:
    try:
        found = decode_text(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def is_attributes(value: Any) -> bool:
    """Is the list an object in disguise, of pairs with a key and a value?"""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and isinstance(one.get("key"), str) and "value" in one for one in value)
    )


def written(value: Any) -> Any:
    """A part of a spec with paths that go on inside JSON of a string as the spec says it.

    >>> written({"text": f"@.reply{INSIDE}[*].text"})
    {'text': {'json': '@.reply', 'path': '$[*].text'}}
    """
    if isinstance(value, str) and INSIDE in value:
        path, _, inner = value.partition(INSIDE)
        return {"json": path, "path": f"${inner}"} if inner else {"json": path}
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for key, item in value.items():
            if INSIDE not in key:
                out[key] = written(item)
            elif "value" not in value and "value" not in out:
                out |= {"value": written(key), "is": item}
            else:
                out["not"] = {"value": written(key), "is": {"not": item}}
        return out
    return [written(item) for item in value] if isinstance(value, list) else value


_TIME = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d\d?[./]\d\d?[./]\d{4})(?:T|,? )\d\d?:\d\d")


def is_time(value: Any) -> bool:
    """A time, as text or in units since 1970."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= 19:
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return any(1e9 * unit <= value < 2.5e9 * unit for unit in (1, 1e3, 1e6, 1e9))
    return isinstance(value, str) and bool(_TIME.match(value))


def _kind_of(values: Sequence[Any]) -> str:
    values = values[:400]
    if not values:
        return "list"
    if all(isinstance(v, bool) for v in values):
        return "flag"
    if all(isinstance(v, int | float) for v in values):
        return "number"
    if sum(isinstance(v, dict) for v in values) >= 0.8 * len(values):
        return "object"
    if sum(isinstance(v, list) for v in values) >= 0.8 * len(values):
        return "list"
    texts = [v for v in values if isinstance(v, str)]
    if len(texts) < 0.5 * len(values):
        return "object"
    if sum(isinstance(opened_json(v), dict | list) for v in texts) >= 0.8 * len(texts):
        return "json"
    blanks = sum(" " in v.strip() or "\n" in v.strip() or len(v) > 120 or not v.isascii() for v in texts) / len(texts)
    if blanks > 0.3:
        return "text"
    names = sum(bool(_IDENTIFIER.match(v)) for v in texts) / len(texts)
    several = len(set(texts)) / len(texts)
    digits = sum(any(c.isdigit() for c in v) for v in texts) / len(texts)
    if several > 0.6 and (digits > 0.5 or names < 0.5) and len(texts) >= 4:
        return "id" if digits > 0.5 and sum(len(v) for v in texts) >= 3 * len(texts) else "text"
    return "word" if names > 0.5 or several < 0.5 else "text"


@dataclass(slots=True, eq=False)
class Node:
    """Elements that a rule can act on.

    each: path of the elements from the event ("@.calls[*]"); "" where they are the events themselves. elements: dicts,
    or plain values. owner: position of the event of each element, over all events of all runs. runs: number of the run
    of each. when: what tells these elements from others. above: of inner nodes, the position of the element that each
    stands in. whole: the node that these are some of. calls: ways to read calls from them, once they were looked for.
    speaker: the path that names who of a team each is of.
    """

    each: str
    elements: list[Any]
    owner: list[int]
    runs: list[int]
    when: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    depth: int = 0
    above: list[int] = field(default_factory=list)
    whole: Node | None = None
    calls: list[Any] = field(default_factory=list)
    speaker: str = ""
    _fields: dict[Place, Field] | None = None
    _inner: list[Node] | None = None
    _histories: list[Node] = field(default_factory=list)
    _data: tuple[Place, ...] | None = None

    @property
    def data(self) -> tuple[Place, ...]:
        """Objects whose names are data: they differ from element to element."""
        if self._data is None:
            self._data = tuple(one.place for one in self.fields.values() if one.kind == "object" and _varies(one))
        return self._data

    @property
    def is_data(self) -> bool:
        """Are the elements objects whose names are data?"""
        whole = Field((self.label,), dict(enumerate(self.elements)), len(self.elements))
        return bool(self.each) and whole.kind == "object" and _varies(whole)

    @property
    def is_part(self) -> bool:
        """Are the elements objects under a key that tells them from others of their list?"""
        return bool(self.each) and not self.each.endswith("]") and isinstance(self.elements[0], dict)

    @property
    def fields(self) -> dict[Place, Field]:
        if self._fields is None:
            self._fields = _fields_of(self.elements)
            for place, found in self._fields.items():
                if self.whole is not None and len(found.values) < _FEW and place in self.whole.fields:
                    found._kind = self.whole.fields[place].kind  # a few values do not tell what all of them are
        return self._fields

    @property
    def inner(self) -> list[Node]:
        """Lists of objects in the elements, whole and by kind."""
        if self._inner is None:
            self._inner = list(_inner_of(self)) if self.depth < _DEEPEST else []
        return self._inner

    @property
    def histories(self) -> list[Node]:
        """Lists in the elements that say again what those of elements before said."""
        return self._histories if self.inner is not None else []

    def only(self, members: Sequence[int], when: Mapping[str, Any], label: str) -> Node:
        """Some of the elements, told apart by a condition."""
        return Node(
            self.each,
            [self.elements[i] for i in members],
            [self.owner[i] for i in members],
            [self.runs[i] for i in members],
            {**self.when, **when},
            label,
            self.depth,
            [self.above[i] for i in members] if self.above else [],
            self,
        )


def _varies(one: Field) -> bool:
    names = Counter(frozenset(value) for value in one.values.values() if isinstance(value, dict))
    if names.total() < 4 or not one.place:
        return False
    if len(frozenset.union(*names)) <= 2 * sum(len(keys) * n for keys, n in names.items()) / names.total():
        return False  # one of few parts left out
    return max(names.values()) < 0.7 * names.total() and len(frozenset.intersection(*names)) <= 1


def _fields_of(elements: Sequence[Any]) -> dict[Place, Field]:
    values: dict[Place, dict[int, Any]] = defaultdict(dict)
    for i, element in enumerate(elements):
        if not isinstance(element, dict | list):
            values[()][i] = element
            continue
        for place, value in _leaves(element, (), 0):
            if value is not None and value not in ("", [], {}) and (place in values or len(values) < _MOST_FIELDS):
                values[place][i] = value
    n = len(elements)
    return {place: Field(place, found, n) for place, found in values.items()}


def _leaves(value: Any, place: Place, depth: int) -> Iterator[tuple[Place, Any]]:
    """Fields of an object, objects included; elements of a short list of other things by position."""
    if isinstance(value, dict):
        if place:
            yield place, value
        if depth < _REACH and len(value) <= _MOST_NAMES:
            for key, item in value.items():
                yield from _leaves(item, (*place, str(key)), depth + 1)
    elif isinstance(value, list):
        if place:
            yield place, value
        if 0 < len(value) <= 4 and depth < _REACH and not (place and _alike(value)):
            for i, item in enumerate(value):
                yield from _leaves(item, (*place, f"[{i}]"), depth + 1)
    else:
        yield place, value


def _alike(value: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in value)


def _inner_of(node: Node) -> Iterator[Node]:
    for place, found in node.fields.items():
        lists, inside = found.values, ""
        if found.kind == "json":
            lists, inside = {i: opened_json(v) for i, v in found.values.items()}, INSIDE
        lists = {i: v for i, v in lists.items() if isinstance(v, list) and v and isinstance(v[0], dict | list)}
        lists = {i: v for i, v in lists.items() if not is_attributes(v)}
        if not lists or (len(lists) < 0.5 * len(found.values) and not found.is_mixed):
            continue
        base = spell(node.each or "@", place) + inside
        whole = _flat(node, f"{base}[*]", lists)
        if whole is None:
            continue
        if _is_history(whole):
            node._histories.append(whole)
            continue
        split = _mixed(whole)
        if split is None or any("present" in str(one.when) and split.by != "keys" for one in split.nodes):
            yield whole
        else:
            yield from (_narrowed(one, base) for one in split.nodes)


def _is_history(whole: Node) -> bool:
    """Does each element say again what those before it said?"""
    if whole.depth > 1 or len(whole.elements) < 12:
        return False
    sizes = Counter(whole.above)
    seen = {(run, hash(canonical(element))) for run, element in zip(whole.runs, whole.elements, strict=True)}
    return max(sizes.values()) >= 4 and len(seen) < 0.6 * len(whole.elements)


def _mixed(whole: Node) -> KindSplit | None:
    """The way to tell the kinds of a list's elements apart; None where they are all of one kind: the same keys."""
    best: tuple[float, KindSplit] | None = None
    for split in kinds_of(whole):
        keys = [set().union(*(e for e in one.elements if isinstance(e, dict))) for one in split.nodes]
        apart = [len(a & b) / len(a | b) for i, a in enumerate(keys) for b in keys[i + 1 :] if a | b]
        if not apart or min(apart) > 0.5:
            continue
        worth = split.gain - sum(apart) / len(apart)
        if best is None or worth > best[0]:
            best = worth, split
    return None if best is None else best[1]


def _flat(node: Node, each: str, lists: Mapping[int, list[Any]]) -> Node | None:
    found = [(i, item) for i, items in lists.items() for item in items if isinstance(item, dict)]
    above = [i for i, _ in found]
    owner, runs = [node.owner[i] for i in above], [node.runs[i] for i in above]
    elements = [item for _, item in found]
    return Node(each, elements, owner, runs, depth=node.depth + 1, above=above) if elements else None


def _narrowed(node: Node, base: str) -> Node:
    """Elements of one kind of a list, by a filter of the path, or by the key that only they have."""
    (path, test), *_ = node.when.items()
    name = path.removeprefix("@.")
    if isinstance(test, dict):  # a key that is there
        inner = [(i, e[name]) for i, e in enumerate(node.elements) if isinstance(e, dict) and name in e]
        members = [i for i, _ in inner]
        return Node(
            f"{base}[*].{name}",
            [value for _, value in inner],
            [node.owner[i] for i in members],
            [node.runs[i] for i in members],
            label=name,
            depth=node.depth,
            above=[node.above[i] for i in members],
        )
    each = f"{base}[{name}={test}]"
    return Node(each, node.elements, node.owner, node.runs, label=str(test), depth=node.depth, above=node.above)


@dataclass(slots=True, eq=False)
class KindSplit:
    """A way to tell kinds of elements apart. nodes: one a kind. gain: how much of the differences in shape it explains,
    and how well the kinds follow each other; the higher, the better. of: the way that it divides once more. sides: by
    who speaks, a user or the agent."""

    nodes: list[Node]
    gain: float
    by: str
    of: str = ""
    sides: bool = False


#: Share of the values of a field that must be names for it to tell kinds.
_NAMED = 0.95


def kinds_of(node: Node) -> list[KindSplit]:
    """Ways to divide the elements into kinds, best first; never empty of a way unless nothing divides them."""
    n = len(node.elements)
    if n < 2:
        return []
    shapes = [frozenset(_shape(element)) for element in node.elements]
    whole = _entropy(shapes)
    found: list[KindSplit] = []
    for place, column in node.fields.items():
        if not 1 < column.distinct <= MOST_KINDS or column.share < 0.2:
            continue
        named = {i: v for i, v in column.values.items() if isinstance(v, str) and 0 < len(v) <= 60}
        values = list(named.values())
        if len(values) < _NAMED * len(column.values) or any(v.count(" ") > 2 for v in values):
            continue
        if column.distinct > max(2, 0.4 * n) or sum(sum(c.isdigit() for c in v) >= 4 for v in values) > 0.5 * len(
            values
        ):
            continue
        members: dict[str, list[int]] = defaultdict(list)
        for i, v in named.items():
            members[v].append(i)
        inside = sum(len(m) / n * _entropy([shapes[i] for i in m]) for m in members.values())
        gain = (whole - inside) / (whole or 1.0) if whole > 0.01 else 0.0
        gain = 0.6 * gain + 0.4 * _follows(node, column) - 0.02 * len(place) - 0.01 * column.distinct
        path = spell("@", place)
        nodes = [node.only(m, {path: v}, v) for v, m in members.items()]
        without = [i for i in range(n) if i not in column.values]
        if without:
            nodes.append(node.only(without, {path: {"present": False}}, ""))
            gain -= 0.05 + 0.5 * (1 - column.share)
        found.append(KindSplit(nodes, gain, path))
    found += _by_key(node, shapes, whole)
    found += _by_stem(node, shapes, whole)
    found += _merged(found)
    return sorted(found, key=lambda split: -split.gain)


def by_type(node: Node) -> list[Node]:
    """The node divided by whether a field of it is a text or a list of objects; the node alone where none is both."""
    mixed = next((one for one in node.fields.values() if one.is_mixed and len(one.place) <= 2), None)
    if mixed is None:
        return [node]
    texts = [i for i in range(len(node.elements)) if isinstance(mixed.values.get(i), str)]
    rest = [i for i in range(len(node.elements)) if not isinstance(mixed.values.get(i), str)]
    kinds = ((texts, {"type": "string"}), (rest, {"not": {"type": "string"}}))
    return [node.only(members, {mixed.name: test}, node.label) for members, test in kinds if members]


def stems(one: Field) -> dict[str, str]:
    """For each value of a field the stem that it shares with others but not with all, up to a separator; values that
    share none are left out.

    >>> stems(Field(("op",), dict(enumerate(["op/Tool.ls", "op/Tool.cat", "op/Bot.run"])), 3))
    {'op/Tool.cat': 'op/Tool.', 'op/Tool.ls': 'op/Tool.'}
    """
    values = {v for v in one.values.values() if isinstance(v, str) and len(v) <= 200}
    counts = Counter(v[: hit.end()] for v in values for hit in re.finditer(r"[/:.]+", v) if hit.end() < len(v))
    out = {}
    for v in sorted(values):
        shared = [v[: hit.end()] for hit in re.finditer(r"[/:.]+", v) if 2 <= counts[v[: hit.end()]] < len(values)]
        if shared:
            out[v] = max(shared, key=len)
    return out


def _by_stem(node: Node, shapes: Sequence[frozenset[str]], whole: float) -> list[KindSplit]:
    """Kinds by what the values of a field begin with: the kinds of names that URIs and dotted names have."""
    out = []
    n = len(node.elements)
    for one in node.fields.values():
        if one.share < 0.95 or len(one.place) > 2 or one.kind not in ("word", "text", "id") or one.distinct > 60:
            continue
        known = stems(one)
        if not known or one.distinct > 0.5 * n:
            continue
        members: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for i, v in one.values.items():
            members[(known[v], True) if isinstance(v, str) and v in known else (str(v), False)].append(i)
        if not 2 <= len(members) <= MOST_KINDS:
            continue
        inside = sum(len(m) / n * _entropy([shapes[i] for i in m]) for m in members.values())
        gain = 0.6 * ((whole - inside) / (whole or 1.0)) + 0.4 * 0.5 - 0.01 * len(members)
        nodes = []
        for (stem, is_stem), m in members.items():
            test: Any = {"re": "^" + re.escape(stem)} if is_stem else stem
            nodes.append(node.only(m, {one.name: test}, re.split(r"[/:.]+", stem.rstrip("/:."))[-1]))
        out.append(KindSplit(nodes, gain + 0.05, f"the beginning of {one.name}"))
    return out


def _merged(found: Sequence[KindSplit]) -> list[KindSplit]:
    """Ways to tell kinds apart that complete each other: the same values, at one place or at another."""
    out = []
    partial = [split for split in found if any(one.label == "" for one in split.nodes)]
    for i, a in enumerate(partial):
        for b in partial[i + 1 :]:
            mine = {one.label: one for one in a.nodes if one.label}
            others = {one.label: one for one in b.nodes if one.label}
            if not mine.keys() & others.keys() or len(mine.keys() | others.keys()) > len(mine) + 1:
                continue
            owners = [o for one in (*mine.values(), *others.values()) for o in one.owner]
            n = sum(len(one.elements) for one in a.nodes)
            if len(owners) != len(set(owners)) or len(owners) < 0.95 * n:
                continue
            nodes = [_both(mine.get(label), others.get(label)) for label in mine.keys() | others.keys()]
            out.append(KindSplit(sorted(nodes, key=lambda k: k.label), max(a.gain, b.gain) + 0.2, f"{a.by} or {b.by}"))
    return out


def _both(a: Node | None, b: Node | None) -> Node:
    if a is None or b is None:
        found = a or b
        assert found is not None
        return found
    rows = sorted(
        zip([*a.owner, *b.owner], [*a.elements, *b.elements], [*a.runs, *b.runs], strict=True), key=lambda r: r[0]
    )
    when = {"any": [a.when, b.when]}
    return Node(a.each, [r[1] for r in rows], [r[0] for r in rows], [r[2] for r in rows], when, a.label, a.depth)


def _by_key(node: Node, shapes: Sequence[frozenset[str]], whole: float) -> list[KindSplit]:
    """Elements told apart by the one key that is theirs alone; and by the keys inside, where what stands under such a
    key is told apart so as well."""
    out = []
    own = _alone(node.elements, whole=bool(node.depth))
    n = len(shapes)
    if own:
        nodes = [node.only(members, {f"@.{k}": {"present": True}}, k) for k, members in own.items()]
        inside = sum(len(one.elements) / n * _entropy([frozenset(_shape(e)) for e in one.elements]) for one in nodes)
        out.append(KindSplit(nodes, 0.75 * (whole - inside) / whole if whole > 0.01 else 0.0, "keys"))
    parts = list(_parts(node.elements, range(n), ())) if not node.depth else []
    if 2 <= len(parts) <= MOST_KINDS and any(len(place) > 1 for place, _ in parts):
        nodes = [node.only(m, {spell("@", place): {"present": True}}, str(place[-1])) for place, m in parts]
        deep = [frozenset(_paths(element, "", 0)) for element in node.elements]
        whole = _entropy(deep)
        inside = sum(len(m) / n * _entropy([deep[i] for i in m]) for _, m in parts)
        out.append(KindSplit(nodes, 0.75 * (whole - inside) / whole if whole > 0.01 else 0.0, PARTS))
    return out


def _parts(objects: Sequence[Any], members: Sequence[int], place: Place) -> Iterator[tuple[Place, list[int]]]:
    """The innermost keys that tell objects apart, and the positions of those that have them: of objects each of which
    has one part of several, again and again."""
    own = _alone(objects, whole=False)
    inside = {key: (m, [objects[i][key] for i in m]) for key, m in own.items()}
    if not own and len(place) < _REACH:
        for name, _ in Counter(k for one in objects if isinstance(one, dict) for k in one).most_common(4):
            here = [i for i, one in enumerate(objects) if isinstance(one, dict) and isinstance(one.get(name), dict)]
            values = [objects[i][name] for i in here]
            if len(here) < 0.95 * len(objects):
                break
            if len(found := list(_parts(values, [members[i] for i in here], (*place, name)))) > 1:
                yield from found
                return
    if not inside and place:
        yield place, list(members)
    for key, (m, values) in inside.items():
        here = [members[i] for i in m]
        if len(place) + 1 < _REACH and all(isinstance(value, dict) for value in values):
            yield from _parts(values, here, (*place, key))
        else:
            yield (*place, key), here


def _paths(value: Any, path: str, depth: int) -> Iterator[str]:
    """What an object looks like, as deep as fields are looked for."""
    if isinstance(value, dict) and depth < _REACH:
        for key, item in value.items():
            yield from _paths(item, f"{path}.{key}", depth + 1)
    elif value is not None and value not in ("", [], {}):
        yield f"{path}:{type(value).__name__}"


def _alone(elements: Sequence[Any], whole: bool) -> dict[str, list[int]]:
    """Keys of which each element has one alone, and the positions of those that have it; none where others are left.
    whole: such a key must be the only one that not all elements have."""
    tops = [
        frozenset(k for k, v in e.items() if v is not None) if isinstance(e, dict) else frozenset() for e in elements
    ]
    counts = Counter(k for top in tops for k in top)
    holds = Counter(k for e in elements if isinstance(e, dict) for k, v in e.items() if isinstance(v, dict))
    own: list[str] = []
    left = [frozenset(k for k in top if counts[k] < 0.98 * len(tops)) for top in tops]
    for key, _ in sorted(counts.items(), key=lambda one: (-one[1], -holds[one[0]])):
        with_it = [top for top in left if key in top]
        if with_it and re.fullmatch(r"[\w\-]+", key) and not any(k in top for top in with_it for k in own):
            own.append(key)  # of keys that stand together the one that most elements have
    if whole and any(len(top) > 1 for top in left):
        return {}  # in a list the key leads to the element
    if not 2 <= len(own) <= 12 or sum(bool(top & set(own)) for top in tops) < 0.95 * len(tops):
        return {}
    return {k: [i for i, top in enumerate(tops) if k in top] for k in own}


def _shape(element: Any) -> Iterator[str]:
    if not isinstance(element, dict):
        return
    for key, value in element.items():
        if value is None or value in ("", [], {}):
            continue
        kind = {bool: "b", int: "n", float: "n", str: "s", list: "l", dict: "o"}.get(type(value), "")
        yield f"{key}:{kind}"
        if isinstance(value, dict) and len(value) <= 12:
            yield from (f"{key}.{inner}" for inner in value)


def _entropy(items: Sequence[Hashable]) -> float:
    counts = Counter(items)
    total = len(items)
    return -sum(c / total * math.log2(c / total) for c in counts.values()) if total else 0.0


def _follows(node: Node, column: Field) -> float:
    """How much the kind of an element says of the next one's, in [0, 1]."""
    pairs = [
        (_key(column.values[i]), _key(column.values[i + 1]))
        for i in range(len(node.elements) - 1)
        if i in column.values and i + 1 in column.values and node.runs[i] == node.runs[i + 1]
    ]
    if len(pairs) < 4:
        return 0.5
    nexts = [b for _, b in pairs]
    whole = _entropy(nexts)
    by: dict[Any, list[Any]] = defaultdict(list)
    for a, b in pairs:
        by[a].append(b)
    inside = sum(len(v) / len(pairs) * _entropy(v) for v in by.values())
    return (whole - inside) / whole if whole > 0.01 else 0.0
