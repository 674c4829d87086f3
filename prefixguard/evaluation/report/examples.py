"""Example runs: which are shown, and each step by step, with the risk as a curve and a ribbon of colours.

Examples are the middle ones of their kind; they are not picked by hand.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert, run_maximum
from prefixguard.evaluation.report.given import TEXT_LETTERS, ExampleRun, ReportInput, name
from prefixguard.evaluation.report.sections import Made
from prefixguard.results import (
    SCALE,
    Block,
    Bullets,
    Card,
    Cell,
    Column,
    Figure,
    Folded,
    Key,
    Plot,
    TableBlock,
    Text,
    colour_of,
    number,
    pixels,
)
from prefixguard.runtime import Level, Reading, plain

#: Steps of one run that its table lists; the ribbon shows all.
LISTED = 60
#: Pixels of a step, at most and at least.
WIDEST, NARROWEST = 26.0, 4.0
#: Pixels that all steps of a run should fit into.
ROOM = 860.0


class ExampleKind(StrEnum):
    """What became of a run. Early: more than the horizon's steps were left at the first alert."""

    EARLY = "caught early"
    LATE = "caught late"
    MISSED = "missed"
    FALSE_ALARM = "false alarm"
    PASSED = "let pass"


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """A run that was chosen. run: its position. alert: step of its first alert, from 1; None without one."""

    kind: ExampleKind
    run: int
    alert: int | None


def kind_of(
    risks: npt.ArrayLike, failed: bool, threshold: float | None, policy: AlarmPolicy, horizon: int
) -> tuple[ExampleKind, int | None]:
    """ExampleKind of a run and step of its first alert. risks: outcome risks, (T,). threshold None: nothing alarms."""
    alert = first_alert(risks, threshold, policy)
    if alert is None:
        return (ExampleKind.MISSED if failed else ExampleKind.PASSED), None
    if not failed:
        return ExampleKind.FALSE_ALARM, alert
    return (ExampleKind.EARLY if len(np.asarray(risks)) - alert > horizon else ExampleKind.LATE), alert


