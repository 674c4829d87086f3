"""Auditors of the same runs side by side, always beside what needs no auditor, on request beside published figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.auditor.audited_system import AuditedSystem
from prefixguard.auditor.published import PublishedRow, published_blocks
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation import Difference
from prefixguard.metrics import (
    ATTRIBUTION_FIGURES,
    Attribution,
    AuditCounts,
    Quartiles,
    attribution_differences,
    measure_attribution,
)
from prefixguard.results import (
    Block,
    Column,
    Result,
    TableBlock,
    Text,
    percent,
    percents,
    plain_value,
    to_markdown,
    to_text,
)

#: Trivial rows that the short table shows; where they have other names, all are.
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

#: Columns of the tables: head and figure.
Columns = Sequence[tuple[str, str]]
_SHORT: Columns = (
    ("Exact-F1", "exact_f1"), ("Step-Acc", "step_accuracy"), ("±1", "step_within_1"), ("ASS", "ass"),
    ("alarmed", "alarmed"), ("Agent-Acc", "agent_accuracy"), ("FAR", "false_alarm_rate"), ("errors", "errors"),
    ("calls", "calls_per_run"),
)  # fmt: skip
_WHERE: Columns = (
    ("Exact-F1", "exact_f1"), ("by text", "exact_f1_text"), ("Step-Acc", "step_accuracy"), ("±1", "step_within_1"),
    ("±3", "step_within_3"),
)  # fmt: skip
_WHO: Columns = (
    ("Agent-Acc", "agent_accuracy"), ("alike", "agent_accuracy_normalised"), ("joint", "joint"), ("ASS", "ass"),
    ("alarmed", "alarmed"), ("ASS all", "ass_all"),
)  # fmt: skip
_ALARMS: Columns = (  # errors first of all: a broken auditor looks safe elsewhere
    ("errors", "errors"), ("abstain", "abstained"), ("FAR", "false_alarm_rate"), ("deployable", "deployable"),
    ("U", "unsafe"), ("S", "safe"), ("D", "alarmed runs"), ("FA", "false_alarms"), ("TP", "exact"),
)  # fmt: skip
_WALKS: Columns = (
    ("delay", "delay"), ("lead", "lead"), ("early", "before_end"), ("calls", "calls_per_run"),
    ("failed", "failed_calls"), ("FA/call", "false_alarms_per_call"), ("s/call", "seconds_per_call"),
    ("cost/call", "cost_per_call"), ("1,000 runs", "cost_per_1000_runs"),
)  # fmt: skip
_AHEAD: Columns = (
    ("Exact-F1", "exact_f1"), ("Step-Acc", "step_accuracy"), ("Agent-Acc", "agent_accuracy"), ("joint", "joint"),
    ("FAR", "false_alarm_rate"),
)  # fmt: skip
#: Figures that are shown with their intervals; those that exist only where somebody was asked.
_SPREAD = frozenset(("exact_f1", "step_accuracy", "agent_accuracy", "joint", "false_alarm_rate"))
_OF_CALLS = frozenset(name for _, name in _WALKS[3:])
_FORMS = {"calls_per_run": ".1f", "ass": ".2f", "ass_all": ".2f", "seconds_per_call": ".2f"}


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One auditor. ahead: the table's first auditor minus this one, by figure; empty for the first itself, and where
    only trivial auditors are shown."""

    name: str
    figures: Attribution
    note: str
    trivial: bool
    hindsight: bool
    ahead: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def shown_name(self) -> str:
        """The name, with a star where the auditor was chosen on the labels of these very runs."""
        return self.name + ("*" if self.hindsight else "")

    @property
    def watches(self) -> bool:
        """Whether it watches a run as it goes on, or asks somebody."""
        return bool(self.figures.lead.runs) or self.figures.calls_per_run > 0

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        figures = self.figures
        found: dict[str, Any] = plain_value(
            {
                **{name: getattr(self, name) for name in ("name", "note", "trivial", "hindsight")},
                "counts": {name: getattr(figures.counts, name) for name in AuditCounts.__slots__},
                **{name: getattr(figures, name) for name in (*ATTRIBUTION_FIGURES, "delay", "lead", "deployable")},
                "intervals": figures.intervals,
                "first_minus_this": self.ahead,
            }
        )
        return found


