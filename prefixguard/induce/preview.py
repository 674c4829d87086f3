"""How the first steps parse, beside the raw input: what a person sees before anything is written."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from prefixguard.stepview import Adapter, SideBySide, side_by_side
from prefixguard.trace import Outcome

#: Runs and exchanges that are shown.
RUNS, EXCHANGES = 2, 5
_LOOKED_AT = 50


def first_steps(
    source: str | Path, adapter: Adapter, *, runs: int = RUNS, exchanges: int = EXCHANGES
) -> tuple[SideBySide, ...]:
    """The first run, and the first that ended otherwise, each cut to its first exchanges.

    TraceError where no run can be read.
    """
    shown: list[SideBySide] = []
    outcomes: set[Outcome] = set()
    for one in islice(side_by_side(source, adapter), _LOOKED_AT):
        if one.run.outcome in outcomes:
            continue
        outcomes.add(one.run.outcome)
        shown.append(SideBySide(one.run, one.exchanges[:exchanges]))
        if len(shown) >= runs:
            break
    return tuple(shown)
