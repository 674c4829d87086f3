"""`prefixguard parse`: how raw runs become records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from prefixguard.cli.console import counting, say, write_json
from prefixguard.cli.notes import lost_lines, notes_of, refuse_empty
from prefixguard.cli.options import Labels, Runs, Strict
from prefixguard.cli.shown import FIELDS, show_side_by_side
from prefixguard.cli.terminal_text import visible
from prefixguard.stepview import ReadReport, StepRecord, adapter_for, side_by_side
from prefixguard.trace import Run

#: Runs that are shown to a person who does not say how many.
SHOWN = 3


def parse_command(
    runs: Runs,
    adapter: Annotated[str, typer.Option(help="A shipped adapter's name (see `adapters`), or the path of a .json.")],
    labels: Labels = None,
    strict: Strict = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Show so many runs. Default: {SHOWN}, or with --json all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a record on standard output.")] = False,
) -> None:
    """Show how raw runs become records: raw events on the left, the records made of them on the right.

    With --json every record is a line: run_id, task_id, groups, outcome, step, actor, agent, tool, arguments,
    observation, action, result, status.

    Examples:

        prefixguard parse runs.jsonl --adapter openai_chat
        prefixguard parse .traces/tau_bench --adapter tau_bench --json > records.jsonl
    """
    report, opened = ReadReport(), adapter_for(adapter, runs)
    if as_json:
        from prefixguard.runtime import parse

        found = parse(runs, opened, labels=labels, strict=strict, report=report)
        with counting("Reading") as show:
            for count, run in enumerate(islice(found, limit), 1):
                show(count)
                for line in record_lines(run):
                    write_json(line)
    else:
        shown = side_by_side(runs, opened, labels=labels, strict=strict, report=report)
        for one in islice(shown, SHOWN if limit is None else limit):
            show_side_by_side(one)
        if limit is None and next(shown, None) is not None:
            say(f"These are the first {SHOWN} runs. More: --limit N; every record as JSON lines: --json")
    refuse_empty(report, runs)
    for note in (*notes_of(report), *lost_lines(report, opened, runs)):
        say(visible(note))


def record_lines(run: Run[StepRecord]) -> Iterator[dict[str, Any]]:
    """The records of a run as JSON objects, each with what is known of its run."""
    head = {"run_id": run.run_id, "task_id": run.task_id, "groups": dict(run.groups), "outcome": run.outcome.value}
    for record in run.records:
        yield {**head, "step": record.index, **{name: getattr(record, name) for name in FIELDS}}
