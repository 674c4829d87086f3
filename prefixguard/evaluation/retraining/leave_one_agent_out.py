"""Leave one agent out: does the monitor know failing runs, or does it know who made them?

Where several agents made the runs, much of what ranks prefixes may be 'which agent'. For every agent two monitors are
fitted a fold: one that has seen its other runs, one that has seen none of them. Both are tested on the same runs, those
of this agent in the fold that is held out, so that neither has seen a run of their tasks: what differs is the agent.
The one that left the agent out also learned from fewer runs; the table says how many.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prefixguard.errors import DataError
from prefixguard.evaluation.retraining.fitting import (
    RESAMPLES,
    FoldScores,
    OnStage,
    Retraining,
    Source,
    averaged,
    nan_mean,
)
from prefixguard.evaluation.retraining.partition import Fold
from prefixguard.evaluation.tables.figures import RISKS, Difference, RiskFigures, compared, lead_cell
from prefixguard.learn import Corpus, TrainConfig
from prefixguard.results import Block, Cell, Result, TableBlock, Text, fields_of, finite, number
from prefixguard.runtime import plain
from prefixguard.stepview import Adapter
from prefixguard.store import OnProgress

#: Agents that are left out, at most: those with the most runs.
MOST = 8
#: Runs an agent must have to be left out.
_FEWEST = 10
_SHOWN = (("imminent", "auprc"), ("outcome", "outcome_auroc_at_remaining"))


@dataclass(frozen=True, slots=True)
class AgentLeftOut:
    """One agent's runs, judged by monitors that have seen the agent, and by monitors that have not.

    trained_on: runs that a fit learned from, mean over folds: with the agent, and without it.
    known, unknown: figures by risk; `unknown`'s differences are known minus unknown, which is what not knowing the
        agent costs.
    """

    agent: str
    runs: int
    failed_runs: int
    trained_on: tuple[float, float]
    known: dict[str, RiskFigures]
    unknown: dict[str, RiskFigures]


@dataclass(frozen=True, slots=True)
class AgentTransfer(Result):
    """All agents that were left out in turn, by name.

    grouped_by: agent, model or file. known, unknown: means over agents, by (risk, figure).
    """

    runs: int
    tasks: int
    folds: int
    backend: str
    grouped_by: str
    agents: tuple[AgentLeftOut, ...]
    notes: tuple[str, ...] = ()

    def mean(self, side: str, risk: str, figure: str) -> float:
        """Mean over agents of a figure. side: `known` or `unknown`. An agent without the figure is left out."""
        return nan_mean([getattr(getattr(agent, side)[risk], figure) for agent in self.agents])

    def as_json(self) -> dict[str, Any]:
        """Its fields, and the means over agents."""
        means = {
            side: {f"{risk} {figure}": finite(self.mean(side, risk, figure)) for risk, figure in _SHOWN}
            for side in ("known", "unknown")
        }
        return {**fields_of(self), "mean": means}

    def blocks(self) -> tuple[Block, ...]:
        """What each agent's runs lose where it is not known, and notes."""
        head = ["", "runs", "failed"]
        for title in ("AUPRC", "rem"):
            head += [title, "left out", "cost"]
        cells: list[list[str | Cell]] = []
        for one in self.agents:
            line: list[str | Cell] = [
                plain(one.agent, 30),
                f"{one.runs:,}",
                f"{100 * one.failed_runs / one.runs:.0f} %",
            ]
            for risk, figure in _SHOWN:
                line += [number(getattr(one.known[risk], figure)), number(getattr(one.unknown[risk], figure))]
                line.append(lead_cell(one.unknown[risk].differences.get(figure)))
            cells.append(line)
        line = ["mean", "", ""]
        for risk, figure in _SHOWN:
            known, unknown = self.mean("known", risk, figure), self.mean("unknown", risk, figure)
            line += [number(known), number(unknown), lead_cell(Difference(known - unknown, None))]
        least, most = min(one.trained_on[1] for one in self.agents), max(one.trained_on[0] for one in self.agents)
        return (
            Text(
                f"Leave one {self.grouped_by} out: {self.backend}, {self.folds} task-grouped folds of {self.runs:,} "
                f"runs of {self.tasks:,} tasks. Known: trained on runs of every {self.grouped_by}; left out: on none "
                "of its own. Neither has seen a run of the tasks it is tested on."
            ),
            TableBlock.of("", head, [*cells, line]),
            Text(
                "AUPRC: of the imminent risk. rem: outcome AUROC at matched remaining steps. cost: known minus left "
                "out, paired; brackets: 95 %, bootstrap over tasks. A monitor without the agent learned from fewer "
                f"runs: {least:.0f} at the least, {most:.0f} with all."
            ),
            *map(Text, self.notes),
        )


