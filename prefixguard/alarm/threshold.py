"""From scored calibration runs to thresholds: for all runs, for the values of a group (a customer's tier, the tool an
agent works with), and for several budgets, as a bundle's manifest carries them (key `alarm_table`).

The bound behind a threshold. n successful runs are scored; M_i is the largest threshold at which run i would alarm. Let
theta be the (j+1)-th largest M. If the false-alarm rate of theta on new runs were above the budget, at most j of n
independent runs would exceed it with probability at most BinomCDF(j; n, budget). So with the largest j for which that
is at most delta, the budget holds with confidence 1 - delta, for every n and every distribution of risks. It is exact
in double precision, without scipy, because monitors that run next to an agent import this room.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm.policy import AlarmPolicy
from prefixguard.errors import BundleError, ConfigError, DataError


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """P(X <= successes) for X binomial. In [0, 1]; 0 where `successes` is negative.

    Terms are summed smallest first from their logarithms, so that no factorial overflows.

    >>> round(binomial_cdf(0, 22, 0.1), 4), binomial_cdf(5, 5, 0.3)
    (0.0985, 1.0)
    """
    if trials < 0 or not 0.0 < probability < 1.0:
        raise ConfigError(f"a binomial of {trials} trials at probability {probability:g} does not exist.")
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    log_p, log_q = math.log(probability), math.log1p(-probability)
    log_n = math.lgamma(trials + 1)
    terms = (
        math.exp(log_n - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_p + (trials - k) * log_q)
        for k in range(successes + 1)
    )
    return min(1.0, math.fsum(terms))


def allowed_exceedances(n_runs: int, budget: float, delta: float) -> int | None:
    """The largest j with BinomCDF(j; n_runs, budget) <= delta; None where even j = 0 is too many.

    >>> allowed_exceedances(100, budget=0.1, delta=0.1), allowed_exceedances(21, budget=0.1, delta=0.1)
    (5, None)
    """
    _check_shares(budget, delta)
    if n_runs < 1 or binomial_cdf(0, n_runs, budget) > delta:
        return None
    # The CDF grows with j and passes 1/2 at n * budget: a bisection needs a dozen evaluations.
    low, high = 0, n_runs
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_cdf(middle, n_runs, budget) <= delta:
            low = middle
        else:
            high = middle
    return low


def runs_needed(budget: float, delta: float) -> int:
    """The fewest calibration runs that support a budget: the smallest n with (1 - budget)^n <= delta.

    >>> [runs_needed(budget, 0.05) for budget in (0.05, 0.10, 0.01)]
    [59, 29, 299]
    >>> [runs_needed(budget, 0.10) for budget in (0.05, 0.10, 0.01)]
    [45, 22, 230]
    """
    _check_shares(budget, delta)
    n = max(1, math.ceil(math.log(delta) / math.log1p(-budget)))
    # The quotient can be off by a rounding; the test that decides is the one that `allowed_exceedances` makes.
    while n > 1 and binomial_cdf(0, n - 1, budget) <= delta:
        n -= 1
    while binomial_cdf(0, n, budget) > delta:
        n += 1
    return n


def smallest_budget(n_runs: int, delta: float) -> float:
    """The smallest budget that `n_runs` support: 1 - delta^(1/n); 1 where there is no run.

    >>> round(smallest_budget(22, 0.1), 3)
    0.099
    """
    _check_shares(0.5, delta)
    return -math.expm1(math.log(delta) / n_runs) if n_runs > 0 else 1.0


def _check_shares(budget: float, delta: float) -> None:
    if not 0.0 < budget < 1.0 or not 0.0 < delta < 1.0:
        raise ConfigError(f"budget {budget:g} and delta {delta:g} must both lie between 0 and 1.")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where a risk becomes WATCH and where it becomes ALARM; both are passed strictly.

    alarm: threshold of the alarm, in [0, 1]; None: the budget was refused and nothing ever alarms.
    watch: the watch threshold, in [0, 1]; 1.0 is never passed.
    n_runs: successful calibration runs it rests on, one for each task.
    allowed: how many of them may exceed `alarm` (j); 0 where refused.
    needed: the fewest runs that support the budget.
    reason: why the budget was refused and what would mend it; None where it was not.
    """

    alarm: float | None
    watch: float
    n_runs: int
    allowed: int
    needed: int
    reason: str | None

    @property
    def watched_from(self) -> float:
        """The risk above which a step is worth watching: the watch threshold, or the alarm where that is lower.

        >>> Thresholds(0.2, 0.3, 30, 0, 22, None).watched_from
        0.2
        """
        return self.watch if self.alarm is None else min(self.watch, self.alarm)


