"""Curves of both risks: precision and recall, beside baselines and guessing; and whether the risks come true."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.table import EvaluationTable
from prefixguard.metrics import Prefixes, ReliabilityBin, reliability_curve
from prefixguard.results import (
    Block,
    Figure,
    Folded,
    Key,
    Pair,
    Plot,
    Section,
    Table,
    Text,
    number,
    plain_value,
    shares,
    spread,
)

Float = npt.NDArray[np.float64]

#: Points of a curve that are drawn, and written into JSON.
POINTS = 160
#: Curves besides the monitor's: honest baselines with the highest AUPRC, and oracles.
HONEST, ORACLES = 4, 4


def precision_recall(
    labels: npt.ArrayLike, scores: npt.ArrayLike, *, points: int = POINTS
) -> list[tuple[float, float]]:
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


def curves_section(given: ReportInput) -> Section | None:
    """Both charts; None where one class is missing."""
    table = given.table
    if not 0 < table.failed_runs < table.runs:
        return None
    prefixes = Prefixes.of(given.behind.lengths, given.behind.failed, given.behind.tasks)
    kept = given.judged()
    labels = {"imminent": prefixes.imminent_labels(table.horizon)[kept], "outcome": prefixes.outcome_labels[kept]}
    figures: list[Block] = []
    data = {}
    chosen = _chosen(given)
    styles = _styles(chosen)
    for place, (which, title) in enumerate((("imminent", "Failing soon"), ("outcome", "Failing at all"))):
        drawn = {}
        for row in chosen:
            scores = row.flat(given.behind.lengths)[place][kept]
            if not np.isnan(scores).any():
                drawn[row.name] = (row, precision_recall(labels[which], scores))
        figures.append(_figure(table, which, title, drawn, styles))
        data[which] = {
            title: {"oracle": row.oracle, "points": [[round(x, 5), round(y, 5)] for x, y in points]}
            for title, (row, points) in drawn.items()
        }
    left = [
        name(title) for title in table.baselines if title != "constant" and not any(title in d for d in data.values())
    ]
    more = f" Not drawn, for room: {', '.join(left)}." if left else ""
    said = Text(
        "Of all steps rated at least so high, how many are right (precision), and how many of the right ones are among "
        "them (recall). The area under a curve is its AUPRC. Dashed curves know what no monitor can know; the dotted "
        f"line is what guessing gives.{more}"
    )
    return Section("precision_recall", "Precision and recall", (said, Pair(tuple(figures))), data)


def _stairs(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The curve as AUPRC adds it up: between two recalls the precision of the higher one holds."""
    before = 0.0
    stairs = []
    for recall, precision in points:
        stairs += [(before, precision), (recall, precision)]
        before = recall
    return stairs


def _chosen(given: ReportInput) -> list[ScoreRow]:
    """Monitor, then the strongest honest rows (the step index among them), then oracles: by both AUPRC together.

    The same rows for both risks, so that a row keeps its colour.
    """
    table = given.table

    def auprc(row: ScoreRow) -> float:
        figures = table.baselines[row.name]
        value = figures.imminent.auprc + figures.outcome.auprc
        return value if math.isfinite(value) else -1.0

    others = [row for row in given.behind.rows[1:] if row.name in table.baselines and row.name != "constant"]
    others.sort(key=lambda row: (-auprc(row), row.name))
    honest = [row for row in others if not row.oracle]
    shown = honest[:HONEST]
    clock = next((row for row in honest if row.name == "step index"), None)
    if clock is not None and clock not in shown:
        shown[-1] = clock
    return [given.behind.rows[0], *shown, *[row for row in others if row.oracle][:ORACLES]]


def _styles(chosen: list[ScoreRow]) -> dict[str, str]:
    """Class of each curve: c0 the monitor's, c1 ... honest rows, o0 ... oracles."""
    honest = [row.name for row in chosen if not row.oracle]
    oracles = [row.name for row in chosen if row.oracle]
    return {title: f"{kind}{i}" for kind, titles in (("c", honest), ("o", oracles)) for i, title in enumerate(titles)}


