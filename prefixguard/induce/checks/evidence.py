"""What the checks look at: how the whole set was read, and a seeded sample of its runs with their raw data."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prefixguard.evaluation.leaks.raw import RawRuns, SeenRun
from prefixguard.stepview import (
    Adapter,
    Parser,
    ReadReport,
    Scope,
    Splitter,
    StepRecord,
    parse_whole,
    read_runs,
    wide_view,
)
from prefixguard.trace import Outcome, Run

#: Runs looked at closely, by how they ended.
SAMPLED: Mapping[Outcome, int] = {Outcome.SUCCESS: 150, Outcome.FAILURE: 150, Outcome.UNKNOWN: 100}
#: Characters of raw text that the sampled runs may hold together; then fewer are looked at.
MOST_TEXT = 96 << 20
#: Budget of a field, in code points: what the leak search reads must not depend on where a text was cut.
_WIDE = 100_000
#: Runs that the digest covers, from the first.
COUNTED_RUNS = 100
SEED = 20_251


@dataclass(frozen=True, slots=True)
class Evidence(RawRuns):
    """A set of runs, read. seen: the sample, in the order of the set. digest: of the first `counted` runs.
    figures, fields: of the report; checks fill them."""

    source: str
    labels: Path | None
    report: ReadReport
    outcomes: Mapping[Outcome, int]
    without_task: int
    digest: str
    counted: int
    figures: dict[str, float | int] = field(default_factory=dict)
    fields: dict[str, float] = field(default_factory=dict)

    @property
    def records(self) -> list[StepRecord]:
        """All records of the sample."""
        return [record for seen in self.seen for record in seen.run.records]


def gather(adapter: Adapter, source: str | Path, labels: Path | None = None) -> Evidence:
    """Read the set once and keep a sample. TraceError if nothing can be read."""
    report = ReadReport()
    scopes: list[Scope] = []
    # a reservoir for every outcome, so that a rare one is seen
    kept: dict[Outcome, list[tuple[int, Run[StepRecord], Scope]]] = {outcome: [] for outcome in Outcome}
    chance = random.Random(SEED)
    outcomes: Counter[Outcome] = Counter()
    without_task = 0
    digest = hashlib.sha256()
    for number, run in enumerate(read_runs(source, adapter, labels=labels, report=report, witness=scopes.append)):
        outcomes[run.outcome] += 1
        without_task += run.task_id is None
        if number < COUNTED_RUNS:
            digest.update(spelled(run))
        group, room = kept[run.outcome], SAMPLED[run.outcome]
        at = len(group) if len(group) < room else chance.randrange(outcomes[run.outcome])
        scope = scopes.pop()
        if at < room:
            group[at : at + 1] = [(number, run, scope)]
    wide = wide_view(adapter, _WIDE)
    seen: list[SeenRun] = []
    text = 0
    for _, run, scope in sorted((one for group in kept.values() for one in group), key=lambda one: one[0]):
        if text > MOST_TEXT:
            break
        seen.append(_look(adapter, wide, run, scope))
        text += sum(len(r.observation) + len(r.action) + len(r.arguments) + len(r.result) for r in seen[-1].wide)
    spec: dict[str, Any] = json.loads(adapter.to_bytes())
    counted = min(COUNTED_RUNS, outcomes.total())
    read = report, outcomes, without_task, digest.hexdigest(), counted
    return Evidence(adapter, spec, tuple(seen), str(source), labels, *read)


def spelled(run: Run[StepRecord]) -> bytes:
    """Everything that an adapter says about a run, for a digest."""
    return repr(replace(run, groups=dict(sorted(run.groups.items())))).encode()


def _look(adapter: Adapter, wide: Adapter, run: Run[StepRecord], scope: Scope) -> SeenRun:
    """The run again: with a clock, with the widest budgets, and its events as rules see them."""
    events = feed = adapter.program.events.feed(scope)
    seconds = []
    parser = Parser(adapter.program, scope, live=False)
    for event in feed:
        start = time.perf_counter()
        parser.observe(event)
        seconds.append(time.perf_counter() - start)
    if (split := adapter.program.events.split) is not None:
        splitter = Splitter(split)
        events = [*splitter.feed("".join(feed)), *splitter.end()]
    return SeenRun(run, scope, tuple(events), tuple(parse_whole(wide.program, scope)[0]), tuple(seconds))


def is_call(record: StepRecord) -> bool:
    """Did the agent call a tool here?"""
    return record.actor == "agent" and record.tool not in ("", "respond")


def parts_of(value: Any, deepest: int) -> Iterator[Any]:
    """The value and all that it holds, down to so many levels below it."""
    yield value
    if deepest and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from parts_of(inner, deepest - 1)
