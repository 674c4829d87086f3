"""A monitor in front of an auditor, over whole runs: which prefixes it lets through, and what it would say alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from prefixguard.alarm import Level
from prefixguard.escalate.agent_names import agent_of
from prefixguard.escalate.attribution import AttributionMethod, attribute
from prefixguard.escalate.mark import questions
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.escalate.walks import Walk
from prefixguard.runtime import Monitor, Reading
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class Gate:
    """A monitor and the policy by which its readings are escalated.

    policy: mark, edge, `every`, `gap` and calls a run are followed; budgets of a minute, of tokens and of money are
    those of a live host and are not.
    """

    monitor: Monitor
    policy: EscalationPolicy = field(default_factory=EscalationPolicy)

    def mark(self, run: Run[StepRecord]) -> float:
        """The policy's mark, or where the monitor's level becomes WATCH for runs like this one."""
        if self.policy.mark is not None:
            return self.policy.mark
        return self.monitor.bundle.calibration.thresholds_of(self.monitor.group_of(run)).watched_from

    def readings(self, run: Run[StepRecord]) -> list[Reading]:
        """What the monitor says after every step."""
        return self.monitor.score_run(run.records, group=self.monitor.group_of(run))

    def steps(self, run: Run[StepRecord]) -> tuple[int, ...]:
        """Steps after which the run is escalated, rising, from 1."""
        risks = [
            reading.outcome_risk if self.policy.risk == "outcome" else reading.imminent_risk
            for reading in self.readings(run)
        ]
        asked = questions(np.array([np.nan if risk is None else risk for risk in risks]), self.mark(run), self.policy)
        return tuple(asked if self.policy.calls_a_run is None else asked[: self.policy.calls_a_run])

    def alone(self, run: Run[StepRecord], *, known_failed: bool = False) -> Walk:
        """The monitor's own verdict, without a model: ALARM where its alarm sounds, blaming the step from which the
        risk was up for good by then (`attribute`).

        known_failed: the run is over and failed: some step is blamed in any case, and all of the run is looked at.
        """
        readings = self.readings(run)
        sounded = next((reading.step for reading in readings if reading.level is Level.ALARM), None)
        if sounded is None and not known_failed:
            judged = any(reading.level is not Level.UNKNOWN for reading in readings)
            outcome = VerdictOutcome.SAFE if judged else VerdictOutcome.ABSTAIN
            return Walk(Verdict(outcome), None, ())
        seen = len(readings) if known_failed or sounded is None else sounded
        found = attribute(run.records[:seen], [reading.outcome_risk for reading in readings[:seen]])
        step = found.step
        if step is None:  # no rise to be seen: the step at which the risk is highest
            highest = attribute(
                run.records[:seen], [reading.outcome_risk for reading in readings[:seen]], AttributionMethod.HIGHEST
            )
            step = highest.step
        if step is None:
            return Walk(Verdict(VerdictOutcome.ABSTAIN, reason="no step was judged"), None, ())
        reasons = readings[step - 1].reasons
        verdict = Verdict(
            VerdictOutcome.ALARM, step=step, agent=agent_of(run.records[step - 1]), reason="; ".join(reasons[:3])
        )
        return Walk(verdict, None if known_failed else sounded, ())
