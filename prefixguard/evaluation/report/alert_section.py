"""What the alarm would have done: who is alerted, how early, at what price; and the histogram of leads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from prefixguard.evaluation.alerts import AlertRow
from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.evaluation.report.sentences import largest_granted
from prefixguard.metrics import FirstAlerts
from prefixguard.results import Block, Cell, Figure, Key, Plot, Section, Table, Text, counts, number, percent, percents

HEAD = (
    "Alarm by",
    "budget",
    "threshold",
    "false alarms",
    "failed runs alerted",
    "alerted early",
    "lead, steps",
    "steps saved",
    "steps lost",
    "text saved",
)
#: Bars of the histogram, at most.
BARS = 24
#: Values of a group that are listed; JSON has all.
SHOWN = 20
_TEXT = (
    "Text saved: of the bytes of failed runs' records, those after the alert, for want of tokens, which records do not "
    "count. "
)


def alerts_section(given: ReportInput) -> Section | None:
    """Table by budget and histogram; None where nothing carries a threshold."""
    table = given.table
    rows = [("monitor", alert) for alert in table.first_alert]
    # A baseline without an alarm is not worth a line.
    rows += [(title, alert) for title, row in table.baselines.items() for alert in row.first_alert if alert.alerts]
    if not rows:
        return None
    cells = tuple(_rows(rows))
    blocks: list[Block] = [
        Text(
            "The alarm goes by the risk of failing at all. Budget: share of successful runs that may ever alarm. "
            f"Early: more than {table.horizon} steps were left. Lead: steps left at the first alert, median and "
            "quartiles. "
            "Steps saved: of failed runs, those after the alert; lost: of successful runs, those after a false alarm. "
            + _TEXT * any(alert.text is not None for _, alert in rows)
            + "Small figures: 95 % intervals."
        ),
        Table.of(
            "First alerts by budget",
            HEAD,
            cells,
            marked={i for i, row in enumerate(cells) if row[0].text == "monitor"},
        ),
    ]
    refused: dict[str, None] = {}
    for _, alert in rows:
        if alert.reason and (alert.alerts is None or alert.groups):
            refused[f"Refused at {_budget(alert)}{' for all runs' if alert.groups else ''}: {alert.reason}"] = None
    blocks += [Text(reason, "faint") for reason in refused]
    own = next((alert for alert in table.first_alert if alert.groups), None)
    if own is not None:
        blocks.append(
            Text(
                f"At {_budget(own)} each run is judged by the threshold of its {name(own.grouped_by or '')}, where "
                "that has one of its own, as it would be while it runs; at other budgets there is one for all."
            )
        )
    row = largest_granted(table)
    data: dict[str, object] = {"histogram": None}
    if row is not None and row.alerts is not None:
        figure, bars = _histogram(row.alerts.leads, table.horizon, table.failed_runs, _budget(row))
        blocks.append(figure)
        data["histogram"] = {"budget": row.budget, "bars": bars}
    return Section("first_alerts", "First alerts", tuple(blocks), data)


def _budget(alert: AlertRow) -> str:
    return "rule" if alert.budget is None else f"{100 * alert.budget:g} %"


def _rows(rows: Sequence[tuple[str, AlertRow]]) -> Iterator[tuple[Cell, ...]]:
    for title, alert in rows:
        text = alert.text
        saved = Cell() if text is None else Cell(percent(text.saved), percents(text.intervals.get("saved")))
        yield (*_row(name(title), alert, alert.alerts, "refused"), saved)
        for part in alert.groups[:SHOWN]:
            value = "others" if part.value is None else f"{name(alert.grouped_by or '')} {name(part.value)}"
            yield (*_row(f"· {value} ({part.runs:,} runs)", alert, part.alerts, "none"), Cell())
        if len(alert.groups) > SHOWN:
            yield (Cell(f"· and {len(alert.groups) - SHOWN} more"), *[Cell()] * (len(HEAD) - 1))


def _row(title: str, alert: AlertRow, found: FirstAlerts | None, otherwise: str) -> tuple[Cell, ...]:
    start = (Cell(title), Cell(_budget(alert)))
    if found is None:
        return (*start, Cell(otherwise), *[Cell()] * (len(HEAD) - 4))
    lead = Cell("–")
    if found.leads:
        lead = Cell(f"{found.lead_median:g}", f"[{found.lead_low:g}, {found.lead_high:g}]")

    def share(which: str) -> Cell:
        return Cell(percent(getattr(found, which)), percents(found.intervals.get(which)))

    return (
        *start,
        Cell("" if alert.budget is None else _mark(found.threshold)),
        share("false_alarm_rate"),
        share("alerted"),
        share("early"),
        lead,
        share("steps_saved"),
        share("steps_lost"),
    )


def _mark(threshold: float) -> str:
    """A risk, or a number of steps; NaN: there is none for all runs."""
    if math.isnan(threshold):
        return "none"
    return number(threshold) if threshold <= 1 else f"{threshold:g}"


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
