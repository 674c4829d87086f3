"""The report of an evaluation: one page to read, the same as Markdown and JSON."""

from prefixguard.evaluation.report.examples import Choice, Kind, choose_examples
from prefixguard.evaluation.report.material import (
    AutomatonView,
    ExampleRun,
    ExampleStep,
    ReportInput,
    SymbolLine,
)
from prefixguard.evaluation.report.report import Report, report_of, write_report

__all__ = [
    "AutomatonView",
    "Choice",
    "ExampleRun",
    "ExampleStep",
    "Kind",
    "Report",
    "ReportInput",
    "SymbolLine",
    "choose_examples",
    "report_of",
    "write_report",
]
