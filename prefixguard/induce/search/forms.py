"""How calls, texts and results can stand in an element: which fields, and how a spec reads them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os.path import commonprefix
from statistics import median
from typing import Any

from prefixguard.induce.search.columns import Field, Node, is_time, opened_json
from prefixguard.induce.search.places import Place, spell
from prefixguard.induce.search.spoken_calls import placed, spoken_calls
from prefixguard.induce.search.spoken_names import code_share, prose_share, role_of, speaks, value_of
from prefixguard.lexicon import Meaning, affinity, path_names
from prefixguard.stepview import MISSING, canonical
from prefixguard.stepview.values import read_json_or_literal

#: Calls that stand in one text, as people write them: tool, and arguments.
CALL_TEXTS = (
    (r"(?s)^\s*(\w+)\[.*\]\s*$", r"(?s)^\s*\w+\[(.*)\]\s*$"),
    (r"(?s)^\s*(\w[\w.]*)\(.*\)\s*$", r"(?s)^\s*\w[\w.]*\((.*)\)\s*$"),
)
#: Names of an object around one text.
_FEW_NAMES = 8
#: Half of the texts of commands are no longer, in code points.
LONGEST_COMMAND = 160
#: Ids of so many characters are no text, whatever they are called: signatures, ciphertext.
_OPAQUE = 32
#: How well the name of a tool inside its arguments tells their other names at least.
_TOLD = 0.8
#: Names that spell the tool and the arguments inside JSON, tried where a string or tag holds a call.
_IN_JSON = (Meaning.TOOL, Meaning.ARGUMENTS)


@dataclass(slots=True, eq=False)
class TextForm:
    """A text of an element. value: of the spec, from the element. covers: elements that have it. mass: characters,
    each text once. name: innermost name, for the prior."""

    value: Any
    covers: frozenset[int]
    mass: int
    name: str
    place: Place = ()
    inner: Node | None = None
    values: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class CallForm:
    """A call in the elements of a node. tool, arguments: values of the spec, from the element. covers: elements that
    have it. places: that it uses. worth: in about [0, 2]. names: of tool and arguments. made: the id that results
    name. rest: what the agent said in the text that the call stands in. test: is there where such a text holds a call.
    back: what came back, where the same text tells it."""

    node: Node
    tool: Any
    arguments: Any
    covers: frozenset[int]
    places: tuple[Place, ...]
    worth: float
    names: tuple[str, ...] = ()
    made: Field | None = None
    rest: Any = None
    test: Any = None
    back: Any = None


def relative(inner: Node, outer: Node) -> str:
    """The path of an inner node's elements, from an element of the outer."""
    return "@" + inner.each.removeprefix(outer.each or "@")


def texts_of(node: Node, without: Sequence[Place] = (), *, names: bool = True) -> list[TextForm]:
    """Texts of the elements, those with the most in them first. without: places of calls, which are no text, nor is
    what says the same."""
    found: list[TextForm] = []
    told = [node.fields[place].values for place in without if place in node.fields]
    for place, one in node.fields.items():
        if _under(place, (*without, *node.data)) or one.kind not in ("text", "word", "json", "id"):
            continue
        if one.kind == "text" and all(is_time(value) for value in islice(one.plain.values(), 20)):
            continue
        if one.kind == "id" and median(len(str(v)) for v in one.values.values()) >= _OPAQUE:
            continue
        said = affinity(one.name, Meaning.TEXT) if names else 0.0
        said = max(said, affinity(one.name, Meaning.RESULT), affinity(one.name, Meaning.THOUGHT)) if names else 0.0
        if (one.kind == "text" or (place == () and one.mass) or said >= 0.6) and not _echo(one.plain, told):
            covers = frozenset(one.plain)
            value = _unwrapped(one)
            found.append(TextForm(value, covers, one.mass, one.name, place, values=tuple(one.plain.values())))
    for inner in node.inner:
        if _under(_place_of(inner, node), without):
            continue
        if inner.is_data:
            continue
        for text in texts_of(inner, names=names)[:1]:
            if not isinstance(text.value, str):
                continue
            value = relative(inner, node) + text.value[1:]
            covers = frozenset(inner.above[i] for i in text.covers)
            found.append(TextForm(value, covers, text.mass, text.name, (), inner, text.values))
    return sorted(found, key=lambda form: -form.mass)