def choose_examples(
    outcome: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    run_ids: Sequence[str],
    threshold: float | Sequence[float | None] | None,
    policy: AlarmPolicy,
    *,
    horizon: int,
    per_kind: int = 1,
) -> tuple[ExampleChoice, ...]:
    """Runs to show, in the order of `ExampleKind`; a kind that no run is of is left out.

    outcome: the monitor's outcome risks, one (T,) a run. threshold: of the alarm, None where it was refused; or one
    a run.
    Within a kind runs are put in order by the lead of the alert, or without one by the highest risk, then by id; of n
    runs the middle one is taken, or for `per_kind` k those at the shares 1/(k+1) ... k/(k+1). Same runs, same choice.

    >>> [c.kind.value for c in choose_examples([[.9, .1, .2, .1, .1], [.1]], [True, False], "ab", .5, AlarmPolicy(),
    ...     horizon=3)]
    ['caught early', 'let pass']
    """
    found: dict[ExampleKind, list[tuple[float, str, int, int | None]]] = {kind: [] for kind in ExampleKind}
    own = threshold if isinstance(threshold, Sequence) else [threshold] * len(outcome)
    for run, (risks, fail, at) in enumerate(zip(outcome, failed, own, strict=True)):
        values = np.asarray(risks, dtype=np.float64)
        kind, alert = kind_of(values, fail, at, policy, horizon)
        place = run_maximum(values, policy) if alert is None else float(len(values) - alert)
        found[kind].append((place, run_ids[run], run, alert))
    chosen = []
    for kind, runs in found.items():
        runs.sort(key=lambda entry: entry[:3])
        places = {(len(runs) * (i + 1)) // (per_kind + 1) for i in range(per_kind)} if runs else set()
        for place in sorted(places):
            _, _, run, alert = runs[min(place, len(runs) - 1)]
            chosen.append(ExampleChoice(kind, run, alert))
    return tuple(chosen)


#: Class of each kind's card; their order is that of the cards.
_STYLES = {
    ExampleKind.EARLY: "fine",
    ExampleKind.LATE: "care",
    ExampleKind.MISSED: "bad",
    ExampleKind.FALSE_ALARM: "bad",
    ExampleKind.PASSED: "fine",
}


@dataclass(frozen=True, slots=True)
class _Example:
    """An example run as its card shows it. alert: step of its first alert, from 1. peak: the step with the highest
    risk; None where none was judged."""

    shown: ExampleRun
    run_id: str
    task: str
    group: str
    failed: bool
    threshold: float | None
    kind: ExampleKind
    alert: int | None
    peak: int | None

    @classmethod
    def of(cls, given: ReportInput, shown: ExampleRun) -> _Example:
        run, behind = shown.run, given.behind
        risks = [math.nan if r.outcome_risk is None else r.outcome_risk for r in shown.readings]
        failed, threshold = behind.failed[run], given.alarm_of(run)
        kind, alert = kind_of(risks, failed, threshold, given.policy, given.table.horizon)
        group = behind.groups[run] if behind.groups is not None else ""
        group = f"{given.table.grouped_by or 'group'} {name(group)}" if group else ""
        peak = None if np.isnan(risks).all() else int(np.nanargmax(risks)) + 1
        return cls(shown, given.run_id(run), behind.tasks[run], group, failed, threshold, kind, alert, peak)

    @property
    def end(self) -> str:
        return "failed" if self.failed else "succeeded"


def examples_section(given: ReportInput) -> Made | None:
    """A card for each example, in the order of `ExampleKind`; None without examples."""
    if not given.examples:
        return None
    working = given.working()
    order = [*_STYLES]
    examples = sorted((_Example.of(given, one) for one in given.examples), key=lambda one: order.index(one.kind))
    if working is None:
        rule = "No budget was granted, so there is no alarm, and every failed run counts as missed."
    else:
        above = "" if working[1] is None else f": above a risk of {number(working[1])}"
        rule = f"The alarm is that of a budget of {100 * working[0]:g} %{above}."
        if given.alarm_groups is not None and working[0] == given.policy.budget:
            by = name(given.alarm_groups.thresholds.by)
            rule += f" Runs whose {by} has a threshold of its own are judged by that; each drawing shows its own."
    intro = Text(
        "Each drawing is one run, a column a step. The line and the colours are the risk of failing at all, "
        f"the bar below them the level. {rule} Examples stand in the middle of their kind, ordered by lead or by "
        "highest risk; nobody picked them. Point at a step, or tap it, to read it."
    )
    data = [
        {
            "run_id": one.run_id,
            "task": one.task,
            "kind": one.kind.value,
            "threshold": one.threshold,
            "failed": bool(one.failed),
            "first_alert": one.alert,
            "steps": [reading.to_json() for reading in one.shown.readings],
        }
        for one in examples
    ]
    return (intro, _scale(), *map(_card, examples)), {"threshold": working and working[1], "runs": data}


def _card(one: _Example) -> Card:
    readings, steps, alert = one.shown.readings, len(one.shown.readings), one.alert
    words = [f"task {name(one.task)}", one.group, f"{steps:,} {'step' if steps == 1 else 'steps'}", one.end]
    words.append("" if alert is None else f"first alert at step {alert}, {steps - alert:,} before the end")
    shown = alert or one.peak
    highest = "" if shown is None else f"; at step {shown}, risk {number(readings[shown - 1].outcome_risk or 0.0)}"
    called = name(one.run_id)
    alt = (
        f"Run {called}, {one.kind.value}: {steps} steps, {one.end}; "
        f"{'no alert' if alert is None else f'first alert at step {alert}'}{highest}."
    )
    blocks: list[Block] = [Figure(_drawing(one), alt, f"Risk of run {called}", wide=True)]
    if shown is not None:
        reading = readings[shown - 1]
        where = f"the first alert, step {shown}" if alert is not None else f"its highest, step {shown}"
        why = "the monitor names no reasons"
        if reading.level is Level.OK:
            why = "that is below WATCH, and reasons are given from WATCH on"
        reasons = tuple(plain(reason, TEXT_LETTERS) for reason in reading.reasons)
        risk = Text(f"At {where}, the risk is {number(reading.outcome_risk or 0.0)}; {why}.", "faint")
        blocks.append(Bullets(reasons, f"Why, at {where}:") if reasons else risk)
    blocks.append(Folded("Step by step", (_table(one),)))
    return Card(one.kind.value, _STYLES[one.kind], called, ", ".join(word for word in words if word), tuple(blocks))


def _drawing(one: _Example) -> str:
    readings = one.shown.readings
    n = len(readings)
    wide = min(WIDEST, max(NARROWEST, ROOM / n))
    plot = Plot((0.0, float(n)), (0.0, 1.0), width=34 + n * wide + 92, height=172, margins=(34, 10, 92, 66))
    for value, said in ((0.0, "0"), (0.5, ".5"), (1.0, "1")):
        y = plot.down(value)
        plot.add(f'<line class="grid" x1="34" x2="{pixels(plot.right)}" y1="{y:.1f}" y2="{y:.1f}"/>')
        plot.text(28, y + 4, said, anchor="end")
    if one.threshold is not None:
        plot.line([(0.0, one.threshold), (float(n), one.threshold)], "threshold")
        plot.text(plot.right + 6, plot.down(one.threshold) + 4, f"alarm {number(one.threshold)}")
    for style in ("imminent", "outcome"):
        risks = enumerate(getattr(reading, f"{style}_risk") for reading in readings)
        for judged, steps in groupby(risks, key=lambda step: step[1] is not None):
            part = [(i + 0.5, risk) for i, risk in steps if judged]  # the line breaks where there is no risk
            if part:
                plot.line(part, style)
            if len(part) == 1:
                plot.dot(part[0], f"single {style}", 2)
    top = plot.bottom + 8
    every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if n / size <= 26)
    every = max(every, 2 if wide < 18 and every == 1 else every)
    for i, (reading, step) in enumerate(zip(readings, one.shown.steps, strict=True), 1):
        x = plot.across(i - 1)
        plot.add(_cell(reading, f"Step {i} of {n}{': ' + name(step.tool) if step.tool else ''}", x, top, wide, i))
        if i == 1 or i % every == 0:
            plot.text(x + wide / 2, top + 53, str(i), anchor="middle")
    if one.alert is not None:
        x, y = plot.across(one.alert - 0.5), top + 31
        plot.add(f'<path class="alert" d="M{x:.1f} {y:.1f}l5.5 9h-11z"/>')
    style = "failed" if one.failed else "well"
    plot.add(
        f'<line class="end {style}" x1="{pixels(plot.right)}" x2="{pixels(plot.right)}" y1="10" '
        f'y2="{pixels(top + 22)}"/>'
    )
    plot.text(plot.right + 6, top + 16, ("✕ " if one.failed else "✓ ") + one.end, style=f"ended {style}")
    return plot.svg("ribbon")


