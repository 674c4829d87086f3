"""`train`: raw runs in, a compiled and verified bundle out."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, Thresholds, runs_needed, table_to_json
from prefixguard.bundle import BundleParts, Calibration, Platt, apply_map, check_target, open_bundle, write_bundle
from prefixguard.errors import ConfigError, DataError, UsageError
from prefixguard.learn.calibrate import (
    bundle_logits,
    draw_alarm_runs,
    draw_drift_runs,
    drift_reference,
    fit_platt,
    fit_share,
    set_thresholds,
)
from prefixguard.learn.compile import compile_monitor
from prefixguard.learn.config import LearnListener, TrainConfig
from prefixguard.learn.corpus import Corpus, featurise, labels
from prefixguard.learn.fit import FittedMonitor, fit_monitor, needs_torch, training_key
from prefixguard.learn.score_direction import check_direction
from prefixguard.learn.teacher import steps_of
from prefixguard.metrics import ReferenceRisks, at_remaining, auroc, average_precision
from prefixguard.stepview import Adapter, ReadReport, adapter_for, losses, read_runs
from prefixguard.store import Store
from prefixguard.trace import DEFAULT_SHARES, Move, Side, link_tasks, move_tasks, repeat_groups, split_tasks, task_hash

_FEWEST_RUNS = 20
#: The shipped adapter that reads tables of scores.
SCORES_ADAPTER = "scores"


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a training made.

    path, id: the bundle. manifest: its facts. report: what reading the runs counted. notes: sentences for people
    (fields that are empty nearly everywhere, runs left out, tasks moved, an alarm that was refused).
    """

    path: Path
    id: str
    manifest: Mapping[str, Any]
    report: ReadReport
    notes: tuple[str, ...]


def train(
    runs: str | Path | None = None,
    *,
    out: str | Path,
    scores: str | Path | None = None,
    adapter: str | Path | Adapter | None = None,
    labels: str | Path | None = None,
    config: TrainConfig | None = None,
    overwrite: bool = False,
    strict: bool = False,
    resume: bool = True,
    unlabelled: bool = False,
    listener: LearnListener | None = None,
) -> TrainResult:
    """Train a monitor on raw runs and write its bundle.

    runs: file, folder, glob, tar, or "-" for standard input.
    scores : instead of runs: a table of what a verifier, judge or critic said of runs, with the columns run, step,
        score, outcome and task (CSV, JSON lines or Parquet). The monitor reads such scores and nothing else.
    adapter: shipped name, path, or an opened one; None for
    runs that a guard recorded;
    `raw`, `raw:NAME`, `raw:PATH`: the control, each step as one text.
    labels: companion file of outcomes (run_id, outcome[, task_id]) as JSON lines or CSV.
    out : folder of the bundle. Default: monitors/NAME of the runs.
    resume : take up an interrupted training of the same options and runs from its last epoch.
    unlabelled : backend healthy: runs without an outcome count as successful; assumed is that few of them failed.
    Raises TraceError, AdapterError, DataError (one class, too few runs), ConfigError, OutputError.
    """
    listener = listener or LearnListener()
    if (runs is None) == (scores is None) or (scores is not None and adapter is not None):
        raise UsageError("train takes runs, or scores without runs and without an adapter.")
    if runs is None:
        runs, adapter, config = str(scores), SCORES_ADAPTER, config or TrainConfig(backend="gbdt")
    config = config or TrainConfig()
    _refuse_existing(Path(out), overwrite)  # before hours of reading
    if unlabelled and not config.only_healthy:
        raise ConfigError(f"backend {config.backend} learns from outcomes. For unlabelled runs say --backend healthy.")
    needs_torch(config)  # and is there
    opened = adapter_for(adapter, str(runs))
    report = ReadReport()
    listener.on_stage("reading", str(runs))
    corpus = featurise(
        read_runs(str(runs), opened, labels=Path(labels) if labels else None, strict=strict, report=report),
        on_run=listener.on_runs,
        unlabelled=unlabelled,
    )
    return train_corpus(
        corpus, opened, out=out, config=config, report=report, overwrite=overwrite, resume=resume, listener=listener
    )


