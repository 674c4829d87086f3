"""What the alarm would have done, as a table: who is alerted, how early, at what price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from prefixguard.evaluation.alerts import AlertRow
from prefixguard.metrics import FirstAlerts
from prefixguard.results import Block, Cell, Column, Table, Text, number, percent, percents
from prefixguard.runtime import plain

#: Values of a group that are listed; JSON has all.
SHOWN = 20
_NAME_LETTERS = 80
_HEAD = (
    "Alarm by",
    "budget",
    "threshold",
    "false alarms",
    Column("failed runs alerted", "number", "alerted", brief=True),
    Column("alerted early", "number", "early"),
    Column("lead, steps", "number", "lead"),
    Column("steps saved", "number", "steps", brief=True),
    Column("steps lost", "number", hidden=True),
    Column("text saved", "number", "text", brief=True),
)


def alert_blocks(rows: Mapping[str, Sequence[AlertRow]], horizon: int) -> tuple[Block, ...]:
    """The table by budget, why budgets were refused, and whose threshold runs are judged by; () where nothing alarms.

    rows: by name, the monitor's first; of others only what alarmed.
    """
    (first, own), *others = rows.items()
    shown = [(first, alert) for alert in own]
    shown += [(name, alert) for name, alerts in others for alert in alerts if alert.alerts]
    if not shown:
        return ()
    text = any(alert.text is not None for _, alert in shown)
    cells = list(_rows(shown))
    refused = [
        f"Refused at {budget_of(alert)}{' for all runs' if alert.groups else ''}: {alert.reason}"
        for _, alert in shown
        if alert.reason and (alert.alerts is None or alert.groups)
    ]
    grouped = next((alert for alert in own if alert.groups), None)
    marked = {i for i, row in enumerate(cells) if row[0].text == first}
    blocks: list[Block] = [
        Table.of("First alerts by budget, on the risk of failing at all", _HEAD, cells, marked=marked),
        Text(
            f"Budget: the share of successful runs that may ever alarm. Early: more than {horizon} steps were left. "
            "Lead: steps left at the first alert, median and quartiles. Steps saved: the share of the steps of "
            "failed runs that come after the alert. Steps lost, in the report: of successful runs, after a false alarm."
            + " Text saved: the same as steps saved, in bytes of the records, which do not count tokens."
            * text
        ),
        *(Text(reason, "faint") for reason in dict.fromkeys(refused)),
    ]
    if grouped is not None:
        blocks.append(
            Text(
                f"At {budget_of(grouped)} each run is judged by the threshold of its "
                f"{_name(grouped.grouped_by or '')}, where that has one of its own, as it would be while it runs; at "
                "other budgets there is one for all. The rows below it are runs of each value alone."
            )
        )
    return tuple(blocks)


def budget_of(alert: AlertRow) -> str:
    """A budget in words; a rule has none."""
    return "rule" if alert.budget is None else f"{100 * alert.budget:g} %"


def share_cell(found: FirstAlerts, which: str) -> Cell:
    """A share of first alerts, with its interval."""
    return Cell(percent(getattr(found, which)), percents(found.intervals.get(which)))


def lead_steps(found: FirstAlerts) -> Cell:
    """Steps left at the first alert: median, and quartiles."""
    return Cell(f"{found.lead_median:g}", f"[{found.lead_low:g}, {found.lead_high:g}]") if found.leads else Cell("–")


def _name(text: str) -> str:
    return plain(text, _NAME_LETTERS)


def _rows(rows: Sequence[tuple[str, AlertRow]]) -> Iterator[list[Cell]]:
    for title, alert in rows:
        text = alert.text
        saved = Cell() if text is None else Cell(percent(text.saved), percents(text.intervals.get("saved")))
        yield [*_row(_name(title), alert, alert.alerts, "refused"), saved]
        for part in alert.groups[:SHOWN]:
            value = "others" if part.value is None else _name(part.value)
            yield _row(f"· {value} ({part.runs:,} runs)", alert, part.alerts, "none")
        if len(alert.groups) > SHOWN:
            yield [Cell(f"· and {len(alert.groups) - SHOWN} more")]


def _row(title: str, alert: AlertRow, found: FirstAlerts | None, otherwise: str) -> list[Cell]:
    start = [Cell(title), Cell(budget_of(alert))]
    if found is None:
        return [*start, Cell(otherwise), *[Cell()] * (len(_HEAD) - 4)]
    shares = [share_cell(found, which) for which in ("false_alarm_rate", "alerted", "early")]
    costs = [share_cell(found, which) for which in ("steps_saved", "steps_lost")]
    threshold = Cell("" if alert.budget is None else _threshold(found.threshold))
    return [*start, threshold, *shares, lead_steps(found), *costs]


def _threshold(value: float) -> str:
    """A risk, or a number of steps; NaN: there is none for all runs."""
    if math.isnan(value):
        return "none"
    return number(value) if value <= 1 else f"{value:g}"
