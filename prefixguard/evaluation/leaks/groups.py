"""Groups of runs (file, model, agent) that tell how a run ended: a trap, though records do not show them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.evaluation.leaks.material import FEWEST, Judged
from prefixguard.runtime import plain

#: Share of a value's runs that end alike, for the value to tell; share of all runs that such values must hold.
_ALIKE = 0.98
_HELD = 0.9


def find_groups(judged: Judged) -> Iterator[LeakFinding]:
    """A warning of kind shortcut for each group whose values hold runs of one outcome only, some of either."""
    for key in sorted({key for run in judged.runs for key in run.groups}):
        values = np.array([run.groups.get(key, "") for run in judged.runs], dtype=np.str_)
        told: dict[str, bool] = {}
        held = 0
        for value in np.unique(values).tolist():
            rows = values == value
            share = float(judged.failed[rows].mean())
            if len(np.unique(judged.tasks[rows])) >= FEWEST and max(share, 1 - share) >= _ALIKE:
                told[value] = share > 0.5
                held += int(rows.sum())
        if len(set(told.values())) < 2 or held < _HELD * len(judged):
            continue
        lost = next(value for value, failed in told.items() if failed)
        won = next(value for value, failed in told.items() if not failed)
        text = (
            f"The {key} of a run tells how it ended: runs of {plain(lost, 60)!r} failed, runs of {plain(won, 60)!r} "
            "succeeded. Records do not show it, and must not: see that nothing of it is in their text, and whether "
            "runs were sorted by outcome into places that differ in other ways too."
        )
        figures = {"values": float(len(told)), "runs": float(held)}
        yield LeakFinding("shortcut", f"group {key}", plain(lost, 60), "warning", figures, text)
