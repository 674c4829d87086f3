"""Three ways of auditing a run: a model led through it, a monitor alone, and hypotheses about failure modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from prefixguard.auditor.hypotheses import HypothesisResult, verify
from prefixguard.auditor.hypothesis_answers import HypothesisLabel
from prefixguard.auditor.trigger import EscalationTrigger, unjudged
from prefixguard.auditor.walks import WalkingAuditor, query_steps, walk
from prefixguard.escalate import Client, Endpoint, PromptKind, Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class Inspection:
    """What came of one run.

    verdict, alarm_step: see `Walk`. calls: questions as plain values, each with `outcome`, `fault`, `tokens_in`,
    `tokens_out`, `cost` and `seconds`. possible_calls: questions that a walk to the end of this run asks without a
    monitor in front. pairs, modes: of hypotheses, (agent, mode) and modes found; None where none were asked.
    """

    verdict: Verdict
    alarm_step: int | None
    calls: tuple[dict[str, Any], ...]
    possible_calls: int
    pairs: tuple[tuple[str, str], ...] | None = None
    modes: tuple[str, ...] | None = None


class AuditProtocol(Protocol):
    """Audits a run. It is given runs without labels."""

    @property
    def name(self) -> str:
        """How: a word."""
        ...

    async def inspect(self, run: Run[StepRecord]) -> Inspection:
        """Audit it. Never raises for what an endpoint does."""
        ...

    async def aclose(self) -> None:
        """Close what is open; on the loop that it was used on."""
        ...


@dataclass(frozen=True, slots=True)
class WalkProtocol:
    """A model led through the run in the way of its kind of question.

    gate: only prefixes that it escalates are shown, for kinds that walk; a run of which it judges no step is an ABSTAIN
    and is not asked about. None: every step of an agent is asked about. confirm, seconds: see `walk`.
    """

    auditor: WalkingAuditor
    gate: EscalationTrigger | None = None
    confirm: int = 1
    seconds: float | None = None

    @property
    def name(self) -> str:
        return self.auditor.kind.value.replace("_", "-")

    async def inspect(self, run: Run[StepRecord]) -> Inspection:
        """See `walk`."""
        walks = self.auditor.kind in (PromptKind.ONLINE, PromptKind.STEP_BY_STEP)
        steps = None
        if self.gate is not None and walks:
            readings = self.gate.readings(run)
            unknown = unjudged(readings) if run.records else None
            if unknown is not None:
                return Inspection(unknown, None, (), len(query_steps(run.records)))
            steps = self.gate.steps(run, readings)
        gone = await walk(run.records, self.auditor, steps=steps, confirm=self.confirm, seconds=self.seconds)
        calls = tuple(call.as_json() for call in gone.calls)
        possible = len(query_steps(run.records)) if walks else len(calls)
        return Inspection(gone.verdict, gone.alarm_step, calls, possible)

    async def aclose(self) -> None:
        """Close the auditor's connections."""
        await self.auditor.aclose()


@dataclass(frozen=True, slots=True)
class MonitorProtocol:
    """The monitor's own verdict; no model is asked. known_failed: see `EscalationTrigger.alone`."""

    gate: EscalationTrigger
    known_failed: bool = False

    @property
    def name(self) -> str:
        return "monitor"

    async def inspect(self, run: Run[StepRecord]) -> Inspection:
        """See `EscalationTrigger.alone`."""
        gone = self.gate.alone(run, known_failed=self.known_failed)
        return Inspection(gone.verdict, gone.alarm_step, (), 0)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class HypothesisProtocol:
    """Every failure mode verified against the whole run. The verdict is an alarm that names no step where a mode is
    entailed, an error where none is and some are not known. batch, threshold, budget_tokens, mask: see `verify`."""

    client: Client
    budget_tokens: int = 24_000
    batch: bool = False
    threshold: float | None = None
    seconds: float | None = None
    mask: bool = True

    @property
    def name(self) -> str:
        return "hypotheses"

    async def inspect(self, run: Run[StepRecord]) -> Inspection:
        """See `verify`."""
        found = await verify(
            run.records,
            self.client,
            budget_tokens=self.budget_tokens,
            batch=self.batch,
            threshold=self.threshold,
            seconds=self.seconds,
            mask=self.mask,
        )
        modes = tuple(sorted(found.modes))
        if modes:
            verdict = Verdict(VerdictOutcome.ALARM, reason=f"entailed: {', '.join(modes)}")
        elif found.errors:
            fault = next(answer.fault for answer in found.answers.values() if answer.label is HypothesisLabel.ERROR)
            detail = f"{found.errors} of {len(found.answers)} modes have no answer."
            verdict = Verdict(VerdictOutcome.ERROR, fault=fault, detail=detail)
        else:
            verdict = Verdict(VerdictOutcome.SAFE)
        calls = _calls(found, len(run.records), self.client.endpoint)
        return Inspection(verdict, None, calls, found.questions, tuple(sorted(found.pairs)), modes)

    async def aclose(self) -> None:
        """Close the client's connections, where it has any."""
        aclose = getattr(self.client, "aclose", None)
        if aclose is not None:
            await aclose()


def _calls(found: HypothesisResult, steps: int, endpoint: Endpoint) -> tuple[dict[str, Any], ...]:
    """An entry a mode. What the replies took stands in the first one, since one reply may answer several modes."""
    tokens_in, tokens_out, seconds = (found.taken[name] for name in ("tokens_in", "tokens_out", "seconds"))
    cost = endpoint.cost(tokens_in, tokens_out)
    names = ("tokens_in", "tokens_out", "cost", "seconds", "masked")
    totals = dict(zip(names, (tokens_in, tokens_out, cost, seconds, dict(found.masked)), strict=True))
    nothing: dict[str, Any] = dict(zip(names, (0, 0, None if cost is None else 0.0, 0.0, {}), strict=True))
    calls = []
    for place, answer in enumerate(found.answers.values()):
        outcome = _OUTCOMES.get(answer.label, VerdictOutcome.SAFE).value
        taken = nothing if place else totals
        calls.append({"prefix": steps, "mode": answer.code, "outcome": outcome, **answer.as_json(), **taken})
    return tuple(calls)


_OUTCOMES = {HypothesisLabel.ERROR: VerdictOutcome.ERROR, HypothesisLabel.ENTAIL: VerdictOutcome.ALARM}
