"""The monitor beside everything it has to beat, for both risks, with intervals."""

from __future__ import annotations

from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.evaluation.report.sentences import best_honest
from prefixguard.results import Block, Folded, Section, Table, Text


def scores_section(given: ReportInput) -> Section:
    """Both tables, what their columns and rows are, and the verdict in the rule's own words."""
    table = given.table
    noted = [
        [f"{name(title)} *" if row.oracle else name(title), row.note]
        for title, row in table.baselines.items()
        if row.note
    ]
    blocks: list[Block] = [*table.score_blocks()]
    if noted:
        blocks.append(
            Folded("What each row is", (Table.of("Rows of the tables", ["Row", "what it is"], noted, words={1}),))
        )
    blocks.append(Text(f"In the rule's own words: {table.verdict.text}", "faint"))
    blocks += [Text(note, "care") for note in (*table.notes, *given.notes)]
    best = {which: best_honest(table, which) for which in ("imminent", "outcome")}
    data = {"best_honest": {which: None if found is None else found[0] for which, found in best.items()}}
    return Section("scores", "Beside every baseline", tuple(blocks), data)
