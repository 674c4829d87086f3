"""The time that work takes, whatever else the machine does."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_seconds(*works: Callable[[], object], times: int = 3) -> list[float]:
    """Processor time of this process in seconds, the least of so many turns, for each work; they take turns."""
    found = [float("inf")] * len(works)
    for _ in range(times):
        for place, work in enumerate(works):
            began = time.process_time()
            work()
            found[place] = min(found[place], time.process_time() - began)
    return found
