"""Short names for the leaves of a symbol tree, no two alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prefixguard.automata.alphabets.tree_words import Scores, Test, say

#: Letters of a name: up to the first number it says two tests unasked, beyond the second it has a number instead.
_SHORT, _LONG = 64, 120


def name_leaves(ways: Sequence[Sequence[Test]], terms: Sequence[str], scores: Scores = ()) -> tuple[str, ...]:
    """A name for each leaf: the tests asked last, and of those before as many as tell it from the others.

    ways: of each leaf the tests that lead to it. terms, scores: as `say` takes them. Names that rounding makes alike,
    or that would grow too long, have the symbol's number in front.
    """
    # Last first: that test tells a leaf from its neighbour.
    said = [[say(test, terms, scores, short=True) for test in reversed(way)] for way in ways]
    told = [_first(tests) for tests in said]
    names = [_join(tests, places) for tests, places in zip(said, told, strict=True)]
    growing = True
    while growing:
        growing = False
        alike: dict[str, list[int]] = {}
        for leaf, name in enumerate(names):
            alike.setdefault(name, []).append(leaf)
        for group in alike.values():
            for leaf in group if len(group) > 1 else ():
                new = _telling(leaf, group, said, told)
                if new is not None:
                    told[leaf].add(new)
                    growing = True
        names = [_join(tests, places) for tests, places in zip(said, told, strict=True)]
    often = Counter(names)
    return tuple(
        name if often[name] == 1 and len(name) <= _LONG else f"{leaf}: {_join(said[leaf], _first(said[leaf]))}"
        for leaf, name in enumerate(names)
    )


def _first(tests: list[str]) -> set[int]:
    """Places of the tests that a name begins with: two where there is room."""
    return {0, 1} if len(", ".join(tests[:2])) <= _SHORT and len(tests) > 1 else {0}


def _telling(leaf: int, group: list[int], said: list[list[str]], told: list[set[int]]) -> int | None:
    """Place of the leaf's next test that not all leaves of the group share."""
    shared = set.intersection(*(set(said[other]) for other in group))
    places = range(len(said[leaf]))
    return next((p for p in places if p not in told[leaf] and said[leaf][p] not in shared), None)


def _join(tests: list[str], places: set[int]) -> str:
    return ", ".join(tests[p] for p in sorted(places) if p < len(tests)) or "any step"
