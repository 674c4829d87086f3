"""Is a risk of .3 followed by failure three times in ten? The reliability curve of both risks."""

from __future__ import annotations

from dataclasses import asdict

from prefixguard.evaluation.report.material import ReportInput
from prefixguard.metrics import Prefixes, ReliabilityBin, reliability_curve
from prefixguard.results import (
    Block,
    Cell,
    Figure,
    Folded,
    Key,
    Pair,
    Plot,
    Section,
    Table,
    Text,
    number,
    shares,
    spread,
)


def reliability_section(given: ReportInput) -> Section | None:
    """Both curves over the steps that the monitor judged; None where its scores are no probabilities."""
    kept = given.judged()
    if not given.rows[0].probability or not kept.any():
        return None
    prefixes = Prefixes.of(given.lengths, given.failed, given.tasks)
    flat = dict(zip(("imminent", "outcome"), given.rows[0].flat(given.lengths), strict=True))
    labels = {"imminent": prefixes.imminent_labels(given.table.horizon), "outcome": prefixes.outcome_labels}
    figures: list[Block] = []
    tables: list[Block] = []
    data = {}
    for which, title in (("imminent", "Failing soon"), ("outcome", "Failing at all")):
        bins = reliability_curve(labels[which][kept], flat[which][kept])
        risk = getattr(given.table, which)
        figures.append(_figure(title, bins, number(risk.ece), spread(risk.intervals.get("ece"))))
        tables.append(_table(title, bins))
        data[which] = [asdict(point) for point in bins]
    said = Text(
        "Steps are sorted by risk into parts of equal size. A dot below the diagonal: the monitor says more than comes "
        "true; above: less. ECE is the mean distance from the diagonal."
    )
    blocks: tuple[Block, ...] = (said, Pair(tuple(figures)), Folded("The same in numbers", (Pair(tuple(tables)),)))
    return Section("reliability", "Can the risks be taken at their word?", blocks, data)


def _figure(title: str, bins: list[ReliabilityBin], ece: str, ends: str) -> Figure:
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


def _table(title: str, bins: list[ReliabilityBin]) -> Table:
    rows = tuple(
        (
            Cell(f"{number(point.low)} to {number(point.high)}"),
            Cell(f"{point.prefixes:,}"),
            Cell(number(point.mean_risk)),
            Cell(number(point.rate)),
        )
        for point in bins
    )
    return Table.of(f"{title}: reliability", ("Risks", "steps", "mean risk", "came true"), rows)
