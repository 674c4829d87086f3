"""Values of an adapter: a path, or one of a few small transformations, compiled to closures."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from prefixguard.stepview.compiling import DataPlace, Site
from prefixguard.stepview.jsontext import canonical, canonical_text, decode_string
from prefixguard.stepview.paths import MISSING, Getter, Scope, getter, is_path, is_present, parse_path, walk
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.spellings import read_literal, unflatten
from prefixguard.stepview.text import repair, searchable, to_text

Spec = dict[str, Any]
Change = Callable[[Any], Any]


def compile_value(spec: Any, site: Site) -> Getter:
    """The closure from a scope to the value; MISSING where it is absent. AdapterError where it is no value."""
    if is_path(spec):
        root, steps = parse_path(spec, site.where)
        base = site.roots.get(root)
        of_run = base is not None and base is site.roots.get("$")
        site.note(site.resolve(root, steps), base is not None and base.is_cut, spec, of_run)
        return getter(root, steps)
    if not isinstance(spec, dict):
        raise site.error(
            f'{spec!r} is not a value. A value is a path ("@.content"), or an object such as {{"const": {spec!r}}}.'
        )
    kinds = [name for name in BUILDERS if name in spec and not (name == "re" and "file" in spec)]
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else ", ".join(map(str, spec)) or "nothing"
        raise site.error(f"a value has exactly one of {', '.join(BUILDERS)}; here: {found}.")
    build, others = BUILDERS[kinds[0]]
    return build(site.keys(spec, (kinds[0], *others)), site)


def _const(spec: Spec, site: Site) -> Getter:
    value = spec["const"]
    return lambda scope: value


def _parts(spec: Spec, name: str, site: Site) -> tuple[Getter, ...]:
    parts = spec[name]
    if not isinstance(parts, list) or not parts:
        raise site.error(f"{name} holds a list of values.")
    return tuple(compile_value(part, site.at(f"{name}[{i}]")) for i, part in enumerate(parts))


def _first(spec: Spec, site: Site) -> Getter:
    getters = _parts(spec, "first", site)

    def get(scope: Scope) -> Any:
        for one in getters:
            value = one(scope)
            if is_present(value):
                return value
        return MISSING

    return get


def _join(spec: Spec, site: Site) -> Getter:
    getters = _parts(spec, "join", site)
    sep = spec.get("sep", "\n")
    if not isinstance(sep, str):
        raise site.error("sep is a string.")
    all_parts = site.all_parts

    def get(scope: Scope) -> Any:
        found = []
        for one in getters:
            value = one(scope)
            text = "" if value is MISSING else to_text(value)
            if text:
                found.append(text)
            elif all_parts:
                return MISSING
        return sep.join(found) if found else MISSING

    return get


def _of_text(spec: Any, site: Site, change: Callable[[str], Any]) -> Getter:
    """A value as text, changed; MISSING where the value is absent or null."""
    inner = compile_value(spec, site)

    def get(scope: Scope) -> Any:
        value = inner(scope)
        if value is MISSING or value is None:
            return MISSING
        return change(value if type(value) is str else to_text(value))

    return get


def _text(spec: Spec, site: Site) -> Getter:
    return _of_text(spec["text"], site.at("text"), lambda text: text)


def _strip(spec: Spec, site: Site) -> Getter:
    return _of_text(spec["strip"], site.at("strip"), str.strip)


def read_json(value: Any) -> Any:
    """A string that holds JSON as the JSON; other values as they are; MISSING where a string is not JSON."""
    return _read(value, decode_string)


def read_json_or_literal(value: Any) -> Any:
    """As `read_json`, and a string that spells its values as Python does is read too."""
    found = _read(value, decode_string)
    return found if found is not MISSING or value is MISSING else _read(value, read_literal)


def _read(value: Any, decoded: Callable[[str], Any]) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return decoded(value)
    except ValueError:
        return MISSING


def _reader(spec: Spec, site: Site) -> Change:
    said = "true or false: may the string be spelled as Python spells values?"
    return read_json_or_literal if site.choice(spec, "python", (False, True), said) else read_json


def inside_of(path: Any, site: Site) -> Change:
    root, steps = parse_path(path, site.where)
    if root != "$":
        raise site.error("the path inside a JSON text or a companion file starts with $.")
    return walk(steps)


def _opened(spec: Spec, name: str, site: Site, read: Change) -> Getter:
    """What a value spells; of that, the part at `path` where the spec has one."""
    inner, inside = compile_value(spec[name], site.at(name)), site.optional(spec, "path", inside_of)
    if inside is None:
        return lambda scope: read(inner(scope))
    return lambda scope: inside(read(inner(scope)))


def _json(spec: Spec, site: Site) -> Getter:
    return _opened(spec, "json", site, _reader(spec, site))


def _otlp(spec: Spec, site: Site) -> Getter:
    return _opened(spec, "otlp", site, unflatten)


def _pattern(source: Any, site: Site) -> Pattern:
    return Pattern(source, site.where)


def _group(spec: Spec, pattern: Pattern, site: Site) -> int | str:
    group = spec.get("group", 1 if pattern.groups else 0)
    if isinstance(group, str) and group in pattern.names:
        return group
    if isinstance(group, int) and not isinstance(group, bool) and 0 <= group <= pattern.groups:
        return group
    raise site.at("group").error(f"{pattern.source!r} has no group {group!r}.")


def _re(spec: Spec, site: Site) -> Getter:
    if "of" not in spec:
        raise site.error('{"re": ...} needs "of": the value whose text is searched.')
    pattern = _pattern(spec["re"], site.at("re"))
    group = _group(spec, pattern, site)
    bounded = site.in_record

    def found(text: str) -> Any:
        part = pattern.group(searchable(text) if bounded else text, group)
        return MISSING if part is None else part

    return _of_text(spec["of"], site.at("of"), found)


def patterns(spec: Any, site: Site) -> tuple[Pattern, ...]:
    """One regular expression, or a list of them."""
    return tuple(Pattern(source, site.where) for source in (spec if isinstance(spec, list) else [spec]))


def _cut(spec: Spec, site: Site) -> Getter:
    if "of" not in spec:
        raise site.error('{"cut": ...} needs "of": the value whose text is cut.')
    cuts = patterns(spec["cut"], site.at("cut"))
    bounded = site.in_record

    def without(text: str) -> str:
        text = searchable(text) if bounded else text
        for pattern in cuts:
            text = pattern.without(text)
        return text

    return _of_text(spec["of"], replace(site.at("of"), is_cut=True), without)


def _map(spec: Spec, site: Site) -> Getter:
    table = spec["map"]
    if not isinstance(table, dict) or "of" not in spec:
        raise site.error('a map is {"map": {"from": "to"}, "of": value} and, if you like, "else": value.')
    inner = compile_value(spec["of"], site.at("of"))
    other = site.optional(spec, "else", compile_value)

    def get(scope: Scope) -> Any:
        value = inner(scope)
        if value is not MISSING:
            found = table.get(to_text(value) if value is not None else "null", MISSING)
            if found is not MISSING:
                return found
        return MISSING if other is None else other(scope)

    return get


def _list(spec: Spec, site: Site) -> Getter:
    getters = _parts(spec, "list", site)
    return lambda scope: [value for value in (one(scope) for one in getters) if value is not MISSING]


def _object(spec: Spec, site: Site) -> Getter:
    if not isinstance(spec["object"], dict):
        raise site.error("object holds names and their values.")
    getters = [(name, compile_value(part, site.at(f"object.{name}"))) for name, part in spec["object"].items()]
    return lambda scope: {name: value for name, one in getters if (value := one(scope)) is not MISSING}


def _file(spec: Spec, site: Site) -> Getter:
    if site.in_record:
        raise site.error("the name of a file is not visible while the run is live.")
    part = spec["file"]
    if part not in ("stem", "name", "parent", "path"):
        raise site.error(f'{{"file": {part!r}}}: it is "stem", "name", "parent" or "path".')
    pattern = site.optional(spec, "re", _pattern)
    group: int | str = _group(spec, pattern, site) if pattern else 0

    def get(scope: Scope) -> Any:
        if scope.file is None:
            return MISSING
        text = file_part(scope.file, part)
        if pattern is not None:
            found = pattern.group(text, group)
            return MISSING if found is None else found
        return text or MISSING

    return get


def file_part(path: str, part: str) -> str:
    """`stem`, `name` or `parent` (name of the folder) of a path with forward slashes; `path` is all of it.

    >>> file_part("a/b/run.traj.json", "stem"), file_part("a/b/run.traj.json", "parent")
    ('run.traj', 'b')
    """
    folder, _, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    parts = {"path": path, "name": name, "parent": folder.rpartition("/")[2]}
    return parts.get(part, stem if dot and stem else name)


_TEMPLATE = re.compile(r"\{([^{}]*)\}")


def _hole(name: str, site: Site) -> Getter:
    """The value that replaces a name in braces in the path of a companion file."""
    if name in ("id", "task"):
        return lambda scope: (scope.values or {}).get(name, MISSING)
    if name in ("stem", "name", "parent"):
        return _file({"file": name}, Site(site.where, {}))
    if name == "key":
        return getter("$key", ())
    if name.startswith("$."):
        return getter(*parse_path(name, site.where))
    raise site.error(f"{{{name}}} in a template; it can be id, task, stem, name, parent, key, or a path $.name.")


def _sibling(spec: Spec, site: Site) -> Getter:
    template = spec["sibling"]
    if not isinstance(template, str) or not template or template.startswith("/"):
        raise site.error("sibling is a path relative to the file of the run, such as ../results.json.")
    holes = {name: _hole(name, site) for name in _TEMPLATE.findall(template)}
    inside = site.optional(spec, "path", inside_of)
    steps = parse_path(spec["path"], site.where)[1] if inside is not None else ()
    keys = {name: _hole(name, site) for name in _TEMPLATE.findall(spec["path"])} if inside is not None else {}
    form = spec.get("format", "json")
    if form not in ("json", "text", *TABLES):
        raise site.error(f'format {form!r}: a companion file is "json" or "text", or a table: "jsonl" or "csv".')
    table = TABLES.get(form)
    site.note((DataPlace(f"sibling:{template}", steps),))

    def get(scope: Scope) -> Any:
        found = read(scope)
        if found is not MISSING and inside is not None:
            found = at_keys(scope)(found) if keys else inside(found)
        if found is MISSING:
            scope.companion_missing = True
        return found

    def at_keys(scope: Scope) -> Change:
        """The path with the names of the run in it: an object or a list of the file may go by them."""
        known = {f"{{{name}}}": one(scope) for name, one in keys.items()}
        if not all(isinstance(value, str | int | float) for value in known.values()):
            return lambda _: MISSING
        return walk(tuple((*step[:-1], to_text(known[step[-1]])) if step[-1] in known else step for step in steps))

    def read(scope: Scope) -> Any:
        if scope.companions is None or scope.file is None:
            return MISSING
        relative = template
        for name, one in holes.items():
            value = one(scope)
            if not isinstance(value, str | int | float):
                return MISSING
            relative = relative.replace("{" + name + "}", to_text(value))
        found = scope.companions.read(scope.file, relative, form != "json")
        return table(found) if table is not None and isinstance(found, str) else found

    return get


#: What PostgreSQL and MySQL write into a table where there is nothing.
NULL = "\\N"


def table_rows(text: str) -> csv.DictReader[str]:
    """Rows of a table by its head, of which the cells are separated by a comma, or by what stands there more often: a
    semicolon, a tab, a bar."""
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    return csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t|", key=head.count))


@lru_cache(maxsize=4)
def _csv_rows(text: str) -> list[dict[str, str]]:
    """Rows of a table with a head, as objects; those that are no row of it are left out, and so are cells of a
    database's NULL."""
    try:
        rows = list(table_rows(text))
    except csv.Error:
        return []
    return [
        {name: cell for name, cell in row.items() if isinstance(cell, str) and cell != NULL}
        for row in rows
        if None not in row
    ]


