"""The true risk: what an ideal observer would say after every step.

It knows the shop, the task and every profile's rates, and sees what a monitor sees. It does not know which profile is
playing, nor where a silent fault was made. So its risk is exact (of runs at risk r, a share r fails) and no monitor
that sees only the trace can do better than to know it.

For profile z let w be the weight of z given what was seen, c the chance that no silent fault was made so far, a the
chance that no point ahead ends badly, and s the chance to come out of the present trouble. Then

    risk = 1 - sum_z(w c a s) / sum_z(w),   and 1 once a fault is beyond repair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prefixguard.simulation.support.faults import FAULTS, NOTICES, Profile
from prefixguard.simulation.support.tasks import Task

Chances = tuple[float, ...]  # one a profile


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the script where a fault can be made.

    faults: fault -> its chance, for every profile; what is left is the chance of none.
    survives: the chance that the run is not lost by what is chosen here, for every profile.
    """

    name: str
    faults: Mapping[str, Chances]
    survives: Chances


def comes_through(profile: Profile) -> float:
    """The chance to get out of a loop of errors: recovering before giving up."""
    return profile.recovers / (profile.recovers + profile.despairs)


def remembers_in_time(profile: Profile, wishes: int) -> float:
    """The chance to confirm the identity after all, before one of the `wishes` still to come."""
    return 1.0 - float((1.0 - profile.remembers) ** wishes)


def plan(task: Task, profiles: Sequence[Profile]) -> tuple[Point, ...]:
    """The points of a task in order: lookup, verify, then begin, locate, confirm and write of every wish."""
    tables = [_points_of(profile, task) for profile in profiles]
    points = []
    for column in zip(*tables, strict=True):
        name, faults = column[0]
        points.append(
            Point(
                name,
                {fault: tuple(row[fault][0] for _, row in column) for fault in faults},
                tuple(1.0 - sum(chance * (1.0 - mended) for chance, mended in row.values()) for _, row in column),
            )
        )
    return tuple(points)


def _points_of(z: Profile, task: Task) -> list[tuple[str, dict[str, tuple[float, float]]]]:
    """Name of each point, and of each fault there its chance and the chance that it is mended."""
    loop = comes_through(z)
    rows = [
        ("lookup", {"mistyped_lookup": (z.lookup, loop)}),
        ("verify", {"unverified": (z.unverified, remembers_in_time(z, len(task.wishes)))}),
    ]
    for number, wish in enumerate(task.wishes):
        begin = {
            "gave_up": (0.0 if wish.kind == "escalate" else z.quits, 0.0),
            "forgotten_wish": (z.forgets if number else 0.0, NOTICES["forgotten_wish"]),
        }
        locate = {
            "made_up_order": (z.made_up, loop),
            "wrong_order": (z.wrong_order, z.mends),
            "repeated_read": (z.rereads, 1.0),
        }
        write = {
            "bad_argument": (z.bad_argument, loop),
            "mistyped_value": (z.mistyped if wish.mistyped else 0.0, NOTICES["mistyped_value"] * z.mends),
            "lost_write": (z.lost_write, NOTICES["lost_write"] * z.mends),
            "wrong_value": (z.silent if wish.silent else 0.0, 0.0),
        }
        rows += [("begin", begin), ("locate", locate), ("confirm", {"unconfirmed": (z.unconfirmed, 1.0)})]
        rows += [("write", write)]
    return rows


class Observer:
    """The ideal observer of one run. Tell it what is seen, in order; ask `risk()` at any time.

    trouble: the chance to come out of the present trouble, for every profile; `certain` where there is none.
    unverified: the chance that an open identity will be confirmed; `certain` once it is. lost: a fault is beyond
    repair.
    """

    def __init__(self, points: Sequence[Point], profiles: Sequence[Profile]) -> None:
        self._weights = [profile.share for profile in profiles]
        self._clear = [1.0] * len(profiles)  # no silent fault so far
        self.certain: Chances = (1.0,) * len(profiles)
        self.trouble = self.unverified = self.certain
        self.lost = False
        self._ahead = [self.certain]
        for point in reversed(points):
            self._ahead.append(tuple(a * s for a, s in zip(self._ahead[-1], point.survives, strict=True)))

    def passed(self, point: Point, fault: str | None) -> None:
        """A point was passed; `fault` is what the trace shows there. A silent fault shows as none."""
        self._ahead.pop()
        if fault is not None and FAULTS[fault]:
            self.saw(point.faults[fault])
            return
        seen = [1.0] * len(self._weights)
        for name, chances in point.faults.items():
            if FAULTS[name]:
                seen = [s - c for s, c in zip(seen, chances, strict=True)]
        for name, chances in point.faults.items():
            if not FAULTS[name]:
                self._clear = [clear * (s - c) / s for clear, s, c in zip(self._clear, seen, chances, strict=True)]
        self.saw(seen)

    def saw(self, likelihood: Sequence[float]) -> None:
        """Something was seen whose chance is `likelihood`, for every profile."""
        self._weights = [w * p for w, p in zip(self._weights, likelihood, strict=True)]

    def risk(self) -> float:
        """Chance that the run fails, given all that was seen; in [0, 1]."""
        if self.lost:
            return 1.0
        parts = zip(self._weights, self._clear, self._ahead[-1], self.trouble, self.unverified, strict=True)
        good = sum(w * c * a * t * u for w, c, a, t, u in parts)
        return min(1.0, max(0.0, 1.0 - good / sum(self._weights)))
