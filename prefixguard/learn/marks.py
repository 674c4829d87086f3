"""What WATCH and ALARM go by: marks on the outcome risk, from runs that nothing was learned on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import (
    AlarmPolicy,
    Thresholds,
    alarm_table,
    alarm_threshold,
    draw_one_per_task,
    run_maximum,
    watch_mark,
)
from prefixguard.learn.corpus import Corpus


def draw_alarm_runs(corpus: Corpus, seed: int, side: NDArray[np.int64]) -> NDArray[np.int64]:
    """The runs of the alarm side that set thresholds: one successful run a task."""
    succeeded = side[~corpus.failed[side]]
    drawn = draw_one_per_task(
        [corpus.task_ids[r] for r in succeeded.tolist()],
        [corpus.run_ids[r] for r in succeeded.tolist()],
        seed=seed,
    )
    return succeeded[drawn]


def set_marks(
    calibration: Sequence[NDArray[np.float64]], alarm: Sequence[NDArray[np.float64]], policy: AlarmPolicy
) -> tuple[Thresholds, dict[float, Thresholds]]:
    """Thresholds of the policy, and the table of other budgets.

    calibration: outcome risks of the runs of the calibration side, which set the watch mark. alarm: of the runs that
    set the alarm, see `draw_alarm_runs`. Where the budget cannot be kept, the thresholds name the reason.
    """
    mark = watch_mark([float(risk) for risks in calibration for risk in risks])
    maxima = [run_maximum([float(risk) for risk in risks], policy) for risks in alarm]
    threshold = alarm_threshold(maxima, policy).alarm
    watch = mark if threshold is None else min(mark, threshold)  # what sounds an alarm is worth watching
    return alarm_threshold(maxima, policy, watch=watch), alarm_table(maxima, policy, watch=watch)
