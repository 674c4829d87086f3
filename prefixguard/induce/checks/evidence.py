"""What the checks look at: how the whole set was read, and a seeded sample of its runs with their raw data."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.evaluation.leaks.raw import RawRuns, SeenRun
from prefixguard.induce.checks.record_digest import COUNTED_RUNS, RunDigest
from prefixguard.stepview import Adapter, Parser, ReadReport, Scope, Splitter, StepRecord, read_runs
from prefixguard.trace import Outcome, Run

#: Runs looked at closely, by how they ended.
SAMPLED: Mapping[Outcome, int] = {Outcome.SUCCESS: 150, Outcome.FAILURE: 150, Outcome.UNKNOWN: 100}
#: Characters of raw text that the sampled runs may hold together; then fewer are looked at.
MOST_TEXT = 96 << 20
#: Widest budget of a field, in code points: what the leak search reads must not depend on where a text was cut.
WIDE = [60_000, 40_000]
SEED = 20_251


@dataclass(frozen=True, slots=True)
class Evidence(RawRuns):
    """A set of runs, read. seen: the sample, in the order of the set. digest: of the first `counted` runs."""

    source: str
    labels: Path | None
    report: ReadReport
    outcomes: Mapping[Outcome, int]
    without_task: int
    digest: str
    counted: int
    figures: dict[str, float | int] = field(default_factory=dict)
    fields: dict[str, float] = field(default_factory=dict)


class _Sample:
    """A reservoir for every outcome, so that a rare one is seen."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        self._met: Counter[Outcome] = Counter()
        self._kept: dict[Outcome, list[tuple[int, Run[StepRecord], Scope]]] = {outcome: [] for outcome in Outcome}
        self._number = 0

    def add(self, run: Run[StepRecord], scope: Scope) -> None:
        kept, room = self._kept[run.outcome], SAMPLED[run.outcome]
        self._met[run.outcome] += 1
        self._number += 1
        if len(kept) < room:
            kept.append((self._number, run, scope))
            return
        at = self._random.randrange(self._met[run.outcome])
        if at < room:
            kept[at] = (self._number, run, scope)

    def runs(self) -> list[tuple[Run[StepRecord], Scope]]:
        every = sorted((one for kept in self._kept.values() for one in kept), key=lambda one: one[0])
        return [(run, scope) for _, run, scope in every]


def gather(adapter: Adapter, source: str | Path, labels: Path | None = None) -> Evidence:
    """Read the set once and keep a sample. TraceError if nothing can be read."""
    spec: dict[str, Any] = json.loads(adapter.to_bytes())
    report = ReadReport()
    scopes: list[Scope] = []
    sample = _Sample()
    digest = RunDigest()
    outcomes: Counter[Outcome] = Counter()
    without_task = 0
    for run in read_runs(source, adapter, labels=labels, report=report, witness=scopes.append):
        sample.add(run, scopes.pop())
        outcomes[run.outcome] += 1
        without_task += run.task_id is None
        if digest.runs < COUNTED_RUNS:
            digest.add(run)
    wide = widened(spec)
    seen: list[SeenRun] = []
    text = 0
    for run, scope in sample.runs():
        if text > MOST_TEXT:
            break
        seen.append(_look(adapter, wide, run, scope))
        text += sum(map(_length, seen[-1].wide))
    return Evidence(
        adapter, spec, tuple(seen), str(source), labels, report, outcomes, without_task, digest.value(), digest.runs
    )


def widened(spec: Mapping[str, Any]) -> Adapter:
    """The same adapter with the widest budgets."""
    budgets = dict.fromkeys(("observation", "action", "arguments", "result"), WIDE)
    return Adapter({**spec, "budgets": budgets})


def _length(record: StepRecord) -> int:
    return len(record.observation) + len(record.action) + len(record.arguments) + len(record.result)


def _look(adapter: Adapter, wide: Adapter, run: Run[StepRecord], scope: Scope) -> SeenRun:
    seconds = []
    parser = Parser(adapter.program, scope, live=False)
    for event in feed_of(adapter, scope):
        start = time.perf_counter()
        parser.observe(event)
        seconds.append(time.perf_counter() - start)
    parser = Parser(wide.program, scope, live=False)
    records: list[StepRecord] = []
    for event in feed_of(wide, scope):
        records.extend(parser.observe(event))
    records.extend(parser.end())
    return SeenRun(run, scope, tuple(pieces_of(adapter, scope)), tuple(records), tuple(seconds))


def feed_of(adapter: Adapter, scope: Scope) -> list[Any]:
    """What a parser is fed for this run, one after the other: events, or lines of text with their newlines."""
    events = adapter.program.events
    try:
        found = events.listing(scope)
    except (TraceError, AdapterError):
        return []
    if isinstance(found, str):
        return found.splitlines(keepends=True)
    return found[: len(found) - events.drop_last] if isinstance(found, list) else []


def pieces_of(adapter: Adapter, scope: Scope) -> Iterator[Any]:
    """The events of the run as rules see them: of text, the pieces with their bodies."""
    split = adapter.program.events.split
    feed = feed_of(adapter, scope)
    if split is None:
        yield from feed
        return
    splitter = Splitter(split)
    for line in feed:
        yield from splitter.feed(line)
    yield from splitter.end()
