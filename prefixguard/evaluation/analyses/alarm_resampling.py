"""Does the alarm bound hold on real runs? Tasks are split at random many times: one half sets the threshold, the other
half is counted.

How often should it hold? Not in 1 - delta of the splits: a test half of m runs has noise of its own. Let n runs set a
threshold at which j of them may exceed it. Whatever the distribution of the maxima, as long as it has no ties, the true
rate of exceedance is Beta(j + 1, n - j), so of m further runs BetaBinomial(m; j + 1, n - j) exceed it (Wilks 1942), and
the budget is seen to hold in P(at most floor(budget * m)) of the splits. The same follows for the splits of one fixed
set of n + m runs, where the count is negative hypergeometric: the two are one distribution. Ties only raise the share.

Three counts a split:

- drawn: one successful run a task sets the threshold, one successful run a task is counted. Here the share above is
  exact, so it checks the whole chain from the scores to the threshold.
- weighted: the same threshold; of each counted task the share of its successful runs that alarm, tasks weighted alike,
  which is what the bound speaks of. A task's mean is less noisy than one run of it, so on average over sets of tasks
  the share lies between the exact one and the confidence; on one set of tasks it may lie a little to either side.
- shared: the threshold from all successful runs of the half as if they were independent, counted over all runs. Runs of
  one task depend on each other, so this bound does not hold; it is reported to show that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, alarm_threshold, allowed_exceedances, run_maximum, runs_needed
from prefixguard.errors import ConfigError, DataError
from prefixguard.results import Block, Result, TableBlock, Text, fields_of, percent

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@cache
def expected_held(n: int, m: int, budget: float, delta: float) -> float:
    """In what share of splits into n calibration and m test runs the budget is seen to hold; NaN where it is refused.

    The share of test runs that alarm is at most `budget` in this share of the splits, delta being 1 - confidence.

    >>> round(expected_held(80, 80, 0.1, 0.1), 3)
    0.877
    """
    if m < 1:
        raise ConfigError(f"a test half of {m} runs shows nothing: use at least 1.")
    j = allowed_exceedances(n, budget, delta)
    most = math.floor(round(budget * m, 9))  # rounded, so that 10 % of 30 is 3 and not slightly less
    from scipy.stats import betabinom  # here, so that help and audits need no extra

    return math.nan if j is None else float(betabinom.cdf(most, m, j + 1, n - j))


@dataclass(frozen=True, slots=True)
class HeldShare:
    """What came of one way to calibrate and count, over all splits. Shares in [0, 1]; NaN where nothing was counted.

    calibration, tested: successful runs that set the threshold, and runs (or tasks) counted: means over the splits.
    held: share of splits in which the rate of false alarms was at most the budget.
    error: standard error of `held` as an estimate over all splits of these very runs (not over other sets of tasks).
    expected: `expected_held`, mean over the splits.
    false_alarms: rate of false alarms of the test half, mean over the splits.
    alerted, early: share of the test half's failed runs that alarm; that alarm with more than `horizon` steps left.
    """

    calibration: float
    tested: float
    held: float
    error: float
    expected: float
    false_alarms: float
    alerted: float
    early: float


@dataclass(frozen=True, slots=True)
class AlarmResampling(Result):
    """How the bound of one policy fares over random splits of the tasks of one set.

    tasks: tasks with a successful run that may calibrate. needed: calibration runs that the budget needs.
    drawn, weighted, shared: see the module; None where the budget was refused.
    reason: why it was refused; None where it was not.
    """

    budget: float
    confidence: float
    consecutive: int
    horizon: int
    rounds: int
    seed: int
    tasks: int
    needed: int
    drawn: HeldShare | None
    weighted: HeldShare | None
    shared: HeldShare | None
    reason: str | None

    def as_json(self) -> dict[str, Any]:
        """Plain values, shares to six digits, NaN as None."""
        found = fields_of(self)
        for name in ("drawn", "weighted", "shared"):
            if found[name] is not None:
                found[name] = {key: value and round(value, 6) for key, value in found[name].items()}
        return found

    def blocks(self) -> tuple[Block, ...]:
        """A row a way of counting, or the reason of a refusal."""
        title = (
            f"Budget {100 * self.budget:g} % at {100 * self.confidence:g} % confidence, {self.rounds} random halves of "
            f"{self.tasks} tasks"
        )
        if self.drawn is None and self.shared is None:
            return (Text(f"{title}: refused. {self.reason}"),)
        named = (
            ("one run a task, counted alike", self.drawn),
            ("one run a task, tasks weighted alike", self.weighted),
            ("runs that share tasks (breaks)", self.shared),
        )
        head = ["", "calibrated on", "held", "expected", "false alarms", "failed alerted", "early"]
        return (TableBlock.of(title, head, [[name, *_cells(one)] for name, one in named]),)


def _cells(one: HeldShare | None) -> list[str]:
    if one is None:
        return ["refused"]
    shares = (one.held, one.expected, one.false_alarms, one.alerted, one.early)
    return [f"{one.calibration:.0f}", *map(percent, shares)]


def resample_alarms(
    scores: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    tasks: Sequence[str],
    policy: AlarmPolicy,
    *,
    horizon: int = 3,
    rounds: int = 1000,
    seed: int = 13,
    calibrates: Sequence[bool] | None = None,
    tested: Sequence[bool] | None = None,
) -> AlarmResampling:
    """Set the threshold on one random half of the tasks and count alarms on the other half, `rounds` times.

    scores : for each run a float array (T,), NaN where a step was not judged; the monitor saw none of the tasks.
    failed, tasks : the outcome and the task of each run.
    policy : the alarm policy. horizon : 0 or more; an alarm is early with more than so many steps left.
    rounds, seed : how many splits are drawn, and the seed of the draw.
    calibrates, tested : which runs may set a threshold, and which are counted (such as the runs of a new agent); None
        for all. A task is on one side in any case.
    Tasks that can calibrate are halved exactly, so that every split allows as many exceedances.
    Raises DataError where counts differ or no run can calibrate or be counted, ConfigError for fewer than 1 round.
    """
    if not len(scores) == len(failed) == len(tasks):
        raise DataError(f"{len(scores)} runs with {len(failed)} outcomes and {len(tasks)} tasks: give one each.")
    if rounds < 1 or seed < 0:
        raise ConfigError(f"{rounds} rounds by seed {seed}: use at least 1 round and a seed of 0 or more.")
    if horizon < 0:
        raise ConfigError(f"horizon is {horizon}: it counts steps before the end, so use 0 or more.")
    maxima = np.array([run_maximum(score, policy) for score in scores], dtype=np.float64)
    # An alert with more than H steps left is an alert within the first T - H - 1 steps.
    begun = [np.asarray(score)[: max(0, len(np.asarray(score)) - horizon - 1)] for score in scores]
    early = np.array([run_maximum(score, policy) for score in begun])
    names, task = np.unique(np.array([*tasks], dtype=np.str_), return_inverse=True)
    fail, counted = np.asarray(failed, dtype=np.bool_), _mask(tested, len(tasks))
    may, good, bad = _mask(calibrates, len(tasks)) & ~fail, counted & ~fail, counted & fail
    calibrating, passing = _TaskRuns(may, task, len(names)), _TaskRuns(good, task, len(names))
    n_tasks = int((calibrating.count > 0).sum())
    if n_tasks < 2 or not passing.count.any():
        raise DataError(
            f"{n_tasks} tasks have a successful run to calibrate on and {int((passing.count > 0).sum())} one to "
            "count: at least 2 and 1 are needed. Give more runs."
        )

    def price(side: Bool, theta: float) -> tuple[float, float]:
        """Share of this side's failed runs that alarm, and that alarm early; NaN where there is none."""
        of = bad & side[task]
        return (float((maxima[of] > theta).mean()), float((early[of] > theta).mean())) if of.any() else _NOTHING

    rng = np.random.default_rng(seed)
    drawn: list[_Split] = []
    weighted: list[_Split] = []
    shared: list[_Split] = []
    reason = None
    for _ in range(rounds):
        at_calibration = _halve(calibrating.count > 0, rng)
        other = ~at_calibration
        one_each, other_each = calibrating.draw(at_calibration, rng), passing.draw(other, rng)
        found = alarm_threshold(maxima[one_each], policy)
        reason = reason or found.reason
        if found.alarm is not None and len(other_each):
            costs, n, over = price(other, found.alarm), len(one_each), maxima > found.alarm
            drawn.append((n, len(other_each), float(over[other_each].mean()), *costs))
            by_task = passing.rates(other, over)
            weighted.append((n, len(by_task), float(by_task.mean()), *costs))
        every, every_other = np.flatnonzero(may & at_calibration[task]), np.flatnonzero(good & other[task])
        broken = alarm_threshold(maxima[every], policy)
        if broken.alarm is not None and len(every_other):
            rate = float((maxima[every_other] > broken.alarm).mean())
            shared.append((len(every), len(every_other), rate, *price(other, broken.alarm)))
    return AlarmResampling(
        budget=policy.budget,
        confidence=policy.confidence,
        consecutive=policy.consecutive,
        horizon=horizon,
        rounds=rounds,
        seed=seed,
        tasks=n_tasks,
        needed=runs_needed(policy.budget, policy.delta),
        drawn=_held(drawn, policy),
        weighted=_held(weighted, policy),
        shared=_held(shared, policy),
        reason=reason,
    )


