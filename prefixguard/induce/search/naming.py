"""What names say of runs: whether what a container takes for a run has an id, a task or an outcome of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from prefixguard.induce.search.evidence import Evidence
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import Adapter

_WANTED = (Meaning.RUN_ID, Meaning.TASK_ID, Meaning.OUTCOME, Meaning.TASK_TEXT)


def named_runs(adapter: Adapter, evidence: Evidence) -> float:
    """How much the names of the runs' own fields, or of what groups them, speak for runs, in [0, 1]."""
    container = json.loads(adapter.to_bytes())["container"]
    group = container.get("group_by") if isinstance(container, dict) else None
    if group is not None:
        group = group.get("first", [""])[0] if isinstance(group, dict) else group
        return affinity(group, Meaning.RUN_ID) if group else 0.4
    runs = [run.found.run for run in evidence.runs(adapter)]
    keys = Counter(name for run in runs for name in _own_names(run, 0))
    often = [name for name, n in keys.items() if n >= 0.5 * len(runs)]
    return max((affinity(name, meaning) for name in often for meaning in _WANTED), default=0.0)


def _own_names(value: Any, depth: int) -> Iterator[str]:
    for key, item in islice(value.items(), 60) if isinstance(value, dict) else ():
        if isinstance(item, dict):
            if depth < 2 and not str(key).isdecimal():
                yield from _own_names(item, depth + 1)
        elif not isinstance(item, list):
            yield str(key)
