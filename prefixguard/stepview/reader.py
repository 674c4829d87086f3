"""Runs from documents: everything an adapter says about whole runs, with a report of what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.fills import FillCounts, highest
from prefixguard.stepview.found import Counts, Found, contained, those_alone
from prefixguard.stepview.jsontext import decode, decode_text
from prefixguard.stepview.losses import switch_of
from prefixguard.stepview.parser import Parser, parse_whole
from prefixguard.stepview.paths import MISSING, Scope, describe
from prefixguard.stepview.program import Program
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.values import as_id
from prefixguard.trace import Mistake, Run
from prefixguard.trace.documents import Document, Documents, companion_path, open_documents
from prefixguard.trace.labels import Label, LabelBook, LabelTally, read_labels
from prefixguard.trace.split import own_task

#: Companion files kept decoded: a verifier's list is asked for once a run.
_KEPT = 8
#: Places that a sentence on what could not be read names.
_SHOWN = 3


@dataclass(slots=True)
class ReadReport:
    """What reading met. Handed in empty, filled while runs are taken.

    documents, runs: read, and yielded. empty: runs without a record, by outcome; they are not yielded.
    skipped: what could not be read, as (where, reason). events_skipped: events that no rule took, by kind.
    duplicate_ids: runs whose id another run had (they are called ID#2 ...). labels: how the labels met the runs.
    steps_missing: labels whose step their run does not have.
    companions_missing: outcomes that a companion file should give, and the file is not there.
    events: events that rules were tried on. longest_without_step, most_skipped: of every run, see `EventGaps`; number
    of runs by number of events. fills: how the fields of the records are filled (`losses` says what is missing).
    """

    documents: int = 0
    runs: int = 0
    records: int = 0
    empty: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    events_skipped: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    bad_bytes: int = 0
    late_results: int = 0
    duplicate_ids: int = 0
    labels: LabelTally = field(default_factory=LabelTally)
    steps_missing: int = 0
    companions_missing: int = 0
    without_events: int = 0
    events: int = 0
    longest_without_step: dict[int, int] = field(default_factory=dict)
    most_skipped: dict[int, int] = field(default_factory=dict)
    fills: FillCounts = field(default_factory=FillCounts)

    def reading(self, fills: FillCounts) -> dict[str, Any]:
        """What a bundle's manifest keeps under `reading`: how fields were filled, and how events fell to records."""
        found = fills.to_json()
        if self.longest_without_step:
            found["events"] = {
                "longest_without_step": highest(self.longest_without_step),
                "most_skipped_of_64": highest(self.most_skipped),
            }
        return found

    @property
    def looked_at(self) -> int:
        """Number of runs and documents so far: read, without a record, or not readable."""
        return self.runs + len(self.skipped) + sum(self.empty.values())

    def count(self, parser: Parser) -> None:
        """What the parser of one run met."""
        for counter, n in parser.counters.items():
            kind = counter.removeprefix("skipped: ")
            into = self.events_skipped if kind != counter else self.counters
            into[kind] = into.get(kind, 0) + n
        self.late_results += parser.counters.get("late_results", 0)
        self.events += parser.gaps.events

    def left_out(self) -> Iterator[str]:
        """A sentence on what could not be read, with the first few places and reasons, and on labels that met no run;
        none where nothing was lost."""
        if self.skipped:
            count = len(self.skipped)
            what, was = ("run or file", "was") if count == 1 else ("runs or files", "were")
            shown = " | ".join(_placed(where, why) for where, why in self.skipped[:_SHOWN])
            yield f"{count:,} {what} could not be read and {was} skipped; the first: {shown}"
        yield from self.labels.notes()
        if self.steps_missing:
            names, has = (
                ("label names", "its run has") if self.steps_missing == 1 else ("labels name", "their runs have")
            )
            yield f"{self.steps_missing:,} {names} a step that {has} not; what it says of the agent is kept."


def _placed(where: str, why: str) -> str:
    return why if where in why else f"{where}: {why}"


class _Companions:
    """Companion files through `Documents`, the last few kept decoded."""

    def __init__(self, documents: Documents, counts: Counts) -> None:
        self._documents = documents
        self._counts = counts
        self._kept: dict[tuple[str, str, bool], Any] = {}
        self._touched: dict[str, None] = {}

    def touched(self) -> tuple[str, ...]:
        """Paths, inside the folder of runs, of the files asked for since this was last asked; there or not."""
        paths, self._touched = tuple(self._touched), {}
        return paths

    def _touch(self, beside: str, relative: str) -> None:
        path = companion_path(beside, relative)
        if path is not None:
            self._touched[path] = None

    def raw(self, beside: str, relative: str) -> bytes | None:
        self._touch(beside, relative)
        return self._documents.companion(beside, relative)

    def read(self, beside: str, relative: str, as_text: bool) -> Any:
        key = (beside.rpartition("/")[0], relative, as_text)
        if key in self._kept:
            self._touch(beside, relative)
            return self._kept[key]
        data = self.raw(beside, relative)
        value: Any = MISSING
        if data is not None:
            with suppress(ValueError):  # what cannot be read is as if it were not there
                value = self._counts.text(data) if as_text else self._decoded(data)
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = value
        return value

    def _decoded(self, data: bytes) -> Any:
        try:
            return decode(data)
        except ValueError:
            return decode_text(self._counts.text(data))


def read_runs(
    source: str | Path,
    adapter: Adapter,
    *,
    labels: Path | Mapping[str, Label] | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
    witness: Callable[[Scope], None] | None = None,
    most: int | None = None,
    counts: Counts | None = None,
) -> Iterator[Run[StepRecord]]:
    """Runs of a file, folder, glob, tar archive or `-` (standard input), one at a time, in the order of their paths.

    labels: a file of outcomes, steps and agents (`read_labels`), or what it holds, joined by run id or by the file of a
    run (see LabelBook); it has the last word.
    strict: the first run that cannot be read is an error; otherwise it is skipped and named in the report. Runs without
    a record are counted there and not yielded.
    witness: called with the scope of every run just before the run is yielded (see `side_by_side`).
    most: largest number of runs and documents that are opened, readable or not; None: all.
    counts: shared with other readings of the same documents.
    Raises TraceError if nothing at all could be read, DataError if no label is of a run.
    """
    report = ReadReport() if report is None else report
    outcomes = labels if isinstance(labels, Mapping) else read_labels(Path(labels)) if labels is not None else {}
    counts = Counts() if counts is None else counts
    with open_documents(source) as documents:
        matching = list(documents.matching(adapter.program.container.files))
        if strict and documents.left_out:
            where, reason = next(iter(documents.left_out.items()))
            raise TraceError(f"{where}: {reason}")
        book = LabelBook(outcomes, (one.path for one in matching) if outcomes else (), documents.folders)
        reading = _Reader(adapter.program, _Companions(documents, counts), counts, book, bool(outcomes), strict, report)
        for run, scope in reading.runs(matching, sys.maxsize if most is None else most):
            if witness is not None:
                witness(scope)
            yield run
        report.skipped.extend(documents.left_out.items())
    report.bad_bytes = counts.bad_bytes
    report.labels = book.tally()
    _refuse_nothing(str(source), adapter, report)
    if labels is not None and most is None:
        book.refuse_strangers(Path(str(source)) if isinstance(labels, Mapping) else Path(labels))


def companions_of(scope: Scope) -> tuple[str, ...]:
    """For a witness: files that were asked for since the run before."""
    return scope.companions.touched() if isinstance(scope.companions, _Companions) else ()


@dataclass(slots=True, eq=False)
class _Reader:
    """Reads the runs of documents. What cannot be read goes to the report, or is raised if strict."""

    program: Program
    companions: _Companions
    counts: Counts
    book: LabelBook
    has_labels: bool
    strict: bool
    report: ReadReport
    ids: dict[str, int] = field(default_factory=dict)  # how many runs had each id so far
    caller: tuple[str, Label | None] = ("", None)  # the last run that is no delegate: what it is called, and its label

    def runs(self, documents: list[Document], most: int) -> Iterator[tuple[Run[StepRecord], Scope]]:
        """Runs with a record, each with its scope, until `most` runs and documents were opened."""
        report = self.report
        for document in documents:
            report.documents += 1
            in_document = self._found(document)
            for found in those_alone(in_document) if self.has_labels else in_document:
                scope = Scope(
                    found.document, found.run, key=found.key, position=found.position, file=document.path,
                    companions=self.companions,
                )  # fmt: skip
                try:
                    with contained(found.where):
                        run = self._run(found, scope, document.path)
                except TraceError as exc:
                    self._skip(found.where, exc)
                    continue
                report.bad_bytes = self.counts.bad_bytes
                if run is not None:
                    yield run, scope
                if report.looked_at >= most:
                    return
            if report.looked_at >= most:
                return

    def _skip(self, where: str, exc: TraceError) -> None:
        if self.strict:
            raise exc
        self.report.skipped.append((where, str(exc)))

    def _found(self, document: Document) -> Iterator[Found]:
        try:
            with contained(document.where):
                for found in self.program.container.runs(document, self.companions, self.counts):
                    if isinstance(found, Found):
                        yield found
                    else:
                        self._skip(found.where, TraceError(found.reason))
        except TraceError as exc:
            self._skip(document.where, exc)

    def _run(self, found: Found, scope: Scope, path: str) -> Run[StepRecord] | None:
        """The run; None where it has no record."""
        program, report = self.program, self.report
        if found.is_json and not isinstance(found.run, dict | list):
            raise TraceError(f"{found.where}: a run that is {describe(found.run)}. Remove it, or name another adapter.")
        if found.whole is not MISSING:
            scope.run = found.whole
        own = as_id(program.run_id(scope)) if program.run_id is not None else None
        main = own or _default_id(path, found)
        scope.values = {"id": main}
        task = as_id(program.task(scope)) if program.task is not None else None
        if task is not None:
            scope.values["task"] = task
        outcome = program.outcome(scope)
        if found.delegate is None:
            name = self._own_name(main, found.where)
            report.companions_missing += scope.companion_missing
            label = self.book.find(name, path if found.alone else None)
            self.caller = name, label
        else:
            main, label = self.caller
            name = self._own_name(f"{main}/{found.delegate}", found.where)
            label = self.book.find(name, caller=label if label is None else Label(label.outcome, label.task_id))
            task = own_task(main) if task is None else task
        if label is not None:
            outcome, task = label.outcome, label.task_id or task
        groups = {key: value for key, get in program.groups if (value := as_id(get(scope))) is not None}
        scope.run = found.run
        try:
            records, parser, had_events, offer = parse_whole(program, scope, events_needed=found.is_json)
        except TraceError as exc:
            raise TraceError(f"{found.where}, run {name!r}: {exc}.") from exc
        report.count(parser)
        if not records:
            report.empty[outcome.value] = report.empty.get(outcome.value, 0) + 1
            report.without_events += not had_events
            return None
        mistake, faults = program.labels.mistake(scope, records), program.labels.faults(scope)
        if label is not None and (label.mistake is not None or label.faults):
            mistake, faults = self._there(label.mistake, len(records)), label.faults
        report.runs += 1
        report.records += len(records)
        report.fills.add(records)
        for tally, n in (
            (report.longest_without_step, parser.gaps.longest_without_step),
            (report.most_skipped, parser.gaps.most_skipped),
        ):
            tally[n] = tally.get(n, 0) + 1
        return Run(name, task, outcome, tuple(records), found.where, MappingProxyType(groups), mistake, faults, offer)

    def _there(self, mistake: Mistake | None, n_records: int) -> Mistake | None:
        """The mistake of a label; without its step, and counted, where the run has no such step."""
        if mistake is None or mistake.step is None or mistake.step <= n_records:
            return mistake
        self.report.steps_missing += 1
        return Mistake(None, mistake.agent)

    def _own_name(self, name: str, where: str) -> str:
        """The name; where another run had it, the next of NAME#2, NAME#3 ... that no run read so far is called by."""
        n = self.ids[name] = self.ids.get(name, 0) + 1
        if n == 1:
            return name
        if self.strict:
            raise TraceError(
                f"{where}: run id {name!r} occurs before. Make ids unique, or let the adapter build them from more "
                "fields."
            )
        self.report.duplicate_ids += 1
        while f"{name}#{n}" in self.ids:
            n += 1
        self.ids[f"{name}#{n}"] = 1
        return f"{name}#{n}"


def _default_id(path: str, found: Found) -> str:
    if not found.several:
        return path
    return f"{path}#{found.key if isinstance(found.key, str) else found.position}"


def _refuse_nothing(source: str, adapter: Adapter, report: ReadReport) -> None:
    """TraceError if nothing was read, with the likeliest reason."""
    if report.runs:
        return
    reader = f"adapter {adapter.name} {adapter.version}"
    remedy = f"See what it reads with: prefixguard parse {source} --adapter {adapter.name}"
    if not report.documents and not report.skipped:
        raise TraceError(
            f"{source}: no file matches {' or '.join(adapter.program.container.files)} ({reader}). "
            "Name the folder that holds the runs, or another adapter."
        )
    if report.skipped:
        where, reason = report.skipped[0]
        more = f" ({len(report.skipped)} such)" if len(report.skipped) > 1 else ""
        raise TraceError(f"{_placed(where, reason)}{more} No run was read from {source}. {remedy}")
    if skipped := sum(report.events_skipped.values()):
        most = sorted(report.events_skipped.items(), key=lambda kv: (-kv[1], kv[0]))[:5]
        why = f"skipped all {skipped} events: {', '.join(f'{n} {kind}' for kind, n in most)}"
    elif report.without_events:
        why = f"found no events in {report.without_events} run(s)"
    elif not report.empty:
        why = f"found no run in {report.documents} file(s)"
    else:
        return
    raise TraceError(f"{source}: no records ({reader} {why}).{switch_of(adapter)} {remedy}")
