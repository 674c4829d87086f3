"""First alarms one by one: the run, the step and the state of each, and what the step was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.replays import Replay, ReplayStep
from prefixguard.automata.summary.wording import both_ends, count_text, one_line
from prefixguard.results import Block, Cell, Column, TableBlock, Text

#: Where there are no more first alarms, all have a row; else so many on failed, and on successful runs.
_ALL, _SOME = 20, 10
#: Code points kept of a name, of an id of a run, whose replay says it whole, and of a step.
_NAME, _ID, _STEP = 120, 56, 240
#: In the note of a run that was asked for and is none of those that are counted.
_NO_TEST = "no test run"


@dataclass(frozen=True, slots=True)
class ListedAlarm:
    """A first alarm that has a row. run: its place among the replays. step: from 1."""

    run: int
    step: int
    replay: Replay

    @property
    def at(self) -> ReplayStep:
        """The step that raised it."""
        return self.replay.steps[self.step - 1]


def listed_alarms(summary: AutomatonSummary) -> tuple[ListedAlarm, ...]:
    """Those that have a row, those on failed runs first, in the order of the replays."""
    found = _replayed(summary)
    each = None if _raised(summary) <= _ALL else _SOME
    chosen = (islice((one for one in found if one.replay.failed is failed), each) for failed in (True, False))
    return tuple(one for some in chosen for one in some)


def first_alarm_blocks(summary: AutomatonSummary) -> Iterator[Block]:
    """The table, and how many first alarms it leaves out."""
    total, there, listed = _raised(summary), len(_replayed(summary)), listed_alarms(summary)
    if not total:
        yield Text("No test run raised an alarm.")
        return
    said = f"{len(listed):,} of {count_text(total, 'first alarm')} on test runs, those on failed runs first."
    if total > there:
        lost = total - there
        which = "1 is not listed because its" if lost == 1 else f"{lost:,} are not listed because their"
        said += f" {which} run is not replayed below."
    if there > len(listed):
        left = f"{there - len(listed):,} more are left out"
        said += f" {left}: at most {_SOME} on failed runs and {_SOME} on successful ones stand here."
    yield Text(said)
    if not listed:
        return
    texts = [_line(one.at) for one in listed]
    head = [Column("Run"), Column("Ended", "words"), *(Column(name, "number") for name in ("Step", "State"))]
    head += [Column("Symbol", "words"), *([Column("What the step was", "words")] if any(texts) else [])]
    rows: list[list[str | tuple[str, str] | Cell]] = [
        [
            both_ends(one_line(one.replay.run_id, _NAME), _ID),
            one_line(one.replay.kind, _NAME),
            (f"{one.step:,}", f"of {len(one.replay.steps):,}"),
            f"{one.at.state}",
            one_line(summary.entries[one.at.symbol].gloss, _NAME) or f"symbol {one.at.symbol}",
            text,
        ]
        for one, text in zip(listed, texts, strict=True)
    ]
    yield TableBlock.of("", head, [row[: len(head)] for row in rows])


def _replayed(summary: AutomatonSummary) -> tuple[ListedAlarm, ...]:
    """First alarms on test runs that are replayed."""
    sound = "ALARM" if summary.alarm is not None else "WATCH"
    found = []
    for run, replay in enumerate(summary.replays):
        step = next((at for at, step in enumerate(replay.steps, 1) if step.level == sound), None)
        if step is not None and replay.failed is not None and _NO_TEST not in replay.note:
            found.append(ListedAlarm(run, step, replay))
    return tuple(found)


def _raised(summary: AutomatonSummary) -> int:
    return sum(one.failed + one.successful for one in summary.ranked)


def _line(step: ReplayStep) -> str:
    """What the agent did and what came of it, without what had arrived before."""
    texts = [text for name, text in step.texts if not name.startswith("arrived")]
    return one_line(" → ".join(texts), _STEP)
