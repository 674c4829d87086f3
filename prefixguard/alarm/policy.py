"""What a monitor says after a step, and when it sounds the alarm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from prefixguard.errors import ConfigError


class Level(StrEnum):
    """How worried to be.

    OK: nothing stands out. WATCH: the risk passed the watch threshold; worth a second look, no guarantee. ALARM: the
    alarm policy sounds; at most the budgeted share of successful runs ever get here. UNKNOWN: the monitor cannot judge
    this step and says why; never to be read as OK.
    """

    OK = "OK"
    WATCH = "WATCH"
    ALARM = "ALARM"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class AlarmPolicy:
    """The promise and the manner of an alarm.

    budget: share of successful runs that may ever alarm, in (0, 1).
    confidence: how sure the budget is to hold, over the draw of the calibration runs, in (0, 1).
    consecutive: steps in a row whose risk must exceed the threshold, 1 or more.
    release: risk below which a sounding alarm stops, in [0, 1]; None: it stays for the rest of the run. Never acts
        above the alarm threshold.
    cooldown: steps after a release during which no new alarm starts and none is counted towards `consecutive`.

    Whether a run alarms at all depends on the threshold and `consecutive` alone; release and cool-down act after the
    first alarm, so they are inside the guarantee whatever they are.
    Raises ConfigError for a value outside its range.
    """

    budget: float = 0.10
    confidence: float = 0.90
    consecutive: int = 1
    release: float | None = None
    cooldown: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.budget < 1.0:
            raise ConfigError(
                f"alarm budget {self.budget:g} is not a share of runs: use a number between 0 and 1, such as 0.1."
            )
        if not 0.0 < self.confidence < 1.0:
            raise ConfigError(
                f"alarm confidence {self.confidence:g} is out of range: use a number between 0 and 1, such as 0.9."
            )
        if self.consecutive < 1:
            raise ConfigError(f"consecutive is {self.consecutive}: an alarm needs at least 1 step over its threshold.")
        if self.release is not None and not (math.isfinite(self.release) and 0.0 <= self.release <= 1.0):
            raise ConfigError(f"release is {self.release:g}: it is a risk, so use a number from 0 to 1, or None.")
        if self.cooldown < 0:
            raise ConfigError(f"cooldown is {self.cooldown}: it counts steps, so use 0 or more.")

    @property
    def delta(self) -> float:
        """1 - confidence, free of the rounding that would turn .1 into .09999999999999998."""
        return round(1.0 - self.confidence, 12)
