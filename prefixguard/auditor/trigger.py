"""A monitor in front of an auditor, over whole runs: which prefixes it lets through, and what it would say alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.auditor.attribution import AttributionMethod, attribute
from prefixguard.auditor.walks import Walk, one_a_turn
from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import Asking, EscalationPolicy, Verdict, VerdictOutcome, agent_of
from prefixguard.results import fields_of
from prefixguard.runtime import Monitor, Reading
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Fewer runs than these say little of new ones.
_FEW_RUNS = 30


@dataclass(frozen=True, slots=True)
class EscalationThreshold:
    """A mark and what it does on the runs that it was chosen on.

    mark: a risk in (0, 1]; 1 asks nothing. asked: questions wanted at this mark, of `steps` in `runs` runs.
    asked_runs: runs in which at least one is. share: what was allowed.
    error: standard error of asked / steps over the draw of runs (ratio estimator, runs as the unit, since steps of one
        run are not independent); None for fewer than two runs.
    """

    mark: float
    asked: int
    steps: int
    runs: int
    asked_runs: int
    share: float
    error: float | None

    @property
    def asked_share(self) -> float:
        """Share of steps that is asked about."""
        return self.asked / self.steps

    @property
    def remark(self) -> str:
        """What the figure is worth on new runs, in a sentence."""
        error = "" if self.error is None else f", give or take {2 * self.error:.1%} (two standard errors, by run)"
        few = f"; {self.runs} runs are few, so do not rest a budget on it" if self.runs < _FEW_RUNS else ""
        return (
            f"at mark {self.mark:.4g}, {self.asked} of {self.steps} calibration steps in {self.asked_runs} of "
            f"{self.runs} runs are asked about: {self.asked_share:.1%} (at most {self.share:.1%} was allowed); on new "
            f"runs of the same kind about as many{error}{few}."
        )

    def to_json(self) -> dict[str, Any]:
        """All fields and the remark as plain values."""
        return {**fields_of(self), "asked_share": self.asked_share, "remark": self.remark}


def questions(risks: NDArray[np.float64], mark: float, policy: EscalationPolicy) -> list[int]:
    """Steps, from 1, at which a run with these risks (NaN: not judged) asks, budgets aside.

    >>> questions(np.array([0.1, 0.6, 0.7, 0.2, 0.9]), 0.5, EscalationPolicy(every=None))
    [2, 5]
    """
    # The policy's own field takes no 0, while a risk of 0.0 is a place where the number of questions may change.
    asking = Asking(replace(policy, mark=None), mark)
    return [step for step, risk in enumerate(np.asarray(risks, np.float64).tolist(), 1) if asking.wants(step, risk)]


def escalation_mark(
    risks_by_run: Sequence[NDArray[np.float64]], share: float, policy: EscalationPolicy | None = None
) -> EscalationThreshold:
    """The smallest mark such that it, and every higher one, has at most `share` of all steps asked about.

    risks_by_run: float (steps,) for every calibration run, the risk that the policy goes by, of every step, as the
        monitor itself scored them (it shall not have been trained on these runs); NaN where a step was not judged (it
        counts as a step).
    share: of steps, in [0, 1]. policy: its rising edge, `every` and `gap` are followed step by step; its mark and
        budgets are not looked at. None: the default.
    "And every higher one": the number of questions is not monotone in the mark where a rising edge asks; a mark so low
    that each run rises above it once, at its first step, would have a small share too and be useless.
    Deterministic; the order of the runs does not matter. ConfigError for the share, DataError where there are no runs
    or no steps, or for a risk outside [0, 1].
    """
    if not 0.0 <= share <= 1.0:
        raise ConfigError(f"escalation share {share:g}: it is a share of steps, from 0 to 1.")
    policy = policy if policy is not None else EscalationPolicy()
    runs = [np.asarray(risks, np.float64) for risks in risks_by_run]
    if not runs:
        raise DataError("no calibration runs: a mark is chosen on runs that the monitor has scored. Give some.")
    for number, risks in enumerate(runs, 1):
        if risks.ndim != 1:
            raise DataError(f"risks of run {number} have shape {risks.shape}: give one number a step.")
        if np.any((risks < 0) | (risks > 1)):
            raise DataError(f"risks of run {number}: a risk lies between 0 and 1.")
    lengths = np.array([len(risks) for risks in runs], np.float64)
    steps = int(lengths.sum())
    if steps == 0:
        raise DataError("the calibration runs have no steps: nothing says what is a high risk.")
    mark = _lowest(runs, math.floor(round(share * steps, 9)), policy)
    asked = np.array([len(questions(risks, mark, policy)) for risks in runs], np.float64)
    error = _standard_error(asked, lengths)
    return EscalationThreshold(mark, int(asked.sum()), steps, len(runs), int((asked > 0).sum()), share, error)


def _lowest(runs: Sequence[NDArray[np.float64]], allowed: int, policy: EscalationPolicy) -> float:
    """A run's questions change only where the mark passes one of its own risks; so going down from 1, each run is
    played once for each of its risks, and the sum of all is kept."""
    changes: dict[float, int] = {}
    for risks in runs:
        before = 0
        for mark in np.unique(risks[~np.isnan(risks)])[::-1].tolist():
            # Just below this risk: the same as at the next lower one. Just at it: as before.
            changes.setdefault(mark, 0)
            now = len(questions(risks, math.nextafter(mark, -1.0), policy))
            changes[mark] += now - before
            before = now
    total, least = 0, math.nextafter(0.0, 1.0)
    for mark in sorted(changes, reverse=True):
        total += changes[mark]
        if total > allowed:  # any mark below this risk asks too much; at it, the risk itself is not above
            return mark if mark > 0 else least
    return least


def _standard_error(asked: NDArray[np.float64], lengths: NDArray[np.float64]) -> float | None:
    n = len(asked)
    if n < 2:
        return None
    ratio = asked.sum() / lengths.sum()
    spread = asked - ratio * lengths
    squares = math.fsum((spread * spread).tolist())  # exact, so that the order of the runs does not matter
    return float(math.sqrt(n / (n - 1) * squares) / lengths.sum())


#: The reason of a verdict where a monitor never knew.
NOT_JUDGED = "the monitor judged no step"


@dataclass(frozen=True, slots=True)
class EscalationTrigger:
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
        readings = self.readings(run) if readings is None else readings
        name = f"{self.policy.risk}_risk"
        risks = np.array([getattr(reading, name) for reading in readings], dtype=np.float64)  # None is NaN
        asked = one_a_turn(run.records, questions(risks, self.mark(run), self.policy))
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
        risks = [reading.outcome_risk for reading in readings[:seen]]
        # Where no rise is to be seen, the step at which the risk is highest.
        step = attribute(run.records[:seen], risks).step
        step = step or attribute(run.records[:seen], risks, AttributionMethod.HIGHEST).step
        if step is None:
            return Walk(Verdict(VerdictOutcome.ABSTAIN, reason=NOT_JUDGED), None, ())
        agent, reason = agent_of(run.records[step - 1]), "; ".join(readings[step - 1].reasons[:3])
        verdict = Verdict(VerdictOutcome.ALARM, step, agent, reason)
        return Walk(verdict, None if known_failed else sounded, ())


def unjudged(readings: Sequence[Reading]) -> Verdict | None:
    """ABSTAIN where all of them are UNKNOWN: a monitor that cannot judge a run does not say that it is sound."""
    if any(reading.level is not Level.UNKNOWN for reading in readings):
        return None
    return Verdict(VerdictOutcome.ABSTAIN, reason=NOT_JUDGED)
