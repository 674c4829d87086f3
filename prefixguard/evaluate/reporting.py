"""The report of one evaluation: what was scored, example runs read once more, and what lies beside the bundle."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from prefixguard.bundle import Bundle
from prefixguard.evaluate.evaluation import Evaluation
from prefixguard.evaluate.report import AutomatonView, ExampleRun, MonitorFacts, Report, ReportInput, choose_examples
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, run_digest

_PACKAGES = ("prefixguard", "numpy", "onnxruntime")


def report_of(
    evaluation: Evaluation, runs: Iterable[Run[StepRecord]], *, title: str = "Evaluation", command: str = ""
) -> Report:
    """The report of an evaluation.

    runs: the same runs again; of them only the examples are kept. title: what it is called. command: the line that
    makes it again. Sections of the table (leaks, controls and the like) are shown where there are any.
    """
    bundle, table = evaluation.monitor.bundle, evaluation.table
    policy = bundle.calibration.policy
    given = ReportInput(
        table=table,
        rows=evaluation.rows,
        lengths=evaluation.lengths,
        failed=evaluation.failed,
        tasks=evaluation.tasks,
        run_ids=[run_id for run_id, _ in evaluation.keys],
        groups=evaluation.groups,
        policy=policy,
        thresholds=evaluation.thresholds,
        examples=_examples(evaluation, runs),
        monitor=MonitorFacts.of_manifest(bundle.path.name, bundle.manifest),
        title=title,
        command=command,
        facts={"Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        automaton=_automaton(bundle),
    )
    return Report.of(given)


def _examples(evaluation: Evaluation, runs: Iterable[Run[StepRecord]]) -> list[ExampleRun]:
    mark = evaluation.thresholds.get(evaluation.monitor.bundle.calibration.policy.budget)
    chosen = choose_examples(
        evaluation.rows[0].outcome,
        evaluation.failed,
        [run_id for run_id, _ in evaluation.keys],
        None if mark is None else mark.alarm,
        evaluation.monitor.bundle.calibration.policy,
        horizon=evaluation.table.horizon,
    )
    wanted = {evaluation.keys[choice.run]: choice.run for choice in chosen}
    found: dict[int, ExampleRun] = {}
    for run in runs:
        if len(found) == len(wanted):
            break
        place = wanted.get((run.run_id, run_digest(run.records)))
        if place is not None and place not in found:
            readings = evaluation.monitor.score_run(run.records)
            found[place] = ExampleRun.of(place, run.records, readings)
    return [found[choice.run] for choice in chosen if choice.run in found]


def _automaton(bundle: Bundle) -> AutomatonView | None:
    """With the picture and the glossary that `export` wrote beside it, where they are."""
    automaton = bundle.automaton
    if automaton is None:
        return None
    picture, glossary = bundle.path / "automaton.svg", bundle.path / "GLOSSARY.md"
    return AutomatonView(
        name=bundle.path.name,
        states=automaton.n_states,
        symbols=automaton.n_symbols,
        svg=_beside(picture),
        glossary_text=_beside(glossary).decode("utf-8", "replace"),
    )


def _beside(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
