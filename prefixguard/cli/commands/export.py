"""`prefixguard export`: a monitor as an automaton that people read, or as a table that other languages run."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.bundle import Trust, open_bundle
from prefixguard.cli.command import command
from prefixguard.cli.console import people, say, write_json
from prefixguard.cli.progress import Activity
from prefixguard.cli.training_plan import SIMULATED_RUNS, SIMULATION_ADAPTER, plan_training, simulated_runs

if TYPE_CHECKING:
    from rich.table import Table

    from prefixguard.automata import ExportResult
    from prefixguard.automata.model_selection import Candidate
    from prefixguard.learn import LearnListener


@command(
    "export",
    words={
        "monitor": "Folder of a monitor that `train` wrote.",
        "runs": "The runs that it was trained on. Without it: what prefixguard.toml in this folder names, else the "
        "built-in simulation's runs, if it was trained on those.",
    },
    json="What was made, as JSON on standard output.",
)
def export(
    monitor: Path, runs: str | None, labels: Path | None, trust: Trust | None, as_json: bool, **given: Any
) -> None:
    """Export a monitor as a finite automaton: one that a person can audit and an agent can run.

    Alphabets, learners and sizes are tried by folds of the training runs, and the table of what each was worth is
    shown. The folder holds the automaton (automaton.json), its picture (automaton.html, .svg, .dot), the glossary of
    its symbols, and is a monitor like any other: watch, score and evaluate take it.

    Examples:

        prefixguard export monitors/mine runs.jsonl --to dfa
        prefixguard export monitors/mine runs.jsonl --alphabet typed --learner merge --max-states 24 --no-clock
        prefixguard export monitors/mine runs.jsonl --replay run-17 --replay run-23
        prefixguard export automata/mine --to json-table --out table/
    """
    from prefixguard.automata import export
    from prefixguard.automata.model_selection import RULE

    console = people()
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder, Activity(bar=True) as progress:
        if runs is None:
            runs, planned_labels = _planned(monitor, Path(folder), progress, trust)
            labels = labels or planned_labels
        result = export(monitor, runs, labels=labels, trust=trust, listener=progress, **given)
    for note in result.notes:
        say(note)
    fidelity, performance = result.fidelity, result.performance
    if as_json:
        choice = asdict(result.choice) if result.choice else None
        measured = {"fidelity": fidelity and asdict(fidelity), "performance": performance and performance.to_json()}
        facts = {"choice": choice, **measured, "notes": list(result.notes)}
        write_json({"path": str(result.path), "id": result.id, **facts})
        return
    if result.trials and result.choice is not None:
        console.print(_table(result, result.choice))
        taken = f"{result.choice.alphabet}, {result.choice.learner}, {'a' if result.choice.clock else 'no'} clock"
        say(f"Taken (*): {taken}. {RULE}")
        say(f"{len(result.trials)} were tried; all stand under trials in {result.path}/manifest.json.")
    if performance is not None:
        ours = performance.rows[0]
        caught = f"Test runs: its alarms catch {ours.caught:,} of {performance.failed:,} failures"
        say(f"{caught}; {ours.false_alarms:,} of {performance.successful:,} successful runs raise a false alarm.")
        for note in performance.notes:
            say(note)
    for sentence in fidelity.care if fidelity else ():
        say(f"audit with care: {sentence}")
    say(str(result.path) + (f"  {result.id[:12]}" if result.id else ""), style="bold green")
    if result.id is not None:
        say(f"Next: open {result.path}/automaton.html, or watch a run: prefixguard watch {result.path} -")


def _table(result: ExportResult, choice: Candidate) -> Table:
    """The best of what the choice was made among, best first, and the choice."""
    from rich.box import SIMPLE
    from rich.table import Table

    from prefixguard.automata.model_selection import COLUMNS_MEAN, SHOWN_COLUMNS, shown_trials

    found = Table(
        box=SIMPLE, padding=0, show_edge=False, title="Tried on folds of the training runs", caption=COLUMNS_MEAN
    )
    found.add_column("", no_wrap=True, min_width=1)
    found.add_column(SHOWN_COLUMNS[0], no_wrap=True)
    for head in SHOWN_COLUMNS[1:]:
        found.add_column(head, justify="right", no_wrap=True)
    for marked, cells in shown_trials(result.trials, choice):
        found.add_row("*" if marked else "", *cells, style="bold" if marked else "")
    return found


def _planned(
    monitor: Path, folder: Path, progress: LearnListener, trust: Trust | None
) -> tuple[str | None, Path | None]:
    """The runs that a training without RUNS would take, and their labels. None for an automaton, which needs none."""
    bundle = open_bundle(monitor, trust=trust)
    if bundle.automaton is not None:
        return None, None
    plan = plan_training(None, None, None, None, None, {})
    if plan.runs is not None:
        say(f"No runs are named: taking {plan.runs}, as prefixguard.toml says.")
        return plan.runs, plan.labels
    if bundle.adapter.name != SIMULATION_ADAPTER:
        return None, None  # not of the simulation: `export` says that runs must be named
    say(f"No runs are named: taking {SIMULATED_RUNS:,} runs of the built-in simulation.")
    return simulated_runs(folder, progress), None
