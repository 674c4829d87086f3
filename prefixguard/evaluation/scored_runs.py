"""Runs as monitors heard them: scores and labels, no text; and which of them count."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import draw_one_per_task
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.analyses import UnseenTransitions, onset_of
from prefixguard.evaluation.prices import Prices, took_by
from prefixguard.evaluation.tables.rules import rule_scores
from prefixguard.evaluation.tables.score_rows import score_values
from prefixguard.runtime import Monitor
from prefixguard.stepview import ReadReport, SpooledRuns, StepRecord, read_runs, serialize
from prefixguard.trace import Outcome, Run, Side, digest_of, is_read_once, task_hash, task_key

Float = npt.NDArray[np.float64]
#: A run, the same for every monitor that reads it: its id, and how many of that id came before it.
Key = tuple[str, int]
#: What parsed or raw runs are given as.
Source = str | os.PathLike[str] | Iterable[Run[StepRecord]]
#: What a task may have been used for that makes its runs no test of the monitor.
USES = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION, Side.ALARM)


@dataclass(frozen=True, slots=True)
class HeardRun:
    """One run as one monitor heard it.

    digest: of its records. named: whether it names its task. use: what it was used for when the monitor was made; None:
    for nothing. imminent, outcome, sizes: risks and bytes of text of each step, (T,);
    took: see `took_by`; rules: see `rule_scores`; unsignalled: both risks of the monitor that is not told what steps
    took, (T, 2), None where it never is. All are empty where the run is left out for its use; but the rules of
    successful runs that set the alarm are kept.
    onset: see `onset_of`.
    """

    run_id: str
    digest: str
    failed: bool
    task: str
    named: bool
    groups: Mapping[str, str]
    use: str | None
    imminent: Float
    outcome: Float
    sizes: Float
    took: Mapping[str, Float]
    rules: Mapping[str, Float]
    onset: int | None = None
    unsignalled: Float | None = None


class Heard:
    """All runs as one monitor heard them, one at a time.

    include_used: whether runs that the monitor was made from are scored too. with_rules: whether rules score them.
    onset: what says from which step on an alarm is due; None: nothing. prices: of tokens; None: not known.
    scored: by key. without_outcome, empty: runs whose outcome is not known, and those without a step.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        include_used: bool,
        with_rules: bool = False,
        onset: str | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._prices = prices
        bundle = monitor.bundle
        self.monitor, self._include_used, self._with_rules, self._onset = monitor, include_used, with_rules, onset
        self._unsignalled = monitor.without_signals() if with_rules and bundle.reads_signals else None
        self.transitions = UnseenTransitions(bundle.automaton) if bundle.automaton is not None else None
        self.scored: dict[Key, HeardRun] = {}
        self.without_outcome: set[Key] = set()
        self.empty: set[Key] = set()
        named = [
            (use.value, (bundle.manifest.get(kind) or {}).get(use.value, ()))
            for kind in ("tasks", "runs")
            for use in USES
        ]
        self._uses = {digest: use for use, digests in reversed(named) for digest in digests}

    def take(self, key: Key, run: Run[StepRecord]) -> None:
        """Score one run."""
        if run.outcome is Outcome.UNKNOWN or not run.records:
            (self.without_outcome if run.records else self.empty).add(key)
            return
        task, digest = task_key(run), digest_of(run)
        use = self._uses.get(task_hash(task)) or self._uses.get(digest)
        counted = use is None or self._include_used
        readings = self.monitor.score_run(run.records) if counted else ()
        if self.transitions is not None:
            self.transitions.add(readings)
        sets_alarm = use == Side.ALARM.value and run.outcome is Outcome.SUCCESS
        self.scored[key] = HeardRun(
            run_id=run.run_id,
            digest=digest,
            failed=run.outcome is Outcome.FAILURE,
            task=task,
            named=run.task_id is not None,
            groups=run.groups,
            use=use,
            imminent=_array(reading.imminent_risk for reading in readings),
            outcome=_array(reading.outcome_risk for reading in readings),
            sizes=_array(len(serialize(record)) for record in (run.records if counted else ())),
            took=took_by(run.records if counted else (), run.groups, self._prices),
            rules=self._rules(run.records) if self._with_rules and (counted or sets_alarm) else {},
            onset=None if self._onset is None else onset_of(run, self._onset),
            unsignalled=None if self._unsignalled is None else _risks(self._unsignalled, run if counted else None),
        )

    def _rules(self, records: Sequence[StepRecord]) -> Mapping[str, Float]:
        """What is scored beside the monitor: rules, or the scores that it reads."""
        if not self.monitor.reads_scores:
            return rule_scores(records)
        return score_values(records, higher_is_safer=self.monitor.bundle.higher_is_safer)

    def used(self, key: Key) -> bool:
        """Whether the monitor was made from this run's task, or from a repeat of it."""
        return key in self.scored and self.scored[key].use is not None

    def kept(self) -> list[HeardRun]:
        """The runs that count, in the order in which they were read."""
        return [run for run in self.scored.values() if run.use is None or self._include_used]

    def tuning(self) -> list[Mapping[str, Float]] | None:
        """Rule scores of the runs that set the monitor's alarm, one a task; None where they are not among the runs."""
        seed = self.monitor.bundle.manifest.get("seed")
        found = [run for run in self.scored.values() if run.use == Side.ALARM.value and not run.failed]
        tasks, run_ids = [run.task for run in found], [run.run_id for run in found]
        drawn = draw_one_per_task(tasks, run_ids, seed=seed if isinstance(seed, int) else 0)
        return [found[i].rules for i in drawn.tolist()] or None