#: Of one split: runs that calibrate, runs counted, their rate of false alarms, failed runs that alarm, and early.
_Split = tuple[float, float, float, float, float]
_NOTHING = math.nan, math.nan


class _TaskRuns:
    """The runs of a mask, task by task, so that one of each can be drawn at once. count: runs of each task."""

    def __init__(self, mask: Bool, task: Int, n_tasks: int) -> None:
        self.mask, self.task = mask, task
        chosen = np.flatnonzero(mask)
        self.runs = chosen[np.argsort(task[chosen], kind="stable")]
        self.count: Int = np.bincount(task[chosen], minlength=n_tasks)
        self.start: Int = np.cumsum(self.count) - self.count

    def draw(self, side: Bool, rng: np.random.Generator) -> Int:
        """One run, uniformly, of every task of this side that has one."""
        of = np.flatnonzero(side & (self.count > 0))
        drawn: Int = self.runs[self.start[of] + (rng.random(len(of)) * self.count[of]).astype(np.int64)]
        return drawn

    def rates(self, side: Bool, over: Bool) -> Float:
        """Share of runs that alarm, a number a task of this side that has one. over: which runs alarm."""
        of = side & (self.count > 0)
        rates: Float = np.bincount(self.task, self.mask & over, len(self.count))[of] / self.count[of]
        return rates


