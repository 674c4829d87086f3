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
from prefixguard.escalate import FAULTS, AuditResult, PromptKind, Verdict, VerdictOutcome, agent_of, halves
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
    ) -> AuditResult:
        """See `LlmAuditor.judge`."""
        ...

    async def aclose(self) -> None:
        """Close its connections; on the loop that it was asked on."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One question of a walk. prefix: last step that was shown. within: the range that was halved, if one was."""

    prefix: int
    judged: AuditResult
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

    verdict: the run's. alarm_step: the step after which it was asked when it alarmed; None without an alarm, and where
    it judged the whole run at once or searched it. calls: in the order in which they were asked.
    """

    verdict: Verdict
    alarm_step: int | None
    calls: tuple[Call, ...]


def query_steps(records: Sequence[StepRecord]) -> tuple[int, ...]:
    """Steps after which a walk asks: those in which an agent acted."""
    return tuple(record.index for record in records if record.actor == "agent")


def one_a_turn(records: Sequence[StepRecord], steps: Sequence[int]) -> tuple[int, ...]:
    """Of rising steps the first in every turn: a step of an agent, and what others do until an agent acts again.

    Steps before the first of an agent belong to no turn and are left out; so there are never more than `query_steps`.
    """
    kept: dict[int, int] = {}
    acting = _newest_agent_steps(records)
    for step in steps:
        if acting[step - 1]:
            kept.setdefault(acting[step - 1], step)
    return tuple(kept.values())


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
        step of an agent. For kinds that walk (ONLINE, STEP_BY_STEP) only. confirm: for ONLINE: alarms until one counts,
        1 or more, with no SAFE between them; the last of them is the run's verdict. answer: the task's reference
        answer, shown if given. seconds: for one question.
    STEP_BY_STEP is asked about agents' steps only: where a step of `steps` is another's, about the newest one before
    it, once.
    ONLINE without an alarm: the verdict on the last prefix, which holds all others, with a note where questions
    before it gave none. STEP_BY_STEP without an alarm: each question judges its own step, so the run is an ERROR where
    any gave no verdict, else ABSTAIN where any could not be told, else SAFE. Without any question: SAFE, with a note.
    BINARY_SEARCH takes a mistake for granted: a run of one step is an ALARM without a question. A half that is chosen
    though none of its steps was shown is an ERROR; a note says where steps of a range were left out. Where the search
    ends at another's step, the newest agent's step before it is blamed if it lies in the range that was halved last;
    else the verdict is an ERROR.
    ConfigError for steps out of the run or order, and for a `confirm` that does not fit the kind.
    """
    if confirm < 1:
        raise ConfigError(f"confirm {confirm}: alarms in a row, 1 or more.")
    if confirm > 1 and auditor.kind is not PromptKind.ONLINE:
        raise ConfigError(
            f"confirm {confirm}: {auditor.kind.value} does not ask about the same step again, so nothing confirms an "
            "alarm; leave it at 1, or walk with online."
        )
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
    single = auditor.kind is PromptKind.STEP_BY_STEP
    acting = _newest_agent_steps(records)
    calls: list[Call] = []
    alarms = 0
    for step in one_a_turn(records, chosen) if single else chosen:
        shown = acting[step - 1] if single else step
        judged = await auditor.judge(records[:shown], seconds=seconds, answer=answer)
        calls.append(Call(shown, judged))
        if judged.verdict.outcome is VerdictOutcome.ALARM:
            alarms += 1
        elif judged.verdict.outcome is VerdictOutcome.SAFE:  # no verdict, or UNSURE, takes no alarm back
            alarms = 0
        if alarms >= confirm and judged.verdict.outcome is VerdictOutcome.ALARM:
            return Walk(judged.verdict, step, tuple(calls))
    if not calls:
        return Walk(Verdict(VerdictOutcome.SAFE, notes=("never asked",)), None, ())
    return Walk(_of_all_steps(calls) if single else _of_the_last(calls), None, tuple(calls))


def _newest_agent_steps(records: Sequence[StepRecord]) -> list[int]:
    """For every step the newest one of an agent at or before it; 0 where there is none."""
    newest, found = 0, []
    for record in records:
        newest = record.index if record.actor == "agent" else newest
        found.append(newest)
    return found


def _of_all_steps(calls: Sequence[Call]) -> Verdict:
    """Of questions that each judge one step, without an alarm."""
    verdicts = [call.judged.verdict for call in calls]
    errors = [verdict for verdict in verdicts if verdict.outcome is VerdictOutcome.ERROR]
    if errors:
        detail = f"{len(errors)} of {len(calls)} steps have no verdict; the first: {errors[0].detail}"
        return Verdict(VerdictOutcome.ERROR, fault=errors[0].fault, detail=detail)
    unsure = [verdict for verdict in verdicts if verdict.outcome is VerdictOutcome.ABSTAIN]
    if unsure:
        note = f"{len(unsure)} of {len(calls)} steps could not be told"
        return replace(unsure[0], notes=(*unsure[0].notes, note))
    return verdicts[-1]


def _of_the_last(calls: Sequence[Call]) -> Verdict:
    """Of questions about longer and longer prefixes, without an alarm that counts."""
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
    """Halve the range of the run's steps until one is left; a half of which nothing was shown is no verdict."""
    begin, end = within = 1, len(records)
    left_out = getattr(auditor, "left_out", None)  # of prompts that hold so many tokens at most
    calls: list[Call] = []
    last, hidden = Verdict(VerdictOutcome.ALARM, notes=("only step; nothing was asked",)), False
    while begin < end:
        within = begin, end
        judged = await auditor.judge(records, seconds=seconds, answer=answer, within=within)
        elided = left_out(records, answer=answer, within=within) if left_out is not None else ()
        hidden = hidden or any(first <= end and begin <= final for first, final in elided)
        last = judged.verdict
        if last.outcome is VerdictOutcome.ALARM:
            first_half, second_half = halves(within)
            begin, end = first_half if last.step is not None and last.step <= first_half[1] else second_half
            if any(first <= begin and end <= final for first, final in elided):
                detail = f"{FAULTS['step-not-shown']}: none of {begin} to {end}."
                last = Verdict(VerdictOutcome.ERROR, fault="step-not-shown", detail=detail, notes=last.notes)
        calls.append(Call(len(records), replace(judged, verdict=last), within))
        if last.outcome is not VerdictOutcome.ALARM:
            break
    found = _blamed(records, within[0], begin, last) if last.outcome is VerdictOutcome.ALARM else last
    if hidden:
        found = replace(found, notes=(*found.notes, "some steps of the range were not shown"))
    return Walk(found, None, tuple(calls))


def _blamed(records: Sequence[StepRecord], begin: int, step: int, last: Verdict) -> Verdict:
    """The alarm at the end of a search. begin: where the range began that was halved last. step: what is left of it.

    What others do is the outcome of an agent's step, so that is blamed where it lies in the range.
    """
    at = _newest_agent_steps(records)[step - 1]
    if at < begin:
        detail = f"{FAULTS['not-an-agent-step']}: step {step} is of: {records[step - 1].actor}"
        return Verdict(VerdictOutcome.ERROR, fault="not-an-agent-step", detail=detail, notes=last.notes)
    moved = () if at == step else (f"the search ended at step {step}, where no agent acted",)
    agent, notes = agent_of(records[at - 1]), (*last.notes, *moved)
    return replace(last, step=at, agent=agent, quote=None, quote_found=None, notes=notes)
