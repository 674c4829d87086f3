"""The alarm rule: `AlarmState.step`, one step of one run. All else in Python that asks when an alarm sounds asks this
one; the interpreters of an exported table stand alone and are held to it by a test.

The policy is monotone in its threshold: a lower one never makes a run alarm later. So each run has one number, the
largest threshold at which it would still not alarm, and that number is all a calibration needs of it.
A step without a risk (NaN) is passed over: it neither sounds, nor breaks a row of consecutive steps, nor cools down.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.alarm.policy import AlarmPolicy, Level
from prefixguard.alarm.threshold import Thresholds


class AlarmState:
    """The alarm of one session: a few numbers. Make one for each run; it is not thread-safe.

    >>> state = AlarmState(AlarmPolicy(consecutive=2), Thresholds(0.6, 0.3, 40, 1, 22, None))
    >>> [state.step(risk).value for risk in (0.1, 0.7, 0.4, 0.7, 0.8, 0.2)]
    ['OK', 'WATCH', 'WATCH', 'WATCH', 'ALARM', 'ALARM']
    """

    __slots__ = ("_alarm", "_consecutive", "_cooldown", "_cooling", "_over", "_release", "_watch", "sounding")

    def __init__(self, policy: AlarmPolicy, thresholds: Thresholds) -> None:
        self._alarm = thresholds.alarm
        self._watch = thresholds.watched_from
        self._consecutive = policy.consecutive
        self._cooldown = policy.cooldown
        # A risk that still exceeds the alarm threshold never releases: the alarm would sound again at once.
        self._release = policy.release
        if policy.release is not None and thresholds.alarm is not None:
            self._release = min(policy.release, thresholds.alarm)
        self._over = 0  # steps in a row over the alarm threshold
        self._cooling = 0  # steps of cool-down left
        #: Whether the alarm sounds now.
        self.sounding = False

    def counts(self) -> tuple[int, int, int]:
        """All that changes: steps over the threshold, steps of cool-down left, whether it sounds (1 or 0)."""
        return self._over, self._cooling, int(self.sounding)

    def resume(self, over: int, cooling: int, sounding: int) -> None:
        """Go on from `counts`."""
        self._over, self._cooling, self.sounding = over, cooling, bool(sounding)

    def step(self, risk: float) -> Level:
        """The level after one more step. `risk` in [0, 1]; NaN gives UNKNOWN and changes nothing."""
        if risk != risk:
            return Level.UNKNOWN
        calm = Level.WATCH if risk > self._watch else Level.OK
        if self._alarm is None:
            return calm
        if self.sounding:
            if self._release is None or risk >= self._release:
                return Level.ALARM
            self.sounding = False
            self._over = 0
            self._cooling = self._cooldown
            return calm
        if self._cooling > 0:
            self._cooling -= 1
            return calm
        self._over = self._over + 1 if risk > self._alarm else 0
        if self._over >= self._consecutive:
            self.sounding = True
            return Level.ALARM
        return calm


def run_maximum(risks: npt.ArrayLike, policy: AlarmPolicy) -> float:
    """The number M of a run: it alarms at a threshold exactly when the threshold is below M.

    With k consecutive steps: the largest, over all windows of k steps, of the smallest risk in the window. -inf for a
    run of fewer than k judged steps, which never alarms.

    >>> run_maximum([0.1, 0.9, 0.4, 0.5], AlarmPolicy()), run_maximum([0.1, 0.9, 0.4, 0.5], AlarmPolicy(consecutive=2))
    (0.9, 0.4)
    """
    values = np.asarray(risks, dtype=np.float64)
    values = values[~np.isnan(values)]
    if len(values) < policy.consecutive:
        return float("-inf")
    windows = np.lib.stride_tricks.sliding_window_view(values, policy.consecutive)
    return float(windows.min(axis=1).max())


def first_alert(risks: npt.ArrayLike, theta: float | None, policy: AlarmPolicy) -> int | None:
    """The step, from 1, at which the policy first alarms; None if it never does or `theta` is None (refused).

    >>> first_alert([0.1, 0.9, 0.7, 0.8], 0.6, AlarmPolicy(consecutive=2))
    3
    """
    if theta is None:
        return None
    state = AlarmState(policy, Thresholds(theta, 1.0, 0, 0, 0, None))
    steps = enumerate(np.asarray(risks, dtype=np.float64).tolist(), 1)
    return next((step for step, risk in steps if state.step(risk) is Level.ALARM), None)
