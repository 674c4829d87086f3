"""The parts of an audit table as they are read: steps, agents, alarms, walks and cost, differences, published."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from prefixguard.auditor.published import PublishedRow
from prefixguard.auditor.text_blocks import TextBlock
from prefixguard.evaluation.figures import Difference
from prefixguard.metrics import Attribution, Quartiles
from prefixguard.results import percent, percents

_DEPLOYABLE = {True: "yes", False: "no", None: "unknown"}


class AuditRowView(Protocol):
    """What is read of a row."""

    @property
    def name(self) -> str: ...
    @property
    def figures(self) -> Attribution: ...
    @property
    def note(self) -> str: ...
    @property
    def trivial(self) -> bool: ...
    @property
    def hindsight(self) -> bool: ...
    @property
    def ahead(self) -> Mapping[str, Difference]: ...


class AuditTableView(Protocol):
    """What is read of a table."""

    @property
    def runs(self) -> int: ...
    @property
    def tasks(self) -> int: ...
    @property
    def rows(self) -> Sequence[AuditRowView]: ...
    @property
    def published(self) -> tuple[PublishedRow, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


def audit_blocks(table: AuditTableView) -> list[TextBlock]:
    """The table, block by block."""
    blocks = [
        TextBlock("", (), tuple(head_lines(table))),
        _steps(table.rows),
        _agents(table.rows),
        _alarms(table.rows),
        *_walks(table.rows),
        *_differences(table.rows),
        TextBlock("", (), tuple(_legend(table))),
        *published_blocks(table.published),
    ]
    if table.notes:
        blocks.append(TextBlock("", (), table.notes))
    return blocks


def head_lines(table: AuditTableView) -> Iterator[str]:
    """Which runs these are, and what cannot be known of them."""
    counts = table.rows[0].figures.counts
    yield (
        f"{table.runs:,} audited runs of {table.tasks:,} tasks: {counts.unsafe:,.0f} failed (U), {counts.safe:,.0f} "
        "safe (S)"
    )
    if counts.unplaced:
        yield f"{counts.unplaced:,.0f} failed runs name no decisive step among their steps: no guess is right there"
    if not counts.safe:
        yield "no safe run: false alarms cannot be measured, and nothing stands against an auditor that always alarms"


def _steps(rows: Sequence[AuditRowView]) -> TextBlock:
    cells: list[tuple[str, ...]] = [("", "Exact-F1", "", "by text", "Step-Acc", "", "±1", "±3")]
    for row in rows:
        found = row.figures
        cells.append(
            (
                shown_name(row),
                percent(found.exact_f1),
                percents(found.intervals.get("exact_f1")),
                percent(found.exact_f1_text),
                percent(found.step_accuracy),
                percents(found.intervals.get("step_accuracy")),
                percent(found.step_within_1),
                percent(found.step_within_3),
            )
        )
    return TextBlock("Whether and where", tuple(cells))


def _agents(rows: Sequence[AuditRowView]) -> TextBlock:
    cells: list[tuple[str, ...]] = [("", "Agent-Acc", "", "alike", "joint", "", "ASS", "alarmed", "ASS all")]
    for row in rows:
        found = row.figures
        alike = found.agent_accuracy_normalised
        cells.append(
            (
                shown_name(row),
                percent(found.agent_accuracy),
                percents(found.intervals.get("agent_accuracy")),
                "" if math.isnan(alike) else percent(alike),
                percent(found.joint),
                percents(found.intervals.get("joint")),
                _steps_of(found.ass),
                percent(found.alarmed),
                _steps_of(found.ass_all),
            )
        )
    return TextBlock("Who, and how far off", tuple(cells))


def _alarms(rows: Sequence[AuditRowView]) -> TextBlock:
    """Errors first of all: a broken auditor looks safe elsewhere."""
    head = ("", "errors", "abstain", "FAR", "", "deployable", "U", "S", "D", "FA", "TP")
    cells: list[tuple[str, ...]] = [head]
    for row in rows:
        found, counts = row.figures, row.figures.counts
        parts = (counts.unsafe, counts.safe, counts.alarmed, counts.false_alarms, counts.exact)
        cells.append(
            (
                shown_name(row),
                percent(found.errors),
                percent(found.abstained),
                percent(found.false_alarm_rate),
                percents(found.intervals.get("false_alarm_rate")),
                _DEPLOYABLE[found.deployable],
                *map(_count, parts),
            )
        )
    return TextBlock("Errors and false alarms, and counts of runs", tuple(cells))


def _walks(rows: Sequence[AuditRowView]) -> Iterator[TextBlock]:
    """When alarms come and what they cost, of those that watch a run or ask somebody."""
    head = ("", "delay", "lead", "early", "calls", "failed", "FA/call", "s/call", "cost/call", "1,000 runs")
    cells = [head]
    for row in rows:
        found = row.figures
        if not found.lead.runs and not found.calls_per_run > 0:
            continue
        asked = found.calls_per_run > 0
        cells.append(
            (
                shown_name(row),
                _quartiles(found.delay),
                _quartiles(found.lead),
                percent(found.before_end),
                f"{found.calls_per_run:.1f}" if asked else "",
                percent(found.failed_calls) if asked else "",
                percent(found.false_alarms_per_call) if asked else "",
                f"{found.seconds_per_call:.2f}" if asked else "",
                _money(found.cost_per_call) if asked else "",
                _money(found.cost_per_1000_runs) if asked else "",
            )
        )
    if len(cells) > 1:
        yield TextBlock("When, and at what cost", tuple(cells))


def _differences(rows: Sequence[AuditRowView]) -> Iterator[TextBlock]:
    shown = ("exact_f1", "step_accuracy", "agent_accuracy", "joint", "false_alarm_rate")
    cells: list[tuple[str, ...]] = [("minus", "Exact-F1", "Step-Acc", "Agent-Acc", "joint", "FAR")]
    for row in rows:
        if row.ahead:
            cells.append((shown_name(row), *(_points(row.ahead.get(name)) for name in shown)))
    if len(cells) > 1:
        yield TextBlock(f"{rows[0].name} minus each other, per cent points", tuple(cells))


def _legend(table: AuditTableView) -> Iterator[str]:
    yield (
        "Exact-F1 has false alarms on safe runs in its precision, 2 TP / (U + D + FA); by text: 2 TP / (U + D). "
        "D: failed runs with an alarm, FA: safe runs with one, TP: failed runs whose decisive step is blamed. "
        "Step-Acc: TP / U; ±1, ±3: with an error of so many steps. ASS: mean error in steps where a step is blamed, "
        "to be read with alarmed = D / U; ASS all: a run without a blamed step counts its whole length."
    )
    yield (
        "Agent-Acc: of failed runs, names letter by letter; alike: after normalising; joint: step and agent. "
        "errors, abstain: runs without a verdict, runs of which the auditor cannot tell; neither is safe. "
        "FAR: FA / S, of whole runs. deployable: FAR at most 20 %, Step-Acc at least 50 %. "
        "Brackets: 95 %, bootstrap over tasks."
    )
    if any(row.figures.lead.runs or row.figures.calls_per_run > 0 for row in table.rows):
        yield (
            "delay: steps from the decisive one to the alarm; lead: steps left at the alarm; median and quartiles of "
            "the failed runs alarmed while they went on. early: failed runs alarmed before their last step. calls: a "
            "run. failed: calls without a verdict. FA/call: false alarms a call on safe runs."
        )
    trivial = [f"{row.name}: {row.note}" for row in table.rows if row.trivial and row.note]
    if trivial:
        yield "Needs no auditor: " + "; ".join(trivial) + "."
    if any(row.hindsight for row in table.rows):
        yield "*: chosen on the labels of these very runs; no fair opponent, but what a constant can reach."


def published_blocks(rows: Sequence[PublishedRow]) -> Iterator[TextBlock]:
    """Published figures with their caveats and sources; nothing without a row."""
    if not rows:
        return
    letters: dict[str, str] = {}
    for row in rows:
        for caveat in row.caveats:
            letters.setdefault(caveat, chr(ord("a") + len(letters) % 26))
    cells: list[tuple[str, ...]] = [("", "test", "Exact-F1", "Step-Acc", "Agent-Acc", "ASS", "FAR", "but")]
    for row in rows:
        cells.append(
            (
                row.system,
                row.test,
                percent(row.exact_f1),
                percent(row.step),
                percent(row.agent),
                _steps_of(row.ass),
                percent(row.false_alarm_rate),
                "".join(sorted(letters[caveat] for caveat in row.caveats)),
            )
        )
    sources: dict[str, list[str]] = {}
    for row in rows:
        known = sources.setdefault(row.source, [])
        if row.system not in known:
            known.append(row.system)
    below = [f"{letter}: {caveat}" for caveat, letter in letters.items()]
    below += [f"Source of {', '.join(systems)}: {source}." for source, systems in sources.items()]
    yield TextBlock("Published, and not of the same protocol or runs", tuple(cells), tuple(below))


def shown_name(row: AuditRowView) -> str:
    """A row's name, with a star where it was chosen on the labels of these very runs."""
    return row.name + ("*" if row.hindsight else "")


def _steps_of(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "–"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _money(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _quartiles(quartiles: Quartiles) -> str:
    return f"{quartiles.median:g} [{quartiles.low:g}, {quartiles.high:g}]" if quartiles.runs else ""


def _points(difference: Difference | None) -> str:
    if difference is None or not math.isfinite(difference.value):
        return "–"
    ends = difference.interval
    spread = "" if ends is None else " [{:+.0f}, {:+.0f}]".format(*(100 * end for end in ends))
    return f"{100 * difference.value:+.1f}{spread}"
