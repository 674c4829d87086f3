"""How much of what a monitor knows is which agent made the run.

Where several agents made the runs and some fail oftener, their names are worth a good figure, and style gives names
away. That is no knowledge of a run that goes wrong. Three figures, all outcome AUROC at matched remaining steps:

- pooled: runs of all agents against each other;
- within: runs of one agent against each other only, which takes away knowing who acts;
- group only: a score that knows the agent's failure share and nothing else. Shares come from other tasks: tasks are
  dealt into folds, and the runs of a fold get shares of the others. Runs are compared within their fold. Shares that
  leave out one task each, compared across tasks, would turn the row upside down: a task that failed lowers the share
  of all others less than its own.

The figure is that of `metrics.at_remaining`; the comparison is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import Prefixes, Resamples, at_remaining, interval, paired_difference
from prefixguard.results import Block, Result, TableBlock, Text, fields_of, finite, number, percent, spread
from prefixguard.runtime import plain

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

#: Folds of tasks behind the row that knows the group only.
FOLDS = 5
#: Resamples behind each interval.
RESAMPLES = 500
#: Groups that are listed, the largest; JSON has all.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class GroupShare:
    """One group. failure_share: of its runs, in [0, 1]. auroc: the figure among its runs, NaN with one class."""

    name: str
    runs: int
    tasks: int
    failure_share: float
    auroc: float


@dataclass(frozen=True, slots=True)
class Shortcuts(Result):
    """What the groups are worth. NaN: the figure does not exist (one class, one task).

    grouped_by: what the groups are, such as agent. groups: largest first.
    pooled, within, group_only: outcome AUROC at matched remaining steps.
    intervals: 95 % over tasks, by name of a figure, and `within_minus_pooled`; no key where there is none.
    """

    grouped_by: str
    groups: tuple[GroupShare, ...]
    pooled: float
    within: float
    group_only: float
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def share_of_group(self) -> float:
        """The part of what the pooled figure has over chance that is gone within groups, in [0, 1].

        1 - (within - .5) / (pooled - .5); NaN where the interval of the pooled figure does not lie above .5.
        """
        low = self.intervals.get("pooled", (0.0, 0.0))[0]
        if math.isnan(self.within) or not (self.pooled > 0.5 and low > 0.5):
            return math.nan
        return min(1.0, max(0.0, 1.0 - (self.within - 0.5) / (self.pooled - 0.5)))

    @property
    def text(self) -> str:
        """What the numbers say, in one to three sentences."""
        name = self.grouped_by
        if len(self.groups) < 2:
            return f"All runs are of one {name}: whether a monitor knows runs or {name}s cannot be told from them."
        if math.isnan(self.pooled):
            return (
                "Failed and successful runs with equally many steps left are not both there: nothing can be said "
                f"about which {name} made a run."
            )
        if math.isnan(self.group_only):
            said = f"How much the {name} alone tells takes runs of more than one task with both outcomes."
        else:
            worth = self.intervals.get("group_only")
            against = "" if worth is None or worth[0] > 0.5 else ", which does not exclude chance"
            said = f"Which {name} made a run tells its outcome with AUROC {self._shown('group_only')}{against}."
        if math.isnan(self.within):
            return (
                f"{said} No {name} has both failed and successful runs to compare, so all that ranks may be the {name}."
            )
        said += f" The monitor has {self._shown('pooled')} over all runs and {self._shown('within')} within one {name}"
        gone = self.share_of_group
        if math.isnan(gone):
            return f"{said}; over all runs that does not exclude chance, so there is no signal to divide."
        ends = self.intervals.get("within")
        if ends is None or ends[0] <= 0.5:
            return f"{said}: within one {name} it does not exclude chance, so what it knows may be the {name} alone."
        fall = self.intervals.get("within_minus_pooled")
        if fall is None or fall[1] >= 0.0:
            return f"{said}: no fall beyond chance, so nothing shows that it is the {name} that it knows."
        return f"{said}: {100 * gone:.0f} % of what it has over chance is which {name} made the run."

    def as_json(self) -> dict[str, Any]:
        """Its fields, and what they come to."""
        found = fields_of(self)
        spreads = found.pop("intervals")
        return {**found, "share_of_group": finite(self.share_of_group), "intervals": spreads, "text": self.text}

    def blocks(self) -> tuple[Block, ...]:
        """A row a group, and what the numbers say."""
        rows = [
            [plain(one.name, 60), f"{one.runs:,}", f"{one.tasks:,}", percent(one.failure_share), number(one.auroc)]
            for one in self.groups[:SHOWN]
        ]
        more = len(self.groups) - SHOWN
        rows += [[f"and {more} more"]] if more > 0 else []
        title = f"Shortcuts: is it the run, or the {self.grouped_by}? (outcome AUROC at matched remaining steps)"
        table = TableBlock.of(title, [self.grouped_by, "runs", "tasks", "failed", "outcome AUROC"], rows)
        return (table, Text(self.text))

    def _shown(self, figure: str) -> str:
        return f"{number(getattr(self, figure))} {spread(self.intervals.get(figure))}".rstrip()


def shortcuts(
    outcome_risk: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    tasks: Sequence[str],
    groups: Sequence[str],
    *,
    grouped_by: str = "agent",
    folds: int = FOLDS,
    resamples: int = RESAMPLES,
    seed: int = 13,
) -> Shortcuts:
    """How much of a monitor's outcome risk only says which group made the run.

    outcome_risk : for each run a float array (T,), NaN where a step was not judged.
    failed, tasks, groups : the outcome, the task and the group of each run.
    grouped_by : what the groups are, such as agent.
    folds : folds of tasks, 2 or more; with fewer tasks than folds, one per task.
    resamples : of the bootstrap over tasks. seed : of the folds and of the bootstrap.
    Raises DataError where the counts differ, ConfigError for fewer than 2 folds.
    """
    if not len(outcome_risk) == len(failed) == len(tasks) == len(groups):
        raise DataError(
            f"{len(outcome_risk)} scored runs with {len(failed)} outcomes, {len(tasks)} tasks and {len(groups)} "
            "groups: give one of each a run."
        )
    if folds < 2:
        raise ConfigError(f"{folds} folds: shares of a group come from other folds, so use 2 or more.")
    risks = [np.asarray(risk, dtype=np.float64) for risk in outcome_risk]
    flat = np.concatenate([*risks, np.zeros(0)])
    judged = ~np.isnan(flat)
    prefixes = Prefixes.of([len(risk) for risk in risks], failed, tasks).keep(judged)
    scores = flat[judged]
    dealt = np.random.default_rng(seed).permutation(np.arange(prefixes.n_tasks, dtype=np.int64) % folds)
    fold = dealt[prefixes.task]  # (R,), folds as even as they go
    names, code = np.unique(np.array([*groups], dtype=np.str_), return_inverse=True)
    by_share = share_elsewhere(code, prefixes.failed, fold)[prefixes.run]
    has_share = ~np.isnan(by_share)
    everybody = np.ones(prefixes.n_tasks)
    rankings = {
        "pooled": at_remaining(prefixes, scores),
        "within": at_remaining(prefixes, scores, groups=groups),
        "group_only": at_remaining(
            prefixes.keep(has_share), by_share[has_share], groups=[str(place) for place in fold.tolist()]
        ),
    }
    value = {name: float(ranking.auroc(everybody)) for name, ranking in rankings.items()}
    intervals = {}
    if prefixes.n_tasks > 1:  # one task has no spread to show
        draws = Resamples.draw(prefixes.n_tasks, n=resamples, seed=seed)
        samples = {name: draws.figures(ranking.auroc, len(prefixes)) for name, ranking in rankings.items()}
        intervals = {name: interval(samples[name]) for name in rankings if not math.isnan(value[name])}
        if not math.isnan(value["within"] + value["pooled"]):
            intervals["within_minus_pooled"] = paired_difference(samples["within"], samples["pooled"])
    shares = []
    for place, name in enumerate(names.tolist()):
        runs = code == place
        rows = runs[prefixes.run]
        auroc = float(at_remaining(prefixes.keep(rows), scores[rows]).auroc(everybody))
        n_tasks = len(np.unique(prefixes.task[runs]))
        shares.append(GroupShare(name, int(runs.sum()), n_tasks, float(prefixes.failed[runs].mean()), auroc))
    return Shortcuts(
        grouped_by=grouped_by,
        groups=tuple(sorted(shares, key=lambda group: (-group.runs, group.name))),
        intervals={name: ends for name, ends in intervals.items() if ends is not None},
        **value,
    )


def share_elsewhere(code: Int, failed: npt.NDArray[np.bool_], fold: Int, prior: float = 0.0) -> Float:
    """Failure share of each run's group in the other folds, (R,); NaN where no other fold has a run.

    code: number of each run's group. prior: so many runs of the failure share of all groups there are added to a group;
    one without runs there gets that share.
    """
    shares = np.full(len(failed), np.nan)
    for place in np.unique(fold):
        here, there = fold == place, fold != place
        if there.any():
            base = failed[there].mean()
            n, lost = (np.bincount(code[there], weights, int(code.max()) + 1) for weights in (None, failed[there]))
            known = n + prior > 0
            share = np.divide(lost + prior * base, n + prior, out=np.full(len(n), base), where=known)
            shares[here] = share[code[here]]
    return shares
