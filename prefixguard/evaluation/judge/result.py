"""What a judge came to: figures, answers and costs, as JSON and as plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixguard.escalate import masked_in_words
from prefixguard.evaluation.figures import RiskFigures
from prefixguard.evaluation.judge.question import JudgeOutcome
from prefixguard.evaluation.risk_cells import ahead_by, risk_cells, risk_head
from prefixguard.results import aligned, number, percent, wrapped

#: Prefixes of a kind below which the text says that figures say little.
ENOUGH = 10
#: Figures that the text leaves out.
_NOT_SHOWN = ("outcome_auroc_within_groups",)


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
        """Plain values; seconds of a monitor's step in microseconds."""
        both = ("median", "p90")
        return {
            "calls": self.calls,
            "kept": self.kept,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "estimated": self.estimated,
            "cost": self.cost,
            "price_in": self.price_in,
            "price_out": self.price_out,
            "seconds": None if self.seconds is None else dict(zip(both, self.seconds, strict=True)),
            "monitor_microseconds": None
            if self.step_seconds is None
            else {name: 1e6 * value for name, value in zip(both, self.step_seconds, strict=True)},
        }


@dataclass(frozen=True, slots=True)
class JudgeResult:
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
        """Plain values, no NaN."""
        return {
            "model": self.model,
            "prompt": self.prompt,
            "horizon": self.horizon,
            "sample": dict(self.sample),
            "outcomes": dict(self.outcomes),
            "faults": dict(self.faults),
            **{risk: {name: row.as_json() for name, row in rows.items()} for risk, rows in self.figures.items()},
            "costs": self.costs.as_json(),
            "contradictions": self.contradictions,
            "perhaps_shares": self.small,
            "failure": self.failure,
            "masked": dict(self.masked),
        }

    def to_text(self) -> str:
        """Two tables, what was not answered, and what it cost; at most 118 columns wide."""
        drawn, answered = self.sample, self.outcomes[JudgeOutcome.ANSWERED.value]
        head = (
            f"A language model as the judge: {self.model}, asked about {drawn['prefixes']:,} of {drawn['of']:,} "
            f"prefixes ({drawn['runs']:,} runs of {drawn['tasks']:,} tasks; at most {drawn['most_of_one_run']} of one "
            f"run), wording {self.prompt}."
        )
        blocks = [f"{wrapped(head)}\n{wrapped(self._answers())}"]
        if answered:
            titles = {"imminent": f"fails, and ends within {self.horizon} more steps", "outcome": "fails"}
            blocks += [self._risk(risk, meaning) for risk, meaning in titles.items()]
        blocks.append("\n".join(wrapped(line) for line in (*self._remarks(), *self._money())))
        return "\n\n".join(blocks)

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

    def _risk(self, risk: str, meaning: str) -> str:
        rows = self.figures[risk]
        cells = [["", *risk_head(_NOT_SHOWN), "AUPRC: judge ahead by"]]
        for name, row in rows.items():
            shown = f"{name} *" if name in self.oracles else name
            cells.append([shown, *risk_cells(row, _NOT_SHOWN), ahead_by(row.differences.get("auprc"))])
        share = number(rows["judge"].prevalence)
        title = (
            f"Judge, {risk} risk: {meaning} (the {self.outcomes['answered']:,} prefixes answered; prevalence {share})"
        )
        return f"{title}\n{aligned(cells)}"

    def _remarks(self) -> list[str]:
        said = []
        if self.outcomes[JudgeOutcome.ANSWERED.value]:
            said.append(
                "All rows here rest on the same prefixes, those that the judge answered. Every prefix had the same "
                "chance to be drawn, so the figures estimate those of all prefixes, without weights; brackets: 95 %, "
                "bootstrap over tasks."
            )
            said.append(
                "The judge is told neither how often runs fail here nor how long they are; the monitor learned from "
                "runs like these."
            )
            if self.fewest < ENOUGH:
                said.append(
                    f"Only {self.fewest} of the prefixes answered are of the rarer kind under one of the risks: these "
                    "figures and their intervals say little. Ask about more prefixes."
                )
            if self.unanswered:
                missing = "1 prefix" if self.unanswered == 1 else f"{self.unanswered:,} prefixes"
                said.append(
                    f"Without an answer, and so missing from every row: {missing}. If these are the hard ones, all "
                    "rows here look better than they are."
                )
        else:
            said.append("No question was answered, so there are no figures.")
        if self.failure:
            said.append(f"Without reply: {self.failure}")
        if self.masked:
            said.append(masked_in_words(self.masked))
        if self.contradictions:
            said.append(f"{self.contradictions:,} answers called failing soon likelier than failing at all.")
        if self.small:
            said.append(
                "No answer is above 1 %: the model may have given shares for per cent. Ranking does not mind; Brier "
                "and ECE do."
            )
        if self.sample["shortened"]:
            said.append(
                f"{self.sample['shortened']:,} transcripts were shortened to about "
                f"{self.sample['transcript_tokens']:,} tokens; the monitor read all of each step."
            )
        return said

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
