"""AUPRC of every row at the same prevalences, so that tables of different sets can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import REFERENCE_PREVALENCES, Prefixes, ReferenceRanking, Resamples, interval
from prefixguard.results import Block, Cell, Result, TableBlock, Text, fields_of, number, spread

#: Beside the first row, what is shown; JSON has all.
_SHOWN = ("step index", "end oracle")

CAUTION = (
    "Negatives are weighed so that positives make up the stated share; how a score ranks stays as measured. A score "
    "that knows nothing has the share itself. Compare sets at one share and with the clock's row beside, for sets "
    "also differ in how much a clock knows."
)


@dataclass(frozen=True, slots=True)
class PrevalenceRow:
    """One row's AUPRC. NaN: it does not exist (one class only).

    prevalence: share of positives as it is. auprc: AUPRC there. auprc_at: AUPRC by reference prevalence.
    intervals: 95 % over tasks, by reference; of the first row only, and empty where no resamples were given.
    """

    name: str
    oracle: bool
    prevalence: float
    auprc: float
    auprc_at: Mapping[float, float]
    intervals: Mapping[float, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrevalenceTable(Result):
    """Rows in the order given, of both risks, at the same references."""

    references: tuple[float, ...]
    imminent: tuple[PrevalenceRow, ...]
    outcome: tuple[PrevalenceRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Its fields, and how they may be compared; references are keys as text, such as "0.05"."""
        return {**fields_of(self), "caution": CAUTION}

    def blocks(self) -> tuple[Block, ...]:
        """A table a risk: the first row, and the clocks where they are."""
        titles = (("Imminent risk", self.imminent), ("Outcome risk", self.outcome))
        return (*(self._table(title, rows) for title, rows in titles if rows), Text(CAUTION))

    def _table(self, title: str, rows: Sequence[PrevalenceRow]) -> TableBlock:
        cells = []
        for row in (rows[0], *(row for row in rows[1:] if row.name in _SHOWN)):
            line = [Cell(f"{row.name} *" if row.oracle else row.name), Cell(number(row.auprc))]
            for reference in self.references:
                line.append(Cell(number(row.auprc_at[reference]), spread(row.intervals.get(reference))))
            cells.append(line)
        caption = f"{title}: AUPRC at the own prevalence ({number(rows[0].prevalence)}) and at others"
        return TableBlock.of(caption, ["", "own", *map(number, self.references)], cells, marked={0})


def prevalence_table(
    rows: Sequence[ScoreRow],
    prefixes: Prefixes,
    lengths: Sequence[int],
    horizon: int,
    *,
    references: Sequence[float] = REFERENCE_PREVALENCES,
    resamples: Resamples | None = None,
) -> PrevalenceTable:
    """AUPRC of rows at reference prevalences, for both risks.

    rows : the monitor's row first; prefixes that it did not judge are left out of every row.
    prefixes : the prefixes of all runs. lengths : the number of steps of each run.
    horizon : H of the imminent label. references : prevalences in (0, 1).
    resamples : resamples over tasks, for the intervals of the first row; None for no intervals.
    Raises DataError where a row does not have one score per step, ConfigError for a reference out of range.
    """
    references = tuple(map(float, references))
    labels = prefixes.imminent_labels(horizon), prefixes.outcome_labels
    flat = [row.flat(lengths) for row in rows]
    unjudged = np.isnan(flat[0]).any(axis=0) if flat else np.zeros(0, dtype=np.bool_)
    tables: list[list[PrevalenceRow]] = [[], []]
    for place, (row, scores) in enumerate(zip(rows, flat, strict=True)):
        for risk, label in enumerate(labels):
            judged = ~(unjudged | np.isnan(scores[risk]))
            n = int(judged.sum())
            ranking = ReferenceRanking(label[judged], scores[risk][judged], units=prefixes.units[judged])
            at = {reference: float(ranking.average_precision(reference)) for reference in references}
            intervals: dict[float, tuple[float, float]] = {}
            if place == 0 and resamples is not None and prefixes.n_tasks > 1:
                for reference in (one for one in references if not math.isnan(at[one])):
                    found = interval(resamples.figures(partial(ranking.average_precision, reference), n))
                    if found is not None:
                        intervals[reference] = found
            own = float(ranking.prevalence()) if n else math.nan
            # With one class the figure at the own prevalence does not exist, and neither does any other.
            itself = float(ranking.average_precision(own)) if 0.0 < own < 1.0 else math.nan
            tables[risk].append(PrevalenceRow(row.name, row.oracle, own, itself, at, intervals))
    return PrevalenceTable(references, *map(tuple, tables))
