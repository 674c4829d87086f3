"""Seeded choices whose bytes do not depend on the Python release.

Only `Random.random()` promises the same stream in every release, so every choice here is made from it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Rng:
    """A stream of choices, named by what it is for: the same name gives the same stream in any process.

    >>> Rng("demo/1").digits(4) == Rng("demo/1").digits(4)
    True
    """

    __slots__ = ("_random",)

    def __init__(self, name: str) -> None:
        self._random = Random(name).random  # seeding by str goes through SHA-512, not through hash()

    def unit(self) -> float:
        """A number in [0, 1)."""
        return self._random()

    def chance(self, probability: float) -> bool:
        return self._random() < probability

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        return int(self._random() * n)

    def between(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of `items`, in proportion to `weights` (>= 0, not all zero)."""
        mark = self._random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            mark -= weight
            if mark < 0:
                return item
        return items[-1]

    def some(self, items: Sequence[T], n: int) -> list[T]:
        """`n` different ones of `items` (all of them if there are fewer), in random order."""
        left = list(items)
        return [left.pop(int(self._random() * len(left))) for _ in range(min(n, len(left)))]

    def digits(self, n: int) -> str:
        """`n` decimal digits, the first not zero."""
        return str(1 + self.below(9)) + "".join(str(self.below(10)) for _ in range(n - 1))