def train_corpus(
    corpus: Corpus,
    adapter: Adapter,
    *,
    out: str | Path,
    config: TrainConfig,
    report: ReadReport | None = None,
    overwrite: bool = False,
    resume: bool = True,
    listener: LearnListener | None = None,
) -> TrainResult:
    """`train` from runs already featurised."""
    began, listener, path = time.monotonic(), listener or LearnListener(), Path(out)
    corpus = corpus if config.signals and not config.only_healthy else corpus.without_signals()
    _refuse_existing(path, overwrite)
    _check(corpus, adapter, report or ReadReport(), only_healthy=config.only_healthy)
    lost = _lost(corpus, adapter)
    for said in lost:
        listener.on_warning(said)  # before hours of learning from it
    policy = AlarmPolicy(budget=config.budget, confidence=config.confidence)
    move, notes = _split(corpus, config, policy)
    sides = move.sides
    notes = [*(f"warning: {said}" for said in lost), *notes]
    of_side = {side: np.flatnonzero([sides[t] is side for t in corpus.task_ids]) for side in Side}
    for side in (Side.TRAIN, Side.CALIBRATION):
        if config.only_healthy:
            of_side[side] = of_side[side][~corpus.failed[of_side[side]]]
            if len(of_side[side]) == 0:
                raise DataError(f"no run of the {side} side succeeded. Give more tasks, or try another --seed.")
        elif len(set(corpus.failed[of_side[side]].tolist())) < 2:
            raise DataError(
                f"the {side} side has {len(of_side[side])} runs that all ended alike. "
                "Give more tasks with both outcomes, or try another --seed."
            )
    pool, validation = of_side[Side.TRAIN], of_side[Side.VALIDATION]
    if corpus.reads_scores:
        check_direction(corpus, pool, config)
    asked = {"training": training_key(corpus, pool, validation, config)}
    checkpoints = Store(path.parent / f".{path.name}.training", asked)
    if outdated := checkpoints.outdated():
        listener.on_warning(outdated)
    if not resume:
        checkpoints.clear()
    fitted = fit_monitor(corpus, pool, config, validation=validation, listener=listener, checkpoints=checkpoints)

    listener.on_stage("compiling", "ONNX")
    model, reasons = compile_monitor(fitted)
    arrays = {"typical": fitted.scale.typical, "names": np.array([f.name for f in corpus.features])}
    vocabulary, adapter_bytes = fitted.vocabulary.to_bytes(), adapter.to_bytes()
    none = Thresholds(None, 1.0, 0, 0, runs_needed(policy.budget, policy.delta), "not set yet")
    identity = Calibration(Platt(1.0, 0.0), Platt(1.0, 0.0), none, policy)
    raw = BundleParts(
        adapter_bytes, vocabulary, arrays, model, reasons, identity, {"horizon": config.horizon},
        of_scores=corpus.reads_scores,
    )  # fmt: skip

    listener.on_stage("calibrating", "maps and thresholds on runs set aside")
    rows = corpus.encode(fitted.vocabulary)
    held = [of_side[Side.CALIBRATION], of_side[Side.ALARM], of_side[Side.TEST]]
    logits = bundle_logits(raw, corpus, rows, np.concatenate(held))
    drawn = draw_alarm_runs(corpus, config.seed, of_side[Side.ALARM])
    calibration, table = _calibrate(corpus, config, policy, of_side[Side.CALIBRATION], drawn, logits, move.reached)
    refused = calibration.thresholds.reason
    if refused:
        notes.append(f"no alarm: {refused} The bundle says WATCH and OK only.")
    info = _info(corpus, config, fitted, sides, of_side, report)
    if not config.only_healthy:
        clocks = ReferenceRisks.fit(corpus.prefixes(pool), corpus.sizes(pool), config.horizon)
        info["reference_risks"] = clocks.as_json()
    info["metrics"] = _metrics(corpus, of_side[Side.TEST], logits, config.horizon)
    info["alarm_table"] = table_to_json(table)
    info["alarm_lengths"] = corpus.lengths[drawn].tolist()
    looked = draw_drift_runs(corpus, config.seed, of_side[Side.ALARM])
    risks = {r: apply_map(calibration.outcome, logits[r][:, 1]) for r in looked.tolist()}
    if (reference := drift_reference(corpus, rows, looked, risks)) is not None:
        info["drift"] = reference
    info["training_seconds"] = round(time.monotonic() - began, 3)
    listener.on_stage("writing", str(path))
    identifier = write_bundle(path, replace(raw, calibration=calibration, info=info), overwrite=overwrite)
    checkpoints.clear()
    manifest = open_bundle(path).manifest
    return TrainResult(path, identifier, manifest, report or ReadReport(), tuple(notes))


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise DataError(f"{path}: already there. Choose another --out or say --overwrite.")
    check_target(path, overwrite)  # only a bundle is ever replaced


