"""`prefixguard evaluate`: how good a monitor is on runs that it has not seen."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prefixguard.cli.console import counting, say, working, write_json_text
from prefixguard.cli.older_options import OlderLooks, with_older_options
from prefixguard.cli.options import (
    WAIVE_EXAMPLE,
    GroupBy,
    Labels,
    MeantAdapter,
    MonitorFolder,
    Resamples,
    Runs,
    Strict,
    Trusted,
    pairs_of,
)
from prefixguard.errors import ConfigError

if TYPE_CHECKING:
    from prefixguard.evaluation import EvaluationTable


@with_older_options
def evaluate_command(
    monitor: MonitorFolder,
    runs: Runs,
    adapter: MeantAdapter = None,
    labels: Labels = None,
    all: Annotated[
        bool, typer.Option("--all", help="Count runs of tasks it was made from too; the result is marked IN SAMPLE.")
    ] = False,
    strict: Strict = False,
    group_by: GroupBy = None,
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
    waive: Annotated[
        list[str] | None,
        typer.Option(help="With --leaks: a finding that is harmless, and why: PLACE=REASON, as the finding says."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here: NAME.html, with NAME.md and NAME.json beside it.")
    ] = None,
    resamples: Resamples = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 13,
    trust: Trusted = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON on standard output.")] = False,
    **older: Any,
) -> None:
    """Evaluate a monitor: ranking, calibration and first alerts, beside the rows it has to beat.

    Runs of tasks that the monitor was trained or calibrated on are left out and counted. The table goes to standard
    error; with --json the same figures go to standard output instead. Runs are parsed once, whatever is looked at.
    What trains or asks a model anew has commands of its own: cross-validate, ablate, leave-agents-out and judge.

    Examples:

        prefixguard evaluate monitors/tau .traces/tau_bench
        prefixguard evaluate monitors/tau .traces/tau_bench --controls --leaks --report tau.html
        prefixguard evaluate monitors/mine new_runs/ --labels outcomes.csv --json > figures.json
    """
    from prefixguard.evaluation import evaluate
    from prefixguard.runtime import load
    from prefixguard.stepview import SpooledRuns

    if waive and not leaks:
        raise ConfigError(
            "--waive says which leaks are harmless, and none are looked for: add --leaks, or leave it out."
        )
    if controls and all:
        raise ConfigError("--controls learn from the runs that --all would count: leave out one of them.")
    if report is not None and report.suffix.lower() != ".html":
        raise ConfigError(f"--report {report}: the name must end in .html; .md and .json are written beside it.")
    waived = pairs_of(waive, "--waive", WAIVE_EXAMPLE)
    looks = OlderLooks(older)
    opened = load(monitor, trust=trust or None)
    if looks.trains:
        from prefixguard.evaluation.retraining import training_of

        training_of(opened)  # before anything is read
    source: Any = runs
    if controls or leaks or report is not None or looks.any:
        opened.refuse_other(adapter, runs)
        with counting("Reading") as show:
            source = SpooledRuns.read(runs, opened.bundle.adapter, labels=labels, strict=strict, progress=show)
    beside = None
    if controls:
        from prefixguard.evaluation.controls import TrainedControls, controls_beside

        beside = controls_beside(opened.bundle, source, on_stage=lambda name: say(f"control: {name}"))
    with counting("Scoring") as show:
        table = evaluate(
            opened,
            source,
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
    if controls:
        table = table.with_sections({"controls": TrainedControls.of(table)})
    if leaks:
        from prefixguard.evaluation.leaks import audit_leaks, waivers_of

        with working("Leak audit", "stages") as work:
            waivers = waivers_of(opened.bundle.adapter, waived)
            table = table.with_sections({"leaks": audit_leaks(source, on_stage=work.on_stage, waive=waivers)})

    def write(so_far: EvaluationTable) -> None:
        if report is None:
            return
        from prefixguard.evaluation.report import report_of, write_report

        title, command = f"{monitor.name} on {Path(runs).name}", shlex.join(["prefixguard", *looks.shown(sys.argv[1:])])
        for path in write_report(report_of(opened, so_far, source, title=title, command=command), report):
            say(f"wrote {path}")

    if looks.any:
        write(table)  # what is known already: what follows may take hours, or be interrupted
        table = table.with_sections(
            looks.take(opened, table, source, group_by=group_by, resamples=resamples, seed=seed)
        )
    if as_json:
        write_json_text(table.to_json())
    else:
        say(table.to_text())
    write(table)
