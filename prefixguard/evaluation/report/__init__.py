"""The report of an evaluation: one page to read, the same as Markdown and JSON."""

from prefixguard.evaluation.report.examples import ExampleChoice, ExampleKind, choose_examples
from prefixguard.evaluation.report.given import (
    AutomatonView,
    ExampleRun,
    ExampleStep,
    ReportInput,
    SymbolLine,
)
from prefixguard.evaluation.report.report import EvaluationReport, report_of, write_report

__all__ = [
    "AutomatonView",
    "EvaluationReport",
    "ExampleChoice",
    "ExampleKind",
    "ExampleRun",
    "ExampleStep",
    "ReportInput",
    "SymbolLine",
    "choose_examples",
    "report_of",
    "write_report",
]