def leave_one_agent_out(
    runs: Source,
    config: TrainConfig | None = None,
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | Path | None = None,
    strict: bool = False,
    folds: int = 3,
    seed: int = 13,
    group_by: str | None = None,
    most: int = MOST,
    out: str | Path | None = None,
    resamples: int = RESAMPLES,
    on_stage: OnStage | None = None,
    on_progress: OnProgress | None = None,
) -> AgentTransfer:
    """Leave every agent out in turn; folds * (1 + agents) fits are made.

    config: of the trainings; None: boosted trees. Its seed is not used, `seed` is.
    folds : parts that tasks are dealt to, 2 or more; each is held out once.
    seed : of the folds and of every fit.
    group_by : what an agent is: agent, model, file ... Default: the first of these that has two values.
    most : agents that are left out, 1 or more: those with the most runs, of ten runs or more and both outcomes.
    out: keeps every fold as it is done. The rest, and what is raised, as at `cross_validate`; DataError where there are
    not two agents, or none has both outcomes.
    """
    retraining = Retraining(
        runs,
        dataclasses.replace(config or TrainConfig(backend="gbdt"), seed=seed),
        adapter=adapter,
        labels=labels,
        strict=strict,
        folds=folds,
        repeats=1,
        seeds=(seed,),
        group_by=group_by,
        out=out,
        resamples=resamples,
        on_stage=on_stage,
        on_progress=on_progress,
        within_groups=False,
    )
    corpus, name, agent_of = retraining.corpus, retraining.grouped_by, retraining.groups
    if name is None or agent_of is None or len(set(agent_of)) < 2:
        raise DataError(
            f"all runs are of one {name or 'agent'}: there is nobody to leave out. Give runs of two agents or more, or "
            "name the group that tells them apart."
        )
    chosen, more = _choose(corpus, agent_of, name, most)
    everyone = retraining.score_all("all", 1 + len(chosen))
    agents = [
        _left_out(retraining, everyone, name, agent, np.array([other == agent for other in agent_of], dtype=np.bool_))
        for agent in chosen
    ]
    return AgentTransfer(
        runs=len(corpus),
        tasks=len(set(corpus.task_ids)),
        folds=folds,
        backend=retraining.config.backend,
        grouped_by=name,
        agents=tuple(sorted(agents, key=lambda one: one.agent)),
        notes=(*retraining.notes, *more),
    )


def _left_out(
    retraining: Retraining,
    everyone: Sequence[FoldScores],
    name: str,
    agent: str,
    own: np.typing.NDArray[np.bool_],
) -> AgentLeftOut:
    """An agent's runs as fits on all agents judge them, and as fits without it do. own: bool (runs,), its own."""
    corpus = retraining.corpus
    without, known, unknown = [], [], []
    for fold, full in zip(retraining.plan, everyone, strict=True):
        left = _without(fold, own)
        _refuse_one_outcome(corpus, left, name, agent)
        scores = retraining.score(f"without {agent}", left, left_out=[name, agent])
        without.append(scores)
        mine = fold.test[own[fold.test]]
        if len(mine):
            rows = np.repeat(own[fold.test], corpus.lengths[fold.test])
            known.append(retraining.measure(fold, full.risks[rows], runs=mine))
            unknown.append(retraining.measure(fold, scores.risks[rows], runs=mine))
    one, other = averaged(known), averaged(unknown)
    return AgentLeftOut(
        agent=agent,
        runs=int(own.sum()),
        failed_runs=int(corpus.failed[own].sum()),
        trained_on=(
            float(np.mean([fit.trained_on for fit in everyone])),
            float(np.mean([fit.trained_on for fit in without])),
        ),
        known={risk: one[risk].figures for risk in RISKS},
        unknown={risk: compared(one[risk], other[risk]) for risk in RISKS},
    )


def _choose(corpus: Corpus, agent_of: Sequence[str], name: str, most: int) -> tuple[list[str], list[str]]:
    """Agents that are left out in turn, most runs first, and notes on those that are not."""
    n_runs = Counter(agent_of)
    failed = Counter(agent for agent, lost in zip(agent_of, corpus.failed.tolist(), strict=True) if lost)
    by_size = sorted(n_runs, key=lambda agent: (-n_runs[agent], agent))
    fit = [agent for agent in by_size if n_runs[agent] >= _FEWEST and 0 < failed[agent] < n_runs[agent]]
    if not fit:
        raise DataError(f"no {name} has {_FEWEST} runs with both outcomes: there is nothing to test on one left out.")
    notes = []
    if len(fit) < len(n_runs):
        notes.append(
            f"{len(n_runs) - len(fit)} of {len(n_runs)} values of {name} have too few runs, or one outcome only: never "
            "left out."
        )
    if len(fit) > most:
        notes.append(f"The {most} with the most runs are left out in turn, of {len(fit)} that could be.")
    return fit[:most], notes


def _without(fold: Fold, own: np.typing.NDArray[np.bool_]) -> Fold:
    """The fold without these runs in anything it learns from; what is tested stays, so that scores can be kept."""
    return dataclasses.replace(
        fold,
        **{part: getattr(fold, part)[~own[getattr(fold, part)]] for part in ("train", "validation", "calibration")},
    )


def _refuse_one_outcome(corpus: Corpus, fold: Fold, name: str, agent: str) -> None:
    for part in (fold.train, fold.calibration):
        if len(set(corpus.failed[part].tolist())) < 2:
            raise DataError(
                f"without {name} {agent!r} a fold has {len(part)} runs to learn from that do not hold both outcomes. "
                "Give fewer folds, or runs of more tasks."
            )