def _echo(values: Mapping[int, Any], told: Sequence[Mapping[int, Any]]) -> bool:
    """Do nearly all of the values stand elsewhere in their elements, too?"""
    return any(sum(one.get(i) == v for i, v in values.items()) >= 0.9 * len(values) for one in told if values)


_WRAPPED = re.compile(r"(?s)\s*<(\w+)>.*</(\w+)>\s*\Z")


def _unwrapped(one: Field) -> Any:
    """The value of a field, without the tag that all its texts stand in, or the object around its one text."""
    if one.kind == "json":
        inner = _enveloped(one)
        return one.name if inner is None else {"json": one.name, "path": spell("$", (inner,))}
    tags = Counter(found[1] for v in one.values.values() if isinstance(v, str) and (found := _WRAPPED.match(v)))
    tag, n = tags.most_common(1)[0] if tags else ("", 0)
    if n < max(3, 0.95 * len(one.values)):
        return one.name
    return {"re": rf"(?s)^\s*<{tag}>\s*(.*?)\s*</{tag}>\s*$", "of": one.name}


def _enveloped(one: Field) -> str | None:
    """Of texts that spell objects with the same few names, the one name under which there is more than a word, an id or
    a figure: the others tell of the text. None where there are several, or none."""
    objects = [v for text in islice(one.values.values(), 400) if isinstance(v := opened_json(text), dict)]
    names = Counter(name for v in objects for name in v)
    if len(objects) < max(4, 0.95 * len(one.values)) or not 1 <= len(names) <= _FEW_NAMES:
        return None
    speaks = {
        name: sum(isinstance(v.get(name), str) and bool(re.search(r"\s", v[name].strip())) for v in objects)
        for name in names
    }
    said = [name for name, n in speaks.items() if n]
    held = [name for name in names if any(isinstance(v.get(name), list) for v in objects)]
    return said[0] if len(said) == 1 and names[said[0]] >= 0.95 * len(objects) and not held else None


def objects_of(node: Node) -> list[TextForm]:
    """Objects and lists that are data, and so may be a result as they are; the outermost first."""
    found: list[TextForm] = []
    for one in node.fields.values():
        if one.kind in ("object", "list", "json") and one.place and not _under(one.place[:-1], node.data):
            is_data = one.place in node.data or (len(one.place) == 1 and one.kind != "list")
            if is_data:
                covers = frozenset(one.values)
                value = _unwrapped(one) if one.kind == "json" else one.name
                found.append(TextForm(value, covers, len(covers), one.name, one.place))
    for inner in node.inner:
        if inner.is_data or inner.is_part:
            covers = frozenset(inner.above)
            found.append(TextForm(relative(inner, node), covers, len(covers), inner.label, (), inner))
            continue
        for text in objects_of(inner):
            if not isinstance(text.value, str):
                continue
            value = relative(inner, node) + text.value[1:]
            covers = frozenset(inner.above[i] for i in text.covers)
            found.append(TextForm(value, covers, text.mass, text.name, (), inner))
    return found


def _place_of(inner: Node, outer: Node) -> Place:
    steps = re.split(r"\.|\[", relative(inner, outer)[1:])
    return tuple(step for step in steps[1:2] if step)


def _under(place: Place, places: Sequence[Place]) -> bool:
    return any(place[: len(one)] == one for one in places if one)


def together(forms: Sequence[TextForm]) -> Any:
    """One value of several texts of which an element has one: the first that is there; texts of lists go before, since
    a field may hold a list or a text."""
    forms = sorted(forms, key=lambda form: form.inner is None)
    values = list(dict.fromkeys(repr(form.value) for form in forms))
    unique = [next(form.value for form in forms if repr(form.value) == value) for value in values]
    return {"text": unique[0] if len(unique) == 1 else {"first": unique}}


