"""Example runs: which are shown, and each step by step, with the risk as a curve and a ribbon of colours.

Examples are the middle ones of their kind, so that nobody can pick the pretty ones.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, first_alert, run_maximum
from prefixguard.evaluation.report.material import TEXT_LETTERS, ExampleRun, ReportInput, name
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
    Section,
    Table,
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


class Kind(StrEnum):
    """What became of a run. Early: more than the horizon's steps were left at the first alert."""

    EARLY = "caught early"
    LATE = "caught late"
    MISSED = "missed"
    FALSE_ALARM = "false alarm"
    PASSED = "let pass"


@dataclass(frozen=True, slots=True)
class Choice:
    """A run that was chosen. run: its position. alert: step of its first alert, from 1; None without one."""

    kind: Kind
    run: int
    alert: int | None


def kind_of(
    risks: npt.ArrayLike, failed: bool, threshold: float | None, policy: AlarmPolicy, horizon: int
) -> tuple[Kind, int | None]:
    """Kind of a run and step of its first alert. risks: outcome risks, (T,). threshold None: nothing alarms."""
    alert = first_alert(risks, threshold, policy)
    if alert is None:
        return (Kind.MISSED if failed else Kind.PASSED), None
    if not failed:
        return Kind.FALSE_ALARM, alert
    return (Kind.EARLY if len(np.asarray(risks)) - alert > horizon else Kind.LATE), alert


