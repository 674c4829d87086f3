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
from prefixguard.cli.shown import show_side_by_side
from prefixguard.stepview import Recognised, SideBySide

if TYPE_CHECKING:
    from prefixguard.induce import CheckReport, Choice, Finding, Option, Report

#: Rows of what is read and of what is left out; the report has all.
_READ, _LEFT = 14, 6
#: Characters, and lines, of an event or a field in the preview; characters of a sentence of the report.
_LONGEST, _LINES, _SENTENCE = 160, 3, 400
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
        return typer.confirm(visible(question), default=True, err=True)


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
        show_side_by_side(one, _LONGEST, _LINES)


def show_report(report: Report) -> None:
    """The report, in short: what is read, what is left out, what was decided, what the checks say."""
    proposal = report.proposal
    _table(
        "What is read",
        ("raw path", "becomes", "filled", "confidence", "why"),
        [(m.raw, m.field, f"{m.coverage:.0%}", f"{m.confidence:.2f}", m.why) for m in proposal.mapped],
        _READ,
    )
    _table(
        "What is left out",
        ("raw path", "share of text", "why"),
        [(one.raw, f"{one.share:.1%}", one.why) for one in proposal.left_out],
        _LEFT,
    )
    for choice in proposal.choices:
        say(visible(_cut(decided(choice))))
    for note in (*proposal.notes, *report.notes):
        say(visible(_cut(note)))
    if report.usage is not None:
        say(f"{report.usage}. {report.usage.why}".rstrip())
    _findings(one for one in report.check.findings if one.severity != "note")
    notes = sum(one.severity == "note" for one in report.check.findings)
    if notes:
        say(f"The checks have {notes} note{'' if notes == 1 else 's'} too: see the report, or --json.")


def decided(choice: Choice) -> str:
    """What was taken where the samples do not decide, what else it could be, and how to say so."""
    from prefixguard.induce import HINTS, answers

    others = [option for i, option in enumerate(choice.options) if i != choice.taken and option.value is not None]
    text = f"Decided: {choice.field} is {choice.options[choice.taken].label}."
    if others:
        text += f" It could also be: {'; '.join(option.label for option in others)}."
    flags = [flag for flag, option in zip(answers(choice), _with_value(choice), strict=False) if option in others]
    if flags:
        return f"{text} Say otherwise with {' or '.join(flags)}."
    return text if choice.field not in HINTS else f"{text} Say otherwise with --hint {choice.field}=PATH."


def _with_value(choice: Choice) -> list[Option]:
    return [option for option in choice.options if option.value is not None]


def _cut(text: str) -> str:
    return text if len(text) <= _SENTENCE else f"{text[:_SENTENCE]} ..."


def say_verdict(report: Report) -> None:
    """What the adapter comes to, in one line, and one on outcomes where they are missing."""
    from prefixguard.induce import outcome_remedy, verdict

    say(f"\n{verdict(report.check)}", style="bold")
    remedy = outcome_remedy(report.check)
    if remedy:
        say(remedy, style="yellow")


def show_check(check: CheckReport) -> None:
    """Findings and the figures behind them."""
    _findings(check.findings)
    filled = ", ".join(f"{name} {share:.0%}" for name, share in check.fields.items())
    if filled:
        say(f"Filled, share of records: {filled}")
    shown = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in check.figures.items())
    if shown:
        say(f"Figures: {shown}")


def _findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        where = f" {finding.where}:" if finding.where else ""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in finding.numbers.items())
        text = f"{finding.severity}: {finding.check}:{where} {finding.what}{f' ({numbers})' if numbers else ''}"
        harmless = f" If it is harmless: {finding.option}" if finding.option else ""
        say(visible(f"{text} {finding.remedy}".rstrip() + harmless), style=_STYLES.get(finding.severity, ""))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> None:
    if not rows:
        return
    say(f"\n{title}:", style="bold")
    table = Table(*heads, box=box.SIMPLE_HEAD)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows[:most]:
        table.add_row(*(Text(visible(cell)) for cell in row))
    people().print(table)
    if len(rows) > most:
        say(f"{len(rows) - most} more: the report has all")
