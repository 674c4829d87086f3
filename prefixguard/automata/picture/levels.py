"""Levels of risk: intervals of the outcome risk, each with a colour that stays distinct without colour vision.

The scale runs from pale blue over amber to dark red-brown and gets darker all the way, so that it keeps its order in
grey print and under every kind of colour blindness. It is the same for every automaton: a colour means a risk, not a
rank among the states at hand.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.alarm import Level

#: Where levels end when no threshold is near; denser at the low end, where most states are.
ENDS = (0.05, 0.15, 0.30, 0.50, 0.75)

#: Colours of these risks; between them they are mixed.
_SCALE = (
    (0.00, (0xE9, 0xF3, 0xFC)),
    (0.10, (0xF8, 0xE7, 0xB8)),
    (0.20, (0xF8, 0xD1, 0x7A)),
    (0.30, (0xF3, 0xAE, 0x4A)),
    (0.42, (0xE6, 0x84, 0x2F)),
    (0.55, (0xCC, 0x5A, 0x1E)),
    (0.70, (0xA8, 0x34, 0x12)),
    (0.90, (0x68, 0x18, 0x0A)),
)

#: A threshold takes the place of a standard end that is nearer than this, in log-odds.
_NEAR = 0.55


@dataclass(frozen=True, slots=True)
class RiskLevel:
    """Outcome risks above `low` and up to `high` (the first level holds 0 too).

    says: what a monitor says there: OK, WATCH or ALARM.
    """

    low: float
    high: float
    says: Level

    @property
    def colour(self) -> str:
        """Colour of the risk in its middle, "#rrggbb"."""
        return colour_of((self.low + self.high) / 2)


def risk_levels(watch: float, alarm: float | None) -> tuple[RiskLevel, ...]:
    """All levels from 0 to 1, lowest first; the thresholds of watch and alarm always end a level.

    watch, alarm: thresholds of the outcome risk, in [0, 1]; alarm None: nothing is called ALARM.

    >>> [(level.low, level.high, str(level.says)) for level in risk_levels(0.31, 0.62)][2:]
    [(0.15, 0.31, 'OK'), (0.31, 0.62, 'WATCH'), (0.62, 0.75, 'ALARM'), (0.75, 1.0, 'ALARM')]
    """
    thresholds = sorted({threshold for threshold in (watch, alarm) if threshold is not None and 0.0 < threshold < 1.0})
    kept = [end for end in ENDS if all(abs(_log_odds(end) - _log_odds(threshold)) >= _NEAR for threshold in thresholds)]
    ends = sorted({0.0, *kept, *thresholds, 1.0})
    levels = []
    for low, high in pairwise(ends):
        says = Level.WATCH if low >= watch else Level.OK
        if alarm is not None and low >= alarm:
            says = Level.ALARM
        levels.append(RiskLevel(low, high, says))
    return tuple(levels)


def level_of(risk: float, levels: tuple[RiskLevel, ...]) -> int:
    """Which level holds this risk. A risk at a threshold is still below it, as for the alarm itself."""
    return min(bisect_left([level.high for level in levels], risk), len(levels) - 1)


def colour_of(risk: float) -> str:
    """Colour of a risk in [0, 1].

    >>> colour_of(0.0), colour_of(0.2), colour_of(1.0)
    ('#e9f3fc', '#f8d17a', '#68180a')
    """
    place = bisect_left([at for at, _ in _SCALE], risk)
    if place == 0:
        return _hex(_SCALE[0][1])
    if place == len(_SCALE):
        return _hex(_SCALE[-1][1])
    (low, dark), (high, light) = _SCALE[place - 1], _SCALE[place]
    part = (risk - low) / (high - low)
    return _hex(tuple(round(a + part * (b - a)) for a, b in zip(dark, light, strict=True)))


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better; one of both always has a contrast of 4.5 or more."""
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", in [0, 1]. Source: Web Content Accessibility Guidelines 2.2, its definition.

    >>> luminance("#000000"), luminance("#ffffff")
    (0.0, 1.0)
    """
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _log_odds(risk: float) -> float:
    return math.log(risk / (1 - risk))


def _hex(colour: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)
