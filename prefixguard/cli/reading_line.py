"""A reading as one line for people."""

from __future__ import annotations

from rich.text import Text

from prefixguard.cli.terminal_text import visible
from prefixguard.runtime import Level, Reading

_STYLES = {Level.OK: "green", Level.WATCH: "yellow", Level.ALARM: "bold red", Level.UNKNOWN: "magenta"}


def reading_line(reading: Reading) -> Text:
    """Step, level, the two risks, and why.

    >>> reading_line(Reading(3, 0.05, 0.625, Level.WATCH, 2, None, ("the step failed",), None, 80.0)).plain
    'step   3  WATCH    fails 0.625  soon 0.050  the step failed'
    """
    line = Text(f"step {reading.step:3d}  ")
    line.append(f"{reading.level.value:7s}", style=_STYLES[reading.level])
    if reading.outcome_risk is None or reading.imminent_risk is None:
        return line.append(f"  {visible(reading.unknown_reason or 'no reason is known')}")
    line.append(f"  fails {reading.outcome_risk:.3f}  soon {reading.imminent_risk:.3f}")
    if reading.reasons:
        line.append(f"  {visible('; '.join(reading.reasons))}", style="dim")
    return line
