"""`prefixguard train`: from raw runs to a compiled monitor."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from prefixguard.cli.console import people, say, write_json
from prefixguard.cli.notes import notes_of
from prefixguard.cli.options import Labels, Made, ReadAdapter, Strict, with_training_options
from prefixguard.cli.training_plan import LAB_SEED, SIMULATED_RUNS, plan_training


@with_training_options
def train_command(
    runs: Annotated[
        str | None,
        typer.Argument(
            help="File, folder, glob or tar of runs, or - for standard input. Without it: what prefixguard.toml in "
            "this folder names, else the built-in simulation's runs.",
            show_default=False,
        ),
    ] = None,
    adapter: ReadAdapter = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the bundle. Default: monitors/NAME of the runs.")] = None,
    labels: Labels = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file; its section [train] holds any of these options, by name.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a bundle that is there.")] = False,
    strict: Strict = False,
    resume: Annotated[bool, typer.Option(help="Take up an interrupted training from its last epoch.")] = True,
    as_json: Made = False,
    **options: Any,
) -> None:
    """Train a monitor on raw runs and compile it into a bundle: a folder that needs no torch to run.

    The command line has the last word, then the TOML file, then the defaults. Interrupted with Ctrl-C, the same
    command resumes.

    Examples:

        prefixguard train runs.jsonl --adapter openai_chat --out monitors/mine
        prefixguard train .traces/tau_bench --adapter tau_bench --backend gru --out monitors/tau
        prefixguard train --backend gru
    """
    from prefixguard.cli.training_progress import TrainingProgress
    from prefixguard.learn import train

    given = {name: value for name, value in options.items() if value is not None}
    plan = plan_training(runs, adapter, labels, out, config, given)
    say(plan.said)
    console = people()
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder, TrainingProgress(console) as progress:
        source = plan.runs
        if source is None:
            from prefixguard.simulation import write_runs

            progress.on_stage("making", "the simulation's runs")
            source = str(Path(folder) / "lab.jsonl")
            write_runs(source, SIMULATED_RUNS, LAB_SEED)
        result = train(
            source,
            out=plan.out,
            adapter=plan.adapter,
            labels=plan.labels,
            config=plan.config,
            overwrite=overwrite,
            strict=strict,
            resume=resume,
            listener=progress,
        )
    for note in (*notes_of(result.report), *result.notes):
        if note not in progress.told:
            say(note)
    if as_json:
        manifest = result.manifest
        kept = ("data", "metrics", "horizon", "seed", "backend", "training_seconds")
        facts = {name: manifest.get(name) for name in kept}
        write_json({"path": str(result.path), "id": result.id, **facts, "notes": list(result.notes)})
        return
    data, metrics = result.manifest["data"], result.manifest["metrics"]
    say(
        f"{data['runs']:,} runs ({data['failed']:,} failed) of {data['tasks']:,} tasks, {data['steps']:,} steps; "
        f"{result.manifest['training_seconds']:.0f} s"
    )
    if metrics:
        shown = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in metrics.items())
        say(f"on runs kept for testing: {shown}")
    say(f"{result.path}  {result.id[:12]}", style="bold green")
    again = plan.runs if plan.runs is not None else "RUNS"
    say(f"Next: prefixguard evaluate {result.path} {again}, or watch a run: prefixguard watch {result.path} -")


def _number(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
