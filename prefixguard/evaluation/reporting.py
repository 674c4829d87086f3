"""The report of one evaluation: what was scored, example runs read once more, and what lies beside the bundle."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from prefixguard.bundle import Bundle
from prefixguard.distribution import VERSION
from prefixguard.errors import DataError
from prefixguard.evaluation.evaluation import alarm_thresholds
from prefixguard.evaluation.report import AutomatonView, ExampleRun, MonitorFacts, Report, ReportInput, choose_examples
from prefixguard.evaluation.table import EvaluationTable, RunKey
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, run_digest

_PACKAGES = ("numpy", "onnxruntime")


def report_of(
    monitor: Monitor,
    table: EvaluationTable,
    runs: Iterable[Run[StepRecord]],
    *,
    title: str = "Evaluation",
    command: str = "",
) -> Report:
    """The report of an evaluation.

    table: what `evaluate` gave of this monitor; its sections (leaks, folds and the like) are shown where there are any.
    runs: the same runs again; of them only the examples are kept. title: what it is called. command: the line that
    makes it again.
    Raises DataError for a table without runs behind it.
    """
    bundle, behind = monitor.bundle, table.behind
    if behind is None or not behind.keys:
        raise DataError("a report needs the runs behind its table: take the one that `evaluate` gives.")
    thresholds = alarm_thresholds(bundle)
    given = ReportInput(
        table=table,
        rows=behind.rows,
        lengths=behind.lengths,
        failed=behind.failed,
        tasks=behind.tasks,
        run_ids=[run_id for run_id, _ in behind.keys],
        groups=behind.groups,
        policy=bundle.calibration.policy,
        thresholds=thresholds,
        alarm_groups=behind.alarm_groups,
        monitor=MonitorFacts.of_manifest(bundle.path.name, bundle.manifest),
        title=title,
        command=command,
        facts={
            **_recalibration(bundle),
            "Python": platform.python_version(),
            "prefixguard": VERSION,
            **{name: version(name) for name in _PACKAGES},
        },
        automaton=_automaton(bundle),
    )
    return Report.of(replace(given, examples=_examples(monitor, given, behind.keys, runs)))


def _examples(
    monitor: Monitor, given: ReportInput, keys: Sequence[RunKey], runs: Iterable[Run[StepRecord]]
) -> list[ExampleRun]:
    chosen = choose_examples(
        given.rows[0].outcome,
        given.failed,
        given.run_ids,
        [given.alarm_of(run) for run in range(len(keys))],
        given.policy,
        horizon=given.table.horizon,
    )
    wanted = {keys[choice.run]: choice.run for choice in chosen}
    found: dict[int, ExampleRun] = {}
    for run in runs:
        if len(found) == len(wanted):
            break
        place = wanted.get((run.run_id, run_digest(run.records)))
        if place is not None and place not in found:
            found[place] = ExampleRun.of(
                place, run.records, monitor.score_run(run.records, group=monitor.group_of(run))
            )
    return [found[choice.run] for choice in chosen if choice.run in found]


def _recalibration(bundle: Bundle) -> dict[str, str]:
    """What the alarm's marks were set anew on, where they are not those of training."""
    found = bundle.manifest.get("recalibration")
    if not isinstance(found, dict):
        return {}
    said = f"{found.get('runs')} runs, {found.get('successful')} of them successful; of the monitor "
    said += str(found.get("monitor"))[:12]
    return {"marks set anew on": said + ("; IN SAMPLE" if found.get("in_sample") else "")}


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
