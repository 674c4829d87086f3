"""A learning curve: what a cheap monitor learns from parts of the training tasks, on tasks it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.encoder import fit_vocabulary
from prefixguard.errors import DataError
from prefixguard.evaluation.data_check.traits import DataFinding
from prefixguard.learn import Corpus, LearnListener, TrainConfig, fit_monitor
from prefixguard.metrics import (
    Prefixes,
    Ranking,
    Resamples,
    at_remaining,
    average_precision,
    interval,
    paired_difference,
    step_index,
)
from prefixguard.trace import Side, task_hash

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
Interval = tuple[float, float] | None

#: Parts of the training tasks.
SHARES = (0.25, 0.50, 1.00)
_RESAMPLES = 300
#: Runs that a fit needs.
_FEWEST = 10
#: An interval that ends below this says that nothing of use was learned; failed and successful runs it must rest on.
_NOTHING, _ENOUGH = 0.55, 30


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One fit. share: of the training tasks. tasks, runs: it was fitted on.

    imminent_auprc: AUPRC of the imminent risk; outcome_auroc: outcome AUROC at matched remaining steps. Both on the
    same held-out runs, with 95 % intervals over tasks; NaN and None where they do not exist.
    """

    share: float
    tasks: int
    runs: int
    imminent_auprc: float
    imminent_interval: Interval
    outcome_auroc: float
    outcome_interval: Interval


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """points: smallest share first. test_runs, test_failed, test_tasks: held out, from all sides but training.

    prevalence, clock_auprc: of the imminent label there, and what the number of the step is worth for it.
    gain, gain_interval: outcome AUROC from all training tasks minus that from half of them, paired over tasks.
    left_out: share -> why there is no point.
    """

    points: tuple[CurvePoint, ...]
    test_runs: int
    test_failed: int
    test_tasks: int
    prevalence: float
    clock_auprc: float
    gain: float
    gain_interval: Interval
    left_out: Mapping[float, str]


def learning_curve(
    corpus: Corpus, sides: Mapping[str, Side], *, horizon: int, seed: int, listener: LearnListener
) -> LearningCurve:
    """Fit boosted trees to 25, 50 and 100 % of the training tasks, each part inside the next.

    sides: of all tasks; those that are not for training are held out, all of them, since nothing else is fitted.
    listener: called before each fit (stage "trying").
    """
    trained = sorted((t for t, s in sides.items() if s is Side.TRAIN), key=lambda t: task_hash(f"{seed}:curve:{t}"))
    held = np.flatnonzero([sides[task] is not Side.TRAIN for task in corpus.task_ids])
    prefixes = Prefixes.of(
        corpus.lengths[held].tolist(), corpus.failed[held].tolist(), [corpus.task_ids[r] for r in held.tolist()]
    )
    imminent = prefixes.imminent_labels(horizon)
    resamples = Resamples.draw(prefixes.n_tasks, n=_RESAMPLES, seed=seed)
    points: list[CurvePoint] = []
    config = TrainConfig(backend="gbdt", seed=seed, horizon=horizon)
    samples: dict[float, Float] = {}
    left_out: dict[float, str] = {}
    for share in SHARES:
        tasks = set(trained[: max(round(share * len(trained)), 1)])
        pool = np.flatnonzero([task in tasks for task in corpus.task_ids])
        try:
            scores = _fitted(corpus, share, pool, held, config, listener)
        except DataError as exc:
            left_out[share] = str(exc)
            continue
        ranked, matched = Ranking(imminent, scores[:, 0], units=prefixes.units), at_remaining(prefixes, scores[:, 1])
        samples[share] = resamples.figures(matched.auroc, len(prefixes))
        points.append(
            CurvePoint(
                share=share,
                tasks=len(tasks),
                runs=len(pool),
                imminent_auprc=float(ranked.average_precision()),
                imminent_interval=interval(resamples.figures(ranked.average_precision, len(prefixes))),
                outcome_auroc=float(matched.auroc()),
                outcome_interval=interval(samples[share]),
            )
        )
    value = {point.share: point.outcome_auroc for point in points}
    half, whole = SHARES[-2:]
    both = half in value and whole in value
    return LearningCurve(
        points=tuple(points),
        test_runs=len(held),
        test_failed=int(corpus.failed[held].sum()),
        test_tasks=prefixes.n_tasks,
        prevalence=float(imminent.mean()) if len(imminent) else float("nan"),
        clock_auprc=average_precision(imminent, step_index(prefixes)),
        gain=value[whole] - value[half] if both else float("nan"),
        gain_interval=paired_difference(samples[whole], samples[half]) if both else None,
        left_out=left_out,
    )


def _fitted(corpus: Corpus, share: float, pool: Int, held: Int, config: TrainConfig, listener: LearnListener) -> Float:
    """Logits of all steps of the held-out runs, (N, 2), by trees fitted on the pool. DataError where it is small."""
    failed = int(corpus.failed[pool].sum())
    if len(pool) < _FEWEST or failed in (0, len(pool)):
        raise DataError(f"{len(pool)} runs, {failed} of which failed, are too few to learn from.")
    listener.on_stage("trying", f"boosted trees on {share:.0%} of the training tasks, {len(pool):,} runs")
    vocabulary = fit_vocabulary(
        corpus.texts(pool.tolist()), max_features=config.max_features, min_tasks=config.min_tasks
    )
    if len(vocabulary[0]) < 2:
        raise DataError(f"no two terms occur in {config.min_tasks} of its tasks.")
    rows = corpus.encode(vocabulary[0])
    fitted = fit_monitor(corpus, pool, config, rows=rows, vocabulary=vocabulary)
    return np.concatenate(fitted.logits(corpus, rows, held))


def curve_findings(curve: LearningCurve) -> Iterator[DataFinding]:
    """Whether anything was learned, and whether more tasks would teach more."""
    if curve.left_out and not curve.points:
        yield DataFinding("note", f"No learning curve can be drawn: {list(curve.left_out.values())[-1]}")
        return
    for share, why in curve.left_out.items():
        yield DataFinding("note", f"Nothing could be fitted to {share:.0%} of the training tasks: {why}")
    last = curve.points[-1] if curve.points else None
    if last is None or last.share != SHARES[-1] or last.outcome_interval is None:
        return
    low, high = last.outcome_interval
    if low <= 0.5:
        hopeless = min(curve.test_failed, curve.test_runs - curve.test_failed) >= _ENOUGH and high < _NOTHING
        so = "More runs would tell whether there is anything to learn."
        if hopeless:
            so = "Training on these runs is pointless as they are: look at what the records hold (prefixguard parse)."
        yield DataFinding(
            "error" if hopeless else "warning",
            f"The quick monitor learned nothing that holds on {curve.test_runs:,} held-out runs of "
            f"{curve.test_tasks:,} tasks: outcome AUROC at matched remaining steps {last.outcome_auroc:.3f} "
            f"[{low:.3f}, {high:.3f}], where .5 is chance. {so}",
        )
    elif curve.gain_interval is not None:
        low, high = curve.gain_interval
        so = "whether more tasks would teach more cannot be told from so few"
        if low > 0:
            so = "it still rises, more tasks would teach more"
        elif high < 0.02:
            so = "more tasks of this kind would add little"
        yield DataFinding(
            "note",
            f"From half to all of the training tasks the outcome AUROC moved by {curve.gain:+.3f} "
            f"[{low:+.3f}, {high:+.3f}]: {so}.",
        )
