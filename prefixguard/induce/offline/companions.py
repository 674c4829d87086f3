"""Outcomes in files beside the runs: a report for each run, a list of what was solved, a table of verdicts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.names import Meaning, affinity, path_names, polarity
from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.run_outcome import OutcomeCandidate
from prefixguard.induce.offline.run_places import Column, Node, Places, RunView, inner_places
from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import MISSING

#: Files of one run that a template may stand for; names of more files than this are no clue.
_HITS = 12
#: Share of runs whose companion must be there.
LEAST_COVERAGE = 0.4
#: Folders that are gone up, and down again, from the folder of a run.
_UP = 3
_NEAR_FILES = 60


@dataclass(frozen=True)
class Beside:
    """Companion files under one template. files: of each run, None where there is none. needs: see OutcomeCandidate."""

    template: str
    files: tuple[SampleFile | None, ...]
    needs: tuple[tuple[str, Any], ...] = ()

    @property
    def coverage(self) -> float:
        return sum(1 for file in self.files if file is not None) / max(1, len(self.files))

    @property
    def is_shared(self) -> bool:
        """Is one file for many runs?"""
        there = [file.path for file in self.files if file is not None]
        return len(set(there)) <= max(1, 0.34 * len(there)) and len(there) > 1


def find_companions(views: Sequence[RunView], samples: Samples, places: Places, task: Any = None) -> list[Beside]:
    """Files that stand beside the runs: at a fixed place, or under a name that holds a value of the run."""
    others = _others(views, samples)
    if not others:
        return []
    return [*_fixed(views, others), *_templates(views, others, _sources(places), task)]


def companion_columns(besides: Sequence[Beside], order: int) -> list[Column]:
    """Fields of the files that belong to one run each; a task may be named there."""
    columns: list[Column] = []
    for beside in besides:
        if beside.is_shared or beside.needs or "{task}" in beside.template:
            continue
        for place, values in _report_fields(beside).items():
            path = spell("$", place)
            if len(place) <= 3:
                spec = {"sibling": beside.template, "path": path}
                columns.append(Column(spec, path, tuple(values), order + len(columns), "companion", place))
    return columns


def companion_candidates(besides: Sequence[Beside], places: Places) -> list[OutcomeCandidate]:
    """Outcomes in the files that stand beside the runs, as far as the spec can say it."""
    sources = _sources(places)
    found: list[OutcomeCandidate] = []
    for beside in besides:
        if beside.is_shared:
            found.extend(_from_lists(beside, sources))
        else:
            found.extend(_from_reports(beside))
    return found


def _others(views: Sequence[RunView], samples: Samples) -> list[SampleFile]:
    mine = {view.file for view in views}
    return [file for file in samples.files if file.path not in mine]


def _sources(places: Places) -> list[Column]:
    """What may stand in the name of a companion, or in a list of runs."""
    return [
        column
        for column in places.columns
        if column.near != "document"
        and column.coverage >= 0.9
        and 0 < column.length <= 120
        and not any(isinstance(value, bool | float) for value in column.values)
        and (column.distinct > 1 or len(column.values) == 1)
    ][:60]


def _fixed(views: Sequence[RunView], others: Sequence[SampleFile]) -> list[Beside]:
    """Files that stand at the same place relative to every run's file."""
    folders: dict[str, list[SampleFile]] = {}
    inside: dict[str, set[str]] = {}
    for file in others:
        folder = posixpath.dirname(file.path)
        folders.setdefault(folder, []).append(file)
        while folder:
            parent = posixpath.dirname(folder)
            inside.setdefault(parent, set()).add(folder)
            folder = parent
    near: dict[str, dict[str, SampleFile]] = {}
    table: dict[str, list[SampleFile | None]] = {}
    for i, view in enumerate(views):
        folder = posixpath.dirname(view.file)
        if folder not in near:
            near[folder] = dict(_around(folder, folders, inside))
        for relative, file in near[folder].items():
            table.setdefault(relative, [None] * len(views))[i] = file
    found = [Beside(relative, tuple(files)) for relative, files in table.items()]
    return sorted((one for one in found if one.coverage >= LEAST_COVERAGE), key=lambda one: one.template)[:_NEAR_FILES]


