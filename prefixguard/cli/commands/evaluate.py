"""`prefixguard evaluate`: how good a monitor is on runs that it has not seen."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prefixguard.cli.console import counting, say, write_data

if TYPE_CHECKING:
    from prefixguard.stepview import StepRecord
    from prefixguard.trace import Run

STDIN = "-"


def evaluate_command(
    monitor: Annotated[Path, typer.Argument(help="Folder of the monitor's bundle.")],
    runs: Annotated[str, typer.Argument(help="File, folder, glob or tar of runs, or - for standard input.")],
    adapter: Annotated[
        str | None, typer.Option(help="The adapter that is meant; refused unless the monitor was trained through it.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Outcomes beside the runs: run_id,outcome[,task_id] as .jsonl or .csv.")
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Count runs of tasks it was made from too; the result is marked IN SAMPLE.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first run that cannot be read.")] = False,
    group_by: Annotated[
        str | None, typer.Option(help="Group within which runs are compared: agent, model, file ...")
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls",
            help="Rows that are trained on the monitor's own training runs: boosting, words, activity names, raw text. "
            "Minutes.",
        ),
    ] = False,
    leaks: Annotated[
        bool, typer.Option("--leaks", help="Audit all labelled runs for what tells an outcome no live run would.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here: NAME.html, with NAME.md and NAME.json beside it.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples over tasks, for the intervals.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 13,
    as_json: Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON on standard output.")] = False,
) -> None:
    """Evaluate a monitor: ranking, calibration and first alerts, beside the rows it has to beat.

    Runs of tasks that the monitor was trained or calibrated on are left out and counted. The table goes to standard
    error, with --json the same figures go to standard output.

    Examples:

        prefixguard evaluate monitors/tau .traces/tau_bench
        prefixguard evaluate monitors/tau .traces/tau_bench --controls --leaks --report tau.html
        prefixguard evaluate monitors/mine new_runs/ --labels outcomes.csv --json > figures.json
    """
    from dataclasses import replace

    from prefixguard.errors import ConfigError
    from prefixguard.evaluate import run_evaluation
    from prefixguard.runtime import load
    from prefixguard.stepview import read_runs

    if runs == STDIN and (controls or leaks or report is not None):
        raise ConfigError(
            "standard input can be read once: with --controls, --leaks or --report, name a file or folder."
        )
    if controls and all:
        raise ConfigError("--controls learn from the runs that --all would count: leave out one of them.")
    if report is not None and report.suffix.lower() != ".html":
        raise ConfigError(f"--report {report}: the name must end in .html; .md and .json are written beside it.")
    opened = load(monitor)

    def again() -> Iterable[Run[StepRecord]]:
        return read_runs(runs, opened.bundle.adapter, labels=labels)

    beside = None
    if controls:
        from prefixguard.evaluate.controls import controls_beside

        beside = controls_beside(opened.bundle, again(), on_stage=lambda name: say(f"control: {name}"))
    with counting("Scoring") as show:
        found = run_evaluation(
            opened,
            runs,
            adapter=adapter,
            labels=labels,
            all=all,
            strict=strict,
            group_by=group_by,
            resamples=resamples,
            seed=seed,
            beside=beside,
            progress=show,
        )
    if leaks:
        from prefixguard.evaluate.leaks import audit_leaks

        audit = audit_leaks(again(), seed=seed, on_stage=lambda name: say(f"leak audit: {name}"))
        found = replace(found, table=replace(found.table, sections={**found.table.sections, "leaks": audit}))
    if as_json:
        write_data(found.table.to_json())
    else:
        say(found.table.to_text())
    if report is not None:
        from prefixguard.evaluate.report import write_report
        from prefixguard.evaluate.reporting import report_of

        options = [name for name, on in (("--all", all), ("--controls", controls), ("--leaks", leaks)) if on]
        command = shlex.join(["prefixguard", "evaluate", str(monitor), runs, *options, "--report", str(report)])
        for path in write_report(report_of(found, again(), title=f"{monitor.name} on {Path(runs).name}", command=command), report):
            say(f"wrote {path}")
