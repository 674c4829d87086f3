"""The report of an evaluation: sections, most of them optional, and the three forms they are written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.report.alert_section import alerts_section
from prefixguard.evaluation.report.calibration_curve import reliability_section
from prefixguard.evaluation.report.composition import composition_section
from prefixguard.evaluation.report.curves import curves_section
from prefixguard.evaluation.report.findings import automaton_section, finding_section
from prefixguard.evaluation.report.material import ReportInput, name
from prefixguard.evaluation.report.reproduction import reproduction_section
from prefixguard.evaluation.report.ribbons import examples_section
from prefixguard.evaluation.report.score_tables import scores_section
from prefixguard.evaluation.report.sentences import verdict_of
from prefixguard.evaluation.table import EvaluationTable
from prefixguard.results import Page, Section, Summary, Text, page_markdown, plain_value, to_html

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


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one evaluation found, ready to be read. A section that is None says what would fill it."""

    title: str
    table: EvaluationTable
    verdict: Summary
    scores: Section
    composition: Section
    reproduction: Section
    precision_recall: Section | None = None
    reliability: Section | None = None
    first_alerts: Section | None = None
    examples: Section | None = None
    observability: Section | None = None
    prevalence: Section | None = None
    shortcuts: Section | None = None
    leaks: Section | None = None
    ablation: Section | None = None
    controls: Section | None = None
    judge: Section | None = None
    automaton: Section | None = None
    others: tuple[Section, ...] = ()

    @classmethod
    def of(cls, given: ReportInput) -> Report:
        """Computes every section there is material for. Same input, same report."""
        carried = given.table.sections
        known = {key: getattr(given, key, None) or carried.get(key) for key in _FINDINGS}
        more = {key.replace("_", " ").capitalize(): value for key, value in carried.items() if key not in TITLES}
        return cls(
            title=given.title,
            table=given.table,
            verdict=verdict_of(given.table),
            scores=scores_section(given),
            composition=composition_section(given),
            reproduction=reproduction_section(given),
            precision_recall=curves_section(given),
            reliability=reliability_section(given),
            first_alerts=alerts_section(given),
            examples=examples_section(given),
            automaton=automaton_section(given.automaton, carried.get("automaton")),
            others=tuple(
                section
                for place, (title, finding) in enumerate({**more, **given.others}.items())
                if (section := finding_section(f"other-{place + 1}", title, finding)) is not None
            ),
            **{key: finding_section(key, TITLES[key][0], finding) for key, finding in known.items()},
        )

    def sections(self) -> tuple[Section, ...]:
        """All sections in order; one that is missing holds the line that says what would fill it."""
        found: list[Section] = []
        for key, (title, missing) in TITLES.items():
            if key == "composition":
                found += self.others
            section: Section | None = getattr(self, key)
            found.append(section or Section(key, title, (Text(missing, "faint"),), missing=True))
        return tuple(found)

    def page(self) -> Page:
        """Title, verdict and sections, as the writers take them."""
        return Page(name(self.title), self.verdict, self.sections())

    def to_html(self) -> bytes:
        """One page in UTF-8 that stands alone: nothing is loaded, and its own script is all that can run."""
        return to_html(self.page())

    def to_markdown(self) -> str:
        """The same figures as Markdown; drawings in words."""
        return page_markdown(self.page())

    def as_json(self) -> dict[str, Any]:
        """Schema, verdict, the table as `EvaluationTable.as_json` gives it, and each section's figures or None."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "verdict": {"headline": self.verdict.headline, "sentences": list(self.verdict.sentences)},
            "table": self.table.as_json(),
            "sections": {
                key: None if getattr(self, key) is None else plain_value(getattr(self, key).data) for key in TITLES
            },
            "others": {section.title: plain_value(section.data) for section in self.others},
        }


_FINDINGS = ("observability", "prevalence", "shortcuts", "leaks", "ablation", "controls", "judge")
