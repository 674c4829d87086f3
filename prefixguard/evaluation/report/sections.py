"""Sections of a report: the monitor beside its baselines, its first alerts, its automaton, and further analyses."""

from __future__ import annotations

import math

import numpy as np

from prefixguard.evaluation.alert_table import budget_of
from prefixguard.evaluation.report.material import LONGEST, TEXT_LETTERS, AutomatonView, ReportInput, SymbolLine, name
from prefixguard.evaluation.report.summary import best_honest, largest_granted
from prefixguard.results import (
    Block,
    Cell,
    Figure,
    Folded,
    Image,
    Key,
    Plot,
    Result,
    Section,
    Table,
    Text,
    Verbatim,
    counts,
    percent,
    plain_value,
    signed,
)
from prefixguard.runtime import plain

#: Bars of the histogram, at most.
BARS = 24


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


def alerts_section(given: ReportInput) -> Section | None:
    """Table by budget and histogram; None where nothing carries a threshold."""
    table = given.table
    blocks = list(table.alert_blocks())
    if not blocks:
        return None
    row = largest_granted(table)
    data: dict[str, object] = {"histogram": None}
    if row is not None and row.alerts is not None:
        figure, bars = _histogram(row.alerts.leads, table.horizon, table.failed_runs, budget_of(row))
        blocks.append(figure)
        data["histogram"] = {"budget": row.budget, "bars": bars}
    return Section("first_alerts", "First alerts", tuple(blocks), data)


def _histogram(
    leads: tuple[int, ...], horizon: int, failed: int, budget: str
) -> tuple[Figure | Text, list[dict[str, int]]]:
    """Bars of single steps; where that would be too many, one for all late alerts and equal ones for the early."""
    if not leads:
        return Text(f"At {budget} no failed run is alerted, so there is no lead to draw."), []
    values = np.asarray(leads)
    most = int(values.max())
    width = 1 if most < BARS else -(-(most - horizon) // (BARS - 1))
    starts = [*range(most + 1)] if width == 1 else [0, *range(horizon + 1, most + 1, width)]
    ends = [*(start - 1 for start in starts[1:]), most if width == 1 else starts[-1] + width - 1]
    heights = [int(((values >= low) & (values <= high)).sum()) for low, high in zip(starts, ends, strict=True)]
    ticks = counts(max(heights))
    plot = Plot((0.0, float(len(starts))), (0.0, ticks[-1][0]), width=720, height=230)
    every = max(1, -(-len(starts) // (24 if width == 1 else 9)))
    names = [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(starts, ends, strict=True)]
    plot.axes(
        [(i + 0.5, said) for i, said in enumerate(names) if i % every == 0],
        ticks,
        "steps left at the first alert",
        "failed runs",
    )
    for i, height in enumerate(heights):
        plot.box((i + 0.06, 0.0), (i + 0.94, float(height)), "bar early" if starts[i] > horizon else "bar late")
    early_runs = int((values > horizon).sum())
    alt = (
        f"Steps left at the first alert of {len(leads):,} failed runs alerted of {failed:,}, at {budget}: "
        f"{early_runs:,} with more than {horizon} left; median {np.median(values):g}, most {most:,}."
    )
    keys = (
        Key("bar early", f"early, more than {horizon} left", f"{early_runs:,}"),
        Key("bar late", "late", f"{len(leads) - early_runs:,}"),
        Key("", "never alerted", f"{failed - len(leads):,}"),
    )
    bars = [{"from": a, "to": b, "runs": n} for a, b, n in zip(starts, ends, heights, strict=True)]
    return Figure(plot.svg(), alt, f"How early alerts come, at a budget of {budget}", keys, broad=True), bars


def finding_section(key: str, title: str, finding: Result | None) -> Section | None:
    """What it shows, and its figures. None without a finding."""
    return None if finding is None else Section(key, title, finding.blocks(), finding.as_json())


def automaton_section(view: AutomatonView | None, measured: Result | None, title: str) -> Section | None:
    """How far it may be trusted, its picture, its symbols. measured: what the evaluation found about it."""
    if view is None:
        return finding_section("automaton", title, measured)
    blocks: list[Block] = [
        Text(
            f"{name(view.name)}: a finite automaton of {view.states:,} states over {view.symbols:,} symbols. It "
            "explains itself; how far it also explains the monitor it was learned from, these figures say."
        )
    ]
    if measured is not None:
        blocks += measured.blocks()
    if view.svg:
        blocks.append(Image(view.svg, f"The automaton {name(view.name)}: states, coloured by risk, and what leads on."))
    if view.glossary:
        blocks.append(Folded(f"Glossary: what {len(view.glossary):,} symbols mean", (_glossary(view),)))
    elif view.glossary_text:
        blocks.append(Folded("Glossary", (Verbatim(view.glossary_text[:LONGEST], "Glossary"),)))
    data = {
        "name": view.name,
        "states": view.states,
        "symbols": view.symbols,
        "measured": None if measured is None else measured.as_json(),
        "glossary": plain_value(view.glossary),
    }
    return Section("automaton", title, tuple(blocks), data)


def _glossary(view: AutomatonView) -> Table:
    head = ("No.", "meaning", "of steps", "moves the risk by", "for example")
    return Table.of("Symbols", head, [_symbol(line) for line in view.glossary], words={1, 4})


def _symbol(line: SymbolLine) -> list[str | Cell]:
    moves = signed(line.risk_change) if math.isfinite(line.risk_change) else "–"
    meaning = Cell(plain(line.meaning, TEXT_LETTERS), plain(line.condition, TEXT_LETTERS))
    return [str(line.symbol), meaning, percent(line.share), moves, plain(line.example, TEXT_LETTERS)]
