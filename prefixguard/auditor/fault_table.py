"""Auditors that name sets of faults, side by side, always beside saying yes to all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.auditor.audit_line import AuditLine
from prefixguard.auditor.audited_system import with_lines
from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import FaultFigures, FaultRow, FaultSets, fault_set_figures, say_yes_to_all
from prefixguard.results import Block, Result, TableBlock, Text, percent, percents, plain_value
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

_TITLES = {"pair": "Pairs of agent and mode", "agent": "Agents at fault", "error": "Failure modes"}
_F1S = ("micro_f1", "macro_f1")
_JSON = ("runs", "failed_audits", "hits", "wrong", "missed", "precision", "recall", *_F1S, "class_list", "classes")
SAY_YES = "say yes to all"


@dataclass(frozen=True, slots=True)
class FaultTable(Result):
    """figures: by name of the auditor, the three grains in order; say-yes-to-all last. modes: of the fixed list."""

    figures: Mapping[str, tuple[FaultFigures, ...]]
    modes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        systems = {
            name: {
                found.grain: {part: getattr(found, part) for part in _JSON}
                | {"intervals": {part: list(ends) for part, ends in found.intervals.items()}}
                for found in grains
            }
            for name, grains in self.figures.items()
        }
        found: dict[str, Any] = plain_value({"modes": self.modes, "systems": systems})
        return found

    def blocks(self) -> tuple[Block, ...]:
        """A table a grain, and what the figures mean."""
        blocks: list[Block] = []
        head = ("", "micro-F1", "macro-F1", "precision", "recall", "hits", "wrong", "missed", "failed")
        for place in range(3):
            cells: list[list[str | tuple[str, str]]] = []
            lists = dict.fromkeys(grains[place].class_list for grains in self.figures.values())
            for name, grains in self.figures.items():
                found = grains[place]
                f1s = ((percent(getattr(found, part)), percents(found.intervals.get(part))) for part in _F1S)
                counts = (found.hits, found.wrong, found.missed, found.failed_audits)
                cells.append(
                    [name, *f1s, percent(found.precision), percent(found.recall), *(f"{count:,}" for count in counts)]
                )
            title = f"{_TITLES[grains[place].grain]} (classes of macro-F1: {', '.join(lists)})"
            blocks.append(TableBlock.of(title, head, cells))
        legend = (
            "micro-F1: all runs pooled. macro-F1: mean over classes, 0 where one is never right; no two figures of "
            "different class lists can be compared. failed: audits without an answer, counted as nothing found. "
            "Brackets: 95 %, bootstrap over tasks."
        )
        return (*blocks, Text(legend))


def fault_table(
    systems: Mapping[str, Sequence[FaultRow]],
    modes: Sequence[str],
    *,
    agents: Mapping[str, Sequence[str]] | None = None,
    n_resamples: int = 1000,
    seed: int = 13,
) -> FaultTable:
    """Figures of auditors of fault sets at three grains.

    systems: rows by name, of the same runs with the same labels. modes: the fixed class list of the error grain; pairs
    and agents take the union of gold and predicted labels. agents: of each run, by run id, for say-yes-to-all.
    Raises ConfigError without an auditor, DataError where runs or labels differ.
    """
    if not systems:
        raise ConfigError("a table of fault sets without an auditor. Give the rows of one.")
    first = next(iter(systems.values()))
    gold = {row.run_id: row.gold for row in first}
    for name, rows in systems.items():
        if {row.run_id: row.gold for row in rows} != gold:
            raise DataError(f'"{name}" has other runs or labels than "{next(iter(systems))}". Give all the same.')
    everyone = {**systems, SAY_YES: say_yes_to_all(first, modes, agents)}
    return FaultTable(
        {
            name: (
                fault_set_figures(rows, "pair", n_resamples=n_resamples, seed=seed),
                fault_set_figures(rows, "agent", n_resamples=n_resamples, seed=seed),
                fault_set_figures(rows, "error", classes=modes, n_resamples=n_resamples, seed=seed),
            )
            for name, rows in everyone.items()
        },
        tuple(modes),
    )


def fault_row(run: Run[StepRecord], predicted: FaultSets | None) -> FaultRow:
    """The row of one run with its labels: its faults, each with agent, mode or both. predicted: None: audit failed."""
    gold = FaultSets.of(
        [(fault.agent, fault.mode) for fault in run.faults if fault.agent is not None and fault.mode is not None],
        agents=[fault.agent for fault in run.faults if fault.agent is not None],
        modes=[fault.mode for fault in run.faults if fault.mode is not None],
    )
    return FaultRow(run.run_id, gold, predicted, run.task_id)


def fault_lines(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]) -> list[FaultRow]:
    """Rows of fault sets of the runs whose label names faults; an audit in which nothing was answered has failed."""
    rows = []
    for run, line in with_lines(runs, lines):
        if run.faults:
            silent = line.modes is None or (line.verdict["outcome"] == "error" and not line.modes)
            rows.append(fault_row(run, None if silent else FaultSets.of(line.pairs or (), modes=line.modes or ())))
    return rows


def agents_of(runs: Sequence[Run[StepRecord]]) -> dict[str, list[str]]:
    """By run id the names of its agents, sorted: whom say-yes-to-all blames."""
    return {
        run.run_id: sorted({record.agent for record in run.records if record.actor == "agent" and record.agent})
        for run in runs
    }