def complement(forms: Sequence[TextForm]) -> list[TextForm]:
    """The first text, and those behind it of elements that have none so far."""
    out: list[TextForm] = []
    covered: set[int] = set()
    for form in forms:
        if not out or len(form.covers & covered) <= 0.1 * len(form.covers):
            out.append(form)
            covered |= form.covers
    return out


def calls_of(node: Node, names: bool = True) -> list[CallForm]:
    """Ways to read calls from the elements of a node itself, best first."""
    if node.calls:
        return node.calls
    found = [*_pairs(node, names), *_keyed(node), *_spelled(node, names), *_spoken(node, names), *_stemmed(node, names)]
    for form in found:
        missing = 1 - len(form.covers) / max(1, len(node.elements))
        form.worth -= (0.5 if form.rest is None else 0.25) * missing  # not all that is said is a call
    node.calls = sorted(found, key=lambda form: -form.worth)
    return node.calls


def _pairs(node: Node, names: bool) -> Iterator[CallForm]:
    """A field with the tool's name and one with the arguments."""
    tests = repr(node.when)
    tools = [
        f for f in node.fields.values()
        if f.kind == "word" and f.place and f"'{f.name}'" not in tests and not _is_number(f)
        and (not _under(f.place, node.data) or (f.place[:-1] in node.data
             and len(f.values) >= 0.95 * len(node.fields[f.place[:-1]].values)))
    ]  # fmt: skip
    given = [
        f for f in node.fields.values()
        if f.kind in ("object", "json") and f.place and not _is_wrapper(f) and not _holds_lists(f)
        and not (_holds_no_text(f) and not (names and affinity(f.name, Meaning.ARGUMENTS) >= 0.5))
    ]  # fmt: skip
    listed = [f for f in node.fields.values() if f.kind == "list" and _names_values(f)]
    given += [*_completed(given, node), *listed]
    for tool in tools:
        of_tool = affinity(tool.name, Meaning.TOOL) if names else 0.4
        if tool.distinct == 1 and node.label and not node.each and of_tool < 0.8:
            continue  # it goes with the kind
        if tool.share < 0.2 or (tool.distinct > 0.7 * len(tool.values) and len(tool.values) > 8 and of_tool < 0.8):
            continue
        for args in given:
            inside = tool.place[: len(args.place)] == args.place
            if _apart(tool, args) or (inside and not _holds_its_tool(tool, args)):
                continue
            of_args = affinity(args.name, Meaning.ARGUMENTS) if names else 0.4
            near = 0.3 * (tool.place[:-1] == args.place[:-1]) - 0.1 * abs(len(tool.place) - len(args.place))
            told = _tells(tool, args)
            worth = 0.7 * of_tool + 0.5 * of_args + near + 0.8 * told - 0.2 * (tool.distinct == 1)
            if told > 0.95 and tool.distinct > 2 and max(of_tool, of_args) < 0.1:
                worth += 0.15  # names of no known language, and what they hold says it all the same
            covers = frozenset(tool.values.keys() & args.values.keys())
            places = (tool.place, args.place, *((args.also.place,) if args.also is not None else ()))
            value: dict[str, Any] = {"json": args.name if args.also is None else {"first": [args.name, args.also.name]}}
            if args in listed:
                value = {"otlp": args.name}
            elif _in_python(args):
                value["python"] = True
            yield CallForm(node, tool.name, value, covers, places, worth, (tool.name, args.name))
        if of_tool >= 0.5 and tool.share > 0.3:
            worth = 0.5 * of_tool - 0.2 * (tool.distinct == 1)
            strings = [
                f for f in node.fields.values()
                if f.kind in ("text", "word", "id") and f is not tool and affinity(f.name, Meaning.ARGUMENTS) >= 0.8
                and not _apart(tool, f)
            ] if names else []  # fmt: skip
            for args in strings[:1]:
                yield CallForm(
                    node, tool.name, {"json": args.name}, frozenset(tool.values), (tool.place, args.place), worth + 0.3
                )
            yield CallForm(node, tool.name, None, frozenset(tool.values), (tool.place,), worth)


