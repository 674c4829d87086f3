"""Which rows of a table were trained beside the monitor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.controls.rows import CONTROLS
from prefixguard.evaluation.table import EvaluationTable
from prefixguard.results import Block, Bullets, Result, number


@dataclass(frozen=True, slots=True)
class TrainedControls(Result):
    """The controls of a table, as its section. rows: name, what it is, imminent AUPRC, outcome AUROC at matched
    remaining steps; best first by the mean of both.
    """

    rows: tuple[tuple[str, str, float, float], ...]

    @classmethod
    def of(cls, table: EvaluationTable) -> TrainedControls:
        """Those of `CONTROLS` that stand in the table."""
        rows = [
            (name, table.baselines[name].note, row.imminent.auprc, row.outcome.outcome_auroc_at_remaining)
            for name in CONTROLS
            if (row := table.baselines.get(name)) is not None
        ]
        return cls(tuple(sorted(rows, key=lambda row: -(row[2] + row[3]) if row[2] == row[2] else 0.0)))

    def as_json(self) -> dict[str, Any]:
        """Name to what it is; the figures stand with the baselines."""
        return {name: {"note": note} for name, note, _, _ in self.rows}

    def blocks(self) -> tuple[Block, ...]:
        """A line a control."""
        items = (f"{name} (AUPRC {number(auprc)}, rem {number(rem)}): {note}" for name, note, auprc, rem in self.rows)
        title = "Controls: trained on the runs that the monitor was trained on; they stand in the tables above"
        return (Bullets(tuple(items), title),)
