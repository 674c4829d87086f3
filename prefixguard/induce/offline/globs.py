"""Which files hold runs, as a glob."""

from __future__ import annotations

import re
from collections.abc import Iterable

from prefixguard.trace import glob_pattern


def narrow(holding: Iterable[str], others: Iterable[str]) -> str | None:
    """The glob that takes the files that hold runs and leaves the others; None where the format's default does.

    >>> narrow(["a/trajs/x.traj", "b/trajs/y.traj"], ["a/results/results.json"])
    '**/*.traj'
    >>> narrow(["r1/result.json", "r2/result.json"], [])
    '**/result.json'
    """
    mine, rest = sorted(set(holding)), sorted(set(others))
    names = {path.rpartition("/")[2] for path in mine}
    candidates = []
    if len(names) == 1 and len(mine) > 1:
        candidates.append(f"**/{next(iter(names))}")
    suffix = _suffix(names)
    parents = {path.rpartition("/")[0].rpartition("/")[2] for path in mine}
    candidates.append(f"**/*{suffix}")
    if len(parents) == 1 and next(iter(parents)):
        candidates.append(f"**/{next(iter(parents))}/*{suffix}")
    if len(names) <= 4:
        candidates.append("**/" + (next(iter(names)) if len(names) == 1 else "{" + ",".join(sorted(names)) + "}"))
    candidates += _by_stem(names, suffix)
    for pattern in candidates:
        matches = glob_pattern([pattern])
        if all(map(matches, mine)) and not any(map(matches, rest)):
            return pattern
    return candidates[0]


def _by_stem(names: set[str], suffix: str) -> list[str]:
    prefix = (
        names
        and min(names)[
            : next((i for i, pair in enumerate(zip(min(names), max(names), strict=False)) if pair[0] != pair[1]), 0)
        ]
    )
    return [f"**/{prefix}*{suffix}"] if prefix and not any(c in prefix for c in "*?{[") else []


def _suffix(names: set[str]) -> str:
    """The longest run of suffixes that all names share."""
    ends = [name.split(".")[1:] for name in names]
    common: list[str] = []
    for parts in zip(*(reversed(end) for end in ends), strict=False):
        if len(set(parts)) > 1 or re.search(r"\d", parts[0]):
            break
        common.append(parts[0])
    return "".join(f".{part}" for part in reversed(common))
