"""Levels of risk: intervals of the outcome risk, each with a colour that stays distinct without colour vision."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.alarm import Level
from prefixguard.automata.summary.wording import RiskWords, level_said, risk_text
from prefixguard.results import colour_of

#: Where levels end when no threshold is near; denser at the low end, where most states are.
ENDS = (0.05, 0.15, 0.30, 0.50, 0.75)

#: From the lightest to the darkest shade of what is said: an OK never looks like an ALARM.
_SHADES = {Level.OK: (0.02, 0.36), Level.WATCH: (0.45, 0.6), Level.ALARM: (0.75, 1.0)}

#: A threshold takes the place of a standard end that is nearer than this, in log-odds.
_NEAR = 0.55
#: Risks are the same that differ by no more.
SAME = 1e-6


@dataclass(frozen=True, slots=True)
class RiskLevel:
    """Outcome risks above `low` and up to `high` (the first level holds 0 too).

    says: what a monitor says there: OK, WATCH or ALARM. shade: where its colour stands on the scale, in [0, 1].
    """

    low: float
    high: float
    says: Level
    shade: float = 0.0

    @property
    def colour(self) -> str:
        """By what is said there, and darker with the risk, "#rrggbb"."""
        return colour_of(self.shade)


def risk_levels(watch: float, alarm: float | None) -> tuple[RiskLevel, ...]:
    """All levels from 0 to 1, lowest first; the thresholds of watch and alarm always end a level.

    watch, alarm: thresholds of the outcome risk, in [0, 1]; alarm None: nothing is called ALARM.

    >>> [(level.low, level.high, str(level.says)) for level in risk_levels(0.31, 0.62)][2:]
    [(0.15, 0.31, 'OK'), (0.31, 0.62, 'WATCH'), (0.62, 0.75, 'ALARM'), (0.75, 1.0, 'ALARM')]
    """
    thresholds = sorted({threshold for threshold in (watch, alarm) if threshold is not None and 0.0 < threshold < 1.0})
    kept = [end for end in ENDS if all(abs(_log_odds(end) - _log_odds(threshold)) >= _NEAR for threshold in thresholds)]

    def says(low: float) -> Level:
        if alarm is not None and low >= alarm:
            return Level.ALARM
        return Level.WATCH if low >= watch else Level.OK

    ends = sorted({0.0, *kept, *thresholds, 1.0})
    spans = list(pairwise(ends))
    among = Counter(says(low) for low, _ in spans)
    found = list[RiskLevel]()
    for low, high in spans:
        level = says(low)
        place = sum(one.says is level for one in found) / max(among[level] - 1, 1)
        least, most = _SHADES[level]
        found.append(RiskLevel(low, high, level, least + place * (most - least)))
    return tuple(found)


def level_of(risk: float, levels: tuple[RiskLevel, ...]) -> int:
    """Which level holds this risk. A risk at a threshold is still below it, as for the alarm itself."""
    return min(bisect_left([level.high for level in levels], risk), len(levels) - 1)


def _log_odds(risk: float) -> float:
    return math.log(risk / (1 - risk))


def level_text(level: RiskLevel, risks: RiskWords) -> str:
    """A level in words.

    >>> [level_text(level, RiskWords()) for level in risk_levels(0.31, 0.62)[::2]]
    ['no alarm up to .05', 'no alarm above .15 to .31', 'ALARM above .62 to .75']
    """
    return f"{level_said(level.says)}{bounds_text(level, risks)}"


def bounds_text(level: RiskLevel, risks: RiskWords) -> str:
    """Between which risks a level lies, with a blank before it; "" where it holds all."""
    above = f" above {risks.risk(level.low)}" if level.low > 0 else ""
    upto = f" {'to' if above else 'up to'} {risks.risk(level.high)}" if level.high < 1 else ""
    return f"{above}{upto}"


def said_shares(said: Sequence[tuple[Level, float]], levels: tuple[RiskLevel, ...]) -> dict[int, float]:
    """Of each level, the share of steps at which the monitor said so; levels of no step are left out.

    said: what was said at every step, and its outcome risk. A step counts at the level of its risk; where something
    else was said there, as by an alarm that stays on, at the nearest level that says it. So the shares of the levels of
    ALARM add up to the share of steps on which the monitor says ALARM, and all of them to the steps that it can judge.

    >>> levels = risk_levels(0.31, 0.62)
    >>> said_shares([(Level.OK, 0.1), (Level.ALARM, 0.7), (Level.ALARM, 0.2), (Level.WATCH, 0.4)], levels)
    {1: 0.25, 3: 0.25, 4: 0.5}
    """
    counts: Counter[int] = Counter()
    for level, risk in said:
        at = level_of(risk, levels) if math.isfinite(risk) else 0
        same = [number for number, one in enumerate(levels) if one.says is level]
        if same:
            counts[min(same, key=lambda number: abs(number - at))] += 1
    return {number: n / len(said) for number, n in sorted(counts.items())}


def risk_said(risk: float, risks: RiskWords) -> str:
    """A risk in no more digits than tell this one from the thresholds; one that is a threshold as that is said.

    >>> words = RiskWords.of([0.67936], [0.67931])
    >>> words.digits, risk_said(0.67936, words), risk_said(0.67931, words), risk_said(0.6811, words)
    (5, '.67936', '.67931', '.6811')
    """
    if any(abs(risk - one) <= SAME for one in risks.thresholds):
        return risks.risk(risk)
    return RiskWords.of(risks.thresholds, (risk,)).risk(risk)


def range_said(low: float, high: float, risks: RiskWords) -> str:
    """Two risks and what lies between; one where they are said alike."""
    ends = risk_said(low, risks), risk_said(high, risks)
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def why_so_many_digits(said: Iterable[float], risks: RiskWords) -> str:
    """Why the first of these risks that is said in more digits than others is, a sentence; "" where none is.

    >>> words = RiskWords.of([0.67936], [0.6811])
    >>> why_so_many_digits([0.41, 0.6811], words), why_so_many_digits([0.41], words)
    ('In two digits .6811 would look like the threshold, .6794.', '')
    """
    for risk in said:
        text = risk_said(risk, risks)
        if text != risk_text(risk):
            nearest = min(risks.thresholds, key=lambda one: abs(one - risk))
            if abs(risk - nearest) <= SAME:
                return f"{text} is a threshold: in two digits it would not be told from the risks beside it."
            return f"In two digits {text} would look like the threshold, {risk_said(nearest, risks)}."
    return ""
