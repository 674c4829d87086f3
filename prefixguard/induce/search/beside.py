"""Files beside the runs, and what they tell of each: a report a run, or a table in which a row is of a run."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.induce.search.raw_places import Place, leaves, spelled
from prefixguard.induce.search.seen_runs import SeenRun, Values
from prefixguard.induce.search.told_text import told_in
from prefixguard.stepview import MISSING, canonical
from prefixguard.stepview.values import TABLES

#: Share of runs of which a companion must tell something.
LEAST_KNOWN = 0.4
#: Files, rows of a table, names of its rows, and places of the runs that may be a key, that are looked at.
MOST_FILES, MOST_ROWS, MOST_NAMES, MOST_KEYS = 400, 20_000, 40, 40
#: Kinds of rows of one table, of which a run may have one each.
MOST_KINDS = 12
#: Bytes of a file of settings.
MOST_SETTINGS = 20_000
#: A line of settings, as YAML, TOML and INI have them: a name and a number.
_SETTING = re.compile(r"(?m)^\s*([A-Za-z][\w.-]{0,60})\s*[:=]\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of companions that stand at one place from the folders of runs. found_by: the value of the spec that finds
    them. rows: by folder. plain: they are ids, not objects. when: what tells these rows from others of the file."""

    file: str
    found_by: dict[str, Any]
    rows: dict[str, list[Any]]
    plain: bool
    when: Mapping[str, Any] = field(default_factory=dict)


def columns_beside(runs: Sequence[SeenRun], samples: Samples, columns: Sequence[Values]) -> list[Values]:
    """Columns of companion files, by the interpreter's rules: joined by a place of the run, or by the file's path."""
    mine = {run.file for run in runs}
    others = [file for file in samples.files if file.path not in mine][:MOST_FILES]
    if not others or not runs:
        return []
    keys = [
        column
        for column in columns
        if column.near in ("run", "file", "piece", "first", "last", "every", "end")
        and column.coverage >= 0.9
        and 0 < column.length <= 120
        and column.distinct >= max(1, 0.5 * len(runs))
        and not any(isinstance(value, bool | float) for value in column.values)
    ][:MOST_KEYS]
    names = tuple(run.file.rpartition("/")[2] for run in runs)
    keys.insert(0, Values({"file": "name"}, "", names, "file"))
    found = [*_settings(runs, others), *_reports(runs, others, keys)]
    for table in _tables(runs, others):
        for part in (table, *_by_kind(table)):
            found += _joined(runs, part, keys)
    return found


def _by_kind(table: _Table) -> Iterator[_Table]:
    """The rows of a table in which a run has several, one a kind: by every column of few short texts."""
    rows = [dict(leaves(row)) for part in table.rows.values() for row in part if isinstance(row, dict)]
    names = dict.fromkeys(name for row in rows[:200] for name in row) if not table.plain else ()
    for name in list(names)[:MOST_NAMES]:
        kinds = Counter(v for row in rows if isinstance(v := row.get(name), str) and len(v) <= 40)
        if 2 <= len(kinds) <= MOST_KINDS and kinds.total() >= 0.9 * len(rows):
            path = spelled("@", name)
            for kind in sorted(kinds):
                mine = {f: [row for row in part if isinstance(row, dict) and dict(leaves(row)).get(name) == kind]
                        for f, part in table.rows.items()}  # fmt: skip
                yield replace(table, rows=mine, when={path: kind})


def _settings(runs: Sequence[SeenRun], others: Sequence[SampleFile]) -> Iterator[Values]:
    """Numbers in a small file that is of all runs, near "shared": a mark may be among them."""
    for file in others:
        name = posixpath.basename(file.path)
        if file.kind is Kind.JSON and file.size <= MOST_SETTINGS:
            for place, value in leaves(file.value):
                if isinstance(value, int | float) and not isinstance(value, bool):
                    path = spelled("$", place)
                    yield Values({"sibling": name, "path": path}, path, (value,) * len(runs), "shared")
        elif file.kind is Kind.TEXT and file.size <= MOST_SETTINGS and not name.lower().endswith(".csv"):
            for setting in _SETTING.finditer(file.text):
                text = {"sibling": name, "format": "text"}
                spec = {"json": {"re": rf"(?m)^\s*{re.escape(setting[1])}\s*[:=]\s*(\S+)", "of": text}}
                yield Values(spec, setting[1], (float(setting[2]),) * len(runs), "shared")


