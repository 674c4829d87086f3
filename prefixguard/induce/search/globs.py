"""Which files hold runs, as a glob."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from prefixguard.trace import glob_pattern

#: A list of more names than this is no pattern.
MOST_NAMES = 4
_SPECIAL = frozenset("*?{},")


def narrow(holding: Iterable[str], others: Iterable[str]) -> str:
    """The glob that takes the files that hold runs and leaves the others, likely to fit files not seen yet; where none
    leaves the others, one that takes them too.

    >>> narrow(["a/trajs/x.traj", "b/trajs/y.traj"], ["a/results/results.json"])
    '**/*.traj'
    >>> narrow(["r1/result.json", "r2/result.json"], [])
    '**/result.json'
    """
    mine, rest = sorted(set(holding)), sorted(set(others))
    names = {path.rpartition("/")[2] for path in mine}
    parents = {path.rpartition("/")[0].rpartition("/")[2] for path in mine}
    suffix = _suffix(names)
    one_parent = [f"**/{one}/*{suffix}" for one in parents if one and len(parents) == 1 and not _SPECIAL & set(one)]
    by_name = _by_name(names)
    again = len(mine) > len(names)  # names that come again are of runs not seen yet, too; others are of one run
    candidates = [
        *(by_name if again and len(names) == 1 else ()),
        f"**/*{suffix}",
        *one_parent,
        *(by_name if again else ()),
        *_by_stem(names, suffix),
        *by_name,
    ]
    for pattern in candidates:
        matches = glob_pattern([pattern])
        if all(map(matches, mine)) and not any(map(matches, rest)):
            return str(pattern)
    return f"**/*{suffix}"


def _by_name(names: set[str]) -> list[str]:
    if len(names) > MOST_NAMES or any(_SPECIAL & set(name) for name in names):
        return []
    return ["**/" + (min(names) if len(names) == 1 else "{" + ",".join(sorted(names)) + "}")]


def _by_stem(names: set[str], suffix: str) -> list[str]:
    """By what all names begin with: no digits at its end, they are of these runs."""
    stems = [name.partition(".")[0] for name in sorted(names)]
    same = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*stems, strict=False))
    prefix = "".join(letters[0] for letters in same).rstrip("0123456789")
    return [f"**/{prefix}*{suffix}"] if prefix and not _SPECIAL & set(prefix) else []


def _suffix(names: set[str]) -> str:
    """The longest run of suffixes that all names share."""
    ends = [name.split(".")[1:] for name in names]
    common: list[str] = []
    for parts in zip(*(reversed(end) for end in ends), strict=False):
        if len(set(parts)) > 1 or re.search(r"\d", parts[0]) or _SPECIAL & set(parts[0]):
            break
        common.append(parts[0])
    return "".join(f".{part}" for part in reversed(common))
