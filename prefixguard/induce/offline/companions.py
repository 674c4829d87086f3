"""Files beside the runs: found by where they stand or what they are called, and what a report for each run tells."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.run_beside import Beside
from prefixguard.induce.offline.run_lists import from_lists
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


def companion_candidates(
    besides: Sequence[Beside], places: Places, success: str | None = None
) -> list[OutcomeCandidate]:
    """Outcomes in the files that stand beside the runs, as far as the spec can say it."""
    sources = _sources(places)
    found: list[OutcomeCandidate] = []
    for beside in besides:
        if beside.is_shared:
            found.extend(from_lists(beside, sources))
        else:
            found.extend(_from_reports(beside, success))
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


def _from_reports(beside: Beside, success: str | None = None) -> list[OutcomeCandidate]:
    """From a file for each run: one of its fields, or its text."""
    texts = [file.text.strip() if file is not None and file.kind == Kind.TEXT else None for file in beside.files]
    found = []
    if sum(1 for text in texts if text is not None and len(text) <= 40) >= 0.9 * sum(
        f is not None for f in beside.files
    ):
        of: Any = {"strip": {"sibling": beside.template, "format": "text"}}
        for form in judge_values(texts, beside.template.rpartition("/")[2].partition(".")[0], success=success):
            found.append(_candidate(beside, of, form, texts, beside.template))
        return found
    for place, values in _report_fields(beside).items():
        path = spell("$", place)
        for form in judge_values(values, path, success=success):
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
        assumed=form.assumed,
    )
