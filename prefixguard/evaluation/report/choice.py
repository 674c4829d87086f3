"""Which runs to show: the middle ones of their kind, so that nobody can pick the pretty ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert, run_maximum


class Kind(StrEnum):
    """What became of a run. Early: more than the horizon's steps were left at the first alert."""

    EARLY = "caught early"
    LATE = "caught late"
    MISSED = "missed"
    FALSE_ALARM = "false alarm"
    PASSED = "let pass"


@dataclass(frozen=True, slots=True)
class Choice:
    """A run that was chosen. run: its position. alert: step of its first alert, from 1; None without one."""

    kind: Kind
    run: int
    alert: int | None


def kind_of(
    risks: npt.ArrayLike, failed: bool, threshold: float | None, policy: AlarmPolicy, horizon: int
) -> tuple[Kind, int | None]:
    """Kind of a run and step of its first alert. risks: outcome risks, (T,). threshold None: nothing alarms."""
    alert = first_alert(risks, threshold, policy)
    if alert is None:
        return (Kind.MISSED if failed else Kind.PASSED), None
    if not failed:
        return Kind.FALSE_ALARM, alert
    return (Kind.EARLY if len(np.asarray(risks)) - alert > horizon else Kind.LATE), alert


def choose_examples(
    outcome: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    run_ids: Sequence[str],
    threshold: float | Sequence[float | None] | None,
    policy: AlarmPolicy,
    *,
    horizon: int,
    per_kind: int = 1,
) -> tuple[Choice, ...]:
    """Runs to show, in the order of `Kind`; a kind that no run is of is left out.

    outcome: the monitor's outcome risks, one (T,) a run. threshold: of the alarm, None where it was refused; or one
    a run.
    Within a kind runs are put in order by the lead of the alert, or without one by the highest risk, then by id; of n
    runs the middle one is taken, or for `per_kind` k those at the shares 1/(k+1) ... k/(k+1). Same runs, same choice.

    >>> [c.kind.value for c in choose_examples([[.9, .1, .2, .1, .1], [.1]], [True, False], "ab", .5, AlarmPolicy(),
    ...     horizon=3)]
    ['caught early', 'let pass']
    """
    found: dict[Kind, list[tuple[float, str, int, int | None]]] = {kind: [] for kind in Kind}
    marks = threshold if isinstance(threshold, Sequence) else [threshold] * len(outcome)
    for run, (risks, fail, mark) in enumerate(zip(outcome, failed, marks, strict=True)):
        values = np.asarray(risks, dtype=np.float64)
        kind, alert = kind_of(values, fail, mark, policy, horizon)
        place = run_maximum(values, policy) if alert is None else float(len(values) - alert)
        found[kind].append((place, run_ids[run], run, alert))
    chosen = []
    for kind, runs in found.items():
        runs.sort(key=lambda entry: entry[:3])
        places = {(len(runs) * (i + 1)) // (per_kind + 1) for i in range(per_kind)} if runs else set()
        for place in sorted(places):
            _, _, run, alert = runs[min(place, len(runs) - 1)]
            chosen.append(Choice(kind, run, alert))
    return tuple(chosen)