def choose_examples(
    outcome: Sequence[npt.ArrayLike],
    failed: Sequence[bool],
    run_ids: Sequence[str],
    threshold: float | Sequence[float | None] | None,
    policy: AlarmPolicy,
    *,
    horizon: int,
    per_kind: int = 1,
) -> tuple[Choice, ...]:
    """Runs to show, in the order of `Kind`; a kind that no run is of is left out.

    outcome: the monitor's outcome risks, one (T,) a run. threshold: of the alarm, None where it was refused; or one
    a run.
    Within a kind runs are put in order by the lead of the alert, or without one by the highest risk, then by id; of n
    runs the middle one is taken, or for `per_kind` k those at the shares 1/(k+1) ... k/(k+1). Same runs, same choice.

    >>> [c.kind.value for c in choose_examples([[.9, .1, .2, .1, .1], [.1]], [True, False], "ab", .5, AlarmPolicy(),
    ...     horizon=3)]
    ['caught early', 'let pass']
    """
    found: dict[Kind, list[tuple[float, str, int, int | None]]] = {kind: [] for kind in Kind}
    marks = threshold if isinstance(threshold, Sequence) else [threshold] * len(outcome)
    for run, (risks, fail, mark) in enumerate(zip(outcome, failed, marks, strict=True)):
        values = np.asarray(risks, dtype=np.float64)
        kind, alert = kind_of(values, fail, mark, policy, horizon)
        place = run_maximum(values, policy) if alert is None else float(len(values) - alert)
        found[kind].append((place, run_ids[run], run, alert))
    chosen = []
    for kind, runs in found.items():
        runs.sort(key=lambda entry: entry[:3])
        places = {(len(runs) * (i + 1)) // (per_kind + 1) for i in range(per_kind)} if runs else set()
        for place in sorted(places):
            _, _, run, alert = runs[min(place, len(runs) - 1)]
            chosen.append(Choice(kind, run, alert))
    return tuple(chosen)


_STYLES = {
    Kind.EARLY: "fine",
    Kind.LATE: "care",
    Kind.MISSED: "bad",
    Kind.FALSE_ALARM: "bad",
    Kind.PASSED: "fine",
}
_ORDER = list(Kind)


def examples_section(given: ReportInput) -> Section | None:
    """A card for each example, in the order of `Kind`; None without examples."""
    if not given.examples:
        return None
    working = given.working()
    cards: list[tuple[tuple[int, int], Block]] = []
    data = []
    for example in given.examples:
        risks = [math.nan if r.outcome_risk is None else r.outcome_risk for r in example.readings]
        threshold = given.alarm_of(example.run)
        kind, alert = kind_of(risks, given.behind.failed[example.run], threshold, given.policy, given.table.horizon)
        at = (_ORDER.index(kind), len(cards))
        cards.append((at, _card(given, example, kind, alert, threshold)))
        data.append((at, _data(given, example, kind, alert)))
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
    blocks: tuple[Block, ...] = (intro, _scale(), *(card for _, card in sorted(cards, key=lambda entry: entry[0])))
    runs = [entry for _, entry in sorted(data, key=lambda entry: entry[0])]
    return Section(
        "examples", "Runs, step by step", blocks, {"threshold": None if working is None else working[1], "runs": runs}
    )


def _card(given: ReportInput, example: ExampleRun, kind: Kind, alert: int | None, threshold: float | None) -> Card:
    steps = len(example.readings)
    failed = given.behind.failed[example.run]
    end = "failed" if failed else "succeeded"
    words = [f"task {name(given.behind.tasks[example.run])}", f"{steps:,} {'step' if steps == 1 else 'steps'}", end]
    if given.behind.groups is not None and given.behind.groups[example.run]:
        words.insert(1, f"{given.table.grouped_by or 'group'} {name(given.behind.groups[example.run])}")
    if alert is not None:
        words.append(f"first alert at step {alert}, {steps - alert:,} before the end")
    shown = alert if alert is not None else _peak(example.readings)
    highest = "" if shown is None else f", risk {number(example.readings[shown - 1].outcome_risk or 0.0)}"
    alt = (
        f"Run {name(given.run_id(example.run))}, {kind.value}: {steps} steps, {end}; "
        + ("no alert" if alert is None else f"first alert at step {alert}")
        + ("" if shown is None else f"; at step {shown}{highest}")
        + "."
    )
    blocks: list[Block] = [
        Figure(
            _drawing(example, failed, alert, threshold),
            alt,
            f"Risk of run {name(given.run_id(example.run))}",
            wide=True,
        )
    ]
    if shown is not None:
        reading = example.readings[shown - 1]
        where = f"the first alert, step {shown}" if alert is not None else f"its highest, step {shown}"
        reasons = tuple(plain(reason, TEXT_LETTERS) for reason in reading.reasons)
        if reasons:
            blocks.append(Bullets(reasons, f"What moved the risk at {where}:"))
        else:
            why = "the monitor names no reasons"
            if reading.level is Level.OK:
                why = "that is below WATCH, and what moved the risk is told from WATCH on"
            blocks.append(Text(f"At {where}, the risk is {number(reading.outcome_risk or 0.0)}; {why}.", "faint"))
    blocks.append(Folded("Step by step", (_table(given, example, alert),)))
    return Card(kind.value, _STYLES[kind], name(given.run_id(example.run)), ", ".join(words), tuple(blocks))


def _peak(readings: Sequence[Reading]) -> int | None:
    risks = [-1.0 if reading.outcome_risk is None else reading.outcome_risk for reading in readings]
    return int(np.argmax(risks)) + 1 if risks and max(risks) >= 0 else None


def _drawing(example: ExampleRun, failed: bool, alert: int | None, threshold: float | None) -> str:
    readings = example.readings
    n = len(readings)
    wide = min(WIDEST, max(NARROWEST, ROOM / n))
    plot = Plot((0.0, float(n)), (0.0, 1.0), width=34 + n * wide + 92, height=172, margins=(34, 10, 92, 66))
    for value, said in ((0.0, "0"), (0.5, ".5"), (1.0, "1")):
        y = plot.down(value)
        plot.add(f'<line class="grid" x1="34" x2="{pixels(plot.right)}" y1="{y:.1f}" y2="{y:.1f}"/>')
        plot.text(28, y + 4, said, anchor="end")
    if threshold is not None:
        plot.line([(0.0, threshold), (float(n), threshold)], "mark")
        plot.text(plot.right + 6, plot.down(threshold) + 4, f"alarm {number(threshold)}")
    for style, field in (("imminent", "imminent_risk"), ("outcome", "outcome_risk")):
        for part in _parts([getattr(reading, field) for reading in readings]):
            plot.line(part, style)
            if len(part) == 1:
                plot.dot(part[0], f"single {style}", 2)
    top = plot.bottom + 8
    every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if n / size <= 26)
    every = max(every, 2 if wide < 18 and every == 1 else every)
    for i, (reading, step) in enumerate(zip(readings, example.steps, strict=True), 1):
        x = plot.across(i - 1)
        plot.add(_cell(reading, step.tool, i, n, x, top, wide))
        if i == 1 or i % every == 0:
            plot.text(x + wide / 2, top + 53, str(i), anchor="middle")
    if alert is not None:
        x, y = plot.across(alert - 0.5), top + 31
        plot.add(f'<path class="alert" d="M{x:.1f} {y:.1f}l5.5 9h-11z"/>')
    end, style = ("failed", "end failed") if failed else ("succeeded", "end well")
    plot.add(
        f'<line class="{style}" x1="{pixels(plot.right)}" x2="{pixels(plot.right)}" y1="10" y2="{pixels(top + 22)}"/>'
    )
    plot.text(plot.right + 6, top + 16, ("✕ " if failed else "✓ ") + end, style=f"ended {style.split()[1]}")
    return plot.svg("ribbon")


