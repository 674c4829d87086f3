"""The alarm threshold of each run, where a monitor has thresholds by the value of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import GroupThresholds, Thresholds
from prefixguard.bundle import Bundle

Float = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AlarmGroups:
    """Thresholds by group, and which value of that group each run has.

    They hold at the budget of the monitor's own policy; at all other budgets there is the common threshold alone.
    values: one a run, None where the run has no such group.
    """

    thresholds: GroupThresholds
    values: tuple[str | None, ...]

    @classmethod
    def of(cls, bundle: Bundle, groups: Sequence[Mapping[str, str]]) -> AlarmGroups | None:
        """Of these runs, `groups` being those of each; None where the monitor has no thresholds by group."""
        found = bundle.calibration.groups
        return None if found is None else cls(found, tuple(group.get(found.by) for group in groups))

    def has_own(self, value: str | None) -> bool:
        """Whether runs of this value have a threshold of their own."""
        own = None if value is None else self.thresholds.of.get(value)
        return own is not None and own.alarm is not None

    def marks(self, common: Thresholds) -> list[float | None]:
        """The alarm threshold in force for each run, as a live run of its value gets it; None where it has none."""
        return [self.thresholds.pick(value, common).alarm for value in self.values]

    def parts(self) -> list[tuple[str | None, npt.NDArray[np.int64]]]:
        """Values with a threshold of their own and the positions of their runs, in the order of values; at the end
        None and the runs that go by the common threshold. What no run has is left out."""
        kept = [value if self.has_own(value) else None for value in self.values]
        order = [*sorted(value for value in set(kept) if value is not None), None]
        counts = Counter(kept)
        return [
            (value, np.array([i for i, one in enumerate(kept) if one == value], dtype=np.int64))
            for value in order
            if counts[value]
        ]

    def as_json(self) -> dict[str, Any]:
        """The thresholds as plain values."""
        return thresholds_json(self.thresholds)


def thresholds_json(groups: GroupThresholds) -> dict[str, Any]:
    """Thresholds by group as plain values; alarm None where the common one holds, `reason` says why.

    >>> found = GroupThresholds("tier", {"gold": Thresholds(0.8, 0.3, 30, 0, 22, None)})
    >>> thresholds_json(found)["of"]["gold"]
    {'alarm': 0.8, 'watch': 0.3, 'runs': 30, 'needed': 22, 'reason': None}
    """
    return {
        "by": groups.by,
        "of": {
            value: {
                "alarm": one.alarm,
                "watch": one.watch,
                "runs": one.n_runs,
                "needed": one.needed,
                "reason": one.reason,
            }
            for value, one in groups.of.items()
        },
    }


def crossings(scores: Sequence[Float], marks: Sequence[float | None]) -> list[Float]:
    """1 where a score lies above its own run's mark, else 0; NaN where it was not judged; (T,) a run.

    Above a mark of 0.5 these alarm exactly where the scores alarm above their own marks.
    """
    return [
        np.where(np.isnan(score), np.nan, np.zeros(len(score)) if mark is None else (score > mark).astype(np.float64))
        for score, mark in zip(scores, marks, strict=True)
    ]
