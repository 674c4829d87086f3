"""`prefixguard adapters`, `parse`, `check-adapter` and `check-behaviours`: what is read of runs, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from prefixguard.cli.command import READ_ADAPTER, command
from prefixguard.cli.console import say, write_json
from prefixguard.cli.induction_talk import show_check
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import FIELDS, lost_lines, notes_of, refuse_empty, show_side_by_side
from prefixguard.stepview import ReadReport, StepRecord, adapter_for, list_adapters, load_adapter, side_by_side
from prefixguard.trace import Run

#: Runs that are shown to a person who does not say how many.
SHOWN = 3


@command("list_adapters", json="One JSON object a line on standard output, with the whole description.")
def adapters(as_json: bool) -> None:
    """List the adapters that are shipped, one a line: its name and the format of runs that it reads.

    What an adapter expects in full, and whether it can watch a live run: `prefixguard info NAME`.

    Examples:

        prefixguard adapters
        prefixguard info openai_chat
    """
    shipped = [load_adapter(name) for name in list_adapters()]
    if as_json:
        for adapter in shipped:
            write_json({name: getattr(adapter, name) for name in ("name", "version", "sha256", "description")})
        return
    width = max(len(adapter.name) for adapter in shipped)
    for adapter in shipped:
        say(f"{adapter.name:<{width}}  {first_clause(adapter.description)}")
    say("The whole description of one: prefixguard info NAME.")
    say("Another format: prefixguard induce-adapter SAMPLES makes one; give its path as --adapter.")


def first_clause(description: str) -> str:
    """What a description begins with, up to the first colon, semicolon or full stop that ends a clause.

    >>> first_clause("Runs of tau-bench (v1.0): a JSON array. Task: the domain.")
    'Runs of tau-bench (v1.0)'
    """
    return re.split(r"[:;.](?=\s|$)", description, maxsplit=1)[0]


@command(
    "parse",
    arguments="runs",
    words={"adapter": "A shipped adapter's name (see `adapters`), or the path of a .json."},
    json="One JSON object a record on standard output.",
)
def parse(runs: str, adapter: str, as_json: bool, limit: int | None = None, **given: Any) -> None:
    """Show how raw runs become records: raw events on the left, the records made of them on the right.

    With --json every record is a line: run_id, task_id, groups, outcome, step, actor, agent, tool, arguments,
    observation, action, result, status; and score, where a step is what a verifier said.

    Examples:

        prefixguard parse runs.jsonl --adapter openai_chat
        prefixguard parse .traces/tau_bench --adapter tau_bench --json > records.jsonl

    limit : show so many runs, 1 or more. Default: 3, or with --json all.
    """
    report, opened = ReadReport(), adapter_for(adapter, runs)
    if as_json:
        from prefixguard.runtime import parse

        with Activity("Reading") as work:
            for count, run in enumerate(islice(parse(runs, opened, report=report, **given), limit), 1):
                work.on_runs(count)
                for line in record_lines(run):
                    write_json(line)
    else:
        shown = side_by_side(runs, opened, report=report, **given)
        for one in islice(shown, SHOWN if limit is None else limit):
            show_side_by_side(one)
        if limit is None and next(shown, None) is not None:
            say(f"These are the first {SHOWN} runs. More: --limit N; every record as JSON lines: --json")
    refuse_empty(report, runs, opened)
    for note in (*notes_of(report), *lost_lines(report, opened, runs)):
        say(note)


def record_lines(run: Run[StepRecord]) -> Iterator[dict[str, Any]]:
    """The records of a run as JSON objects, each with what is known of its run."""
    head = {"run_id": run.run_id, "task_id": run.task_id, "groups": dict(run.groups), "outcome": run.outcome.value}
    for record in run.records:
        more: dict[str, Any] = {} if record.score is None else {"score": record.score}
        if record.signals is not None:
            more["signals"] = record.signals.to_json()
        yield {**head, "step": record.index, **{name: getattr(record, name) for name in FIELDS}, **more}


@command("convert", arguments="runs", words={"adapter": READ_ADAPTER}, json="What was written, as JSON.")
def convert(runs: str, **given: Any) -> Any:
    """Write runs of any format as events, as a guard records them, so that they train a monitor for running agents.

    Steps come out of the files as they went in, each run in a file of its own, with its task and its outcome.

    Examples:

        prefixguard convert old_runs/ --adapter openai_chat --to events --out runs/
        prefixguard train runs/
    """
    from prefixguard.integrations.converting import convert

    with Activity("Converting") as work:
        done = convert(runs, progress=work.on_runs, **given)
    refuse_empty(done.report, runs)
    for note in notes_of(done.report):
        say(note)
    return done


@command(
    "check_adapter",
    words={"adapter": "A shipped adapter's name, or the path of a .json."},
    json="The findings as JSON on standard output.",
)
def check_adapter(
    as_json: bool,
    adapter: str,
    runs: str,
    freeze: bool = False,
    out: Path | None = None,
    mended: list[str] | None = None,
    overwrite: bool = False,
    **given: Any,
) -> None:
    """Check an adapter on runs: determinism, stream against file, coverage, calls and results, order, time, leaks.

    Exit codes: 0 no error was found; 1 one was (a leak counts until it is waived by name, here or in the spec);
    2 bad input.

    Examples:

        prefixguard check-adapter stepview_adapters/mine.json samples/
        prefixguard check-adapter tau2 .traces/tau2 --json
        prefixguard check-adapter mine.json samples/ --waive "@.name=an agent of the team is called Verifier"
        prefixguard check-adapter mine.draft.json samples/ --freeze --mended "results are in @.out"

    freeze : where no error is found, freeze it, as induce-adapter does: for a draft that was mended by hand.
    out : with --freeze, the folder that it goes into (default: stepview_adapters).
    mended : with --freeze, what was changed by hand and why; it stands in the report. May be repeated.
    overwrite : with --freeze, replace an adapter of that name.
    """
    from prefixguard.induce import check_adapter, freeze_mended

    with Activity("Checking") as work:
        report = check_adapter(adapter, runs, listen=work.on_stage, **given)
    if as_json:
        write_json(report.to_dict())
    show_check(report)
    errors = sum(finding.severity == "error" for finding in report.findings)
    if errors:
        say(f"{report.adapter_name} {report.sha256[:12]}: {errors} {'error' if errors == 1 else 'errors'}", error=True)
        raise typer.Exit(1)
    say(f"{report.adapter_name} {report.sha256[:12]}: no errors, score {report.score():.3f}", style="bold green")
    if freeze:
        options = {name: given[name] for name in ("labels", "waive") if given.get(name)}
        options |= {} if out is None else {"out": out}
        sentences = tuple(mended or ("A draft was mended by hand.",))
        frozen = freeze_mended(Path(adapter), runs, mended=sentences, overwrite=overwrite, **options)
        for path in frozen.paths.all if frozen.paths is not None else ():
            say(str(path))


@command(
    "check_behaviours",
    arguments="behaviours runs",
    words={"adapter": READ_ADAPTER},
    json="What is declared, and every count, as JSON on standard output.",
)
def check_behaviours(runs: str | None, **given: Any) -> Any:
    """Check a file of behaviours, and count on runs how often each behaviour holds, those of the catalogue too.

    docs/behaviours.md describes the file. Exit codes: 0 no error was found; 2 the file, or the runs, are wrong.

    Examples:

        prefixguard check-behaviours mine.json
        prefixguard check-behaviours mine.json runs.jsonl --adapter openai_chat
        prefixguard check-behaviours mine.json runs/ --json > counts.json
    """
    from prefixguard.evaluation.behaviour_check import check_behaviours

    report = ReadReport()
    with Activity("Checking"):
        found = check_behaviours(runs=runs, report=report, **given)
    if runs is not None:
        refuse_empty(report, runs)
        for note in notes_of(report):
            say(note)
    return found