def _around(
    folder: str, folders: Mapping[str, list[SampleFile]], inside: Mapping[str, set[str]]
) -> Iterator[tuple[str, SampleFile]]:
    """Files in the folder, up to _UP above it, and one below each of these."""
    base, n = folder, 0
    for up in range(_UP + 1):
        for place in [base, *sorted(inside.get(base, ()))[:40]]:
            if up and (folder == place or folder.startswith(place + "/")) and place != base:
                continue
            for file in folders.get(place, ())[:_NEAR_FILES]:
                yield posixpath.relpath(file.path, folder or "."), file
                n += 1
                if n >= 4 * _NEAR_FILES:
                    return
        if not base:
            return
        base = posixpath.dirname(base)


def _pieces(path: str) -> Iterator[str]:
    """What of a path may be the name of a run: its parts, and parts of these up to a separator."""
    for part in path.split("/"):
        yield part
        cuts = [i for i, letter in enumerate(part) if letter in "._-"][:8]
        for i in cuts:
            if i:
                yield part[:i]
            if i + 1 < len(part):
                rest = part[i + 1 :]
                yield rest
                yield rest.partition(".")[0]


def _templates(
    views: Sequence[RunView], others: Sequence[SampleFile], sources: Sequence[Column], task: Any
) -> list[Beside]:
    """Files whose path holds a value of the run, as a template with a hole for it."""
    index: dict[str, list[SampleFile]] = {}
    for file in others:
        for piece in set(_pieces(file.path)):
            index.setdefault(piece, []).append(file)
    found: list[Beside] = []
    for column in sources:
        hole, needs = _hole(column, task)
        if hole is None or column.distinct < max(1, 0.5 * len(views)):
            continue
        table: dict[str, list[SampleFile | None]] = {}
        for i, (view, text) in enumerate(zip(views, column.texts, strict=True)):
            hits = index.get(text, []) if text is not None and "/" not in text else []
            if text is None or len(hits) > _HITS:
                continue
            folder = posixpath.dirname(view.file)
            for file in hits:
                relative = posixpath.relpath(file.path, folder or ".")
                if text in relative and (len(table) < 200 or relative.replace(text, hole) in table):
                    table.setdefault(relative.replace(text, hole), [None] * len(views))[i] = file
        found.extend(Beside(template, tuple(files), needs) for template, files in table.items())
    return sorted((one for one in found if one.coverage >= LEAST_COVERAGE), key=lambda one: one.template)


def _hole(column: Column, task: Any) -> tuple[str | None, tuple[tuple[str, Any], ...]]:
    """How a template names the column, and what the run section must say for it."""
    if column.spec == task:
        return "{task}", ()
    if column.spec == "$key":
        return "{key}", ()
    if isinstance(column.spec, str):
        return ("{" + column.spec + "}", ()) if not set(column.spec) & set("{}") else (None, ())
    if set(column.spec) == {"file"}:
        return "{" + str(column.spec["file"]) + "}", ()
    return "{id}", (("id", column.spec),)


def _from_reports(beside: Beside) -> list[OutcomeCandidate]:
    """From a file for each run: one of its fields, or its text."""
    texts = [file.text.strip() if file is not None and file.kind == Kind.TEXT else None for file in beside.files]
    found = []
    if sum(1 for text in texts if text is not None and len(text) <= 40) >= 0.9 * sum(
        f is not None for f in beside.files
    ):
        of: Any = {"strip": {"sibling": beside.template, "format": "text"}}
        for form in judge_values(texts, beside.template.rpartition("/")[2].partition(".")[0]):
            found.append(_candidate(beside, of, form, texts, beside.template))
        return found
    for place, values in _report_fields(beside).items():
        path = spell("$", place)
        for form in judge_values(values, path):
            of = {"sibling": beside.template, "path": path}
            found.append(_candidate(beside, of, form, values, f"{path} in {beside.template}", len(place)))
    return found


def _report_fields(beside: Beside) -> dict[Place, list[Any]]:
    """Scalars of a file for each run, by their place."""
    table: dict[Place, list[Any]] = {}
    for i, file in enumerate(beside.files):
        if file is None or file.kind != Kind.JSON:
            continue
        for place, value in inner_places(file.value, Node()):
            if not isinstance(value, list) and (place in table or len(table) < 400):
                table.setdefault(place, [MISSING] * len(beside.files))[i] = value
    return table


