"""Ask a language model how likely a sample of an evaluation's prefixes is to fail, and set it beside the monitor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from prefixguard.errors import ConfigError
from prefixguard.escalate import Chat, Endpoint
from prefixguard.evaluation.evaluation import evaluate
from prefixguard.evaluation.judge.asking import JudgeEstimate, ask_all, estimate
from prefixguard.evaluation.judge.plan import BUDGET_TOKENS, SAMPLE, plan_judging
from prefixguard.evaluation.judge.result import JudgeResult, judge_result
from prefixguard.evaluation.table import EvaluationTable
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import Adapter, SpooledRuns, StepRecord
from prefixguard.store import OnProgress, Store
from prefixguard.trace import Run


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
    sample: prefixes that are drawn, each with the same probability. budget_tokens: of one transcript.
    mask: mask likely secrets before anything is sent. at_once: questions under way at a time.
    resamples, seed: of the bootstrap over tasks; the seed also draws the sample.
    out: folder for replies (`prefixguard.store`); a question that was answered is not asked again. None: none are kept.
    on_estimate: told what asking will take, before anything is sent; where it says no, nothing is asked and None comes
        back. on_progress: called with the number of questions that are done, and of all.
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
    opened = monitor if isinstance(monitor, Monitor) else load(monitor)
    if isinstance(runs, (str, os.PathLike)):
        opened.refuse_other(adapter, os.fspath(runs))
        runs = SpooledRuns.read(os.fspath(runs), opened.bundle.adapter, labels=_path(labels), strict=strict)
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


def _path(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