def _names_values(one: Field) -> bool:
    """Lists of names, each once, and their values: an object, spelled as a list?"""
    lists = [v for v in one.values.values() if isinstance(v, list)]
    names = [[e.get("key", e.get("name")) for e in v if isinstance(e, dict) and "value" in e] for v in lists]
    return bool(lists) and all(
        len(mine) == len(v) == len({n for n in mine if isinstance(n, str)})
        for mine, v in zip(names, lists, strict=True)
    )


def _in_python(one: Field) -> bool:
    """Does Python's spelling of objects stand among the texts?"""
    texts = [text for text in one.values.values() if isinstance(text, str) and text[:2] == "{'"]
    return any(opened_json(text) is None and read_json_or_literal(text) is not MISSING for text in texts[:20])


def _is_number(one: Field) -> bool:
    """Are most values more digits than letters, as ids are?"""
    texts = [str(v) for v in islice(one.values.values(), 50)]
    return sum(3 * sum(c.isdigit() for c in text) > len(text) for text in texts) > 0.5 * len(texts)


def _holds_lists(one: Field) -> bool:
    """Do most of the objects hold a list of several objects, or lists of one length: a history, and no arguments?"""
    values = [v for v in islice(one.values.values(), 50) if isinstance(v, dict)]
    lists = [[i for i in v.values() if isinstance(i, list) and i] for v in values]
    several = sum(any(len(i) > 1 and isinstance(i[0], dict) for i in inner) for inner in lists)
    columns = sum(len(inner) > 1 and len(set(map(len, inner))) == 1 for inner in lists)
    return several > 0.4 * max(1, len(values)) or columns > 0.6 * max(1, len(values))


def _holds_no_text(one: Field) -> bool:
    """Are the objects figures and flags alone, as counts and costs are?"""
    values = [v if isinstance(v, dict) else opened_json(v) for v in islice(one.values.values(), 50)]
    texts = [canonical(list(v.values()) if isinstance(v, dict) else v) for v in values]
    return not any('"' in text or "[" in text[1:] for text in texts)


def _is_wrapper(one: Field) -> bool:
    """An object that always has one and the same key, and in it a text."""
    values = [v for v in one.values.values() if isinstance(v, dict)]
    keys = {tuple(v) for v in values}
    return (
        len(keys) == 1 and len(next(iter(keys))) == 1 and all(isinstance(next(iter(v.values())), str) for v in values)
    )


def _last(one: Field) -> str:
    """The last word of a field's name, dots in keys counted."""
    names = path_names(one.name)
    return names[-1].split(".")[-1] if names else ""


def _completed(given: Sequence[Field], node: Node) -> list[Field]:
    """Arguments that stand at one place or at another: fields of the same last name that no element has both of."""
    out = []
    for i, a in enumerate(given):
        for b in given[i + 1 :]:
            if (
                (_last(a) == _last(b) or a.kind == "json")
                and a.kind == b.kind
                and not a.values.keys() & b.values.keys()
                and a.share + b.share > 0.6
            ):
                both = Field(a.place, {**a.values, **b.values}, a.n)
                both.also = b
                out.append(both)
    return out