def _candidate(
    beside: Beside, of: Any, form: OutcomeForm, values: Sequence[Any], label: str, depth: int = 1
) -> OutcomeCandidate:
    sides = tuple(form.side(value) for value in values)
    share = sum(1 for side in sides if side) / max(1, len(sides))
    confidence = form.confidence * (0.3 + 0.7 * share) - 0.02 * max(0, depth - 1) - 0.01 * beside.template.count("..")
    example = next((repr(value) for value in values if value is not MISSING and value is not None), "")
    return OutcomeCandidate(
        form.spec(of),
        sides,
        confidence,
        f"{form.why}; one file a run",
        label,
        example,
        5000 + depth,
        needs=beside.needs,
    )


def _from_lists(beside: Beside, sources: Sequence[Column]) -> list[OutcomeCandidate]:
    """From a file for many runs: lists of ids, or of objects with an id and a verdict."""
    documents: dict[str, SampleFile] = {file.path: file for file in beside.files if file is not None}
    lists: dict[Place, dict[str, list[Any]]] = {}
    for path, file in documents.items():
        if file.kind != Kind.JSON:
            continue
        if isinstance(file.value, list):
            lists.setdefault((), {})[path] = file.value
            continue
        for place, value in inner_places(file.value, Node()):
            if isinstance(value, list):
                lists.setdefault(place, {})[path] = value
    found: list[OutcomeCandidate] = []
    ids = {place: by for place, by in lists.items() if all(_is_ids(one) for one in by.values())}
    for source in sources:
        found.extend(_id_lists(beside, source, ids))
        for place, by in lists.items():
            if any(isinstance(item, Mapping) for one in by.values() for item in one[:20]):
                found.extend(_rows(beside, source, place, by))
    return found


def _is_ids(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)