def _parts(risks: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Points in the middle of their columns, broken where there is no risk."""
    parts: list[list[tuple[float, float]]] = [[]]
    for i, risk in enumerate(risks):
        if risk is not None:
            parts[-1].append((i + 0.5, risk))
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _cell(reading: Reading, tool: str, step: int, n: int, x: float, top: float, wide: float) -> str:
    risk = reading.outcome_risk
    gap = 0.6 if wide > 8 else 0.0
    if risk is None:
        fill, said = "url(#unknown)", "UNKNOWN"
    else:
        fill, said = colour_of(risk), f"{reading.level.value}, risk {number(risk)}"
    title = html.escape(f"Step {step} of {n}{': ' + name(tool) if tool else ''}. {said}")
    return (
        f'<g class="cell" data-step="{step}"><title>{title}</title>'
        f'<rect class="hit" x="{x:.1f}" y="10" width="{wide:.1f}" height="{top + 12:.1f}"/>'
        f'<rect class="shade" x="{x + gap / 2:.1f}" y="{top:.1f}" width="{wide - gap:.1f}" height="22" fill="{fill}"/>'
        f'<rect class="level {reading.level.value}" x="{x:.1f}" y="{top + 24:.1f}" width="{wide + 0.4:.1f}" '
        'height="4"/>'
        "</g>"
    )


def _table(given: ReportInput, example: ExampleRun, alert: int | None) -> Table:
    listed = _listed(example.readings, alert)
    rows = []
    for i in listed:
        step, reading = example.steps[i], example.readings[i]
        why = "; ".join(plain(reason, TEXT_LETTERS) for reason in reading.reasons)
        if reading.unknown_reason:
            why = plain(reading.unknown_reason, TEXT_LETTERS)
        rows.append(
            (
                Cell(str(i + 1)),
                Cell(name(step.tool), name(step.status)),
                Cell(_risk(reading.outcome_risk)),
                Cell(_risk(reading.imminent_risk)),
                Cell(reading.level.value),
                Cell(why),
                Cell(plain(step.text, TEXT_LETTERS)),
            )
        )
    cut = (
        "" if len(listed) == len(example.readings) else f" ({len(listed)} of {len(example.readings):,}, around changes)"
    )
    return Table.of(
        f"Steps of run {name(given.run_id(example.run))}{cut}",
        ("Step", Column("tool"), "failing at all", "failing soon", Column("level"), "what moved it", "what happened"),
        rows,
        words={5, 6},
        marked={place for place, i in enumerate(listed) if i + 1 == alert},
    )


def _risk(risk: float | None) -> str:
    return "–" if risk is None else number(risk)


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


def _data(given: ReportInput, example: ExampleRun, kind: Kind, alert: int | None) -> dict[str, Any]:
    return {
        "run_id": given.run_id(example.run),
        "task": given.behind.tasks[example.run],
        "kind": kind.value,
        "threshold": given.alarm_of(example.run),
        "failed": bool(given.behind.failed[example.run]),
        "first_alert": alert,
        "steps": [reading.to_json() for reading in example.readings],
    }


def _scale() -> Figure:
    """The colours of risks, and the marks of a ribbon."""
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
        Key("mark", "alarm"),
        Key("level WATCH", "WATCH"),
        Key("level ALARM", "ALARM"),
        Key("level UNKNOWN", "UNKNOWN"),
        Key("alert", "first alert"),
    )
    alt = f"Colours of risks, from pale blue at 0 over amber to dark red at {SCALE[-1][0]:g} and more."
    return Figure(plot.svg("scale"), alt, "", keys)