def alarm_threshold(
    maxima: npt.ArrayLike, policy: AlarmPolicy, *, watch: float = 1.0, reachable: int = 0
) -> Thresholds:
    """The threshold that keeps false alarms of new successful runs within the policy's budget.

    maxima: float (n,), `run_maximum` of successful runs used for nothing else, one run a task (`draw_one_per_task`);
        -inf for a run too short to alarm.
    watch: the watch threshold to carry along (`watch_threshold`).
    reachable: calibration runs that there could be, were the budget one that they support; named where it is refused.
    Returns the (j+1)-th largest maximum as threshold, j = `allowed_exceedances`; ties only make it safer. Where n is
    too small for the budget: no threshold, and a reason that names the number needed.
    Guarantee: with probability at least `policy.confidence` over the calibration runs, at most a share
    `policy.budget` of new successful runs alarms, given that they come from the same source, tasks weighted alike.
    Raises DataError if a maximum is NaN: a step that was not judged has no risk.

    >>> alarm_threshold([i / 30 for i in range(30)], AlarmPolicy()).alarm
    0.9666666666666667
    >>> alarm_threshold([0.5] * 10, AlarmPolicy()).reason
    '10 successful calibration runs (one a task) cannot support a false-alarm budget of 10 % at 90 % confidence: that \
needs at least 22. Give 12 more tasks with a successful run, or accept a budget of 20.6 % or more.'
    """
    values = np.asarray(maxima, dtype=np.float64)
    if values.ndim != 1:
        raise DataError(f"alarm maxima have shape {values.shape}: give one number a run.")
    if np.isnan(values).any():
        raise DataError("an alarm maximum is NaN: leave steps without a risk out before taking the maximum.")
    n = len(values)
    needed = runs_needed(policy.budget, policy.delta)
    allowed = allowed_exceedances(n, policy.budget, policy.delta)
    if allowed is None:
        return Thresholds(None, watch, n, 0, needed, _refusal(n, max(n, reachable), needed, policy))
    theta = float(np.sort(values)[n - 1 - allowed])
    if theta == -math.inf:  # of a run too short to alarm; a higher threshold is safer. Scores may be below 0.
        theta = float(values[np.isfinite(values)].min(initial=0.0))
    return Thresholds(theta, watch, n, allowed, needed, None)


def watch_threshold(step_risks: npt.ArrayLike, share: float = 0.10) -> float:
    """The watch threshold: at most a stated share of steps pass it, strictly; it is as low as ties allow.

    step_risks: float (n,), risks of calibration steps; NaN (not judged) is left out. No step at all: 1.0.
    share: in [0, 1].

    >>> watch_threshold([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0], share=0.2)
    0.8
    """
    if not 0.0 <= share <= 1.0:
        raise ConfigError(f"watch share is {share:g}: it is a share of steps, so use a number from 0 to 1.")
    risks = np.asarray(step_risks, dtype=np.float64).ravel()
    risks = np.sort(risks[~np.isnan(risks)])
    n = len(risks)
    # Rounded, so that .07 * 100 is 7 exactly.
    passing = math.floor(round(share * n, 9))
    if n == 0:
        return 1.0
    return float(risks[n - 1 - passing]) if passing < n else 0.0


def draw_one_per_task(tasks: Sequence[str], run_ids: Sequence[str], *, seed: int) -> npt.NDArray[np.int64]:
    """One run of each task, drawn by seed. Runs of one task are not independent; the bound needs runs that are.

    tasks, run_ids: one entry a run, successful runs only.
    Returns positions into them, int64, ascending, one for each task. The draw depends on seed, task and run id, never
    on the order in which runs are read.

    >>> draw_one_per_task(["a", "b", "a", "a"], ["r0", "r1", "r2", "r3"], seed=13)
    array([1, 3])
    """
    if len(tasks) != len(run_ids):
        raise DataError(f"{len(tasks)} tasks for {len(run_ids)} runs: give one task a run.")
    drawn: dict[str, tuple[bytes, int]] = {}
    for position, (task, run_id) in enumerate(zip(tasks, run_ids, strict=True)):
        text = f"{seed}\x1f{task}\x1f{run_id}".encode("utf-8", "surrogatepass")
        ticket = (hashlib.sha256(text).digest(), position)
        drawn[task] = min(drawn.get(task, ticket), ticket)
    return np.array(sorted(position for _, position in drawn.values()), dtype=np.int64)


