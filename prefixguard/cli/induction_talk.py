"""What `induce-adapter` says and asks: choices, a shipped adapter that reads the samples, the preview, the report."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from prefixguard.cli.console import people, say, visible
from prefixguard.cli.exchanges import show_side_by_side
from prefixguard.stepview import Recognised, SideBySide

if TYPE_CHECKING:
    from prefixguard.induce import CheckReport, Choice, Report

_ROWS = 25
_LONGEST = 500  # characters of an event in the preview
_STYLES = {"error": "bold red", "warning": "yellow", "note": ""}


def is_conversation() -> bool:
    """Can somebody be asked: are standard input and standard error a terminal?"""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ask_choice(choice: Choice) -> int:
    """Ask a person which option it is; the one already taken is the default."""
    say(f"\nThe samples do not decide: {visible(choice.field)}.", style="bold")
    for i, option in enumerate(choice.options, 1):
        example = f"  e.g. {visible(option.example)[:80]}" if option.example else ""
        say(f"  {i}  {visible(option.label)}  ({option.confidence:.0%}) {visible(option.why)}{example}")
    while True:
        with _interrupting():
            number = int(typer.prompt("Which", default=choice.taken + 1, type=int, err=True))
        if 1 <= number <= len(choice.options):
            return number - 1
        say(f"A number from 1 to {len(choice.options)}.")


def agrees(question: str) -> bool:
    """Ask a person yes or no; yes is the default."""
    with _interrupting():
        return typer.confirm(question, default=True, err=True)


@contextmanager
def _interrupting() -> Iterator[None]:
    """Ctrl-C, or the end of the input, at a question is an interruption like any other."""
    try:
        yield
    except typer.Abort:
        raise KeyboardInterrupt from None


def offer_shipped(shipped: Sequence[Recognised]) -> bool:
    """Say which shipped adapter reads the samples, and ask whether to take it."""
    say_shipped(shipped)
    return agrees(f"Take {shipped[0].name} instead of making an adapter?")


def say_shipped(shipped: Sequence[Recognised]) -> None:
    """Shipped adapters that read the samples well, the best first."""
    for one in shipped:
        say(f"Known format: {one}. It is shipped: --adapter {one.name}", style="bold")


def show_preview(sides: Iterable[SideBySide]) -> None:
    """The first steps beside the raw input."""
    say("\nHow the first steps are read:", style="bold")
    for one in sides:
        show_side_by_side(one, _LONGEST)


def show_report(report: Report) -> None:
    """The report, in short: what is read, what is left out, what was decided, what the checks say."""
    proposal = report.proposal
    _table(
        "What is read",
        ("raw path", "becomes", "filled", "confidence", "why"),
        [(m.raw, m.field, f"{m.coverage:.0%}", f"{m.confidence:.2f}", m.why) for m in proposal.mapped],
    )
    _table(
        "What is left out",
        ("raw path", "share of text", "why"),
        [(one.raw, f"{one.share:.1%}", one.why) for one in proposal.left_out],
    )
    for choice in proposal.choices:
        taken = choice.options[choice.taken]
        others = ", ".join(option.label for i, option in enumerate(choice.options) if i != choice.taken)
        other = f" It could be: {others}" if others else ""
        say(visible(f"Decided: {choice.field} is {taken.label} ({choice.rule}).{other}"))
    for note in (*proposal.notes, *report.notes):
        say(visible(note))
    if report.usage is not None:
        say(f"{report.usage}. {report.usage.why}".rstrip())
    show_check(report.check)


def show_check(check: CheckReport) -> None:
    """Findings and the figures behind them."""
    for finding in check.findings:
        where = f" {finding.where}:" if finding.where else ""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in finding.numbers.items())
        text = f"{finding.severity}: {finding.check}:{where} {finding.what}{f' ({numbers})' if numbers else ''}"
        say(visible(f"{text} {finding.remedy}".rstrip()), style=_STYLES.get(finding.severity, ""))
    filled = ", ".join(f"{name} {share:.0%}" for name, share in check.fields.items())
    if filled:
        say(f"Filled, share of records: {filled}")
    shown = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in check.figures.items())
    if shown:
        say(f"Figures: {shown}")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    say(f"\n{title}:", style="bold")
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows[:_ROWS]:
        table.add_row(*(Text(visible(cell)) for cell in row))
    people().print(table)
    if len(rows) > _ROWS:
        say(f"{len(rows) - _ROWS} more: --json has all")