def _raw(source: Column, value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _id_lists(
    beside: Beside, source: Column, lists: Mapping[Place, Mapping[str, Sequence[Any]]]
) -> list[OutcomeCandidate]:
    """`{"of": id, "success": {"in": list}, "failure": "else"}`."""
    members = {place: {path: set(ids) for path, ids in by.items()} for place, by in lists.items()}
    keys = [_raw(source, value) for value in source.values]
    if any(key is None for key in keys):
        return []
    known = [
        any(key in by.get(file.path, ()) for by in members.values()) if file is not None else False
        for key, file in zip(keys, beside.files, strict=True)
    ]
    share = sum(known) / max(1, len(known))
    if share < 0.5:
        return []
    kind = "string" if isinstance(keys[0], str) else "number"
    found = _pairs(beside, source, kind, keys, members)
    for order, (place, by) in enumerate(members.items()):
        names = path_names(spell("$", place))
        sign = polarity(names[-1]) if names else 0
        inside = [
            (key in by.get(file.path, ())) if file is not None else None
            for key, file in zip(keys, beside.files, strict=True)
        ]
        n = sum(1 for one in inside if one)
        m = sum(1 for one in inside if one is False)
        if not n or (not m and len(keys) > 3):
            continue
        test = {"in": {"sibling": beside.template, "path": spell("$", place)}}
        good = sign >= 0
        confidence = 0.3 + 0.5 * affinity(names[-1] if names else "", Meaning.OUTCOME)
        confidence -= 0.15 if sign == 0 else 0.1 if sign < 0 else 0.0
        confidence = confidence * (0.3 + 0.7 * share) - 0.01 * beside.template.count("..")
        outcome = {
            "of": source.spec,
            "type": kind,
            "success": test if good else "else",
            "failure": "else" if good else test,
        }
        sides = tuple(0 if one is None else (1 if one == good else -1) for one in inside)
        label = "the list of a neighbouring file"
        why = f"{n} of {n + m} runs stand in the list {spell('$', place)} of {beside.template}"
        found.append(OutcomeCandidate(outcome, sides, confidence, why, label, str(keys[0]), 6000 + order))
    return found


def _pairs(
    beside: Beside, source: Column, kind: str, keys: Sequence[Any], members: Mapping[Place, Mapping[str, set[Any]]]
) -> list[OutcomeCandidate]:
    """A list of what went well and one of what did not, if every run stands in one of them."""

    def listed(place: Place) -> list[bool]:
        by = members[place]
        return [f is not None and key in by.get(f.path, ()) for key, f in zip(keys, beside.files, strict=True)]

    signs = {place: polarity(str(place[-1])) if place else 0 for place in members}
    found = []
    for good in (place for place, sign in signs.items() if sign > 0):
        for bad in (place for place, sign in signs.items() if sign < 0):
            sides = [won - lost for won, lost in zip(listed(good), listed(bad), strict=True)]
            if sum(1 for side in sides if side) < 0.99 * len(sides):
                continue
            named = max(affinity(str(place[-1]), Meaning.OUTCOME) for place in (good, bad))
            tests = [{"in": {"sibling": beside.template, "path": spell("$", place)}} for place in (good, bad)]
            outcome = {"of": source.spec, "type": kind, "success": tests[0], "failure": tests[1]}
            why = f"every run stands in {spell('$', good)} or in {spell('$', bad)} of {beside.template}"
            confidence = 0.45 + 0.5 * named - 0.01 * beside.template.count("..")
            found.append(
                OutcomeCandidate(
                    outcome, tuple(sides), confidence, why, "the lists of a neighbouring file", str(keys[0]), 5900
                )
            )
    return found


def _rows(beside: Beside, source: Column, place: Place, by: Mapping[str, Sequence[Any]]) -> list[OutcomeCandidate]:
    """Objects with an id and a verdict, chosen by the filter of a path."""
    names: dict[str, None] = {}
    for rows in by.values():
        for row in rows[:50]:
            if isinstance(row, Mapping):
                names.update(dict.fromkeys(str(name) for name in row))
    plain = [name for name in names if name and not set(name) & set("[]=.'\"")][:40]
    keys = [_raw(source, value) for value in source.values]
    found: list[OutcomeCandidate] = []
    for id_name in plain:
        tables = {
            path: {row[id_name]: row for row in rows if isinstance(row, Mapping) and _is_id(row.get(id_name))}
            for path, rows in by.items()
        }
        rows_of = [
            tables.get(file.path, {}).get(key) if file is not None and key is not None else None
            for key, file in zip(keys, beside.files, strict=True)
        ]
        if sum(1 for row in rows_of if row is not None) < 0.5 * len(keys):
            continue
        for name in plain:
            if name == id_name:
                continue
            values = [row.get(name, MISSING) if row is not None else MISSING for row in rows_of]
            if any(isinstance(value, list | Mapping) for value in values):
                continue
            for form in judge_values(values, name)[:1]:
                one = _row_candidate(beside, source, place, id_name, name, form, values)
                if one is not None:
                    found.append(one)
        break
    return found


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _row_candidate(
    beside: Beside, source: Column, place: Place, id_name: str, name: str, form: OutcomeForm, values: Sequence[Any]
) -> OutcomeCandidate | None:
    spelled: dict[int, set[str]] = {1: set(), -1: set(), 0: set()}
    for value in values:
        if isinstance(value, str | int | float):
            spelled[form.side(value)].add(_spelled(value))
    if any(set(text) & set("[]'\"") or not text for side in (1, -1) for text in spelled[side]):
        return None

    def those(value: str) -> dict[str, Any]:
        return {"in": {"sibling": beside.template, "path": f"{spell('$', place)}[{name}={value}].{id_name}"}}

    everyone = {"in": {"sibling": beside.template, "path": f"{spell('$', place)}[*].{id_name}"}}
    success: Any
    failure: Any
    if len(spelled[1]) <= 1 and len(spelled[-1]) == 1 and spelled[1]:
        success, failure = those(min(spelled[1])), those(min(spelled[-1]))
    elif len(spelled[1]) == 1 and not spelled[0]:
        success = those(min(spelled[1]))
        failure = {**everyone, "not": success}
    elif len(spelled[-1]) == 1 and not spelled[0]:
        failure = those(min(spelled[-1]))
        success = {**everyone, "not": failure}
    else:
        return None
    sides = tuple(form.side(value) for value in values)
    share = sum(1 for side in sides if side) / max(1, len(sides))
    kind = "string" if isinstance(source.values[0], str) else "number"
    label = f"{name} of {spell('$', place)}[*] in {beside.template}"
    confidence = form.confidence * (0.3 + 0.7 * share) - 0.03 - 0.01 * beside.template.count("..")
    outcome = {"of": source.spec, "type": kind, "success": success, "failure": failure}
    return OutcomeCandidate(outcome, sides, confidence, f"{form.why}; a row a run", label, "", 7000)


def _spelled(value: str | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def companion_notes(views: Sequence[RunView], samples: Samples) -> list[str]:
    """Files that look as if they held verdicts, where no outcome was found."""
    names = [
        file.path
        for file in _others(views, samples)
        if affinity(posixpath.splitext(posixpath.basename(file.path))[0], Meaning.OUTCOME) >= 0.5
    ]
    if not names:
        return []
    return [f"{', '.join(sorted(names)[:3])} may tell outcomes in a form that was not understood: see --labels."]
