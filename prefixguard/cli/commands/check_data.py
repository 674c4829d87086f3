"""`prefixguard check-data`: are runs fit to train on?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from prefixguard.cli.console import people, say, write_json
from prefixguard.cli.notes import notes_of
from prefixguard.cli.options import WAIVE_EXAMPLE, Labels, Runs, Strict, Waive, pairs_of
from prefixguard.cli.terminal_text import visible
from prefixguard.stepview import ReadReport, StepRecord, adapter_for
from prefixguard.trace import Run

if TYPE_CHECKING:
    from prefixguard.evaluation.data_check import SaidFinding


def check_data_command(
    runs: Runs,
    adapter: Annotated[str, typer.Option(help="How runs are read: a shipped adapter's name, or the path of a .json.")],
    labels: Labels = None,
    budget: Annotated[float, typer.Option(help="Alarm budget that the training shall keep.")] = 0.10,
    confidence: Annotated[float, typer.Option(help="How sure the budget is to hold.")] = 0.90,
    horizon: Annotated[int, typer.Option(help="H: a step is imminent when its run fails within so many steps.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the split and of the learning curve.")] = 13,
    curve: Annotated[bool, typer.Option(help="Fit a quick monitor to parts of the runs.")] = True,
    strict: Strict = False,
    waive: Waive = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole check as JSON on standard output.")] = False,
) -> None:
    """Check runs before training: enough of them, repeats, shortcuts, and whether there is something to learn.

    Says what the split of a training would leave on every side, how many more tasks the alarm budgets of 1, 5 and 10 %
    need, which runs repeat others, which fields leak the outcome, what the number of steps, a step cap or the name of
    the agent gives away, and draws a learning curve with a quick monitor on held-out tasks (the slow part; leave it out
    with --no-curve).

    The exit code is 1 when something makes training pointless or the budget impossible.

    Examples:

        prefixguard check-data runs.jsonl --adapter openai_chat
        prefixguard check-data .traces/tau2 --adapter tau2 --budget 0.05
        prefixguard check-data runs.jsonl --adapter openai_chat --waive "result=the tool confirms the refund live"
        prefixguard check-data runs/ --adapter mine.json --labels outcomes.csv --no-curve --json > check.json
    """
    from prefixguard.cli.training_progress import TrainingProgress
    from prefixguard.evaluation.data_check import DataFinding, check_data
    from prefixguard.evaluation.leaks import audit_leaks, waivers_of

    opened = adapter_for(adapter, runs)
    waived = waivers_of(opened, pairs_of(waive, "--waive", WAIVE_EXAMPLE))

    def audit(parsed: Sequence[Run[StepRecord]]) -> list[SaidFinding]:
        found = audit_leaks(parsed, seed=seed, waive=waived)
        return [*found.findings, *(DataFinding("note", f"Leak audit: {note}") for note in found.notes)]

    report = ReadReport()
    with TrainingProgress(people()) as progress:
        check = check_data(
            runs,
            adapter=opened,
            labels=labels,
            budget=budget,
            confidence=confidence,
            horizon=horizon,
            seed=seed,
            curve=curve,
            strict=strict,
            listener=progress,
            report=report,
            audit=audit,
        )
    for note in notes_of(report):
        say(visible(note))
    if as_json:
        write_json(check.as_json())
    else:
        say(visible(check.to_text()))
    if not check.ok:
        raise typer.Exit(1)
