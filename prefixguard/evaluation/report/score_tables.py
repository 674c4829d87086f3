"""The monitor beside everything it has to beat, for both risks, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prefixguard.evaluation.figures import RiskFigures
from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.evaluation.report.sentences import best_honest
from prefixguard.evaluation.table import EvaluationTable
from prefixguard.results import Block, Bullets, Cell, Column, Folded, Plot, Section, Table, Text, number, signed, spread

HEAD = (
    "Scores by",
    "AUPRC",
    "drawn, 0 to 1",
    "monitor ahead by",
    "AUROC",
    "at equal steps left",
    "at equal steps passed",
    "within the same group",
    "Brier",
    "ECE",
)


def scores_section(given: ReportInput) -> Section:
    """Both tables, and what their columns mean."""
    table = given.table
    group = table.grouped_by or "group"
    blocks: list[Block] = [
        _table(
            table,
            "imminent",
            f"Failing soon (imminent risk): it fails, and ends within {table.horizon} more steps",
        ),
        _table(table, "outcome", "Failing at all (outcome risk): it fails"),
        Bullets(
            (
                "Small figures: 95 % intervals, from resampling tasks. Monitor ahead by: its lead in AUPRC over that "
                "row, on the same resamples.",
                "At equal steps left (0 to 10) or passed (1 to 30): AUROC of failed against successful runs at the "
                "same place, which a clock cannot earn.",
                f"Within the same {group}: the former among runs of the same {group} only, so that knowing the "
                f"{group} does not help." + ("" if table.grouped_by else " These runs name none, or only one."),
                *(
                    ["* knows what no monitor can know: a mark on the scale, nobody to beat."]
                    if _oracles(table)
                    else []
                ),
            ),
            "How to read the tables",
        ),
        *_rows(table),
        Text(f"In the rule's own words: {table.verdict.text}", "faint"),
        *(Text(note, "care") for note in (*table.notes, *given.notes)),
    ]
    best = {which: best_honest(table, which) for which in ("imminent", "outcome")}
    data = {"best_honest": {which: None if found is None else found[0] for which, found in best.items()}}
    return Section("scores", "Beside every baseline", tuple(blocks), data)


def _rows(table: EvaluationTable) -> Iterator[Block]:
    noted = [(title, row) for title, row in table.baselines.items() if row.note]
    if noted:
        rows = tuple((Cell(f"{name(title)} *" if row.oracle else name(title)), Cell(row.note)) for title, row in noted)
        yield Folded("What each row is", (Table.of("Rows of the tables", ("Row", "what it is"), rows, words={1}),))


def _oracles(table: EvaluationTable) -> bool:
    return any(row.oracle for row in table.baselines.values())


def _table(table: EvaluationTable, which: str, meaning: str) -> Table:
    mine: RiskFigures = getattr(table, which)
    rows = [("monitor", mine, False)]
    rows += [(title, getattr(row, which), row.oracle) for title, row in table.baselines.items()]
    return Table.of(
        f"{meaning} (prevalence {number(mine.prevalence)})",
        (*HEAD[:2], Column(HEAD[2]), *HEAD[3:7], f"within the same {table.grouped_by or 'group'}", *HEAD[8:]),
        tuple(_row(title, figures, oracle, mine.prevalence) for title, figures, oracle in rows),
        marked={0},
    )


def _row(title: str, figures: RiskFigures, oracle: bool, prevalence: float) -> tuple[Cell, ...]:
    ahead = figures.differences.get("auprc")
    lead = Cell()
    if ahead is not None:
        lead = Cell(signed(ahead.value) if math.isfinite(ahead.value) else "–", spread(ahead.interval, with_sign=True))
    rem, idx, within = "outcome_auroc_at_remaining", "outcome_auroc_at_index", "outcome_auroc_within_groups"
    return (
        Cell(f"{name(title)} *" if oracle else name(title)),
        _cell(figures, "auprc"),
        Cell(svg=_whisker(figures, prevalence, oracle)),
        lead,
        *(_cell(figures, which) for which in ("auroc", rem, idx, within, "brier", "ece")),
    )


def _cell(figures: RiskFigures, which: str) -> Cell:
    return Cell(number(getattr(figures, which)), spread(figures.intervals.get(which)))


def _whisker(figures: RiskFigures, prevalence: float, oracle: bool) -> str:
    """AUPRC as a dot, its interval as a line, the prevalence as a tick; the same scale in every row."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), width=132, height=18, margins=(5, 0, 5, 0))
    plot.line([(0.0, 0.5), (1.0, 0.5)], "rail")
    if math.isfinite(prevalence):
        plot.line([(prevalence, 0.05), (prevalence, 0.95)], "chance")
    if math.isfinite(figures.auprc):
        low, high = figures.intervals.get("auprc", (figures.auprc, figures.auprc))
        plot.line([(low, 0.5), (high, 0.5)], "spread")
        plot.dot((figures.auprc, 0.5), "point oracle" if oracle else "point", 4)
    return plot.svg("whisker")