def _refusal(n: int, reachable: int, needed: int, policy: AlarmPolicy) -> str:
    budget = f"{100 * policy.budget:g} %"
    confidence = f"{100 * policy.confidence:g} %"
    # Rounded up, so that the budget named is one that will be granted.
    possible = math.ceil(1000 * smallest_budget(reachable, policy.delta)) / 10
    runs = "1 successful calibration run" if reachable == 1 else f"{reachable} successful calibration runs"
    a_task = "one a task" if reachable == n else "one a task, and no more can be set aside"
    more = needed - reachable
    tasks = "1 more task" if more == 1 else f"{more} more tasks"
    instead = f", or accept a budget of {possible:g} % or more" if 0 < possible < 100 else ""
    return (
        f"{runs} ({a_task}) cannot support a false-alarm budget of {budget} at {confidence} confidence: that needs "
        f"at least {needed}. Give {tasks} with a successful run{instead}."
    )


@dataclass(frozen=True, slots=True)
class GroupThresholds:
    """Thresholds by the value of one group.

    by: name of the group, such as "tier". of: value of the group -> its thresholds. Each row with an alarm keeps the
    budget over runs of its own value, by the same bound; that all rows keep it at once is not promised. A row without
    one had too few calibration runs, says how many are needed, and the common thresholds hold instead: those keep
    the budget over runs of all values together, not within a single value.
    """

    by: str
    of: Mapping[str, Thresholds]

    def pick(self, value: str | None, common: Thresholds) -> Thresholds:
        """What holds for a run of this value: its own thresholds, or the common ones.

        value: None where the run's is not known.

        >>> own, few = Thresholds(0.8, 0.3, 30, 0, 22, None), Thresholds(None, 0.3, 5, 0, 22, "too few")
        >>> groups = GroupThresholds("tier", {"gold": own, "new": few})
        >>> common = Thresholds(0.7, 0.3, 40, 1, 22, None)
        >>> [groups.pick(value, common).alarm for value in ("gold", "new", "silver", None)]
        [0.8, 0.7, 0.7, 0.7]
        """
        own = None if value is None else self.of.get(value)
        return common if own is None or own.alarm is None else own


def group_thresholds(
    by: str, maxima: Mapping[str, npt.ArrayLike], policy: AlarmPolicy, *, watch: float = 1.0
) -> GroupThresholds:
    """`alarm_threshold` for every value of a group, in the order of its values.

    maxima: value -> `run_maximum` of its successful calibration runs, one run for each task.
    """
    rows = {value: watched(alarm_threshold(maxima[value], policy), watch) for value in sorted(maxima)}
    return GroupThresholds(by, MappingProxyType(rows))


def watched(thresholds: Thresholds, watch: float) -> Thresholds:
    """The same thresholds with a watch threshold, lowered to the alarm: what sounds an alarm is worth watching.

    >>> watched(Thresholds(0.2, 1.0, 30, 0, 22, None), 0.3).watch
    0.2
    """
    return replace(thresholds, watch=watch if thresholds.alarm is None else min(watch, thresholds.alarm))


#: The budgets that an alarm table covers.
BUDGETS = (0.01, 0.05, 0.10)


def alarm_table(
    maxima: npt.ArrayLike, policy: AlarmPolicy, *, budgets: Sequence[float] = BUDGETS, watch: float = 1.0
) -> dict[float, Thresholds]:
    """`alarm_threshold` for several budgets, all else as in `policy`. Budget -> thresholds, in the order given.

    Each row's guarantee holds alone; that all rows hold at once is not promised.
    """
    return {budget: alarm_threshold(maxima, replace(policy, budget=budget), watch=watch) for budget in budgets}


def table_to_json(table: Mapping[float, Thresholds]) -> list[dict[str, Any]]:
    """Plain JSON: one object a budget, `budget` and the fields of `Thresholds`.

    >>> table_to_json({0.1: Thresholds(0.7, 0.4, 30, 0, 22, None)})[0]["budget"]
    0.1
    """
    return [{"budget": budget, **asdict(thresholds)} for budget, thresholds in table.items()]


def table_from_json(rows: Iterable[Mapping[str, Any]], where: str = "manifest.json") -> dict[float, Thresholds]:
    """What `table_to_json` wrote. Raises BundleError, naming `where`, for anything else."""
    names = {field.name for field in fields(Thresholds)}
    table = {}
    try:
        for row in rows:
            table[float(row["budget"])] = Thresholds(**{name: row[name] for name in names})
    except (TypeError, KeyError, ValueError) as exc:
        raise BundleError(
            f"{where}: its alarm table cannot be read ({type(exc).__name__}: {exc}). Calibrate the monitor again."
        ) from exc
    return table