@dataclass(frozen=True, slots=True)
class AuditTable(Result):
    """What an audit found. rows: auditors in the order given, then the trivial ones. notes: sentences at the end."""

    runs: int
    tasks: int
    rows: tuple[AuditRow, ...]
    published: tuple[PublishedRow, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        return {
            "runs": self.runs,
            "tasks": self.tasks,
            "systems": [row.as_json() for row in self.rows],
            "published": [row.as_json() for row in self.published],
            "notes": list(self.notes),
        }

    def to_text(self, full: bool = False) -> str:
        """Plain aligned text of at most 118 columns, ending without a newline.

        One table: the auditors and the trivial rows that are hardest to beat. full: every row, figure and difference.
        """
        return to_text(self.blocks(full=full))

    def to_markdown(self) -> str:
        """Every row, figure and difference as Markdown, ending in a newline."""
        return to_markdown(self.blocks(full=True))

    def blocks(self, *, full: bool = False) -> tuple[Block, ...]:
        """What is shown; see `to_text`."""
        return (
            *map(Text, self._head()),
            *(self._whole() if full else self._short()),
            *published_blocks(self.published),
            *map(Text, self.notes),
        )

    def _head(self) -> Iterator[str]:
        """Which runs these are, and what cannot be known of them."""
        counts = self.rows[0].figures.counts
        yield (
            f"{self.runs:,} audited runs of {self.tasks:,} tasks: {counts.unsafe:,.0f} failed (U), {counts.safe:,.0f} "
            "safe (S)"
        )
        if counts.unplaced:
            yield f"{counts.unplaced:,.0f} failed runs name no decisive step among their steps: no guess is right there"
        if not counts.safe:
            yield (
                "no safe run: false alarms cannot be measured, and nothing stands against an auditor that always alarms"
            )

    def _short(self) -> Iterator[Block]:
        """One table, and who wins."""
        systems = [row for row in self.rows if not row.trivial]
        trivial = [row for row in self.rows if row.trivial]
        names: tuple[str, ...] = STRONGEST
        if not systems or any(row.figures.lead.runs or not row.figures.counts.alarmed for row in systems):
            names += WALKERS
        shown = systems + ([row for row in trivial if row.name in names] or trivial)
        yield _table("", _SHORT, shown, spread=("step_accuracy",))
        yield from map(Text, self._compared())
        hidden = len(self.rows) - len(shown)
        more = f"{hidden} more trivial rows, delays" if hidden else "Delays"
        yield Text(
            "Step-Acc, Agent-Acc: of the failed runs; ±1: at most one step off. ASS: mean error in steps, of the "
            "failed runs alarmed. FAR: safe runs alarmed. errors: runs without a verdict, never safe. Brackets: 95 %, "
            f"bootstrap over tasks. {more}, costs and differences: --full."
        )

    def _compared(self) -> Iterator[str]:
        """Which trivial rows the first auditor does not beat, of all that there are, shown or not."""
        rivals = [row for row in self.rows if row.trivial and not row.hindsight and row.ahead]
        for figure, title in (("step_accuracy", "Step-Acc"), ("agent_accuracy", "Agent-Acc")):
            found = [(getattr(row.figures, figure), row, row.ahead[figure]) for row in rivals if figure in row.ahead]
            found = [one for one in found if math.isfinite(one[0]) and math.isfinite(one[2].value)]
            if not found:
                continue
            found.sort(key=lambda one: -one[0])
            behind, close = [], []
            for value, row, ahead in found:
                if ahead.value <= _LEVEL:
                    behind.append(f"{row.name} ({percent(value)})")
                elif ahead.interval is None or ahead.interval[0] <= _LEVEL:
                    close.append(f"{row.name} ({percent(value)})")
            if behind:
                said = f"does not beat {_listed(behind)}"
                said += f"; ahead of {_listed(close)}, but no more than chance allows" if close else ""
            elif close:
                said = f"ahead of every trivial row, though by no more than chance allows of {_listed(close)}"
            else:
                said = f"beats every trivial row; the strongest is {found[0][1].name} ({percent(found[0][0])})"
            yield f"{title}, {self.rows[0].name}: {said}."

    def _whole(self) -> Iterator[Block]:
        rows = self.rows
        watching = [row for row in rows if row.watches]
        yield _table("Whether and where", _WHERE, rows)
        yield _table("Who, and how far off", _WHO, rows)
        yield _table("Errors and false alarms, and counts of runs", _ALARMS, rows)
        if watching:
            yield _table("When, and at what cost", _WALKS, watching)
        behind = [[row.shown_name, *(_points(row.ahead.get(name)) for _, name in _AHEAD)] for row in rows if row.ahead]
        if behind:
            head = ("minus", *(title for title, _ in _AHEAD))
            yield TableBlock.of(f"{rows[0].name} minus each other, per cent points", head, behind)
        yield Text(
            "Exact-F1 has false alarms on safe runs in its precision, 2 TP / (U + D + FA); by text: 2 TP / (U + D). "
            "D: failed runs with an alarm, FA: safe runs with one, TP: failed runs whose decisive step is blamed. "
            "Step-Acc: TP / U; ±1, ±3: with an error of so many steps. ASS: mean error in steps where a step is "
            "blamed, to be read with alarmed = D / U; ASS all: a run without a blamed step counts its whole length."
        )
        yield Text(
            "Agent-Acc: of failed runs, names letter by letter; alike: after normalising; joint: step and agent. "
            "errors, abstain: runs without a verdict, runs of which the auditor cannot tell; neither is safe. "
            "FAR: FA / S, of whole runs. deployable: FAR at most 20 %, Step-Acc at least 50 %. "
            "Brackets: 95 %, bootstrap over tasks."
        )
        if watching:
            yield Text(
                "delay: steps from the decisive one to the alarm; lead: steps left at the alarm; median and quartiles "
                "of the failed runs alarmed while they went on. early: failed runs alarmed before their last step. "
                "calls: a run. failed: calls without a verdict. FA/call: false alarms a call on safe runs."
            )
        trivial = [f"{row.name}: {row.note}" for row in rows if row.trivial and row.note]
        if trivial:
            yield Text("Needs no auditor: " + "; ".join(trivial) + ".")
        if any(row.hindsight for row in rows):
            yield Text("*: chosen on the labels of these very runs; no fair opponent, but what a constant can reach.")


def audit_table(
    systems: Sequence[AuditedSystem],
    baselines: Sequence[AuditedSystem],
    *,
    normalise: Callable[[str], str] | None = None,
    published: Sequence[PublishedRow] = (),
    notes: Sequence[str] = (),
    n_resamples: int = 1000,
    seed: int = 13,
) -> AuditTable:
    """Figures of auditors with intervals, and of the first against every other, paired by task.

    systems: auditors; may be none. baselines: `trivial_baselines` of the same runs; never none.
    normalise: as for `attribution`. published: `published_rows`.
    Raises ConfigError without a baseline or where two auditors have one name, DataError where runs differ.
    """
    if not baselines:
        raise ConfigError(
            "an audit table without trivial baselines: a fixed step or agent may do as well. Give trivial_baselines."
        )
    everyone = [*systems, *baselines]
    names = [system.name for system in everyone]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f'two auditors of a table are named "{twice[0]}". Give each a name of its own.')
    rows: list[AuditRow] = []
    first = None
    for place, system in enumerate(everyone):
        found = measure_attribution(system.rows, normalise=normalise, n_resamples=n_resamples, seed=seed)
        first = first or found
        if found.run_ids != first.run_ids:
            raise DataError(
                f'"{names[0]}" audited {len(first.run_ids):,} runs and "{system.name}" {len(found.run_ids):,}, or '
                "others. Give every auditor the same runs, and the baselines too."
            )
        differences = attribution_differences(first, found) if systems and place else {}
        ahead = {name: Difference(*one) for name, one in differences.items()}
        trivial = system.trivial or place >= len(systems)
        rows.append(AuditRow(system.name, found.figures, system.note, trivial, system.hindsight, ahead))
    runs, tasks = (0, 0) if first is None else (len(first.run_ids), len(first.tasks))
    return AuditTable(runs, tasks, tuple(rows), tuple(published), tuple(notes))