@lru_cache(maxsize=4)
def _json_lines(text: str) -> list[Any]:
    """The lines that are JSON."""
    return [value for line in text.splitlines() if line.strip() and (value := read_json(line)) is not MISSING]


#: Companion files that hold a table: its rows as a list of objects.
TABLES: dict[str, Callable[[str], list[Any]]] = {"csv": _csv_rows, "jsonl": _json_lines}


#: By kind: what compiles it, and the keys that it may have besides. `conditions` adds `elements`, which they choose.
BUILDERS: dict[str, tuple[Callable[[Spec, Site], Getter], tuple[str, ...]]] = {
    "const": (_const, ()),
    "first": (_first, ()),
    "text": (_text, ()),
    "json": (_json, ("path", "python")),
    "re": (_re, ("of", "group")),
    "join": (_join, ("sep",)),
    "map": (_map, ("of", "else")),
    "cut": (_cut, ("of",)),
    "strip": (_strip, ()),
    "list": (_list, ()),
    "object": (_object, ()),
    "otlp": (_otlp, ("path",)),
    "file": (_file, ("re", "group")),
    "sibling": (_sibling, ("path", "format")),
}


def compile_text(spec: Any, site: Site) -> Callable[[Scope], str]:
    """A value as text: empty where absent or null."""
    if isinstance(spec, dict) and spec.keys() == {"text"}:  # which says the same
        return compile_text(spec["text"], site.at("text"))
    inner = compile_value(spec, site)

    def get(scope: Scope) -> str:
        value = inner(scope)
        if type(value) is str:
            return value
        return "" if value is MISSING or value is None else to_text(value)

    return get


def compile_arguments(spec: Any, site: Site) -> Callable[[Scope], str]:
    """A value as arguments: canonical JSON, with the numbers spelled as they were; other text as it is."""
    from_json = isinstance(spec, dict) and "json" in spec and set(spec) <= {"json", "python"}
    inner = compile_value(spec["json"] if from_json else spec, site.at("json") if from_json else site)
    from_literal = from_json and _reader(spec, site) is read_json_or_literal

    def get(scope: Scope) -> str:
        value = inner(scope)
        if value is MISSING or value is None:
            return ""
        if from_literal and isinstance(found := read_json_or_literal(value), dict | list):
            return canonical(found)
        return canonical_text(value) if isinstance(value, str) else canonical(value)

    return get


def as_id(value: Any) -> str | None:
    """A value as an identifier; None where absent, null, empty or not a plain value."""
    if value is MISSING or value is None or value == "" or isinstance(value, list | dict):
        return None
    return repair(to_text(value))