def _held(splits: Sequence[_Split], policy: AlarmPolicy) -> HeldShare | None:
    """Means over the splits; None where no split had a threshold."""
    if not splits:
        return None
    table = np.array(splits, dtype=np.float64)
    n, m, rate = table[:, :3].mean(axis=0).tolist()
    held = float((table[:, 2] <= policy.budget + 1e-12).mean())  # rates may be sums of thirds and the like
    expected = float(np.mean([expected_held(int(a), int(b), policy.budget, policy.delta) for a, b, *_ in splits]))
    known = table[~np.isnan(table[:, 3]), 3:]
    alerted, early = known.mean(axis=0).tolist() if len(known) else _NOTHING
    return HeldShare(n, m, held, math.sqrt(held * (1 - held) / len(table)), expected, rate, alerted, early)


def _halve(can: Bool, rng: np.random.Generator) -> Bool:
    """Half of the tasks that can calibrate and half of those that cannot, both rounded down, at random."""
    side = np.zeros(len(can), dtype=np.bool_)
    for group in (np.flatnonzero(can), np.flatnonzero(~can)):
        side[rng.permutation(group)[: len(group) // 2]] = True
    return side


def _mask(chosen: Sequence[bool] | None, n: int) -> Bool:
    mask = np.ones(n, dtype=np.bool_) if chosen is None else np.asarray(chosen, dtype=np.bool_)
    if mask.shape != (n,):
        raise DataError(f"a choice of {mask.size} runs for {n}: say yes or no for each.")
    return mask
