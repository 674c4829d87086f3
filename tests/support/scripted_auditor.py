"""An auditor that knows the truth and says it as often as it is told to: of known skill, slow, failing or lying.

What it does depends on the question and the seed alone, not on the order in which questions come.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictOutcome, question_key
from prefixguard.stepview import StepRecord

Truth = Callable[[Sequence[StepRecord]], int | None]


def last_step(records: Sequence[StepRecord]) -> int | None:
    """A truth: the newest step is the mistake."""
    return records[-1].index


def nothing_wrong(_: Sequence[StepRecord]) -> int | None:
    """A truth: all is well."""
    return None


class ScriptedAuditor:
    """Implements `judged.Auditor`.

    truth: the step to blame for this prefix, None where it is safe. skill: chance of saying it; else it says safe for
    a mistake, and blames a step for none. failing: chance of a verdict ERROR. raising: chance of an exception out of
    `judge`. lying: names a step far beyond the run. delay: seconds to the answer. stuck: answers only when cancelled.
    """

    model = "scripted"
    prompt_version = "scripted-1"

    def __init__(
        self,
        truth: Truth = last_step,
        *,
        skill: float = 1.0,
        failing: float = 0.0,
        raising: float = 0.0,
        lying: bool = False,
        delay: float = 0.0,
        stuck: bool = False,
        tokens: tuple[int, int] = (1000, 50),
        cost: float | None = 0.001,
        seed: int = 0,
    ) -> None:
        self.truth, self.skill, self.failing, self.raising, self.lying = truth, skill, failing, raising, lying
        self.delay, self.stuck, self.tokens, self.cost, self.seed = delay, stuck, tokens, cost, seed
        #: Prefixes that were asked about, by their keys, in order.
        self.asked: list[str] = []
        self.most_at_once = 0
        self.closed = False
        self._now = 0

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
        key = question_key(records, self.model, self.prompt_version)
        self.asked.append(key)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.stuck:
                await asyncio.Event().wait()
            await asyncio.sleep(self.delay)
        finally:
            self._now -= 1
        dice = random.Random(f"{self.seed}/{key}")
        if dice.random() < self.raising:
            raise RuntimeError("the script says so")
        if dice.random() < self.failing:
            error = Verdict(VerdictOutcome.ERROR, fault="server-error", detail="the script says so")
            return self._judged(error, key, (self.tokens[0], 0))
        step = self.truth(records)
        if dice.random() >= self.skill:
            step = None if step is not None else dice.choice(records).index
        if self.lying:
            step = 10**6
        if step is None:
            return self._judged(Verdict(VerdictOutcome.SAFE, reason="all is well"), key, self.tokens)
        agent = next((record.agent for record in records if record.index == step), None) or None
        verdict = Verdict(VerdictOutcome.ALARM, step, agent, f"step {step} is wrong", confidence=0.9)
        return self._judged(verdict, key, self.tokens)

    async def aclose(self) -> None:
        self.closed = True

    def _judged(self, verdict: Verdict, key: str, tokens: tuple[int, int]) -> AuditResult:
        return AuditResult(verdict, key, False, *tokens, False, self.cost, self.delay, 1, verdict.reason, "stop")
