"""The escalation mark, chosen on calibration runs so that at most a stated share of steps is asked about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate.asking import Asking
from prefixguard.escalate.policy import EscalationPolicy

#: Fewer runs than these say little of new ones.
_FEW_RUNS = 30


@dataclass(frozen=True, slots=True)
class Mark:
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
        return {
            "mark": self.mark,
            "asked": self.asked,
            "steps": self.steps,
            "runs": self.runs,
            "asked_runs": self.asked_runs,
            "share": self.share,
            "asked_share": self.asked_share,
            "error": self.error,
            "remark": self.remark,
        }


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
) -> Mark:
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
    steps = sum(len(risks) for risks in runs)
    if steps == 0:
        raise DataError("the calibration runs have no steps: nothing says what is a high risk.")
    allowed = math.floor(round(share * steps, 9))
    mark = _lowest(runs, allowed, policy)
    asked = np.array([len(questions(risks, mark, policy)) for risks in runs], np.float64)
    lengths = np.array([len(risks) for risks in runs], np.float64)
    return Mark(
        mark=mark,
        asked=int(asked.sum()),
        steps=steps,
        runs=len(runs),
        asked_runs=int((asked > 0).sum()),
        share=share,
        error=_standard_error(asked, lengths),
    )


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
    total = 0
    for mark in sorted(changes, reverse=True):
        total += changes[mark]
        if total > allowed:  # any mark below this risk asks too much; at it, the risk itself is not above
            return mark if mark > 0 else math.nextafter(0.0, 1.0)
    return math.nextafter(0.0, 1.0)


def _standard_error(asked: NDArray[np.float64], lengths: NDArray[np.float64]) -> float | None:
    n = len(asked)
    if n < 2:
        return None
    ratio = asked.sum() / lengths.sum()
    spread = asked - ratio * lengths
    squares = math.fsum((spread * spread).tolist())  # exact, so that the order of the runs does not matter
    return float(math.sqrt(n / (n - 1) * squares) / lengths.sum())
