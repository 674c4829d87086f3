"""Where the chances of a run come from: one stream, chances named by their decision, or a recorded run that is steered.

With named chances two runs that differ in one decision share all chances that both come to, so what differs between
them is due to that decision.
"""

from __future__ import annotations

from collections import Counter

from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.observer import Point
from prefixguard.simulation.support.transcript import StepCap


class Dice:
    """The chances of a run from one stream, in the order in which they are asked for."""

    def __init__(self, name: str) -> None:
        self._stream = Rng(f"{name}/fate")

    def enter(self, place: int) -> None:
        """The run comes to a point of its plan; places count from 0."""

    def draw(self, decision: str) -> Rng:
        """Chances for a decision."""
        return self._stream

    def choose(self, place: int, point: Point, player: int) -> str | None:
        """The fault that the player makes at a point; None for none."""
        mark = self.draw("fault").unit()
        for fault, chances in point.faults.items():
            mark -= chances[player]
            if mark < 0:
                return fault
        return None


class KeyedDice(Dice):
    """Chances named by a salt, the point that was passed last, the decision, and how often it was met since then."""

    def __init__(self, salt: str) -> None:
        self._salt, self._place, self._met = salt, -1, Counter[str]()

    def enter(self, place: int) -> None:
        self._place, self._met = place, Counter()

    def draw(self, decision: str) -> Rng:
        self._met[decision] += 1
        return Rng(f"{self._salt}/{self._place}/{decision}/{self._met[decision]}")


class SteeredDice(Dice):
    """The chances of another run up to a place, and others from there on.

    kept: the chances of the run that is played again. place: where they change. then: the chances from there on; None:
    `kept` goes on.
    """

    def __init__(self, kept: Dice, place: int, then: Dice | None) -> None:
        self._now, self._place, self._then = kept, place, then

    def enter(self, place: int) -> None:
        if place >= self._place and self._then is not None:
            self._now, self._then = self._then, None
        self._now.enter(place)

    def draw(self, decision: str) -> Rng:
        return self._now.draw(decision)

    def choose(self, place: int, point: Point, player: int) -> str | None:
        return self._now.choose(place, point, player)


class ForcedDice(SteeredDice):
    """As `SteeredDice`, and the agent does at that place what it is told. fault: that it makes there; None: none."""

    def __init__(self, kept: Dice, place: int, then: Dice | None, fault: str | None) -> None:
        super().__init__(kept, place, then)
        self._fault = fault

    def choose(self, place: int, point: Point, player: int) -> str | None:
        drawn = super().choose(place, point, player)  # even where it is not used, so that a stream goes on alike
        return self._fault if place == self._place else drawn


class PausedDice(SteeredDice):
    """The chances of a run that stops when it comes to a place, or would pass it."""

    def enter(self, place: int) -> None:
        if place >= self._place:
            raise StepCap
        super().enter(place)
