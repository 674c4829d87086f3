"""`prefixguard train` and `check-data`: from raw runs to a compiled monitor."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from prefixguard.cli.command import READ_ADAPTER, command, show
from prefixguard.cli.console import say, write_json
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import notes_of
from prefixguard.cli.signatures import parameters_of
from prefixguard.cli.training_plan import PlannedTraining, plan_training, simulated_runs
from prefixguard.errors import DataError
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import ReadReport, adapter_for

if TYPE_CHECKING:
    from prefixguard.evaluation import Comparison

#: Options of a training that are shown among the first; the others are details.
_COMMON = ["backend", "blend", "seed", "horizon", "epochs", "budget", "confidence", "higher_is_safer", "device"]
_CONFIG = parameters_of("TrainConfig")


@command(
    {"train": "", "TrainConfig": ""},
    words={
        "adapter": READ_ADAPTER,
        "overwrite": "Replace a bundle that is there.",
        **{name: f"{option.text} Default: {option.default}." for name, option in _CONFIG.items()},
    },
    panels={name: "Training" if name in _COMMON else "Training, in detail" for name in _CONFIG},
    json="What was made, as JSON on standard output.",
    optional=("adapter", "out", *_CONFIG),
)
def train(
    adapter: str | None,
    out: Path | None,
    labels: Path | None,
    as_json: bool,
    overwrite: bool,
    strict: bool,
    resume: bool,
    scores: Path | None,
    unlabelled: bool,
    runs: str | None = None,
    config: Path | None = None,
    from_monitor: Path | None = None,
    **options: Any,
) -> None:
    """Train a monitor on raw runs and compile it into a bundle: a folder that needs no torch to run.

    The command line has the last word, then the TOML file, then the defaults. Interrupted with Ctrl-C, the same
    command resumes.

    Examples:

        prefixguard train runs.jsonl --adapter openai_chat --out monitors/mine
        prefixguard train .traces/tau_bench --adapter tau_bench --backend gru --out monitors/tau
        prefixguard train successful/ --adapter openai_chat --backend healthy --out monitors/healthy
        prefixguard train runs/ --backend healthy --unlabelled --out monitors/healthy
        prefixguard train labelled/ --from monitors/day_one --out monitors/day_two
        prefixguard train --backend gru
        prefixguard train --scores scores.csv --higher-is-safer --out monitors/judged

    runs : file, folder, glob or tar of runs, or - for standard input. Without it: what prefixguard.toml in this
        folder names, else the built-in simulation's runs.
    config : TOML file; its section [train] holds any of these options, by name.
    from_monitor : a monitor to begin from, such as one of healthy runs: its adapter, seed, horizon, budget and
        confidence hold where nothing else is said. Both are then compared on the runs that neither was made from.
    """
    from prefixguard.learn import train

    given = {name: value for name, value in options.items() if value is not None}
    begin = None if from_monitor is None else load(from_monitor).with_model("A training that begins from a monitor")
    plan = plan_training(runs, adapter, labels, out, config, given, scores, begin)
    say(plan.said)
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder, Activity(bar=True) as progress:
        result = train(
            plan.runs or simulated_runs(Path(folder), progress),
            out=plan.out,
            adapter=plan.adapter,
            labels=plan.labels,
            config=plan.config,
            overwrite=overwrite,
            strict=strict,
            resume=resume,
            unlabelled=unlabelled,
            listener=progress,
        )
    for note in (*notes_of(result.report), *result.notes):
        if note not in progress.shown:
            say(note)
    manifest = result.manifest
    compared = None if begin is None else _compared(begin, result.path, plan, strict)
    if as_json:
        kept = ("data", "metrics", "horizon", "seed", "backend", "training_seconds")
        facts = {name: manifest.get(name) for name in kept}
        write_json(
            {"path": str(result.path), "id": result.id, **facts, "notes": list(result.notes)}
            | ({} if begin is None else {"compared": compared and compared.as_json()})
        )
        return
    data, metrics = manifest["data"], manifest["metrics"]
    say(
        f"{data['runs']:,} runs ({data['failed']:,} failed) of {data['tasks']:,} tasks, {data['steps']:,} steps; "
        f"{manifest['training_seconds']:.0f} s"
    )
    if metrics:
        shown = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in metrics.items())
        say(f"on runs kept for testing: {shown}")
    if compared is not None:
        say(compared.to_text())
    say(f"{result.path}  {result.id[:12]}", style="bold green")
    again = plan.runs if plan.runs is not None else "RUNS"
    say(f"Next: prefixguard evaluate {result.path} {again}, or watch a run: prefixguard watch {result.path} -")


def _compared(begin: Monitor, made: Path, plan: PlannedTraining, strict: bool) -> Comparison | None:
    """The monitor that was begun from and the new one on the runs that neither was made from; None without any."""
    from prefixguard.evaluation import compare

    try:
        with Activity("Comparing") as work:
            return compare([begin, made], str(plan.runs), labels=plan.labels, strict=strict, progress=work.on_runs)
    except DataError as exc:
        say(f"warning: {begin.bundle.path.name} and the new monitor are not compared: {exc}")
        return None


def _number(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


@command("check_data", words={"adapter": READ_ADAPTER}, json="The whole check as JSON on standard output.")
def check_data(
    runs: str, adapter: str, seed: int, as_json: bool, waive: Mapping[str, str] | None = None, **given: Any
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

    waive : A finding that is harmless, and why: PLACE=REASON, as the finding says. May be repeated.
    """
    from prefixguard.evaluation.data_check import DataFinding, check_data
    from prefixguard.evaluation.leaks import audit_leaks, waivers_of

    opened, report = adapter_for(adapter, runs), ReadReport()
    waived = waivers_of(opened, waive or {})

    def audit(parsed: Any) -> list[Any]:
        found = audit_leaks(parsed, seed=seed, waive=waived)
        return [*found.findings, *(DataFinding("note", f"Leak audit: {note}") for note in found.notes)]

    with Activity(bar=True) as progress:
        check = check_data(runs, adapter=opened, seed=seed, listener=progress, report=report, audit=audit, **given)
    for note in notes_of(report):
        say(note)
    show(check, as_json=as_json)
    if not check.ok:
        raise typer.Exit(1)