def _reports(runs: Sequence[SeenRun], others: Sequence[SampleFile], keys: Sequence[Values]) -> Iterator[Values]:
    """From a file for each run, whose path follows from the run's."""
    by_path = {file.path: file for file in others}
    for template, paths in sorted(_templates(runs, by_path, keys).items()):
        files = [by_path.get(path) if path else None for path in paths]
        there = [file for file in files if file is not None]
        if len(there) < LEAST_KNOWN * len(runs) or (len({file.path for file in there}) < len(there) > 1):
            continue
        table: dict[tuple[Any, ...], list[Any]] = {}
        logs = [file.text if file is not None and file.kind is Kind.TEXT else "" for file in files]
        of = {"sibling": template, "format": "text"}
        yield from told_in(logs, of, "beside")
        if any("<testsuite" in log for log in logs):
            yield _of_tests(logs, of)
        for i, file in enumerate(files):
            if file is None:
                continue
            if file.kind is Kind.TEXT and len(file.text) <= 80:
                table.setdefault((), [MISSING] * len(runs))[i] = file.text.strip()
            elif file.kind is Kind.JSON:
                for place, value in leaves(file.value):
                    if not isinstance(value, list):
                        table.setdefault(place, [MISSING] * len(runs))[i] = value
        for place, values in table.items():
            if place:
                path = spelled("$", place)
                yield Values(_single({"sibling": template, "path": path}, place), path, tuple(values), "beside")
            else:
                yield Values({"strip": of}, posixpath.basename(template).partition(".")[0], tuple(values), "beside")


def _of_tests(logs: Sequence[str], of: Mapping[str, Any]) -> Values:
    """Reports of tests in the XML of JUnit, which others write, too: passed where none failed and none broke."""
    bad, good = '(failures|errors)="[1-9]', "<(testsuite)"
    failed = {"map": dict.fromkeys(("failures", "errors"), "failed"), "of": {"re": bad, "of": of}}
    spec = {"first": [failed, {"map": {"testsuite": "passed"}, "of": {"re": good, "of": of}}]}
    values = ("failed" if re.search(bad, log) else "passed" if re.search(good, log) else MISSING for log in logs)
    return Values(spec, "tests passed", tuple(values), "beside")


def _templates(
    runs: Sequence[SeenRun], by_path: Mapping[str, SampleFile], keys: Sequence[Values]
) -> dict[str, list[str | None]]:
    """Relative paths with holes, as the spec fills them, and the file of each run under them."""
    pieces: dict[str, list[str]] = {}
    for path in by_path:
        for piece in {path.rpartition("/")[2], *_parts(path)}:
            pieces.setdefault(piece, []).append(path)
    found: dict[str, list[str | None]] = {}
    for key in keys:
        hole = _hole(key.spec)
        if hole is None:
            continue
        for i, (run, text) in enumerate(zip(runs, key.texts, strict=True)):
            near = pieces.get(text, [])[:12] if text and "/" not in text else []
            for path in near:
                relative = posixpath.relpath(path, posixpath.dirname(run.file) or ".")
                template = relative.replace(text or "", hole)
                if template != relative and (template in found or len(found) < 300):
                    found.setdefault(template, [None] * len(runs))[i] = path
    folders = Counter(posixpath.dirname(run.file) for run in runs)
    if max(folders.values()) == 1:  # a folder a run: what stands at the same place from each
        for i, run in enumerate(runs):
            folder = posixpath.dirname(run.file)
            for path in by_path:
                if posixpath.dirname(path) in (folder, posixpath.dirname(folder)) or path.startswith(f"{folder}/"):
                    relative = posixpath.relpath(path, folder or ".")
                    if relative in found or len(found) < 600:
                        found.setdefault(relative, [None] * len(runs))[i] = path
    return found


def _parts(path: str) -> Iterator[str]:
    """What of a path may be the name of a run: its parts, and these up to a dot or behind a separator."""
    for part in path.split("/"):
        for i, letter in enumerate(part):
            if letter in "._-" and i:
                yield part[:i]
                yield part[i + 1 :].partition(".")[0]
        yield part


def _hole(spec: Any) -> str | None:
    if spec == "$key":
        return "{key}"
    if isinstance(spec, str):
        return None if set(spec) & set("{}") else "{" + spec + "}"
    return "{" + str(spec["file"]) + "}" if set(spec) == {"file"} else None


def _tables(runs: Sequence[SeenRun], others: Sequence[SampleFile]) -> list[_Table]:
    """Tables that stand at one place from every folder of runs: in it, above it, or in a folder beside one above."""
    folders = Counter(posixpath.dirname(run.file) for run in runs)
    near: dict[str, dict[str, SampleFile]] = {}
    for folder in folders:
        above = {posixpath.normpath(posixpath.join(folder, *[".."] * up)) for up in range(folder.count("/") + 2)}
        for file in others:
            home = posixpath.dirname(file.path) or "."
            if home in above or (posixpath.dirname(home) or ".") in above:
                near.setdefault(posixpath.relpath(file.path, folder or "."), {})[folder] = file
    tables: dict[str, _Table] = {}
    for template, files in sorted(near.items()):
        if sum(folders[folder] for folder in files) < LEAST_KNOWN * len(runs):
            continue
        for folder, file in files.items():
            for listed, rows, plain in _of_file(file, template):
                table = tables.setdefault(canonical(listed), _Table(file.path, listed, {}, plain))
                table.rows[folder] = rows
    return list(tables.values())