def _check(corpus: Corpus, adapter: Adapter, report: ReadReport, *, only_healthy: bool) -> None:
    if len(corpus) == 0:
        more = f" {corpus.unknown} runs have no outcome: add one with --labels." if corpus.unknown else ""
        if corpus.unknown and only_healthy:
            more = f"{more} Or, where few of them failed, say --unlabelled."
        raise DataError(
            f"no run with records and an outcome was read through adapter {adapter.name}.{more} "
            f"See what it reads with: prefixguard parse RUNS --adapter {adapter.name}"
        )
    failed = int(corpus.failed.sum())
    if only_healthy and failed == len(corpus):
        raise DataError(
            f"all {failed} runs failed: the backend healthy learns from successful runs. Give such runs, or check the "
            "adapter's outcome rule."
        )
    if not only_healthy and failed in (0, len(corpus)):
        side = "failure" if failed else "success"
        raise DataError(
            f"all {len(corpus)} runs ended in {side}: both outcomes are needed to learn from. "
            + " ".join(("Check the adapter's outcome rule, or give outcomes with --labels.", *report.labels.notes()))
            + ("" if failed else " From successful runs alone learns --backend healthy.")
        )
    usable = np.flatnonzero(~corpus.failed) if only_healthy else np.arange(len(corpus))
    tasks, kind = {corpus.task_ids[r] for r in usable.tolist()}, "successful runs" if only_healthy else "runs"
    if len(usable) < _FEWEST_RUNS or len(tasks) < len(Side):
        raise DataError(
            f"{len(usable)} {kind} of {len(tasks)} tasks are too few to train, calibrate and test on: "
            f"at least {_FEWEST_RUNS} {kind} of {len(Side)} tasks are needed, and hundreds to be of use."
        )


def _lost(corpus: Corpus, adapter: Adapter) -> list[str]:
    """Warnings of fields that are empty nearly everywhere. DataError where nothing is left to learn from."""
    found = () if corpus.fills is None else losses(corpus.fills, adapter)
    errors = [one.text for one in found if one.severity == "error"]
    if errors:
        raise DataError(" ".join(errors))
    return [one.text for one in found if one.severity == "warning"]


