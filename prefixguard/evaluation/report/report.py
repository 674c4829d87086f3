"""The report of an evaluation: its sections, example runs read once more, and the files it is written to."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefixguard.bundle import Bundle
from prefixguard.distribution import VERSION
from prefixguard.errors import ConfigError
from prefixguard.evaluation.evaluation import alarm_thresholds
from prefixguard.evaluation.report.composition import composition_section, reproduction_section
from prefixguard.evaluation.report.examples import choose_examples, examples_section
from prefixguard.evaluation.report.given import AutomatonView, ExampleRun, ReportInput, SymbolLine, name
from prefixguard.evaluation.report.sections import (
    Made,
    alerts_section,
    automaton_section,
    precision_recall_section,
    reliability_section,
    scores_section,
)
from prefixguard.evaluation.report.summary import summary_of
from prefixguard.evaluation.tables.evaluation_table import EvaluationTable
from prefixguard.results import Page, Result, Section, Summary, Text, page_markdown, plain_value, to_html
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, digest_of

SCHEMA = "prefixguard/report/v1"

#: Sections in the order in which they are shown: title, and what would fill one that is missing.
TITLES: Mapping[str, tuple[str, str]] = {
    "scores": ("Beside every baseline", ""),
    "precision_recall": ("Precision and recall", "These curves take runs that failed and runs that succeeded."),
    "first_alerts": ("First alerts", "This takes a monitor with an alarm threshold: train it with enough tasks."),
    "examples": ("Runs, step by step", "No example runs were given with the scores."),
    "reliability": (
        "Can the risks be taken at their word?",
        "This takes scores that are probabilities, at steps that were judged.",
    ),
    "leaks": ("Leaks", "No leak audit was made: it looks for fields that tell how a run ended before it has ended."),
    "shortcuts": ("Shortcuts", "Not looked for: this takes runs of several agents, named in their groups."),
    "observability": ("How much can be seen", "Not computed: the observability scale needs the outcome label."),
    "prevalence": ("At other failure rates", "Not computed: AUPRC at reference prevalences compares sets of runs."),
    "shares_seen": ("When a share of the run is seen", "Not computed: this is the convention of others."),
    "detection": (
        "Time to detection",
        "No onset was named. --onset says from which step of a run on an alarm is due, and this section how late it "
        "comes: mistake_step where labels name the mistake, or FIELD=VALUE, such as status=error.",
    ),
    "controls": ("Controls", "No controls were trained: raw text, activity names only, boosting."),
    "judge": (
        "A language model as the judge",
        "None was asked: it is shown a sample of prefixes, and stands beside the monitor with what it cost.",
    ),
    "ablation": ("What each field is worth", "No ablation was made: it trains a variant without each field."),
    "automaton": ("The automaton and its symbols", "This monitor has none: one can be exported from it."),
    "composition": ("What the figures rest on", ""),
    "reproduction": ("To make it again", ""),
}
#: Those that are made here; the others are sections of the table.
_MAKERS: Mapping[str, Callable[[ReportInput], Made | None]] = {
    "scores": scores_section,
    "precision_recall": precision_recall_section,
    "first_alerts": alerts_section,
    "examples": examples_section,
    "reliability": reliability_section,
    "automaton": automaton_section,
    "composition": composition_section,
    "reproduction": reproduction_section,
}
_PACKAGES = ("numpy", "onnxruntime")


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Everything one evaluation found, ready to be read.

    sections: in the order of `TITLES`, further analyses before what the figures rest on; one that is missing holds the
    line that says what would fill it.
    """

    title: str
    table: EvaluationTable
    verdict: Summary
    sections: tuple[Section, ...]

    @classmethod
    def of(cls, given: ReportInput) -> EvaluationReport:
        """Computes every section there is material for. Same input, same report."""
        carried = given.table.sections
        sections: list[Section] = []
        for key, (title, line) in TITLES.items():
            if key == "composition":
                for place, other in enumerate((other for other in carried if other not in TITLES), 1):
                    shown = other.replace("_", " ").capitalize()
                    sections.append(Section(f"other-{place}", shown, *_carried(carried[other])))
            made = _MAKERS[key](given) if key in _MAKERS else _carried(carried[key]) if key in carried else None
            blocks, data = made or ((Text(line, "faint"),), {})
            sections.append(Section(key, title, blocks, data, missing=made is None))
        return cls(given.title, given.table, summary_of(given.table), tuple(sections))

    def section(self, key: str) -> Section | None:
        """The section of this name; None where it is missing."""
        return next((section for section in self.sections if section.key == key and not section.missing), None)

    def page(self) -> Page:
        """Title, verdict and sections, as the writers take them."""
        return Page(name(self.title), self.verdict, self.sections)

    def to_html(self) -> bytes:
        """One page in UTF-8 that stands alone: nothing is loaded, and its own script is all that can run."""
        return to_html(self.page())

    def to_markdown(self) -> str:
        """The same figures as Markdown; drawings in words."""
        return page_markdown(self.page())

    def as_json(self) -> dict[str, Any]:
        """Schema, verdict, the table as `EvaluationTable.as_json` gives it, and each section's figures or None."""
        data = {section.key: None if section.missing else plain_value(section.data) for section in self.sections}
        return {
            "schema": SCHEMA,
            "title": self.title,
            "verdict": {"headline": self.verdict.headline, "sentences": list(self.verdict.sentences)},
            "table": self.table.as_json(),
            "sections": {key: data[key] for key in TITLES},
            "others": {section.title: data[section.key] for section in self.sections if section.key not in TITLES},
        }


