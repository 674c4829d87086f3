"""What the first and the last step took, against outcomes: a latency that knows the end before anything was done."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL, fisher, in_words, rank_area, ranked_by_chance
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.evaluation.leaks.judged import FEWEST, Judged
from prefixguard.stepview import SIGNALS

#: How far from one half the area must be; difference of the shares that say it at all.
_TELLS = 0.20
_PLACES: tuple[tuple[str, int, Severity], ...] = (("first", 0, "error"), ("last", -1, "warning"))


def find_signals(judged: Judged) -> Iterator[LeakFinding]:
    """Errors where a signal of the first step tells the outcome, or whether it is there; warnings of the last step."""
    one, failed = judged.single, judged.failed
    tried = 2 * len(SIGNALS) * len(_PLACES)
    for where, place, severity in _PLACES:
        for i, name in enumerate(SIGNALS):
            values = np.array([_value(run.records[place].signals, i) for run in judged.runs], dtype=np.float64)
            have = ~np.isnan(values)
            lost, won = one & failed, one & ~failed
            there, elsewhere = have[lost].mean(), have[won].mean()
            p = min(1.0, tried * fisher(int(have[lost].sum()), int(lost.sum()), int(have[won].sum()), int(won.sum())))
            if abs(there - elsewhere) >= _TELLS and p < LEVEL:
                text = (
                    f"The {where} step of {there:.0%} of the failed runs says {name}, of {elsewhere:.0%} of the "
                    f"successful ones ({in_words(p)}): whether it is there tells the outcome."
                )
                figures = {"failed": float(there), "successful": float(elsewhere), "p": p, "runs": float(len(judged))}
                yield LeakFinding("number", f"signals.{name}", f"{where} step", severity, figures, text)
            lost, won = lost & have, won & have
            if min(int(lost.sum()), int(won.sum())) < FEWEST:
                continue
            area = rank_area(failed[have], values[have])
            p = min(1.0, tried * ranked_by_chance(failed[one & have], values[one & have]))
            if abs(area - 0.5) < _TELLS or p >= LEVEL:
                continue
            why = (
                "Nothing has happened yet that could: the runs may have been recorded on other machines, replayed "
                "from a cache, or given other tasks."
                if place == 0
                else "Look whether it is the work that takes so much, or the way the run ended."
            )
            side, sure = ("failure" if area > 0.5 else "success"), max(area, 1 - area)
            text = (
                f"{name} of the {where} step alone tells the outcome: more means {side}, area {sure:.2f} "
                f"({in_words(p)}). {why} Do not train with --signals"
            )
            figures = {"area": area, "p": p, "runs": float(have.sum())}
            yield LeakFinding("number", f"signals.{name}", f"{where} step", severity, figures, text)


def _value(signals: tuple[float | None, ...] | None, place: int) -> float:
    value = None if signals is None else signals[place]
    return math.nan if value is None else value