def _cell(reading: Reading, step: str, x: float, top: float, wide: float, number_of: int) -> str:
    risk = reading.outcome_risk
    gap = 0.6 if wide > 8 else 0.0
    fill = "url(#unknown)" if risk is None else colour_of(risk)
    title = html.escape(f"{step}. {'UNKNOWN' if risk is None else f'{reading.level.value}, risk {number(risk)}'}")
    return (
        f'<g class="cell" data-step="{number_of}"><title>{title}</title>'
        f'<rect class="hit" x="{x:.1f}" y="10" width="{wide:.1f}" height="{top + 12:.1f}"/>'
        f'<rect class="shade" x="{x + gap / 2:.1f}" y="{top:.1f}" width="{wide - gap:.1f}" height="22" fill="{fill}"/>'
        f'<rect class="level {reading.level.value}" x="{x:.1f}" y="{top + 24:.1f}" width="{wide + 0.4:.1f}" '
        'height="4"/>'
        "</g>"
    )


def _table(one: _Example) -> TableBlock:
    readings = one.shown.readings
    listed = _listed(readings, one.alert)
    rows = []
    for i in listed:
        step, reading = one.shown.steps[i], readings[i]
        why = reading.unknown_reason or "; ".join(plain(reason, TEXT_LETTERS) for reason in reading.reasons)
        rows.append(
            [
                str(i + 1),
                Cell(name(step.tool), name(step.status)),
                *("–" if risk is None else number(risk) for risk in (reading.outcome_risk, reading.imminent_risk)),
                reading.level.value,
                plain(why, TEXT_LETTERS) if reading.unknown_reason else why,
                plain(step.text, TEXT_LETTERS),
            ]
        )
    cut = "" if len(listed) == len(readings) else f" ({len(listed)} of {len(readings):,}, around changes)"
    return TableBlock.of(
        f"Steps of run {name(one.run_id)}{cut}",
        ("Step", Column("tool"), "failing at all", "failing soon", Column("level"), "why", "what happened"),
        rows,
        words={5, 6},
        marked={place for place, i in enumerate(listed) if i + 1 == one.alert},
    )


def _listed(readings: Sequence[Reading], alert: int | None) -> list[int]:
    """Steps for the table, from 0: all, or the first, the last, the alert and those at which the risk changes most."""
    n = len(readings)
    if n <= LISTED:
        return list(range(n))
    risks = [0.0 if reading.outcome_risk is None else reading.outcome_risk for reading in readings]
    change = np.abs(np.diff(risks, prepend=risks[0]))
    change[[0, n - 1]] = np.inf
    if alert is not None:
        change[alert - 1] = np.inf
    return sorted(np.argsort(-change, kind="stable")[:LISTED].tolist())


def _scale() -> Figure:
    """The colours of risks, and the signs of a ribbon."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), width=420, height=44, margins=(8, 0, 8, 26))
    for i in range(40):
        plot.add(
            f'<rect x="{plot.across(i / 40):.1f}" y="2" width="{(plot.right - plot.left) / 40 + 0.8:.1f}" height="16" '
            f'fill="{colour_of((i + 0.5) / 40)}"/>'
        )
    for value, said in ((0.0, "risk 0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
        anchor = "start" if value == 0 else "end" if value == 1 else "middle"
        plot.text(plot.across(value), 34, said, anchor=anchor)
    keys = (
        Key("outcome", "failing at all"),
        Key("imminent", "failing soon"),
        Key("threshold", "alarm"),
        Key("level WATCH", "WATCH"),
        Key("level ALARM", "ALARM"),
        Key("level UNKNOWN", "UNKNOWN"),
        Key("alert", "first alert"),
    )
    alt = f"Colours of risks, from pale blue at 0 over amber to dark red at {SCALE[-1][0]:g} and more."
    return Figure(plot.svg("scale"), alt, "", keys)