def _risks(monitor: Monitor, run: Run[StepRecord] | None) -> Float:
    readings = () if run is None else monitor.score_run(run.records)
    risks = [_array(getattr(one, name) for one in readings) for name in ("imminent_risk", "outcome_risk")]
    return np.stack(risks, axis=1)


def _array(values: Iterable[float | None]) -> Float:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def listen(
    heard: Sequence[Heard],
    runs: Source,
    labels: str | os.PathLike[str] | None,
    strict: bool,
    progress: Callable[[int], None] | None,
) -> tuple[list[str], int]:
    """Let every monitor score every run, reading them once an adapter; notes on what could not be read, and how many
    runs were empty before they were read."""
    by_adapter: dict[bytes, list[Heard]] = {}
    for one in heard:
        by_adapter.setdefault(one.monitor.bundle.adapter.to_bytes(), []).append(one)
    at_once = not isinstance(runs, (str, os.PathLike)) or is_read_once(runs)
    if len(by_adapter) > 1 and at_once:
        raise ConfigError(
            f"the monitors read through {len(by_adapter)} adapters, and these runs can be read once only. Give a file "
            "or a folder of raw runs."
        )
    notes: list[str] = []
    done = empty = 0
    for listeners in by_adapter.values():
        report, names = runs.report if isinstance(runs, SpooledRuns) else ReadReport(), Counter[str]()
        parsed: Iterable[Run[StepRecord]] = () if isinstance(runs, (str, os.PathLike)) else runs
        if isinstance(runs, (str, os.PathLike)):
            source, companion = runs if isinstance(runs, str) else Path(runs), None if labels is None else Path(labels)
            adapter = listeners[0].monitor.bundle.adapter
            parsed = read_runs(source, adapter, labels=companion, strict=strict, report=report)
        for run in parsed:
            done += 1
            if progress is not None:
                progress(done)
            key = (run.run_id, names[run.run_id])
            names[run.run_id] += 1
            for one in listeners:
                one.take(key, run)
        notes.extend(report.left_out())
        empty = max(empty, sum(report.empty.values()))
    if len(by_adapter) > 1:
        names_of = ", ".join(dict.fromkeys(one.monitor.bundle.adapter.name for one in heard))
        notes.append(f"Each monitor reads the runs through its own adapter ({names_of}); they are matched by run id.")
    return notes, empty


#: Groups that say who acted, in the order in which they are looked for.
ACTORS = ("agent", "model", "file")


def choose_groups(groups: Sequence[Mapping[str, str]], wanted: str | None) -> tuple[str | None, list[str] | None]:
    """The group within which runs are compared, and its value for each run, "" where a run has none.

    groups: those of each run. wanted: the group that is asked for; None: the first of agent, model and file that has
    two values. (None, None) where there is none. Raises DataError where no run has the wanted one.

    >>> choose_groups([{"file": "a.json", "agent": "x"}, {"file": "b.json", "agent": "x"}], None)
    ('file', ['a.json', 'b.json'])
    """
    if wanted is not None and not any(wanted in group for group in groups):
        known = ", ".join(sorted({name for group in groups for name in group})) or "none"
        raise DataError(f"no run has a group {wanted!r}. Groups of these runs: {known}.")
    for name in ACTORS if wanted is None else (wanted,):
        values = [group.get(name, "") for group in groups]
        if wanted is not None or len(set(values)) > 1:
            return name, values
    return None, None
