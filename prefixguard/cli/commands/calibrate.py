"""`prefixguard calibrate`: new alarm thresholds, without retraining."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prefixguard.cli.console import counting, say, write_json
from prefixguard.cli.notes import notes_of
from prefixguard.cli.options import Labels, Made, MeantAdapter, Strict, Trusted
from prefixguard.cli.terminal_text import visible
from prefixguard.runtime import CalibrateResult, calibrate, load


def calibrate_command(
    monitor: Annotated[Path, typer.Argument(help="Folder of the monitor's bundle; it stays as it is.")],
    runs: Annotated[
        str, typer.Argument(help="New runs: a file, folder, glob or tar, read as the monitor reads them; or -.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the new bundle. Default: the monitor's, with -calibrated.")
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="At most this share of successful runs may raise an alarm. Default: the monitor's."),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="How sure the budget is to hold. Default: the monitor's.")
    ] = None,
    consecutive: Annotated[
        int | None, typer.Option(help="Steps in a row above the threshold before it sounds. Default: the monitor's.")
    ] = None,
    release: Annotated[
        float | None, typer.Option(help="Risk below which a sounding alarm stops. Default: the monitor's.")
    ] = None,
    cooldown: Annotated[
        int | None, typer.Option(help="Steps after a release without a new alarm. Default: the monitor's.")
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(help="A group of the runs (tier, tool ...) whose values get thresholds of their own."),
    ] = None,
    labels: Labels = None,
    adapter: MeantAdapter = None,
    all: Annotated[
        bool, typer.Option("--all", help="Use runs of tasks it was made from too; the bundle is marked IN SAMPLE.")
    ] = False,
    strict: Strict = False,
    seed: Annotated[int, typer.Option(help="Draws one successful run of each task.")] = 13,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a bundle that is there, were it the monitor itself.")
    ] = False,
    trust: Trusted = None,
    as_json: Made = False,
) -> None:
    """Set a monitor's alarm threshold anew on new runs, without retraining, and write a new bundle.

    The threshold keeps its bound for runs like the new ones: at most the budgeted share of successful runs raises an
    alarm, with the stated confidence. It rests on one successful run a task; runs of tasks that the monitor was made
    from are left out and counted. The watch mark is set on the steps of all runs that are used, whatever their outcome.

    Runs too few for the budget: the bundle is written without an alarm, says how many are needed, and the exit code
    is 1.

    Examples:

        prefixguard calibrate monitors/mine runs/november/
        prefixguard calibrate monitors/mine runs/november/ --budget 0.05 --out monitors/mine-5
        prefixguard calibrate monitors/mine runs/ --group-by tier --labels outcomes.csv
    """
    with counting("Scoring") as show:
        result = calibrate(
            load(monitor, trust=trust or None),
            runs,
            out=out,
            budget=budget,
            confidence=confidence,
            consecutive=consecutive,
            release=release,
            cooldown=cooldown,
            group_by=group_by,
            labels=labels,
            adapter=adapter,
            all=all,
            strict=strict,
            seed=seed,
            overwrite=overwrite,
            progress=show,
        )
    for note in (*notes_of(result.report), *result.notes):
        say(visible(note))
    if as_json:
        write_json(_facts(result))
    else:
        _show(result)
    if result.thresholds.reason is not None:
        raise typer.Exit(1)


def _facts(result: CalibrateResult) -> dict[str, object]:
    groups = result.groups
    return {
        "path": str(result.path),
        "id": result.id,
        "policy": asdict(result.policy),
        "thresholds": asdict(result.thresholds),
        "groups": None if groups is None else {groups.by: {value: asdict(one) for value, one in groups.of.items()}},
        "recalibration": result.manifest["recalibration"],
        "notes": list(result.notes),
    }


def _show(result: CalibrateResult) -> None:
    thresholds, policy, facts = result.thresholds, result.policy, result.manifest["recalibration"]
    say(
        f"{facts['runs']:,} runs ({facts['successful']:,} successful, {facts['failed']:,} failed, "
        f"{facts['without_outcome']:,} without outcome); {thresholds.n_runs:,} successful ones drawn, one a task"
    )
    if thresholds.alarm is not None:
        say(
            f"ALARM above {thresholds.alarm:.4f}, WATCH above {thresholds.watch:.4f}: at most {100 * policy.budget:g} "
            f"% of runs that would succeed alarm, with confidence {100 * policy.confidence:g} % "
            f"({thresholds.allowed} of {thresholds.n_runs} may exceed it)"
        )
    if result.groups is not None:
        for value, one in result.groups.of.items():
            if one.alarm is not None:
                said = f"  {result.groups.by} {value}: ALARM above {one.alarm:.4f} ({one.n_runs:,} runs)"
                say(visible(said))
    say(f"{result.path}  {result.id[:12]}", style="bold green")