def _figure(
    table: EvaluationTable,
    which: str,
    title: str,
    drawn: dict[str, tuple[ScoreRow, list[tuple[float, float]]]],
    styles: dict[str, str],
) -> Figure:
    mine = getattr(table, which)
    plot = Plot((0.0, 1.0), (0.0, 1.0))
    plot.axes(shares(), shares(), "recall", "precision")
    if math.isfinite(mine.prevalence):
        plot.line([(0.0, mine.prevalence), (1.0, mine.prevalence)], "chance")
    keys, said = [], []
    for row_name, (_, points) in reversed(drawn.items()):  # the monitor last, on top
        plot.line(_stairs(points), styles[row_name])
    for place, (row_name, (row, _)) in enumerate(drawn.items()):
        figures = mine if place == 0 else getattr(table.baselines[row_name], which)
        shown = "monitor" if place == 0 else name(row_name)
        keys.append(Key(styles[row_name], f"{shown} *" if row.oracle else shown, number(figures.auprc)))
        said.append(f"{shown} {number(figures.auprc)}")
    keys.append(Key("chance", "guessing", number(mine.prevalence)))
    alt = f"{title}: precision against recall. AUPRC: {', '.join(said)}; guessing {number(mine.prevalence)}."
    return Figure(plot.svg(), alt, f"{title}: precision and recall, with AUPRC", tuple(keys))


def reliability_section(given: ReportInput) -> Section | None:
    """Both curves over the steps that the monitor judged; None where its scores are no probabilities."""
    kept = given.judged()
    if not given.behind.rows[0].probability or not kept.any():
        return None
    prefixes = Prefixes.of(given.behind.lengths, given.behind.failed, given.behind.tasks)
    flat = dict(zip(("imminent", "outcome"), given.behind.rows[0].flat(given.behind.lengths), strict=True))
    labels = {"imminent": prefixes.imminent_labels(given.table.horizon), "outcome": prefixes.outcome_labels}
    figures: list[Block] = []
    tables: list[Block] = []
    data = {}
    for which, title in (("imminent", "Failing soon"), ("outcome", "Failing at all")):
        bins = reliability_curve(labels[which][kept], flat[which][kept])
        risk = getattr(given.table, which)
        figures.append(_reliability(title, bins, number(risk.ece), spread(risk.intervals.get("ece"))))
        tables.append(_bins(title, bins))
        data[which] = plain_value(bins)
    said = Text(
        "Steps are sorted by risk into parts of equal size. A dot below the diagonal: the monitor says more than comes "
        "true; above: less. ECE is the mean distance from the diagonal."
    )
    blocks: tuple[Block, ...] = (said, Pair(tuple(figures)), Folded("The same in numbers", (Pair(tuple(tables)),)))
    return Section("reliability", "Can the risks be taken at their word?", blocks, data)


def _reliability(title: str, bins: list[ReliabilityBin], ece: str, ends: str) -> Figure:
    plot = Plot((0.0, 1.0), (0.0, 1.0))
    plot.axes(shares(), shares(), "risk that the monitor said", "share that came true")
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for point in bins:
        plot.line([(point.low, point.rate), (point.high, point.rate)], "spread")
    plot.line([(point.mean_risk, point.rate) for point in bins], "c0")
    for point in bins:
        plot.dot((point.mean_risk, point.rate), "point")
    said = ", ".join(f"{number(point.mean_risk)} came true in {number(point.rate)}" for point in bins)
    keys = (Key("c0", "monitor, and the risks each dot holds", f"ECE {ece} {ends}".strip()), Key("chance", "as said"))
    return Figure(plot.svg(), f"{title}: risk said and share that came true: {said}.", f"{title}: reliability", keys)


def _bins(title: str, bins: list[ReliabilityBin]) -> Table:
    rows = [
        [
            f"{number(point.low)} to {number(point.high)}",
            f"{point.prefixes:,}",
            number(point.mean_risk),
            number(point.rate),
        ]
        for point in bins
    ]
    return Table.of(f"{title}: reliability", ["Risks", "steps", "mean risk", "came true"], rows)
