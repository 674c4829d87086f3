"""Ask a language model how likely a sample of an evaluation's prefixes is to fail, and compare it with the monitor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import Chat, Endpoint
from prefixguard.evaluation.evaluation import evaluate
from prefixguard.evaluation.judge.asking import JudgeEstimate, ask_all, estimate
from prefixguard.evaluation.judge.question import JudgeQuestion, ask_about
from prefixguard.evaluation.judge.result import JudgePlan, JudgeResult, judge_result
from prefixguard.evaluation.tables.evaluation_table import EvaluationTable, RunKey
from prefixguard.metrics import Prefixes
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import Adapter, SpooledRuns, StepRecord
from prefixguard.store import OnProgress, Store
from prefixguard.trace import Run, digest_of

#: Prefixes that are drawn, unless another number is asked for.
SAMPLE = 200
#: Tokens of a transcript, about, unless another number is asked for.
BUDGET_TOKENS = 8000


def judge(
    monitor: Monitor | str | os.PathLike[str],
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    endpoint: Endpoint,
    *,
    table: EvaluationTable | None = None,
    adapter: str | Path | Adapter | None = None,
    labels: str | os.PathLike[str] | None = None,
    all: bool = False,
    strict: bool = False,
    sample: int = SAMPLE,
    budget_tokens: int = BUDGET_TOKENS,
    mask: bool = True,
    at_once: int = 4,
    resamples: int = 500,
    seed: int = 13,
    out: str | os.PathLike[str] | None = None,
    on_estimate: Callable[[JudgeEstimate], bool] | None = None,
    on_progress: OnProgress | None = None,
) -> JudgeResult | None:
    """A language model as the judge of prefixes: its figures beside the monitor's on the very same ones, and its costs.

    Text of runs is sent to the endpoint: the step records up to the one that is asked about, without names of agents,
    the run's id, its task or its end.

    monitor, runs, adapter, labels, all, strict: as at `evaluate`, by whose rules runs are left out.
    table: what `evaluate` gave of these runs, where it is there; without it they are evaluated here.
    sample : prefixes that are asked about, 1 or more; each is drawn with the same probability.
    budget_tokens : tokens of a transcript that is shown, 800 or more.
    mask: mask likely secrets before anything is sent.
    at_once : questions under way at a time, from 1 to 64.
    resamples: of the bootstrap over tasks.
    seed : seed of the bootstrap and of the sample.
    out: folder for replies (`prefixguard.store`); a question that was answered is not asked again. None: none are kept.
    on_estimate: called with what asking will take, before anything is sent; where it returns False, nothing is asked
        and None comes back. on_progress: called with the number of questions that are done, and of all.
    Raises ConfigError without a key where one is needed, for one price without the other and for numbers out of range,
    MissingExtraError without the packages, OutputError where a reply cannot be kept, and what `evaluate` raises.
    """
    if (endpoint.price_in is None) != (endpoint.price_out is None):
        raise ConfigError(
            "a price alone gives no cost: give both, of tokens that are sent (price-in) and of tokens that come back "
            "(price-out)."
        )
    if on_estimate is None:
        Chat(endpoint)  # a key that is missing is found out before anything is read
    opened = (monitor if isinstance(monitor, Monitor) else load(monitor)).with_model("The judge")
    if isinstance(runs, (str, os.PathLike)):
        opened.refuse_other(adapter, os.fspath(runs))
        runs = SpooledRuns.read(
            os.fspath(runs), opened.bundle.adapter, labels=None if labels is None else Path(labels), strict=strict
        )
    elif not isinstance(runs, SpooledRuns):
        runs = SpooledRuns(runs)
    if table is None:
        table = evaluate(opened, runs, all=all, resamples=0, seed=seed)
    plan = plan_judging(opened, table, runs, sample=sample, seed=seed, budget_tokens=budget_tokens, mask=mask)
    kept = Store(out)
    if on_estimate is not None and not on_estimate(estimate(plan.questions, endpoint, kept, mask=mask)):
        return None
    asked = ask_all(plan.questions, endpoint, kept=kept, at_once=at_once, on_answer=on_progress)
    return judge_result(plan, asked, endpoint, resamples=resamples, seed=seed)


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
    prefixes = behind.prefixes
    judged = ~np.logical_or(*map(np.isnan, behind.rows[0].flat(behind.lengths)))
    if not judged.any():
        raise DataError("the monitor judged no prefix, so there is nothing to compare a judge with.")
    rows = draw_prefixes(prefixes, judged, sample, horizon=table.horizon, seed=seed)
    steps: dict[RunKey, set[int]] = {}
    for row in rows.tolist():
        steps.setdefault(behind.keys[prefixes.run[row]], set()).add(int(prefixes.step[row]))
    # Runs that say the same under the same name share their prefixes, and one question answers for all.
    asked: dict[tuple[RunKey, int], JudgeQuestion] = {}
    place = {key: r for r, key in reversed(list(enumerate(behind.keys)))}
    took: list[float] = []
    for run in runs:
        key = (run.run_id, digest_of(run))
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

    Prefixes are put in a ring: those of an imminent failure, earlier ones of failed runs, those of successful runs; in
    each class task by task, run by run. The ring is cut at a random place into n arcs, equally long to within one
    prefix, and one prefix is drawn from each. So every eligible prefix is drawn with probability n / N exactly (figures
    need no weights); both prevalences in the sample are those of all prefixes to within rounding; and a run gets no
    more than its share of arcs: one or two prefixes, unless n is large for so many runs. (A stratified sample
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
