"""`prefixguard evaluate`: how good a monitor is on runs that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prefixguard.cli.console import counting, say, write_data


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
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples over tasks, for the intervals.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 13,
    as_json: Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON on standard output.")] = False,
) -> None:
    """Evaluate a monitor: ranking, calibration and first alerts, beside the rows it has to beat.

    Runs of tasks that the monitor was trained or calibrated on are left out and counted. The table goes to standard
    error, with --json the same figures go to standard output.

    Examples:

        prefixguard evaluate monitors/tau .traces/tau_bench
        prefixguard evaluate monitors/mine new_runs/ --labels outcomes.csv --json > figures.json
    """
    from prefixguard.evaluate import evaluate

    with counting("Scoring") as show:
        table = evaluate(
            monitor,
            runs,
            adapter=adapter,
            labels=labels,
            all=all,
            strict=strict,
            group_by=group_by,
            resamples=resamples,
            seed=seed,
            progress=show,
        )
    if as_json:
        write_data(table.to_json())
    else:
        say(table.to_text())