def _carried(found: Result) -> Made:
    """What a section of the table shows, and its figures."""
    return found.blocks(), found.as_json()


def report_of(
    monitor: Monitor,
    table: EvaluationTable,
    runs: Iterable[Run[StepRecord]],
    *,
    title: str = "Evaluation",
    command: str = "",
) -> EvaluationReport:
    """The report of an evaluation.

    table: what `evaluate` gave of this monitor; its sections (leaks, folds and the like) are shown where there are any.
    runs: the same runs again; of them only the examples are kept. title: what it is called. command: the line that
    makes it again.
    Raises DataError for a table without runs behind it.
    """
    bundle = monitor.bundle
    given = ReportInput(
        table=table,
        policy=bundle.calibration.policy,
        thresholds=alarm_thresholds(bundle),
        monitor=bundle.path.name,
        manifest=bundle.manifest,
        title=title,
        command=command,
        facts={
            **_recalibration(bundle),
            "Python": platform.python_version(),
            "prefixguard": VERSION,
            **{package: version(package) for package in _PACKAGES},
        },
        automaton=_automaton(bundle),
    )
    return EvaluationReport.of(replace(given, examples=_examples(monitor, given, runs)))


def _examples(monitor: Monitor, given: ReportInput, runs: Iterable[Run[StepRecord]]) -> list[ExampleRun]:
    behind = given.behind
    chosen = choose_examples(
        behind.rows[0].outcome,
        behind.failed,
        [run_id for run_id, _ in behind.keys],
        [given.alarm_of(run) for run in range(given.table.runs)],
        given.policy,
        horizon=given.table.horizon,
    )
    wanted = {behind.keys[choice.run]: choice.run for choice in chosen}
    found: dict[int, ExampleRun] = {}
    for run in runs:
        if len(found) == len(wanted):
            break
        place = wanted.get((run.run_id, digest_of(run)))
        if place is not None and place not in found:
            readings = monitor.score_run(run.records, group=monitor.group_of(run), offer=run.offer)
            found[place] = ExampleRun.of(place, run.records, readings)
    return [found[choice.run] for choice in chosen if choice.run in found]


def _recalibration(bundle: Bundle) -> dict[str, str]:
    """What the alarm's thresholds were set anew on, where they are not those of training."""
    found = bundle.manifest.get("recalibration")
    if not isinstance(found, dict):
        return {}
    said = f"{found.get('runs')} runs, {found.get('successful')} of them successful; of the monitor "
    said += str(found.get("monitor"))[:12]
    return {"thresholds set anew on": said + ("; IN SAMPLE" if found.get("in_sample") else "")}


def _automaton(bundle: Bundle) -> AutomatonView | None:
    """With the picture that `export` wrote beside it, and the symbols of its manifest or else its glossary's text."""
    automaton = bundle.automaton
    if automaton is None:
        return None
    return AutomatonView(
        name=bundle.path.name,
        states=automaton.n_states,
        symbols=automaton.n_symbols,
        svg=_beside(bundle.path / "automaton.svg"),
        glossary=SymbolLine.of_manifest(bundle.manifest),
        glossary_text=_beside(bundle.path / "GLOSSARY.md").decode("utf-8", "replace"),
    )


def _beside(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def write_report(report: EvaluationReport, path: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Writes `path` (ending in .html) and the same name with .md and .json; returns the three paths.

    Folders on the way are made; existing files are replaced, each in one move.
    Raises ConfigError where the name has another ending or a file cannot be written.
    """
    page = Path(path)
    if page.suffix.lower() != ".html":
        raise ConfigError(f"report {page}: the name must end in .html; .md and .json are written beside it.")
    texts = {
        page: report.to_html(),
        page.with_suffix(".md"): report.to_markdown().encode("utf-8", "backslashreplace"),
        page.with_suffix(".json"): json.dumps(report.as_json(), allow_nan=False, indent=1).encode() + b"\n",
    }
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        for place, data in texts.items():
            part = place.with_name(f".{place.name}.part")
            part.write_bytes(data)
            part.replace(place)
    except OSError as exc:
        raise ConfigError(f"report {page}: cannot be written ({exc.strerror or exc}). Name another place.") from exc
    written = tuple(texts)
    return written[0], written[1], written[2]
