"""A monitor in front of an auditor, over whole runs: which prefixes it lets through, and what it would say alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from prefixguard.alarm import Level
from prefixguard.escalate.agent_names import agent_of
from prefixguard.escalate.attribution import AttributionMethod, attribute
from prefixguard.escalate.mark import questions
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.escalate.walks import Walk, one_a_turn
from prefixguard.runtime import Monitor, Reading
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: The reason of a verdict where a monitor never knew.
NOT_JUDGED = "the monitor judged no step"


@dataclass(frozen=True, slots=True)
class Gate:
    """A monitor and the policy by which its readings are escalated.

    policy: mark, edge, `every`, `gap` and calls a run are followed; budgets of a minute, of tokens and of money are
    those of a live host and are not.
    own: by run id the same steps as the monitor's adapter keeps them, for runs that hold longer texts for an auditor.
    """

    monitor: Monitor
    policy: EscalationPolicy = field(default_factory=EscalationPolicy)
    own: Mapping[str, Sequence[StepRecord]] = field(default_factory=lambda: MappingProxyType({}))

    def mark(self, run: Run[StepRecord]) -> float:
        """The policy's mark, or where the monitor's level becomes WATCH for runs like this one."""
        if self.policy.mark is not None:
            return self.policy.mark
        return self.monitor.bundle.calibration.thresholds_of(self.monitor.group_of(run)).watched_from

    def readings(self, run: Run[StepRecord]) -> list[Reading]:
        """What the monitor says after every step."""
        records = self.own.get(run.run_id, run.records)
        return self.monitor.score_run(records, group=self.monitor.group_of(run))

    def steps(self, run: Run[StepRecord], readings: Sequence[Reading] | None = None) -> tuple[int, ...]:
        """Steps after which the run is escalated, rising, from 1; one for a step of an agent and what others do until
        an agent acts again (`one_a_turn`), so never more than are asked about without a monitor.

        readings: what `readings` says of this run, where it is known.
        """
        risks = [
            reading.outcome_risk if self.policy.risk == "outcome" else reading.imminent_risk
            for reading in (self.readings(run) if readings is None else readings)
        ]
        wanted = questions(np.array([np.nan if risk is None else risk for risk in risks]), self.mark(run), self.policy)
        asked = one_a_turn(run.records, wanted)
        return asked if self.policy.calls_a_run is None else asked[: self.policy.calls_a_run]

    def alone(self, run: Run[StepRecord], *, known_failed: bool = False) -> Walk:
        """The monitor's own verdict, without a model: ALARM where its alarm sounds, blaming the step from which the
        risk was up for good by then (`attribute`).

        known_failed: the run is over and failed: some step is blamed in any case, and all of the run is looked at.
        """
        readings = self.readings(run)
        sounded = next((reading.step for reading in readings if reading.level is Level.ALARM), None)
        if sounded is None and not known_failed:
            return Walk(unjudged(readings) or Verdict(VerdictOutcome.SAFE), None, ())
        seen = len(readings) if known_failed or sounded is None else sounded
        found = attribute(run.records[:seen], [reading.outcome_risk for reading in readings[:seen]])
        step = found.step
        if step is None:  # no rise to be seen: the step at which the risk is highest
            highest = attribute(
                run.records[:seen], [reading.outcome_risk for reading in readings[:seen]], AttributionMethod.HIGHEST
            )
            step = highest.step
        if step is None:
            return Walk(Verdict(VerdictOutcome.ABSTAIN, reason=NOT_JUDGED), None, ())
        reasons = readings[step - 1].reasons
        verdict = Verdict(
            VerdictOutcome.ALARM, step=step, agent=agent_of(run.records[step - 1]), reason="; ".join(reasons[:3])
        )
        return Walk(verdict, None if known_failed else sounded, ())


def unjudged(readings: Sequence[Reading]) -> Verdict | None:
    """ABSTAIN where all of them are UNKNOWN: a monitor that cannot judge a run does not say that it is sound."""
    if any(reading.level is not Level.UNKNOWN for reading in readings):
        return None
    return Verdict(VerdictOutcome.ABSTAIN, reason=NOT_JUDGED)
