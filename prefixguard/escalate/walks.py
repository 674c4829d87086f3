"""How an auditor is led through a run: which prefixes it is shown, and which of its verdicts is the run's.

One protocol for every run: nothing here knows how a run ended. Source: AgentForesight (online walk: prefix by prefix,
the first alarm counts, a run without one is walked to its end), Who&When as AgenTracer describes it (all at once, step
by step, binary search).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from prefixguard.errors import ConfigError
from prefixguard.escalate.agent_names import agent_of
from prefixguard.escalate.judged import Judged
from prefixguard.escalate.prompting import PromptKind, halves
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord


class WalkingAuditor(Protocol):
    """An auditor that asks one kind of question (`LlmAuditor`)."""

    @property
    def kind(self) -> PromptKind:
        """Which question."""
        ...

    async def judge(
        self,
        records: Sequence[StepRecord],
        *,
        seconds: float | None = None,
        answer: str | None = None,
        within: tuple[int, int] | None = None,
    ) -> Judged:
        """See `LlmAuditor.judge`."""
        ...

    async def aclose(self) -> None:
        """Close its connections; on the loop that it was asked on."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One question of a walk. prefix: last step that was shown. within: the range that was halved, if one was."""

    prefix: int
    judged: Judged
    within: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values, those of the judgement beside them."""
        return {
            "prefix": self.prefix,
            "within": None if self.within is None else list(self.within),
            **self.judged.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Walk:
    """A run's walk.

    verdict: the run's. alarm_step: last step that the auditor had seen when it alarmed; None without an alarm, and
    where it judged the whole run at once or searched it. calls: in the order in which they were asked.
    """

    verdict: Verdict
    alarm_step: int | None
    calls: tuple[Call, ...]

    @property
    def failed_calls(self) -> int:
        """Questions that gave no verdict."""
        return sum(call.judged.verdict.outcome is VerdictOutcome.ERROR for call in self.calls)


def query_steps(records: Sequence[StepRecord]) -> tuple[int, ...]:
    """Steps after which a walk asks: those in which an agent acted."""
    return tuple(record.index for record in records if record.actor == "agent")


async def walk(
    records: Sequence[StepRecord],
    auditor: WalkingAuditor,
    *,
    steps: Sequence[int] | None = None,
    confirm: int = 1,
    answer: str | None = None,
    seconds: float | None = None,
) -> Walk:
    """Lead the auditor through a run, in the way of its kind of question.

    records: all steps of the run, indices 1..n. steps: after which it is asked, rising, in 1..n; None: after every
        step of an agent. For kinds that walk (ONLINE, STEP_BY_STEP) only. confirm: alarms in a row until one counts, 1
        or more; the last of them is the run's verdict. answer: the task's reference answer, shown if given. seconds:
        for one question.
    A walk without an alarm has the verdict on its last prefix, with a note where questions before it gave none; one
    without any question is SAFE, with a note.
    """
    if confirm < 1:
        raise ConfigError(f"confirm {confirm}: alarms in a row, 1 or more.")
    if not records:
        return Walk(Verdict(VerdictOutcome.ERROR, fault="no-steps", detail="the run has no steps."), None, ())
    if auditor.kind is PromptKind.POST_HOC:
        judged = await auditor.judge(records, seconds=seconds, answer=answer)
        return Walk(judged.verdict, None, (Call(records[-1].index, judged),))
    if auditor.kind is PromptKind.BINARY_SEARCH:
        return await _search(records, auditor, answer, seconds)
    chosen = query_steps(records) if steps is None else tuple(steps)
    if any(not 1 <= step <= len(records) for step in chosen) or list(chosen) != sorted(set(chosen)):
        raise ConfigError(f"steps {list(chosen)[:10]}: rising, from 1 to {len(records)}.")
    calls: list[Call] = []
    in_a_row = 0
    for step in chosen:
        judged = await auditor.judge(records[:step], seconds=seconds, answer=answer)
        calls.append(Call(step, judged))
        in_a_row = in_a_row + 1 if judged.verdict.outcome is VerdictOutcome.ALARM else 0
        if in_a_row >= confirm:
            return Walk(judged.verdict, step, tuple(calls))
    return Walk(_without_alarm(calls), None, tuple(calls))


def _without_alarm(calls: Sequence[Call]) -> Verdict:
    if not calls:
        return Verdict(VerdictOutcome.SAFE, notes=("never asked",))
    last = calls[-1].judged.verdict
    if last.outcome is VerdictOutcome.ALARM:  # alarms, but not enough of them in a row
        return Verdict(VerdictOutcome.ABSTAIN, reason=last.reason, notes=("alarms were not confirmed",))
    missing = sum(call.judged.verdict.outcome is VerdictOutcome.ERROR for call in calls[:-1])
    if not missing:
        return last
    note = f"{missing} of {len(calls)} questions gave no verdict"
    return replace(last, notes=(*last.notes, note))


async def _search(
    records: Sequence[StepRecord], auditor: WalkingAuditor, answer: str | None, seconds: float | None
) -> Walk:
    """Halve the range of the run's steps until one is left."""
    begin, end = 1, len(records)
    calls: list[Call] = []
    last: Verdict | None = None
    while begin < end:
        judged = await auditor.judge(records, seconds=seconds, answer=answer, within=(begin, end))
        calls.append(Call(len(records), judged, (begin, end)))
        last = judged.verdict
        if last.outcome is not VerdictOutcome.ALARM:
            return Walk(last, None, tuple(calls))
        first, second = halves((begin, end))
        begin, end = first if last.step is not None and last.step <= first[1] else second
    record = records[begin - 1]
    agent = agent_of(record) if record.actor == "agent" else None
    if last is None:
        return Walk(Verdict(VerdictOutcome.ALARM, step=begin, agent=agent, notes=("only step",)), None, ())
    return Walk(replace(last, step=begin, agent=agent, quote=None, quote_found=None), None, tuple(calls))