def _stemmed(node: Node, names: bool) -> Iterator[CallForm]:
    """Tools whose name stands inside a URI or a dotted name, behind what all have in common."""
    for one in node.fields.values():
        texts = [v for v in one.values.values() if isinstance(v, str)]
        if one.kind not in ("word", "text", "id") or one.share < 0.9 or len(set(texts)) < 3 or one.distinct > 60:
            continue
        common = commonprefix(texts)  # noqa: RUF071, of names, not of paths
        cut = max((hit.end() for hit in re.finditer(r"[/:.]+", common)), default=0)
        if cut < 3 or not all(re.match(r"\w+", text[cut:]) for text in texts):
            continue
        stems = {i: re.match(r"\w+", v[cut:]) for i, v in one.values.items() if isinstance(v, str)}
        bare = Field(one.place, {i: stem[0] for i, stem in stems.items() if stem is not None}, one.n)
        held = Node("", node.elements, node.owner, node.runs)
        held.fields[one.place] = bare
        pattern = "^" + re.escape(common[:cut]) + r"(\w+)"
        for form in _pairs(held, names):
            if form.tool == one.name:
                yield CallForm(
                    node, {"re": pattern, "of": one.name}, form.arguments, form.covers, form.places, form.worth + 0.5
                )


def _apart(tool: Field, args: Field) -> bool:
    """Do the two hardly ever stand in one element?"""
    both = len(tool.values.keys() & args.values.keys())
    return both < 0.5 * min(len(tool.values), len(args.values)) or both < 0.3 * len(tool.values)


def _tells(tool: Field, args: Field) -> float:
    """How much better the tool's name tells the keys of the arguments than nothing does, in [0, 1]; 1 where keys are
    the same for each tool, and differ between tools."""
    by: dict[Any, Counter[tuple[str, ...]]] = defaultdict(Counter)
    whole: Counter[tuple[str, ...]] = Counter()
    for i in tool.values.keys() & args.values.keys():
        value = args.values[i] if isinstance(args.values[i], dict) else opened_json(args.values[i])
        if isinstance(value, dict):
            keys = tuple(sorted(value))
            by[str(tool.values[i])][keys] += 1
            whole[keys] += 1
    n = whole.total()
    if not n:
        return 0.0
    told = sum(max(counts.values()) for counts in by.values()) / n
    guessed = max(whole.values()) / n
    return (told - guessed) / (1 - guessed) if guessed < 0.99 else 0.2


def _holds_its_tool(tool: Field, args: Field) -> bool:
    """Does the name inside the arguments tell their other names, and are these plain values? An envelope of events of
    several kinds holds lists and objects."""
    values = [v for v in islice(args.values.values(), 200) if isinstance(v, dict)]
    plain = sum(not any(isinstance(inner, dict | list) for inner in v.values()) for v in values)
    return tool.place[:-1] == args.place and plain >= 0.9 * len(values) > 0 and _tells(tool, args) >= _TOLD


def _keyed(node: Node) -> Iterator[CallForm]:
    """An object whose only key is the tool's name, and its value the arguments."""
    for one in node.fields.values():
        if one.kind != "object" or not one.place or one.share < 0.3:
            continue
        values = [v for v in one.values.values() if isinstance(v, dict)]
        keys = Counter(next(iter(v)) for v in values if len(v) == 1)
        objects = sum(len(v) == 1 and isinstance(next(iter(v.values())), dict | None) for v in values)
        if len(keys) < 2 or keys.total() < 0.95 * len(values) or objects < 0.8 * len(values):
            continue
        if len(keys) > max(3, 0.5 * len(values)):
            continue
        spelled = {"object": {"act": one.name}}
        tool = {"re": r'^\{"act":\{"([^"]+)":', "of": spelled}
        given = {"json": {"re": r'(?s)^\{"act":\{"[^"]+":(.*)\}\}$', "of": spelled}}
        yield CallForm(node, tool, given, frozenset(one.values), (one.place,), 1.3)


