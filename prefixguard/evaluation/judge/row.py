"""A judge's figures on the prefixes that it answered, beside the monitor's and the clocks' on the very same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.escalate import Endpoint, total_masked
from prefixguard.evaluation.figures import Measured, RiskFigures, compared, measure
from prefixguard.evaluation.judge.asking import Asked
from prefixguard.evaluation.judge.plan import JudgePlan
from prefixguard.evaluation.judge.question import JudgeOutcome, prompt_version
from prefixguard.evaluation.judge.result import JudgeCosts, JudgeResult
from prefixguard.metrics import Resamples

#: Rows that are measured beside the judge, where the table has them; the monitor comes first.
BESIDE = ("step index", "end oracle")
RISKS = ("imminent", "outcome")

Float = npt.NDArray[np.float64]


def judge_result(
    plan: JudgePlan, asked: Sequence[Asked], endpoint: Endpoint, *, resamples: int = 500, seed: int = 13
) -> JudgeResult:
    """What answers to the plan's questions, in their order, come to. resamples, seed: of the bootstrap over tasks.

    What was not answered is left out of all rows alike.
    """
    outcomes = Counter(one.answer.outcome.value for one in asked)
    prefixes, rows = plan.prefixes, plan.rows
    said = [one.answer for one in asked if one.answer.outcome is JudgeOutcome.ANSWERED]
    return JudgeResult(
        model=endpoint.shown,
        prompt=prompt_version(),
        horizon=plan.table.horizon,
        sample={
            "prefixes": len(rows),
            "of": int(len(prefixes) - plan.table.unknown_prefixes),
            "runs": len(np.unique(prefixes.run[rows])),
            "tasks": len(np.unique(prefixes.units[rows])),
            "most_of_one_run": int(np.bincount(prefixes.run[rows]).max()),
            "seed": plan.seed,
            "transcript_tokens": plan.budget_tokens,
            "shortened": sum(one.left_out > 0 or one.shortened > 0 for one in plan.questions),
        },
        outcomes={outcome.value: outcomes[outcome.value] for outcome in JudgeOutcome},
        faults=dict(sorted(Counter(one.answer.fault for one in asked if one.answer.fault).items())),
        figures=_figures(plan, asked, resamples, seed),
        oracles=frozenset(row.name for row in plan.behind.rows if row.oracle),
        costs=_costs(plan, asked, endpoint),
        contradictions=sum(answer.contradicts_itself for answer in said),
        small=len(said) > 1 and all(max(answer.fails or 0, answer.fails_soon or 0) <= 0.01 for answer in said),
        masked=total_masked(one.masked for one in plan.questions),
        failure=next((one.failure for one in reversed(asked) if one.failure), ""),
    )


def _figures(plan: JudgePlan, asked: Sequence[Asked], resamples: int, seed: int) -> dict[str, dict[str, RiskFigures]]:
    prefixes, behind = plan.prefixes, plan.behind
    scores = {risk: np.full(len(prefixes), np.nan) for risk in RISKS}
    for row, one in zip(plan.rows.tolist(), asked, strict=True):
        if one.answer.fails is not None and one.answer.fails_soon is not None:
            scores["imminent"][row], scores["outcome"][row] = one.answer.fails_soon, one.answer.fails
    answered = ~np.isnan(scores["outcome"])
    labels = {"imminent": prefixes.imminent_labels(plan.table.horizon), "outcome": prefixes.outcome_labels}
    drawn = Resamples.draw(prefixes.n_tasks, n=resamples, seed=seed)
    others = [behind.rows[0], *(row for row in behind.rows[1:] if row.name in BESIDE)]
    found: dict[str, dict[str, RiskFigures]] = {}
    for place, risk in enumerate(RISKS):

        def measured(values: Float, probability: bool, label: npt.NDArray[np.uint8] = labels[risk]) -> Measured:
            kept = np.where(answered, values, np.nan)
            return measure(prefixes, kept, label, drawn, probability=probability, groups=behind.groups)

        judge = measured(scores[risk], True)
        found[risk] = {"judge": judge.figures}
        for row in others:
            other = measured(row.flat(behind.lengths)[place], row.probability)
            found[risk][row.name] = compared(judge, other)
    return found


def _costs(plan: JudgePlan, asked: Sequence[Asked], endpoint: Endpoint) -> JudgeCosts:
    # Prefixes that say the same share a reply; it was paid for once.
    replies = {one.question.key(endpoint): one for one in asked if one.reply is not None}
    paid = [one.reply for one in replies.values() if one.reply is not None]
    tokens_in, tokens_out = sum(reply.tokens_in for reply in paid), sum(reply.tokens_out for reply in paid)
    return JudgeCosts(
        calls=len(paid),
        kept=sum(one.kept for one in replies.values()),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        estimated=sum(reply.estimated for reply in paid),
        cost=endpoint.cost(tokens_in, tokens_out),
        price_in=endpoint.price_in,
        price_out=endpoint.price_out,
        seconds=_typical([reply.seconds for reply in paid]),
        step_seconds=_typical(plan.step_seconds),
    )


def _typical(values: Sequence[float]) -> tuple[float, float] | None:
    """Median and 90 %."""
    if not values:
        return None
    low, high = np.quantile(values, [0.5, 0.9])
    return float(low), float(high)
