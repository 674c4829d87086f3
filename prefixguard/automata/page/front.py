"""What an auditor asks first, as blocks: what the alarms are worth."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.automata.summary.wording import count_text, one_line, risk_text, share_text
from prefixguard.bundle import AlarmCount, AlarmPerformance
from prefixguard.results import Block, Column, Facts, Table, Text, percents


def alarm_blocks(found: AlarmPerformance) -> Iterator[Block]:
    """First alarms of every row on the test runs; agreement, coverage and levels; what to know before reading them."""
    yield from (Text(one_line(note, 400), "care") for note in found.notes)
    runs = f"{count_text(found.failed, 'failed run')} and {count_text(found.successful, 'successful run')}"
    yield Text(
        f"First alarms on {runs} that nothing was learned from. Every row has a threshold of its own, at the same "
        f"budget of false alarms, {share_text(found.budget)}; in brackets the 95 % interval, over tasks."
    )
    left = f"with more than {count_text(found.horizon, 'step')} left"
    names = ("Failures caught", left, "Median steps left", "False alarms")
    rows = [_row(one, found) for one in found.rows]
    yield Table.of("", [Column("Alarm by", "text"), *(Column(name, "number") for name in names)], rows, marked=[0])
    yield Facts(tuple(_facts(found)))


def _row(one: AlarmCount, found: AlarmPerformance) -> list[str | tuple[str, str]]:
    def part(count: int, total: int, ends: tuple[float, float] | None) -> tuple[str, str]:
        share = f", {share_text(count / total)}" if total else ""
        return f"{count:,} of {total:,}", f"{share[2:]} {percents(ends)}".strip()

    if one.threshold is None:
        return [one.by, "no threshold"]
    return [
        one.by,
        part(one.caught, found.failed, one.caught_interval),
        part(one.early, found.failed, one.early_interval),
        "–" if one.lead is None else f"{one.lead:g}",
        part(one.false_alarms, found.successful, one.false_alarm_interval),
    ]


def _facts(found: AlarmPerformance) -> Iterator[tuple[str, str, str]]:
    """Name, value and what it means; figures that do not exist are left out."""
    if found.said:
        rest = ", ".join(f"{level} {share_text(part)}" for level, part in found.said.items() if level != "ALARM")
        yield "Says ALARM", share_text(found.said.get("ALARM", 0.0)), f"of test steps; {rest}"
    if found.kappa is not None:
        sign = "−" if found.kappa < 0 else ""
        meaning = "Cohen's kappa of its alarms with its teacher's, step by step: 1 is the same, 0 is chance"
        yield "Same alarms", sign + risk_text(abs(found.kappa)), meaning
    if found.coverage is not None and found.coverage_expected is not None:
        meaning = (
            f"of {found.cells} states and spans of the clock have a failure rate of test runs inside their 90 % "
            f"interval; exact risks would give {share_text(found.coverage_expected)}, for rates of few runs scatter"
        )
        yield "Intervals kept", share_text(found.coverage), meaning
