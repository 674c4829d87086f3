"""An audit table in one block for a terminal: the auditors, the trivial rows that are hardest to beat, and who wins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from prefixguard.auditor.audit_blocks import AuditRowView, AuditTableView, head_lines, published_blocks, shown_name
from prefixguard.auditor.text_blocks import TextBlock
from prefixguard.results import percent, percents

#: Trivial rows that are shown; where they have other names, all are.
STRONGEST = (
    "best step elsewhere",
    "best entry elsewhere",
    "majority agent elsewhere",
    "most active agent",
    "random step",
    "first error",
)
#: Shown too beside an auditor whose alarms come while a run goes on, and beside one without alarms.
WALKERS = ("alarm at once", "never alarm")
#: Rows named in one sentence.
_NAMED = 3
#: A difference that is rounding only.
_LEVEL = 1e-9


def summary_blocks(table: AuditTableView) -> list[TextBlock]:
    """One block of figures with its sentences; published figures and notes where the table has them."""
    below = [*_compared(table.rows), _legend(table.rows)]
    blocks = [
        TextBlock("", (), tuple(head_lines(table))),
        TextBlock("", _cells(table.rows), tuple(below)),
        *published_blocks(table.published),
    ]
    if table.notes:
        blocks.append(TextBlock("", (), table.notes))
    return blocks


def _shown(rows: Sequence[AuditRowView]) -> list[AuditRowView]:
    systems = [row for row in rows if not row.trivial]
    names: tuple[str, ...] = STRONGEST
    if not systems or any(row.figures.lead.runs or not row.figures.counts.alarmed for row in systems):
        names += WALKERS
    trivial = [row for row in rows if row.trivial]
    return systems + ([row for row in trivial if row.name in names] or trivial)


def _cells(rows: Sequence[AuditRowView]) -> tuple[tuple[str, ...], ...]:
    head = ("", "Exact-F1", "Step-Acc", "", "±1", "ASS", "alarmed", "Agent-Acc", "FAR", "errors", "calls")
    cells: list[tuple[str, ...]] = [head]
    for row in _shown(rows):
        found = row.figures
        cells.append(
            (
                shown_name(row),
                percent(found.exact_f1),
                percent(found.step_accuracy),
                percents(found.intervals.get("step_accuracy")),
                percent(found.step_within_1),
                f"{found.ass:.2f}" if math.isfinite(found.ass) else "–",
                percent(found.alarmed),
                percent(found.agent_accuracy),
                percent(found.false_alarm_rate),
                percent(found.errors),
                f"{found.calls_per_run:.1f}" if found.calls_per_run > 0 else "",
            )
        )
    return tuple(cells)


def _compared(rows: Sequence[AuditRowView]) -> Iterator[str]:
    """Which trivial rows the first auditor does not beat, of all that there are, shown or not."""
    rivals = [row for row in rows if row.trivial and not row.hindsight and row.ahead]
    for figure, title in (("step_accuracy", "Step-Acc"), ("agent_accuracy", "Agent-Acc")):
        found = [(getattr(row.figures, figure), row, row.ahead[figure]) for row in rivals if figure in row.ahead]
        found = [one for one in found if math.isfinite(one[0]) and math.isfinite(one[2].value)]
        if not found:
            continue
        found.sort(key=lambda one: -one[0])
        behind = [f"{row.name} ({percent(value)})" for value, row, ahead in found if ahead.value <= _LEVEL]
        close = [
            f"{row.name} ({percent(value)})"
            for value, row, ahead in found
            if ahead.value > _LEVEL and (ahead.interval is None or ahead.interval[0] <= _LEVEL)
        ]
        first = f"{title}, {rows[0].name}: "
        if behind:
            said = f"does not beat {_listed(behind)}"
            said += f"; ahead of {_listed(close)}, but no more than chance allows" if close else ""
        elif close:
            said = f"ahead of every trivial row, though by no more than chance allows of {_listed(close)}"
        else:
            said = f"beats every trivial row; the strongest is {found[0][1].name} ({percent(found[0][0])})"
        yield first + said + "."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _legend(rows: Sequence[AuditRowView]) -> str:
    hidden = len(rows) - len(_shown(rows))
    more = f"{hidden} more trivial rows, delays" if hidden else "Delays"
    return (
        "Step-Acc, Agent-Acc: of the failed runs; ±1: at most one step off. ASS: mean error in steps, of the failed "
        "runs alarmed. FAR: safe runs alarmed. errors: runs without a verdict, never safe. Brackets: 95 %, bootstrap "
        f"over tasks. {more}, costs and differences: --full."
    )