def _spelled(node: Node, names: bool) -> Iterator[CallForm]:
    """A text that spells a call: search[query], or JSON with a name and arguments in it, tagged or bare."""
    for one in node.fields.values():
        texts = [(i, v) for i, v in one.values.items() if isinstance(v, str)]
        if one.kind not in ("text", "word", "json") or not texts:
            continue
        for tool, given in CALL_TEXTS:
            hit = [i for i, v in texts if re.match(tool, v)]
            if len(hit) >= 0.6 * len(texts):
                worth = 0.6 + 0.3 * (affinity(one.name, Meaning.TOOL) if names else 0.5)
                value = {"first": [{"re": given, "of": one.name}, one.name]}
                yield CallForm(node, {"re": tool, "of": one.name}, value, frozenset(hit), (one.place,), worth)
        for pattern in (None, *_tags(v for _, v in texts)):
            inner = one.name if pattern is None else {"re": pattern, "of": one.name}
            spelled = {i: _inside(v, pattern) for i, v in texts}
            calls = {i: v for i, v in spelled.items() if isinstance(v, dict)}
            if len(calls) < max(2, 0.1 * len(texts)):
                continue
            for form in _in_json(node, calls, inner, one, names):
                if pattern is not None:
                    cuts = [pattern.replace("(\\{.*\\})", "\\{.*\\}"), r"</?\w+>"]
                    form.rest = {"strip": {"cut": cuts, "of": one.name}}
                yield form


def _spoken(node: Node, names: bool) -> Iterator[CallForm]:
    """Calls in what an agent says: a block of code, a line with a name and arguments, labels, tags; or all of a field
    whose name says that it is called."""
    held = [one for one in node.fields.values() if one.share >= 0.5 and not _is_clock(one)]
    fields = [one for one in held if one.kind in ("text", "word") and one.place]
    calling = {one.place for one in fields if _is_called(one, names)}
    long = [one for one in held if one.kind == "text"]
    long = sorted(long, key=lambda one: -sum(len(str(v)) for v in islice(one.values.values(), 100)))[:2]
    for one in {f.place: f for f in (*(f for f in fields if f.place in calling), *long)}.values():
        called = one.place in calling
        texts = {i: v for i, v in one.values.items() if isinstance(v, str)}
        if len(set(texts.values())) < 0.05 * len(texts):  # the name of a kind, that is no command
            continue
        for form in spoken_calls(list(texts.values()), most=2, called=called) if texts else ():
            found = value_of(placed(form.test, "@.text", "@.body"))
            covers = frozenset(i for i, v in islice(texts.items(), 2000) if found(v) is not MISSING)
            if form.sure < (0.4 if called else 0.6) or len(covers) < 2:
                continue
            tool, given, rest, back = (
                placed(value, one.name, "@.body") for value in (form.tool, form.arguments, form.said, form.result)
            )
            worth = 0.2 + 0.9 * form.sure + 0.3 * called
            yield CallForm(
                node, tool, given, covers, (one.place,), worth, rest=rest or {"const": ""}, back=back,
                test=placed(form.test, one.name, "@.body"),
            )  # fmt: skip


def _is_called(one: Field, names: bool) -> bool:
    """Does its name say that all of it is called, or do its texts, where the name says nothing?"""
    role = role_of(str(one.place[-1])) if names else ""
    known = role or (names and affinity(one.name, Meaning.TEXT) >= 0.6)
    return role == "call" or (not known and _commands(one))


def _commands(one: Field) -> bool:
    """Do the texts look like what is executed: short, each a command of few that come again, or code, and no prose?"""
    texts = [text for text in islice(one.values.values(), 400) if isinstance(text, str)]
    in_list = any(str(step).startswith("[") for step in one.place)  # the first of many is no step
    if in_list or not texts or median(map(len, texts)) > LONGEST_COMMAND or prose_share(texts) > 0.3:
        return False
    firsts = [found[0] for text in texts if (found := re.match(r"[\w./~-]+", text.strip()))]
    several = sum(" " in text.strip() for text in texts) >= 0.3 * len(texts)
    known = [n for first, n in Counter(firsts).items() if n >= 3 and not speaks(first)]
    several = several and len(known) != 1  # what begins with one word all the time is a label
    return several and (sum(known) >= 0.8 * len(texts) or code_share(texts) >= 0.4)


_TAG = re.compile(r"(?s)<(\w+)>\s*\{.*\}\s*</(\w+)>")


