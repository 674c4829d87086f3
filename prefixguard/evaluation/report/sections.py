"""Sections of a report that read the table and its scores: baselines, curves, first alerts, reliability, automaton.

A section is made as its blocks and its figures for JSON; None where there is nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from prefixguard.evaluation.report.given import RISK_TITLES, TEXT_LETTERS, ReportInput, SymbolLine, name
from prefixguard.evaluation.report.summary import best_honest
from prefixguard.evaluation.tables.alerts import budget_of
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.evaluation.tables.verdict import working_alert
from prefixguard.metrics import ReliabilityBin, reliability_curve
from prefixguard.results import (
    Block,
    Cell,
    Figure,
    Folded,
    Image,
    Key,
    Pair,
    Plot,
    TableBlock,
    Text,
    Verbatim,
    bar_chart,
    counts,
    number,
    percent,
    plain_value,
    shares,
    signed,
    spread,
)
from prefixguard.runtime import plain

Points: TypeAlias = list[tuple[float, float]]
Made: TypeAlias = tuple[tuple[Block, ...], Mapping[str, Any]]

#: Points of a curve that are drawn, and written into JSON.
POINTS = 160
#: Curves besides the monitor's: honest baselines with the highest AUPRC, and oracles.
HONEST, ORACLES = 4, 4
#: Bars of the histogram of leads, at most.
BARS = 24
#: Letters of a glossary's file.
LONGEST = 60_000


def scores_section(given: ReportInput) -> Made:
    """Both tables, and what their columns and rows are."""
    table = given.table
    noted = [[_starred(title, row.oracle), row.note] for title, row in table.baselines.items() if row.note]
    blocks: list[Block] = [*table.score_blocks()]
    if noted:
        rows = TableBlock.of("Rows of the tables", ["Row", "what it is"], noted, words={1})
        blocks.append(Folded("What each row is", (rows,)))
    blocks += [Text(note, "care") for note in (*table.notes, *given.notes)]
    best = {which: best_honest(table, which) for which in RISK_TITLES}
    return tuple(blocks), {"best_honest": {which: found and found[0] for which, found in best.items()}}


def _starred(title: str, oracle: bool) -> str:
    return f"{name(title)} *" if oracle else name(title)


def precision_recall(labels: npt.ArrayLike, scores: npt.ArrayLike, *, points: int = POINTS) -> Points:
    """Points (recall, precision) of a curve, recall ascending; equal scores share one point.

    labels: (N,), 0 or 1. scores: (N,), no NaN. points: at most so many, those nearest to equally spaced recalls; the
    first and the last always stay. Empty without a positive label.

    >>> precision_recall([1, 0, 1], [0.9, 0.5, 0.5])
    [(0.5, 1.0), (1.0, 0.6666666666666666)]
    """
    y = np.asarray(labels, dtype=np.float64)
    s = np.asarray(scores, dtype=np.float64)
    if not y.sum():
        return []
    order = np.argsort(-s, kind="stable")
    y, s = y[order], s[order]
    ends = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)
    hits = np.cumsum(y)[ends]
    recall, precision = hits / y.sum(), hits / (ends + 1)
    if len(ends) > points:
        grid = np.linspace(recall[0], 1.0, points)
        kept = np.unique(np.append(np.clip(np.searchsorted(recall, grid), 0, len(ends) - 1), (0, len(ends) - 1)))
        recall, precision = recall[kept], precision[kept]
    return list(zip(recall.tolist(), precision.tolist(), strict=True))


def precision_recall_section(given: ReportInput) -> Made | None:
    """The curves of both risks, the monitor's with baselines and oracles; None where one class is missing."""
    table, behind, kept = given.table, given.behind, given.judged()
    if not 0 < table.failed_runs < table.runs:
        return None
    rows, labels = _drawn_rows(given), given.labels()
    figures: list[Block] = []
    data: dict[str, Any] = {}
    for place, which in enumerate(RISK_TITLES):
        flat = {title: row.flat(behind.lengths)[place][kept] for title, (row, _) in rows.items()}
        curves = {
            title: precision_recall(labels[which][kept], scores)
            for title, scores in flat.items()
            if not np.isnan(scores).any()
        }
        figures.append(_curves(given, which, rows, curves))
        data[which] = {
            title: {"oracle": rows[title][0].oracle, "points": [[round(x, 5), round(y, 5)] for x, y in points]}
            for title, points in curves.items()
        }
    drawn = {"constant", *data["imminent"], *data["outcome"]}
    left = [name(title) for title in table.baselines if title not in drawn]
    more = f" Not drawn, for room: {', '.join(left)}." if left else ""
    said = Text(
        "Of all steps rated at least so high, how many are right (precision), and how many of the right ones are among "
        "them (recall). The area under a curve is its AUPRC. Dashed curves know what no monitor can know; the dotted "
        f"line is what guessing gives.{more}"
    )
    return (said, Pair(tuple(figures))), data


