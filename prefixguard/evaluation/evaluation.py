"""Evaluate a monitor on runs, without those it was made from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from prefixguard.alarm import Thresholds, table_from_json
from prefixguard.bundle import Bundle
from prefixguard.errors import DataError
from prefixguard.evaluation.analyses import automaton_fidelity, known_onsets
from prefixguard.evaluation.prices import TOOK, Prices
from prefixguard.evaluation.scored_runs import USES, Heard, HeardRun, choose_groups, listen
from prefixguard.evaluation.scoring import RESAMPLES, evaluate_scores
from prefixguard.evaluation.tables.alerts import AlarmGroups
from prefixguard.evaluation.tables.evaluation_table import EvaluationTable, RunKey, RunsLeftOut
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.evaluation.tables.rules import rule_rows
from prefixguard.evaluation.tables.score_rows import score_rows
from prefixguard.metrics import ReferenceRisks
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import Adapter, StepRecord
from prefixguard.trace import Run

#: Further rows over the runs evaluated, which are given in their order.
Beside = Callable[[Sequence[RunKey]], Sequence[ScoreRow]]


def evaluate(
    monitor: Monitor | str | os.PathLike[str],
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | os.PathLike[str] | None = None,
    all: bool = False,
    strict: bool = False,
    group_by: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 13,
    onset: str | None = None,
    prices: str | os.PathLike[str] | None = None,
    beside: Beside | None = None,
    progress: Callable[[int], None] | None = None,
) -> EvaluationTable:
    """How good a monitor is on runs it has not seen.

    Runs are left out whose task, or whose word-for-word repeat, the monitor was trained, validated or calibrated on
    (its manifest holds their hashes), and runs whose outcome is unknown; the table says how many. Runs are read, scored
    and dropped one at a time.

    monitor: an opened monitor, or the folder of its bundle.
    runs: parsed runs, or a file, folder, glob or tar that the monitor's own adapter reads.
    labels: a file with outcomes, for a source that has none.
    adapter: the one that is meant; another than the monitor's own is refused.
    all: count the runs of tasks the monitor was made from too; the table then says IN SAMPLE.
    strict: a run that cannot be read is an error, not a skip.
    group_by: the group (agent, file, ...) within which runs are compared; None: the first of agent, model and file
        that has two values here.
    resamples: of the bootstrap over tasks.
    seed : seed of the bootstrap.
    onset : measure the time from a known onset to the alarm. The onset is `mistake_step`, the decisive mistake that
        labels name; a group whose value is the number of a step; or FIELD=VALUE, the first step with that value.
    prices : a JSON file of dollars of a million tokens by model, {"MODEL": {"in": 2.0, "out": 8.0}}, for steps that say
        their tokens and no dollars. A run's group `model`, or else `agent`, names its model; `*` is any other.
    beside: a function that makes further rows of the table, such as the one that `controls_beside` returns.
    progress: called with the number of runs read so far.
    Raises DataError where no run is left, TraceError, BundleError and OtherAdapterError as `read_runs`
    and `load` do.
    """
    opened = (monitor if isinstance(monitor, Monitor) else load(monitor)).with_model("An evaluation")
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, (str, os.PathLike)) else "-")
    table_of = None if prices is None else Prices.read(prices)
    heard = Heard(opened, include_used=all, with_rules=True, onset=onset, prices=table_of)
    unread, empty = listen([heard], runs, labels, strict, progress)
    kept = heard.kept()
    used = Counter(run.use for run in heard.scored.values() if run.use is not None)
    if not kept:
        raise DataError(_nothing_left(used, len(heard.without_outcome)))
    name, groups = choose_groups([run.groups for run in kept], group_by)
    bundle = opened.bundle
    policy, thresholds = bundle.calibration.policy, alarm_thresholds(bundle)
    keys = [(run.run_id, run.digest) for run in kept]
    beside_it = score_rows if opened.reads_scores else rule_rows
    rules = beside_it([run.rules for run in kept], heard.tuning(), policy, list(thresholds))
    onsets, ill_named = None, list[str]()
    if onset is not None:
        names = {group for run in kept for group in run.groups}
        onsets, ill_named = known_onsets(onset, [run.onset for run in kept], names)
    priced = () if table_of is None else (table_of.note([(run.groups, run.took["dollars"]) for run in kept]),)
    further = beside(keys) if beside is not None else ()
    table = evaluate_scores(
        [run.imminent for run in kept],
        [run.outcome for run in kept],
        [run.failed for run in kept],
        [run.task for run in kept],
        groups=groups,
        grouped_by=name,
        horizon=3 if bundle.horizon is None else bundle.horizon,
        policy=policy,
        thresholds=thresholds,
        baselines=[*rules, *_without_signals(kept, thresholds), *further],
        calibration_lengths=bundle.manifest.get("alarm_lengths"),
        resamples=resamples,
        seed=seed,
        left_out=RunsLeftOut(
            by_use={} if all else {use.value: used[use.value] for use in USES},
            without_outcome=len(heard.without_outcome),
            empty=len(heard.empty) + empty,
            in_sample=used.total() if all else 0,
        ),
        notes=[*_notes(bundle, kept), *unread, *ill_named, *priced],
        alarm_groups=AlarmGroups.of(bundle, [run.groups for run in kept]),
        sizes=None if opened.reads_scores else [run.sizes for run in kept],
        reference=reference_of(bundle),
        onsets=onsets,
        took={name: [run.took[name] for run in kept] for name in TOOK},
    )
    if table.behind is not None:
        table = replace(table, behind=replace(table.behind, keys=tuple(keys)))
    fidelity = automaton_fidelity(bundle, heard.transitions)
    return table if fidelity is None else replace(table, sections={"automaton": fidelity, **table.sections})


def alarm_thresholds(bundle: Bundle) -> dict[float, Thresholds]:
    """The thresholds a bundle carries, by budget: its manifest's alarm table, and the one its policy uses.

    Raises BundleError if the table cannot be read.
    """
    where = str(bundle.path / "manifest.json")
    table = table_from_json(bundle.manifest.get("alarm_table", ()), where)
    table[bundle.calibration.policy.budget] = bundle.calibration.thresholds
    return dict(sorted(table.items()))


def reference_of(bundle: Bundle) -> ReferenceRisks | None:
    """The risks that read nothing, fitted on a bundle's training runs; None where it has none, as one of an older
    release. Raises BundleError where they cannot be read."""
    return ReferenceRisks.from_json(bundle.manifest.get("reference_risks"), str(bundle.path / "manifest.json"))


def _without_signals(kept: Sequence[HeardRun], thresholds: Mapping[float, Thresholds]) -> Iterator[ScoreRow]:
    risks = [run.unsignalled for run in kept if run.unsignalled is not None]
    if risks:
        note = "the monitor itself, with what steps took held at its median: its lead over this is what signals add"
        imminent, outcome = ([np.ascontiguousarray(one[:, i]) for one in risks] for i in range(2))
        yield ScoreRow("without signals", imminent, outcome, probability=True, thresholds=thresholds, note=note)


def _notes(bundle: Bundle, kept: Sequence[HeardRun]) -> Iterator[str]:
    if not bundle.manifest.get("tasks"):
        yield (
            "The bundle does not say which tasks it was made from, so none could be left out: make sure that these "
            "runs are new to it."
        )
    if bundle.manifest.get("reference_risks") is None:
        yield (
            "The bundle carries no clock that was fitted on its training runs, so there is no skill over one: it comes "
            "from an older release, or learned from successful runs alone."
        )
    if without_task := sum(not run.named for run in kept):
        yield f"{without_task} runs name no task; each counts as a task of its own."
    if repeats := len(kept) - len({run.digest for run in kept}):
        yield f"{repeats} runs say word for word what another run says."


def _nothing_left(used: Counter[str], without_outcome: int) -> str:
    n_used = sum(used.values())
    if n_used:
        parts = ", ".join(f"{used[use.value]} {use.value}" for use in USES if used[use.value])
        rest = f", {without_outcome} have no outcome" if without_outcome else ""
        return (
            f"no run is left to evaluate: {n_used} belong to tasks the monitor was made from ({parts}){rest}. Give "
            "runs of other tasks, or --all to count these too, marked as in-sample."
        )
    if without_outcome:
        return (
            f"no run is left to evaluate: none of {without_outcome} has an outcome. Give a labels file "
            "(run_id,outcome), or use `prefixguard score`, which needs none."
        )
    return "there is no run to evaluate. See what the adapter reads with: prefixguard parse RUNS"
