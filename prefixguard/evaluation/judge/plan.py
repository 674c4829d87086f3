"""Draws the prefixes that a judge is asked about, and reads them once more for their text."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.judge.question import JudgeQuestion, ask_about
from prefixguard.evaluation.table import Behind, EvaluationTable, RunKey
from prefixguard.metrics import Prefixes
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, run_digest

#: Prefixes that are drawn, unless another number is asked for.
SAMPLE = 200
#: Tokens of a transcript, about, unless another number is asked for.
BUDGET_TOKENS = 8000


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What will be asked.

    table: the evaluation that the judge's figures stand beside. behind: its scores. prefixes: all of its prefixes.
    rows: int64 (n,), those that were drawn, ascending. questions: one each, in that order. seed: of the draw.
    budget_tokens: of a transcript. step_seconds: what a step took the monitor, one mean a drawn run, in the same
    process.
    """

    table: EvaluationTable
    behind: Behind
    prefixes: Prefixes
    rows: npt.NDArray[np.int64]
    questions: tuple[JudgeQuestion, ...]
    seed: int
    budget_tokens: int
    step_seconds: tuple[float, ...]


def plan_judging(
    monitor: Monitor,
    table: EvaluationTable,
    runs: Iterable[Run[StepRecord]],
    *,
    sample: int = SAMPLE,
    seed: int = 13,
    budget_tokens: int = BUDGET_TOKENS,
    mask: bool = True,
) -> JudgePlan:
    """The questions to a judge about a sample of an evaluation's prefixes. Nothing is sent.

    monitor, table: as `evaluate` took and gave them. runs: the same runs again; only what is drawn of them is kept.
    sample: prefixes that are drawn (`draw_prefixes`); those that the monitor did not judge are not among them. seed: of
    the draw. budget_tokens: of one transcript. mask: see `ask_about`.
    Raises DataError for a table without runs behind it, or where the second reading is not the first; ConfigError for
    numbers out of range.
    """
    behind = table.behind
    if behind is None or not behind.keys:
        raise DataError("a judge needs the runs behind its table: take the one that `evaluate` gives.")
    prefixes = Prefixes.of(behind.lengths, behind.failed, behind.tasks)
    judged = np.ones(len(prefixes), dtype=np.bool_)
    for scores in behind.rows[0].flat(behind.lengths):
        judged &= ~np.isnan(scores)
    if not judged.any():
        raise DataError("the monitor judged no prefix, so there is nothing that a judge could stand beside.")
    rows = draw_prefixes(prefixes, judged, sample, horizon=table.horizon, seed=seed)
    steps: dict[RunKey, set[int]] = {}
    for row in rows.tolist():
        steps.setdefault(behind.keys[prefixes.run[row]], set()).add(int(prefixes.step[row]))
    # Runs that say the same under the same name share their prefixes, and one question answers for all.
    asked: dict[tuple[RunKey, int], JudgeQuestion] = {}
    place = {key: r for r, key in reversed(list(enumerate(behind.keys)))}
    took: list[float] = []
    for run in runs:
        key = (run.run_id, run_digest(run.records))
        wanted = steps.pop(key, None)
        if wanted is None:
            continue
        begin = time.perf_counter()
        monitor.score_run(run.records)
        took.append((time.perf_counter() - begin) / len(run.records))
        for step in sorted(wanted):
            asked[key, step] = ask_about(
                place[key], run.records[:step], horizon=table.horizon, budget_tokens=budget_tokens, mask=mask
            )
        if not steps:
            break
    if steps:
        raise DataError("judge: the second reading of the runs is not the first. Do not write to them.")
    questions = tuple(asked[behind.keys[prefixes.run[row]], int(prefixes.step[row])] for row in rows.tolist())
    return JudgePlan(table, behind, prefixes, rows, questions, seed, budget_tokens, tuple(took))


def draw_prefixes(
    prefixes: Prefixes, eligible: npt.NDArray[np.bool_], n: int, *, horizon: int, seed: int
) -> npt.NDArray[np.int64]:
    """Rows of the prefixes that are drawn, int64 (n,), ascending; all that are eligible where there are no more.

    Prefixes stand in a ring: those of an imminent failure, earlier ones of failed runs, those of successful runs; in
    each class task by task, run by run. The ring is cut at a random place into n arcs, equally long to within one
    prefix, and one prefix is drawn from each. So every eligible prefix is drawn with probability n / N exactly (figures
    need no weights); both prevalences in the sample are those of all prefixes to within rounding; and a run gets no
    more than its share of arcs: one or two prefixes, unless n is large beside the number of runs. (A stratified sample
    with one unit a stratum: Cochran, Sampling Techniques, 5A.)

    eligible: bool (N,), prefixes that may be drawn. horizon: H of the imminent label. seed: of the draw.
    Raises ConfigError for n below 1.
    """
    if n < 1:
        raise ConfigError(f"a sample of {n} prefixes: draw 1 or more.")
    rows = np.flatnonzero(eligible)
    if n >= len(rows):
        return rows
    rng = np.random.default_rng(seed)
    place_of_task = rng.permutation(prefixes.n_tasks)
    strata = 2 - prefixes.outcome_labels.astype(np.int64) - prefixes.imminent_labels(horizon)
    run = prefixes.run[rows]
    order = np.lexsort((prefixes.step[rows], run, place_of_task[prefixes.task[run]], strata[rows]))
    ring = np.roll(rows[order], int(rng.integers(len(rows))))
    ends = np.arange(n + 1, dtype=np.int64) * len(ring) // n
    drawn = rng.integers(ends[:-1], ends[1:])
    return np.sort(ring[drawn])