def _table(
    caption: str, columns: Columns, rows: Sequence[AuditRow], spread: Sequence[str] = tuple(_SPREAD)
) -> TableBlock:
    cells = [
        [row.shown_name, *(figure_cell(row.figures, name, spread=name in spread) for _, name in columns)]
        for row in rows
    ]
    return TableBlock.of(caption, [Column(""), *(Column(head, "number") for head, _ in columns)], cells)


def figure_cell(found: Attribution, name: str, *, spread: bool = True) -> str | tuple[str, str]:
    """A figure as a cell of a table, with its interval where it is one of those that are shown with it."""
    if name in _OF_CALLS and not found.calls_per_run > 0:
        return ""
    if name in ("unsafe", "safe", "false_alarms", "exact", "alarmed runs"):
        count = getattr(found.counts, "alarmed" if name == "alarmed runs" else name)
        return f"{count:,.0f}" if count == round(count) else f"{count:,.1f}"
    value = getattr(found, name)
    if name == "deployable":
        return "unknown" if value is None else "yes" if value else "no"
    if isinstance(value, Quartiles):
        return f"{value.median:g} [{value.low:g}, {value.high:g}]" if value.runs else ""
    if name == "agent_accuracy_normalised" and math.isnan(value):
        return ""
    form = ".4g" if name.startswith("cost") else _FORMS.get(name)
    if form is not None:
        return f"{value:{form}}" if math.isfinite(value) else "–"
    ends = found.intervals.get(name) if spread and name in _SPREAD else None
    return (percent(value), percents(ends)) if ends is not None else percent(value)


def _points(difference: Difference | None) -> str:
    if difference is None or not math.isfinite(difference.value):
        return "–"
    ends = difference.interval
    spread = "" if ends is None else " [{:+.0f}, {:+.0f}]".format(*(100 * end for end in ends))
    return f"{100 * difference.value:+.1f}{spread}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
