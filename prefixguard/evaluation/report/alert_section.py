"""What the alarm would have done, and how early its alerts come."""

from __future__ import annotations

import numpy as np

from prefixguard.evaluation.alert_table import budget_of
from prefixguard.evaluation.report.material import ReportInput
from prefixguard.evaluation.report.sentences import largest_granted
from prefixguard.results import Figure, Key, Plot, Section, Text, counts

#: Bars of the histogram, at most.
BARS = 24


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