def _tags(texts: Iterable[str]) -> list[str]:
    """Patterns of JSON objects that stand in tags in the texts."""
    found = Counter(hit[1] for text in texts if (hit := _TAG.search(text)) and hit[1] == hit[2])
    return [rf"(?s)<{tag}>\s*(\{{.*\}})\s*</{tag}>" for tag, n in found.most_common(2) if n >= 2]


def _inside(text: str, pattern: str | None) -> Any:
    if pattern is None:
        return opened_json(text)
    found = re.search(pattern, text)
    return None if found is None else opened_json(found[1])


def _in_json(node: Node, found: Mapping[int, Any], value: Any, one: Field, names: bool) -> Iterator[CallForm]:
    held = Node("", list(found.values()), list(found), [node.runs[i] for i in found])
    for form in list(_pairs(held, names))[:40]:
        if not isinstance(form.tool, str) or form.arguments is None or form.worth < 0.8:
            continue
        tool = {"json": value, "path": "$" + form.tool[1:]}
        of = form.arguments["json"]
        held_at = [{"json": value, "path": "$" + path[1:]} for path in (of["first"] if isinstance(of, dict) else [of])]
        given = {"json": held_at[0] if len(held_at) == 1 else {"first": held_at}}
        yield CallForm(node, tool, given, frozenset(found), (one.place,), form.worth + 0.1, form.names)


def _is_clock(one: Field) -> bool:
    return all(is_time(value) for value in islice(one.values.values(), 5))


def ids_of(node: Node, scopes: Sequence[int]) -> list[Field]:
    """Fields that may tell an element apart: nearly every value comes once in its run, or in its event (scopes)."""
    out = []
    for one in node.fields.values():
        if one.kind not in ("id", "word", "number") or one.share < 0.8 or _is_clock(one):
            continue
        once = {(scopes[i], v) for i, v in one.values.items() if isinstance(v, str | int)}
        if len(once) >= 0.7 * len(one.values):
            out.append(one)
    return out


def joins_of(calls: Node, results: Node) -> dict[Place, tuple[Field, Field, float]]:
    """The fields by which results name their calls: for each id of the calls, by its place, the field that brings it
    and the share of the results that do."""
    out: dict[Place, tuple[Field, Field, float]] = {}
    lists = calls.each.rpartition("[")[0], results.each.rpartition("[")[0]
    own = bool(calls.each and results.each) and lists[0] != lists[1]  # may stand in one event, but not in one list
    for scopes, where in ((calls.runs, results.runs), (calls.owner, results.owner))[: 1 + own]:
        for made in ids_of(calls, scopes):
            ids = {i: v for i, v in made.values.items() if isinstance(v, str | int) and not isinstance(v, bool)}
            by = {(scopes[i], v): calls.owner[i] for i, v in ids.items()}
            for brought in results.fields.values():
                found = _meeting(made, brought, by, where, results, own)
                if found is not None and (made.place not in out or found > out[made.place][2]):
                    out[made.place] = (made, brought, found)
    return out


def _meeting(
    made: Field, brought: Field, by: Mapping[tuple[int, Any], int], where: Sequence[int], results: Node, own: bool
) -> float | None:
    """How surely the values of one field are the ids that the other gave."""
    if brought.kind not in ("id", "word", "number") or brought.share < 0.5 or _is_clock(brought):
        return None
    values = {i: v for i, v in brought.values.items() if isinstance(v, str | int)}
    met = [by[where[i], v] < results.owner[i] + own for i, v in values.items() if (where[i], v) in by]
    share = sum(met) / len(brought.values)
    distinct = len({(where[i], str(v)) for i, v in values.items()}) / len(brought.values)
    if share < 0.6 or distinct < 0.7 or made is brought:
        return None
    few = made.kind == "number" and made.distinct < 0.5 * len(made.values)
    return share - 0.1 * (made.kind != "id") - 0.01 * len(made.place) - 0.3 * few
