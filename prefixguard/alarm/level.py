"""What a monitor says after a step."""

from enum import StrEnum


class Level(StrEnum):
    """How worried to be.

    OK: nothing stands out. WATCH: the risk passed the watch mark; worth a second look, no guarantee. ALARM: the alarm
    policy sounds; at most the budgeted share of successful runs ever get here. UNKNOWN: the monitor cannot judge this
    step and says why; never to be read as OK.
    """

    OK = "OK"
    WATCH = "WATCH"
    ALARM = "ALARM"
    UNKNOWN = "UNKNOWN"
