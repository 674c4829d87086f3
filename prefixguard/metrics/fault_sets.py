"""How well an auditor names the faults of a run as a set of (agent, mode) pairs: micro- and macro-F1 at three grains.

- pair: {(agent, mode)}; agent: {agent}; error: {mode}.
- micro: true and false positives and misses pooled over all runs.
- macro: mean of the F1 of every class; a class without true positives has 0. It depends on which classes there are, so
  the class list is a choice that the result names: nothing else makes published figures differ more.

Names of agents are one class in all runs: "Solver" here is "Solver" there. A run whose audit failed counts as one in
which nothing was found, and is counted; leaving it out would reward silence.

Source: AEGIS and VerifyMAS, evaluation code (union of labels; fixed list at the error grain).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics.resampling import Resamples, ratio

Float = npt.NDArray[np.float64]
Grain = Literal["pair", "agent", "error"]
ClassList = Literal["union", "gold"]

#: The class lists in words, as a result names them.
_WORDS = {"union": "union of gold and predicted", "gold": "gold only"}


@dataclass(frozen=True, slots=True)
class FaultSets:
    """Faults of a run. A set that a label does not speak of is empty.

    pairs: (agent, mode). agents, modes: those of the pairs, and others that are in no pair: a mode that was found
        without anyone to blame counts at the error grain only.
    """

    pairs: frozenset[tuple[str, str]] = frozenset()
    agents: frozenset[str] = frozenset()
    modes: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, pairs: Collection[tuple[str, str]] = (), *, agents: Collection[str] = (), modes: Collection[str] = ()
    ) -> FaultSets:
        """Pairs, with their agents and modes, and further agents and modes.

        >>> sorted(FaultSets.of([("Coder", "FM-1.3")], modes=["FM-3.2"]).modes)
        ['FM-1.3', 'FM-3.2']
        """
        return cls(
            frozenset(pairs),
            frozenset(agents) | {agent for agent, _ in pairs},
            frozenset(modes) | {mode for _, mode in pairs},
        )

    def at(self, grain: Grain) -> frozenset[Any]:
        """The set at one grain."""
        return {"pair": self.pairs, "agent": self.agents, "error": self.modes}[grain]


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One audited run. predicted: None where the audit failed. task_id: None: the run stands for itself."""

    run_id: str
    gold: FaultSets
    predicted: FaultSets | None
    task_id: str | None = None

    @property
    def task(self) -> str:
        """What is resampled: the task, or the run where it has none."""
        return self.run_id if self.task_id is None else self.task_id


@dataclass(frozen=True, slots=True)
class FaultFigures:
    """Figures at one grain. NaN: nothing is there to be found or was named.

    hits, wrong, missed: pooled true positives, false positives, false negatives. precision, recall, micro_f1: of them.
    macro_f1: over the classes. class_list: which they are, in words. classes: how many.
    intervals: of precision, recall, micro_f1 and macro_f1, over tasks; the class list is that of all runs.
    """

    grain: Grain
    runs: int
    failed_audits: int
    hits: int
    wrong: int
    missed: int
    precision: float
    recall: float
    micro_f1: float
    macro_f1: float
    class_list: str
    classes: int
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def fault_set_figures(
    rows: Sequence[FaultRow],
    grain: Grain,
    *,
    classes: ClassList | Sequence[str] = "union",
    n_resamples: int = 1000,
    seed: int = 13,
) -> FaultFigures:
    """Micro- and macro-F1 at one grain.

    classes: "union" of gold and predicted labels over all runs, "gold" labels only, or a fixed list (of modes, or of
        agents), of which each counts even where it never occurs. Micro figures count every label, listed or not.
    Raises ConfigError for a list that is none or a fixed list of pairs, DataError where a run is there twice.
    """
    if len({row.run_id for row in rows}) != len(rows):
        raise DataError("fault sets: a run is there twice. Give one row a run.")
    gold = [row.gold.at(grain) for row in rows]
    found = [frozenset() if row.predicted is None else row.predicted.at(grain) for row in rows]
    listed, words = _class_list(classes, grain, gold, found)
    tasks = sorted({row.task for row in rows})
    code = {task: place for place, task in enumerate(tasks)}
    label_code = {label: place for place, label in enumerate(listed)}
    pooled = np.zeros((3, len(tasks)))  # hits, wrong, missed
    by_class = np.zeros((3, len(tasks), len(listed)))
    for row, true, said in zip(rows, gold, found, strict=True):
        place = code[row.task]
        for kind, labels in enumerate((true & said, said - true, true - said)):
            pooled[kind, place] += len(labels)
            for label in labels:
                if label in label_code:
                    by_class[kind, place, label_code[label]] += 1
    rows_held = max(len(tasks), len(listed))
    figures: dict[str, Callable[[Float], Float]] = {
        "precision": lambda w: ratio(w @ pooled[0], w @ (pooled[0] + pooled[1])),
        "recall": lambda w: ratio(w @ pooled[0], w @ (pooled[0] + pooled[2])),
        "micro_f1": lambda w: _f1(*(w @ part for part in pooled)),
        "macro_f1": lambda w: _macro(*(w @ part for part in by_class)),
    }
    resamples = Resamples.draw(len(tasks), n=n_resamples if len(tasks) > 1 else 0, seed=seed)
    measured = resamples.estimate({name: (figure, rows_held) for name, figure in figures.items()})
    hits, wrong, missed = (round(float(part.sum())) for part in pooled)
    return FaultFigures(
        grain=grain,
        runs=len(rows),
        failed_audits=sum(row.predicted is None for row in rows),
        hits=hits,
        wrong=wrong,
        missed=missed,
        class_list=words,
        classes=len(listed),
        intervals=measured.intervals,
        **measured.values,
    )


def say_yes_to_all(
    rows: Sequence[FaultRow], modes: Sequence[str], agents: Mapping[str, Sequence[str]] | None = None
) -> list[FaultRow]:
    """What an auditor gets that finds every mode in every run: the floor under any figure at the error grain.

    agents: of each run, by run id; all of them are blamed for all modes. None: nobody is blamed.
    """
    blamed = agents or {}
    return [
        FaultRow(
            row.run_id,
            row.gold,
            FaultSets.of([(agent, mode) for agent in blamed.get(row.run_id, ()) for mode in modes], modes=modes),
            row.task_id,
        )
        for row in rows
    ]


def _class_list(
    classes: ClassList | Sequence[str],
    grain: Grain,
    gold: Sequence[frozenset[Any]],
    found: Sequence[frozenset[Any]],
) -> tuple[list[Any], str]:
    if isinstance(classes, str):
        if classes not in _WORDS:
            raise ConfigError(f'class list "{classes}" is unknown: use "union", "gold" or a list of names.')
        sides = [*gold, *found] if classes == "union" else gold
        return sorted(set().union(*sides)), _WORDS[classes]
    if grain == "pair":
        raise ConfigError('pairs of agent and mode have no fixed class list: use "union" or "gold".')
    listed = sorted(set(classes))
    return listed, f"fixed {len(listed)}"


def _f1(hits: Float, wrong: Float, missed: Float) -> Float:
    return ratio(2 * hits, 2 * hits + wrong + missed)


def _macro(hits: Float, wrong: Float, missed: Float) -> Float:
    """Mean over classes (..., C) -> (...,); a class that neither side names has 0."""
    if hits.shape[-1] == 0:
        return np.full(hits.shape[:-1], np.nan)
    return np.asarray(np.nan_to_num(_f1(hits, wrong, missed), nan=0.0).mean(axis=-1), dtype=np.float64)