def split_for_training(corpus: Corpus, needed: int, seed: int) -> Move:
    """Sides of tasks; tasks move from training to the alarm side until `needed` tasks there have a successful run.

    Half of the training tasks stay in any case; where so many cannot be had, none moves. Tasks whose runs repeat each
    other word for word share a side.
    """
    linked = link_tasks(corpus.task_ids, corpus.digests)
    sides = split_tasks(corpus.task_ids, seed=seed, shares=DEFAULT_SHARES, linked=linked)
    succeeded = {t for t, failed in zip(corpus.task_ids, corpus.failed.tolist(), strict=True) if not failed}
    trained = sum(side is Side.TRAIN for side in sides.values())
    return move_tasks(
        sides, Side.TRAIN, Side.ALARM, needed=needed, seed=seed, counting=succeeded, linked=linked,
        keep=max(trained // 2, 1),
    )  # fmt: skip


def _split(corpus: Corpus, config: TrainConfig, policy: AlarmPolicy) -> tuple[Move, list[str]]:
    """Sides of tasks; tasks move from training to the alarm side where the budget needs them."""
    notes = []
    repeats = repeat_groups(corpus.digests)
    if repeats:
        count = sum(len(g) - 1 for g in repeats)
        notes.append(f"{count} runs repeat another word for word; they stand on one side of the split.")
    if corpus.without_task:
        notes.append(f"{corpus.without_task} runs name no task: each was split as a task of its own.")
    if corpus.unknown:
        notes.append(f"{corpus.unknown} runs have no outcome and were left out of training.")
    if config.only_healthy:
        notes += _healthy_notes(corpus)
    elif config.signals and 0 < corpus.with_signals < len(corpus):
        notes.append(
            f"{len(corpus) - corpus.with_signals:,} of {len(corpus):,} runs do not say what their steps took (seconds, "
            "tokens, dollars). "
            + ("Absent is not zero." if corpus.has_signals else "Nothing is learned from the others'.")
        )
    needed = runs_needed(policy.budget, policy.delta)
    move = split_for_training(corpus, needed, config.seed)
    if move.moved:
        notes.append(
            f"{len(move.moved)} tasks moved from training to alarm calibration: a budget of {policy.budget:.0%} at "
            f"{policy.confidence:.0%} confidence needs {needed} tasks with a successful run."
        )
    return move, notes


def _healthy_notes(corpus: Corpus) -> list[str]:
    """What the backend healthy assumes of these runs, and what it does with failed ones."""
    failed, unlabelled = int(corpus.failed.sum()), corpus.unlabelled
    notes = {
        f"{failed} runs failed: nothing is learned from them. Those among the test runs say how well the monitor tells "
        "them.": failed,
        f"{unlabelled} runs have no outcome and count as successful: assumed is that few of them failed. The most "
        "unusual tenth of them taught it nothing, and the alarm's bound is of all runs like these. On six public "
        "corpora one failed run in twenty cost at most .05 of AUROC, one in five up to .15.": unlabelled,
        "The monitor's outcome risk is the share of healthy runs that never were as unusual; no probability of failure "
        "can be learned without failed runs.": True,
    }
    return [note for note, holds in notes.items() if holds]


def _calibrate(
    corpus: Corpus,
    config: TrainConfig,
    policy: AlarmPolicy,
    runs: NDArray[np.int64],
    alarm_runs: NDArray[np.int64],
    logits: Mapping[int, NDArray[np.float64]],
    reachable: int,
) -> tuple[Calibration, dict[float, Thresholds]]:
    """Maps and the watch threshold on the calibration side, thresholds on the alarm side. reachable: tasks with a
    successful run that the alarm side could have."""
    flat = np.concatenate([logits[r] for r in runs.tolist()])
    if config.only_healthy:  # risks are shares of healthy steps and runs that are less unusual
        imminent = fit_share(flat[:, 0])
        outcome = fit_share(np.array([logits[r][:, 1].max() for r in runs.tolist()]))
    else:
        targets = labels(corpus, config.horizon)[steps_of(corpus, runs)].astype(np.float64)
        imminent, outcome = (fit_platt(flat[:, i], targets[:, i]) for i in range(2))
    thresholds, table = set_thresholds(
        [apply_map(outcome, logits[r][:, 1]) for r in runs.tolist()],
        [apply_map(outcome, logits[r][:, 1]) for r in alarm_runs.tolist()],
        policy,
        reachable,
    )
    return Calibration(imminent, outcome, thresholds, policy), table


def _metrics(
    corpus: Corpus,
    runs: NDArray[np.int64],
    logits: Mapping[int, NDArray[np.float64]],
    horizon: int,
) -> dict[str, Any]:
    """A few figures on the test side, for the card; `prefixguard evaluate` gives them with baselines and intervals."""
    if len(runs) == 0:
        return {}
    prefixes = corpus.prefixes(runs)
    flat = np.concatenate([logits[r] for r in runs.tolist()])
    imminent = prefixes.imminent_labels(horizon)
    outcome = prefixes.outcome_labels
    values = {
        "test_runs": len(runs),
        "test_failed": int(corpus.failed[runs].sum()),
        "imminent_auprc": average_precision(imminent, flat[:, 0]),
        "imminent_prevalence": float(imminent.mean()),
        "outcome_auroc": auroc(outcome, flat[:, 1]),
        "outcome_auroc_at_remaining": float(at_remaining(prefixes, flat[:, 1]).auroc()),
    }
    return {k: (None if isinstance(v, float) and v != v else v) for k, v in values.items()}


def _info(
    corpus: Corpus,
    config: TrainConfig,
    fitted: FittedMonitor,
    sides: Mapping[str, Side],
    of_side: Mapping[Side, NDArray[np.int64]],
    report: ReadReport | None,
) -> dict[str, Any]:
    """What the manifest says of a training: counts and hashes, never texts."""
    packages = ["numpy", "onnxruntime", "scikit-learn", "lightgbm", "onnx", "scipy"]
    if needs_torch(config):  # trees alone are the same bytes with torch and without it
        packages.insert(2, "torch")
    return {
        "backend": config.backend,
        "horizon": config.horizon,
        "seed": config.seed,
        "config": {
            name: value
            for name, value in asdict(config).items()
            if (name != "higher_is_safer" or corpus.reads_scores) and (name, value) != ("signals", False)
        },
        "split": {"rule": "tasks by SHA-256 of seed:task, repeats together", "shares": dict(DEFAULT_SHARES)},
        "tasks": {side.value: sorted(task_hash(t) for t, s in sides.items() if s is side) for side in Side},
        "runs": {side.value: sorted(corpus.digests[r] for r in of_side[side].tolist()) for side in Side},
        "data": {
            "runs": len(corpus),
            "failed": int(corpus.failed.sum()),
            "tasks": len(sides),
            "steps": int(corpus.first[-1]),
            "without_outcome": corpus.unknown,
            **({"taken_as_successful": corpus.unlabelled} if config.only_healthy else {}),
            "without_task": corpus.without_task,
            "repeats": sum(len(g) - 1 for g in repeat_groups(corpus.digests)),
            "empty_runs": sum(report.empty.values()) if report else 0,
            "by_side": {side.value: len(of_side[side]) for side in Side},
        },
        **({"reading": (report or ReadReport()).reading(corpus.fills)} if corpus.fills is not None else {}),
        "vocabulary": {
            "terms": len(fitted.vocabulary),
            "distinct_counted": fitted.vocabulary_report.distinct,
            "dropped_below": fitted.vocabulary_report.dropped_below,
        },
        "heads": {kind: dict(h.facts()) for kind, h in zip(config.heads, fitted.heads, strict=True)},
        **({"symbol_epoch": fitted.symbol.epoch} if fitted.symbol is not None else {}),
        "libraries": {name: importlib.metadata.version(name) for name in packages},
    }
