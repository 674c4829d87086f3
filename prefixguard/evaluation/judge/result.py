"""The result of asking a judge: its figures, and those of the monitor and the clocks, on the prefixes it answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.escalate import Endpoint, masked_in_words, total_masked
from prefixguard.evaluation.judge.asking import AskedQuestion
from prefixguard.evaluation.judge.question import JudgeOutcome, JudgeQuestion, prompt_version
from prefixguard.evaluation.tables.evaluation_table import Behind, EvaluationTable
from prefixguard.evaluation.tables.figures import RISKS, Basis, RiskFigures, compared, risk_table
from prefixguard.metrics import Prefixes, Resamples
from prefixguard.results import Block, Result, TableBlock, Text, fields_of, number, percent

#: Rows that are measured with the judge, where the table has them; the monitor comes first.
BESIDE = ("step index", "end oracle")

Float = npt.NDArray[np.float64]
#: Prefixes of a kind below which the text says that figures say little.
ENOUGH = 10


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """What will be asked.

    table: the evaluation that the judge is compared with. behind: its scores. prefixes: all of its prefixes.
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


@dataclass(frozen=True, slots=True)
class JudgeCosts:
    """What a judge cost, over the whole sample, and what a monitor's step takes.

    calls: questions with a reply, of which `kept` were asked by an earlier run. tokens_in, tokens_out: of these calls;
    for `estimated` of them the server did not count. cost: in the currency of the prices; None without prices.
    seconds: a call, median and 90 %; step_seconds: a step of the monitor, the same; None without any.
    """

    calls: int
    kept: int
    tokens_in: int
    tokens_out: int
    estimated: int
    cost: float | None
    price_in: float | None
    price_out: float | None
    seconds: tuple[float, float] | None
    step_seconds: tuple[float, float] | None

    def as_json(self) -> dict[str, Any]:
        """Its fields; seconds of a monitor's step in microseconds."""
        found = fields_of(self)
        del found["step_seconds"]
        both = ("median", "p90")
        return {
            **found,
            "seconds": None if self.seconds is None else dict(zip(both, self.seconds, strict=True)),
            "monitor_microseconds": None
            if self.step_seconds is None
            else {name: 1e6 * value for name, value in zip(both, self.step_seconds, strict=True)},
        }