def _of_file(file: SampleFile, template: str) -> Iterator[tuple[dict[str, Any], list[Any], bool]]:
    """The lists that the file holds: the value of the spec, the rows, whether they are ids."""
    if file.kind is Kind.JSONL or (file.kind is Kind.TEXT and _is_table(file)):
        form = "jsonl" if file.kind is Kind.JSONL else "csv"
        rows = file.value if form == "jsonl" else TABLES["csv"](file.text)
        yield {"sibling": template, "format": form}, rows[:MOST_ROWS], False
    elif file.kind is Kind.JSON:
        for place, value in [((), file.value), *_lists(file.value)][:60]:
            listed: dict[str, Any] = {"sibling": template} | ({"path": spelled("$", place)} if place else {})
            if isinstance(value, dict) and value:
                yield listed, [{"name": name, "value": inner} for name, inner in value.items()][:MOST_ROWS], False
            elif isinstance(value, list):
                plain = all(isinstance(one, str | int) and not isinstance(one, bool) for one in value[:50])
                yield listed, value[:MOST_ROWS], plain


def _is_table(file: SampleFile) -> bool:
    return file.path.lower().endswith((".csv", ".tsv")) or "," in file.text.partition("\n")[0]


def _lists(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Lists and objects inside an object, down to three names deep."""
    if isinstance(value, dict) and len(place) < 3:
        for name, inner in list(value.items())[:MOST_NAMES]:
            if isinstance(inner, dict | list) and name and not ("'" in name and '"' in name):
                yield (*place, name), inner
                yield from _lists(inner, (*place, name))


def _joined(runs: Sequence[SeenRun], table: _Table, keys: Sequence[Values]) -> Iterator[Values]:
    """Columns of the rows that are of the runs, by the key that joins most of them."""
    at = [posixpath.dirname(run.file) for run in runs]
    if table.plain:
        members: dict[str, set[Any]] = {
            folder: {one for one in rows if isinstance(one, str | int)} for folder, rows in table.rows.items()
        }
        for key in keys:
            values = tuple(
                isinstance(v, str | int) and v in members[folder] if folder in members else MISSING
                for v, folder in zip(key.values, at, strict=True)
            )
            if True in values and "path" in table.found_by:
                spec = {"in": table.found_by, "of": key.spec, "keys": key.values[:3]}
                yield Values(spec, str(table.found_by["path"]), values, "list")
        return
    flat = {f: [dict(leaves(row)) for row in rows if isinstance(row, dict)] for f, rows in table.rows.items()}
    seen = [row for rows in flat.values() for row in rows[:200]]
    ids = Counter(place for row in seen for place, v in row.items() if isinstance(v, str | int) and len(place) <= 4)
    best: tuple[int, Values, Any, list[dict[Any, Any]]] | None = None
    for place, _ in ids.most_common(MOST_NAMES):
        by_id = {f: {str(row[place]): row for row in rows if place in row} for f, rows in flat.items()}
        if sum(map(len, by_id.values())) < 0.9 * sum(place in row for rows in flat.values() for row in rows):
            continue
        for key in keys:
            told = [by_id.get(folder, {}).get(text or "", {}) for text, folder in zip(key.texts, at, strict=True)]
            n = sum(map(bool, told))
            if n >= LEAST_KNOWN * len(runs) and (best is None or n > best[0]):
                best = (n, key, place, told)
    if best is None:
        return
    _, key, place, told = best
    path, wanted = spelled("@", place), {"in": {"list": [key.spec]}}
    kinds = {type(row[place]) for row in told if row} | {type(v) for v in key.values if v is not MISSING}
    as_text: dict[str, Any] = {"value": {"text": path}, "is": {"in": {"list": [{"text": key.spec}]}}}
    joined = {path: wanted} if len(kinds) == 1 else as_text
    chosen = {"elements": table.found_by, "when": {**table.when, **joined}}
    for name in dict.fromkeys(name for row in told for name in row):
        if name != place:
            path = spelled("$[0]", name)
            values = tuple(row.get(name, MISSING) if not isinstance(row.get(name), list) else MISSING for row in told)
            called = path if name != ("value",) else spelled("$", (posixpath.basename(table.file).partition(".")[0],))
            yield Values(_single({**chosen, "path": path}, name), called, values, "beside")


def _single(spec: dict[str, Any], place: Place) -> dict[str, Any]:
    """The value itself where a filter in the path finds a list of one."""
    return {"text": spec} if any(isinstance(step, tuple) for step in place) else spec