def _drawn_rows(given: ReportInput) -> dict[str, tuple[ScoreRow, str]]:
    """Monitor, then the strongest honest rows (the step index among them), then oracles: by both AUPRC together; each
    with the class of its curve, which is the same for both risks: c0 the monitor's, c1 ... honest rows, o0 ... oracles.
    """
    table, (monitor, *others) = given.table, given.behind.rows

    def place(row: ScoreRow) -> tuple[float, str]:
        figures = table.baselines[row.name]
        value = figures.imminent.auprc + figures.outcome.auprc
        return (-value if math.isfinite(value) else 1.0), row.name

    ranked = sorted((row for row in others if row.name in table.baselines and row.name != "constant"), key=place)
    honest, oracles = ([row for row in ranked if row.oracle is oracle] for oracle in (False, True))
    shown = honest[:HONEST]
    clock = next((row for row in honest if row.name == "step index"), None)
    if clock is not None and clock not in shown:
        shown[-1] = clock
    styled = [*((row, f"c{i}") for i, row in enumerate([monitor, *shown]))]
    styled += [(row, f"o{i}") for i, row in enumerate(oracles[:ORACLES])]
    return {row.name: (row, style) for row, style in styled}


def _curves(
    given: ReportInput, which: str, rows: Mapping[str, tuple[ScoreRow, str]], curves: Mapping[str, Points]
) -> Figure:
    title, mine = RISK_TITLES[which], getattr(given.table, which)
    plot = Plot((0.0, 1.0), (0.0, 1.0))
    plot.axes(shares(), shares(), "recall", "precision")
    if math.isfinite(mine.prevalence):
        plot.line([(0.0, mine.prevalence), (1.0, mine.prevalence)], "chance")
    for row_name, points in reversed([*curves.items()]):  # the monitor last, on top
        # As AUPRC adds it up: between two recalls the precision of the higher one holds.
        before = [0.0, *(recall for recall, _ in points)]
        stairs = [at for start, (x, y) in zip(before, points, strict=False) for at in ((start, y), (x, y))]
        plot.line(stairs, rows[row_name][1])
    keys, said = [], []
    for row_name in curves:
        row, style = rows[row_name]
        figures = mine if style == "c0" else getattr(given.table.baselines[row_name], which)
        shown = "monitor" if style == "c0" else name(row_name)
        keys.append(Key(style, f"{shown} *" if row.oracle else shown, number(figures.auprc)))
        said.append(f"{shown} {number(figures.auprc)}")
    keys.append(Key("chance", "guessing", number(mine.prevalence)))
    alt = f"{title}: precision against recall. AUPRC: {', '.join(said)}; guessing {number(mine.prevalence)}."
    return Figure(plot.svg(), alt, f"{title}: precision and recall, with AUPRC", tuple(keys))


def reliability_section(given: ReportInput) -> Made | None:
    """Both curves over the steps that the monitor judged; None where its scores are no probabilities."""
    kept, monitor = given.judged(), given.behind.rows[0]
    if not monitor.probability or not kept.any():
        return None
    figures: list[Block] = []
    tables: list[Block] = []
    data = {}
    for which, scores in zip(RISK_TITLES, monitor.flat(given.behind.lengths), strict=True):
        title, risk = RISK_TITLES[which], getattr(given.table, which)
        bins = reliability_curve(given.labels()[which][kept], scores[kept])
        ece = f"ECE {number(risk.ece)} {spread(risk.intervals.get('ece'))}".strip()
        figures.append(_reliability(title, bins, ece))
        rows = [
            [f"{number(one.low)} to {number(one.high)}", f"{one.prefixes:,}", number(one.mean_risk), number(one.rate)]
            for one in bins
        ]
        tables.append(TableBlock.of(f"{title}: reliability", ["Risks", "steps", "mean risk", "came true"], rows))
        data[which] = plain_value(bins)
    said = Text(
        "Steps are sorted by risk into parts of equal size. A dot below the diagonal: the monitor says more than comes "
        "true; above: less. ECE is the mean distance from the diagonal."
    )
    return (said, Pair(tuple(figures)), Folded("The same in numbers", (Pair(tuple(tables)),))), data


def _reliability(title: str, bins: list[ReliabilityBin], ece: str) -> Figure:
    plot = Plot((0.0, 1.0), (0.0, 1.0))
    plot.axes(shares(), shares(), "risk that the monitor said", "share that came true")
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for point in bins:
        plot.line([(point.low, point.rate), (point.high, point.rate)], "spread")
    plot.line([(point.mean_risk, point.rate) for point in bins], "c0")
    for point in bins:
        plot.dot((point.mean_risk, point.rate), "point")
    said = ", ".join(f"{number(point.mean_risk)} came true in {number(point.rate)}" for point in bins)
    keys = (Key("c0", "monitor, and the risks each dot holds", ece), Key("chance", "as said"))
    return Figure(plot.svg(), f"{title}: risk said and share that came true: {said}.", f"{title}: reliability", keys)


