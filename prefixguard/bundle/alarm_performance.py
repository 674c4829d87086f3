"""How the alarms of an automaton did on runs that nothing was learned from, as automaton.json and CARD.md say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prefixguard.bundle.strict_json import instance, listed, numbers, optional, share, text, whole

_MOST_ROWS = 64


@dataclass(frozen=True, slots=True)
class AlarmCount:
    """First alarms of one score on the test runs, at a threshold that keeps the budget.

    by: what alarms: automaton, teacher, "step number alone", or a group, such as "agent alone". threshold: that must be
    exceeded; None where there is none, and then nothing alarms, or where a rule holds on training runs and on no test
    run, so that it is not measured. caught: failed runs that alarm. early: those of them with more than the horizon's
    steps left. lead: median of the steps left; None where none is caught. false_alarms:
    successful runs that alarm. intervals: 95 %, over tasks, of these as shares; None where a share does not exist.
    in_time: the caught ones with a step left at least; None where it was not counted.
    """

    by: str
    threshold: float | None
    caught: int
    early: int
    lead: float | None
    false_alarms: int
    caught_interval: tuple[float, float] | None
    early_interval: tuple[float, float] | None
    false_alarm_interval: tuple[float, float] | None
    in_time: int | None = None


@dataclass(frozen=True, slots=True)
class AlarmPerformance:
    """What the alarms are worth, on test runs.

    budget: share of successful runs that may alarm, of every row. horizon: steps. failed, successful: test runs.
    rows: the automaton, its teacher, then scores that know little, for comparison. kappa: Cohen's kappa of the alarms
    with the teacher's, over steps, from -1 to 1; None where one of them always or never sounds.
    coverage: share of the cells (a state in a span of the clock) whose failure rate among test runs lies in the cell's
    90 % interval. coverage_expected: what it would be if the intervals are right, for rates of few runs scatter. cells:
    those with enough test runs. said: share of test steps at each level. notes: what to know before reading this.
    """

    budget: float
    horizon: int
    failed: int
    successful: int
    rows: tuple[AlarmCount, ...]
    kappa: float | None
    coverage: float | None
    coverage_expected: float | None
    cells: int
    said: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def kept(self) -> int | None:
        """Of how many of the cells the failure rate lies in the interval; None where there is no cell."""
        return None if self.coverage is None else round(self.coverage * self.cells)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "said": dict(self.said)}


def performance_from_json(document: Any) -> AlarmPerformance:
    """The same from `to_json`, decoded. Raises ValueError for anything that it would not have written."""
    return instance(
        AlarmPerformance,
        document,
        budget=share,
        horizon=_count,
        failed=_count,
        successful=_count,
        rows=_rows,
        kappa=optional(_number),
        coverage=optional(share),
        coverage_expected=optional(share),
        cells=_count,
        said=_said,
        notes=lambda value, what: tuple(text(one, what) for one in listed(value, what)),
    )


def _rows(value: Any, what: str) -> tuple[AlarmCount, ...]:
    if len(listed(value, what)) > _MOST_ROWS:
        raise ValueError(f"{what}: more than {_MOST_ROWS} rows")
    counts = dict.fromkeys(("caught", "early", "false_alarms"), _count)
    ends = dict.fromkeys(("caught_interval", "early_interval", "false_alarm_interval"), optional(_ends))
    known = {"by": text, "threshold": optional(_number), "lead": optional(_number), **counts, **ends}
    known["in_time"] = optional(_count)
    rows = ({"in_time": None, **one} if isinstance(one, dict) else one for one in value)  # earlier files do not say it
    return tuple(instance(AlarmCount, one, **known) for one in rows)


def _said(value: Any, what: str) -> dict[str, float]:
    if not isinstance(value, dict) or len(value) > _MOST_ROWS:
        raise ValueError(f"{what} is not a share of each level")
    return {level: float(share(part, what)) for level, part in value.items()}


def _number(value: Any, what: str) -> float:
    return numbers([value], what)[0]


def _count(value: Any, what: str) -> int:
    if whole(value, what) < 0:
        raise ValueError(f"{what} is {value}, below 0")
    return int(value)


def _ends(value: Any, what: str) -> tuple[float, float]:
    low, high = (share(end, what) for end in listed(value, what, 2))
    return low, high