@dataclass(frozen=True, slots=True)
class JudgeResult(Result):
    """A language model as a judge of prefixes.

    model: name and place. prompt: version of the wording. horizon: H. sample: facts of the draw: prefixes drawn, of
    how many, their runs and tasks, most of one run, seed, tokens of a transcript, how many transcripts were shortened.
    outcomes: questions by `JudgeOutcome`. faults: of those that were unreadable or without reply, by word.
    figures: by risk, then by row ("judge", "monitor", then the clocks), all on the prefixes that the judge answered;
        the differences of another row are judge minus that row. oracles: rows that know what no monitor can know.
    contradictions: answers that held failing soon to be likelier than failing. small: whether no answer was above 1 %
        in either number, so that shares were perhaps given for per cent. failure: why the last question without a
        reply had none. masked: secrets that were masked in the questions, by kind, each once a question.
    """

    model: str
    prompt: str
    horizon: int
    sample: Mapping[str, int]
    outcomes: Mapping[str, int]
    faults: Mapping[str, int]
    figures: Mapping[str, Mapping[str, RiskFigures]]
    oracles: frozenset[str]
    costs: JudgeCosts
    contradictions: int = 0
    small: bool = False
    failure: str = ""
    masked: Mapping[str, int] = field(default_factory=dict)

    @property
    def unanswered(self) -> int:
        """Prefixes of the sample that no row here rests on."""
        return self.sample["prefixes"] - self.outcomes[JudgeOutcome.ANSWERED.value]

    @property
    def fewest(self) -> int:
        """Prefixes answered that are positive, or negative, under a risk: the smallest of the four counts."""
        answered = self.outcomes[JudgeOutcome.ANSWERED.value]
        positive = [round(rows["judge"].prevalence * answered) for rows in self.figures.values()] if answered else []
        return min((min(count, answered - count) for count in positive), default=0)

    def as_json(self) -> dict[str, Any]:
        """Its fields; the figures by risk."""
        found = fields_of(self)
        del found["oracles"]
        figures, small = found.pop("figures"), found.pop("small")
        return {**found, **figures, "perhaps_shares": small}

    def blocks(self) -> tuple[Block, ...]:
        """Two tables, what was not answered, and what it cost."""
        drawn = self.sample
        titles = {"imminent": f"fails, and ends within {self.horizon} more steps", "outcome": "fails"}
        return (
            Text(
                f"A language model as the judge: {self.model}, asked about {drawn['prefixes']:,} of {drawn['of']:,} "
                f"prefixes ({drawn['runs']:,} runs of {drawn['tasks']:,} tasks; at most {drawn['most_of_one_run']} of "
                f"one run), wording {self.prompt}."
            ),
            Text(self._answers()),
            *(self._risk(*one) for one in titles.items() if self.outcomes[JudgeOutcome.ANSWERED.value]),
            *map(Text, (*self._remarks(), *self._money())),
        )

    def _answers(self) -> str:
        n = self.sample["prefixes"]
        words = {
            "answered": "answered",
            "abstained": "abstained",
            "unreadable": "unreadable",
            "failed": "without reply",
        }
        parts = [
            f"{count:,} {words[name]} ({percent(count / n)})"
            for name, count in self.outcomes.items()
            if count or name == JudgeOutcome.ANSWERED.value
        ]
        faults = ", ".join(f"{count} {fault}" for fault, count in self.faults.items() if fault != "no reply")
        return f"Of these, {', '.join(parts)}" + (f"; unreadable: {faults}." if faults else ".")

    def _risk(self, risk: str, meaning: str) -> TableBlock:
        rows = self.figures[risk]
        share = number(rows["judge"].prevalence)
        return risk_table(
            f"Judge, {risk} risk: {meaning} (the {self.outcomes['answered']:,} prefixes answered; prevalence {share})",
            [(name, row, name in self.oracles) for name, row in rows.items()],
            ahead="judge ahead by",
            leave_out=("outcome_auroc_within_groups",),
        )

    def _remarks(self) -> list[str]:
        answered, missing, shortened = self.outcomes["answered"], self.unanswered, self.sample["shortened"]
        said = {
            "All rows here rest on the same prefixes, those that the judge answered. Every prefix had the same "
            "chance to be drawn, so the figures estimate those of all prefixes, without weights; brackets: 95 %, "
            "bootstrap over tasks.": answered,
            "The judge is told neither how often runs fail here nor how long they are; the monitor learned from "
            "runs like these.": answered,
            f"Only {self.fewest} of the prefixes answered are of the rarer kind under one of the risks: these "
            "figures and their intervals say little. Ask about more prefixes.": answered and self.fewest < ENOUGH,
            f"Without an answer, and so missing from every row: {missing:,} prefix{'es' * (missing != 1)}. If these "
            "are the hard ones, all rows here look better than they are.": answered and missing,
            "No question was answered, so there are no figures.": not answered,
            f"Without reply: {self.failure}": self.failure,
            masked_in_words(self.masked): self.masked,
            f"{self.contradictions:,} answers called failing soon likelier than failing at all.": self.contradictions,
            "No answer is above 1 %: the model may have given shares for per cent. Ranking does not mind; Brier "
            "and ECE do.": self.small,
            f"{shortened:,} transcripts were shortened to about {self.sample['transcript_tokens']:,} tokens; the "
            "monitor read all of each step.": shortened,
        }
        return [sentence for sentence, holds in said.items() if holds]

    def _money(self) -> list[str]:
        paid = self.costs
        if not paid.calls:
            return ["Cost: no call had a reply."]
        said = f"Cost: {paid.calls:,} calls"
        if paid.kept:
            said += f" ({paid.kept:,} of them made earlier and kept)"
        said += f", {paid.tokens_in:,} tokens in, {paid.tokens_out:,} out"
        if paid.estimated:
            said += f" (estimated for {paid.estimated:,} calls)"
        if paid.cost is not None:
            everything = paid.cost / paid.calls * self.sample["of"]
            said += f", {paid.cost:.6g} at the given prices; every prefix once: about {everything:.3g}"
        lines = [f"{said}."]
        if paid.seconds is not None:
            time = f"A call took {_seconds(paid.seconds[0])} (median; 90 %: {_seconds(paid.seconds[1])})"
            if paid.step_seconds is not None:
                time += (
                    f"; a step of the monitor, {_seconds(paid.step_seconds[0])} (90 %: "
                    f"{_seconds(paid.step_seconds[1])})"
                )
            lines.append(f"{time}.")
        return lines


def _seconds(value: float) -> str:
    """Seconds in a unit that fits.

    >>> _seconds(2.345), _seconds(0.0123), _seconds(0.000345)
    ('2.3 s', '12 ms', '345 µs')
    """
    if value >= 1:
        return f"{value:.1f} s"
    return f"{1e3 * value:.0f} ms" if value >= 0.01 else f"{1e6 * value:,.0f} µs"


def judge_result(
    plan: JudgePlan, asked: Sequence[AskedQuestion], endpoint: Endpoint, *, resamples: int = 500, seed: int = 13
) -> JudgeResult:
    """The result of the answers to the plan's questions, in their order. resamples, seed: of the bootstrap over tasks.

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


def _figures(
    plan: JudgePlan, asked: Sequence[AskedQuestion], resamples: int, seed: int
) -> dict[str, dict[str, RiskFigures]]:
    prefixes, behind = plan.prefixes, plan.behind
    said = np.full((2, len(prefixes)), np.nan)  # imminent, outcome
    for row, one in zip(plan.rows.tolist(), asked, strict=True):
        if one.answer.fails is not None and one.answer.fails_soon is not None:
            said[:, row] = one.answer.fails_soon, one.answer.fails
    drawn = Resamples.draw(prefixes.n_tasks, n=resamples, seed=seed)
    basis = Basis(prefixes, plan.table.horizon, drawn, behind.groups)
    judge = basis.measure([*said], probability=True)
    found = {risk: {"judge": judge[risk].figures} for risk in RISKS}
    for row in [behind.rows[0], *(row for row in behind.rows[1:] if row.name in BESIDE)]:
        scores = np.where(np.isnan(said), np.nan, row.flat(behind.lengths))
        other = basis.measure([*scores], probability=row.probability)
        for risk in RISKS:
            found[risk][row.name] = compared(judge[risk], other[risk])
    return found


def _costs(plan: JudgePlan, asked: Sequence[AskedQuestion], endpoint: Endpoint) -> JudgeCosts:
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