def alerts_section(given: ReportInput) -> Made | None:
    """Table by budget and histogram of leads; None where nothing carries a threshold."""
    table, row = given.table, working_alert(given.table.first_alert)
    blocks = list(table.alert_blocks())
    if not blocks:
        return None
    if row is None or row.alerts is None:
        return tuple(blocks), {"histogram": None}
    if row.alerts.leads:
        figure, bars = _histogram(np.asarray(row.alerts.leads), table.horizon, table.failed_runs, budget_of(row))
        blocks.append(figure)
    else:
        blocks.append(Text(f"At {budget_of(row)} no failed run is alerted, so there is no lead to draw."))
        bars = []
    return tuple(blocks), {"histogram": {"budget": row.budget, "bars": bars}}


def _histogram(
    leads: npt.NDArray[np.int64], horizon: int, failed: int, budget: str
) -> tuple[Figure, list[dict[str, int]]]:
    """Bars of single steps; where that would be too many, one for all late alerts and equal ones for the early."""
    most = int(leads.max())
    width = 1 if most < BARS else -(-(most - horizon) // (BARS - 1))
    starts = [*range(most + 1)] if width == 1 else [0, *range(horizon + 1, most + 1, width)]
    ends = [*(start - 1 for start in starts[1:]), most if width == 1 else starts[-1] + width - 1]
    heights = [int(((leads >= low) & (leads <= high)).sum()) for low, high in zip(starts, ends, strict=True)]
    drawing = bar_chart(
        [f"{low}" if low == high else f"{low}–{high}" for low, high in zip(starts, ends, strict=True)],
        [
            [(0.0, float(height), "bar early" if start > horizon else "bar late")]
            for start, height in zip(starts, heights, strict=True)
        ],
        counts(max(heights)),
        "steps left at the first alert",
        "failed runs",
        height=230,
        names_shown=24 if width == 1 else 9,
    )
    early = int((leads > horizon).sum())
    alt = (
        f"Steps left at the first alert of {len(leads):,} failed runs alerted of {failed:,}, at {budget}: "
        f"{early:,} with more than {horizon} left; median {np.median(leads):g}, most {most:,}."
    )
    keys = (
        Key("bar early", f"early, more than {horizon} left", f"{early:,}"),
        Key("bar late", "late", f"{len(leads) - early:,}"),
        Key("", "never alerted", f"{failed - len(leads):,}"),
    )
    bars = [{"from": a, "to": b, "runs": n} for a, b, n in zip(starts, ends, heights, strict=True)]
    return Figure(drawing, alt, f"How early alerts come, at a budget of {budget}", keys, broad=True), bars


def automaton_section(given: ReportInput) -> Made | None:
    """How far it may be trusted, as the evaluation measured it, its picture, its symbols."""
    view, measured = given.automaton, given.table.sections.get("automaton")
    if view is None:
        return None if measured is None else (measured.blocks(), measured.as_json())
    blocks: list[Block] = [
        Text(
            f"{name(view.name)}: a finite automaton of {view.states:,} states over {view.symbols:,} symbols. It "
            "explains itself; how far it also explains the monitor it was learned from, these figures say."
        ),
        *(() if measured is None else measured.blocks()),
    ]
    if view.svg:
        blocks.append(Image(view.svg, f"The automaton {name(view.name)}: states, coloured by risk, and what leads on."))
    if view.glossary:
        head = ("No.", "meaning", "of steps", "moves the risk by", "for example")
        symbols = TableBlock.of("Symbols", head, [_symbol(line) for line in view.glossary], words={1, 4})
        blocks.append(Folded(f"Glossary: what {len(view.glossary):,} symbols mean", (symbols,)))
    elif view.glossary_text:
        blocks.append(Folded("Glossary", (Verbatim(view.glossary_text[:LONGEST], "Glossary"),)))
    return tuple(blocks), {
        "name": view.name,
        "states": view.states,
        "symbols": view.symbols,
        "measured": None if measured is None else measured.as_json(),
        "glossary": plain_value(view.glossary),
    }


def _symbol(line: SymbolLine) -> list[str | Cell]:
    moves = signed(line.risk_change) if math.isfinite(line.risk_change) else "–"
    meaning = Cell(plain(line.meaning, TEXT_LETTERS), plain(line.condition, TEXT_LETTERS))
    return [str(line.symbol), meaning, percent(line.share), moves, plain(line.example, TEXT_LETTERS)]
