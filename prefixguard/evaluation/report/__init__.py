"""The report of an evaluation: one page to read, the same as Markdown and JSON."""

from prefixguard.evaluation.report.choice import Choice, Kind, choose_examples
from prefixguard.evaluation.report.material import (
    AutomatonView,
    ExampleRun,
    ExampleStep,
    MonitorFacts,
    ReportInput,
    SymbolLine,
)
from prefixguard.evaluation.report.report import Report
from prefixguard.evaluation.report.writing import write_report

__all__ = [
    "AutomatonView",
    "Choice",
    "ExampleRun",
    "ExampleStep",
    "Kind",
    "MonitorFacts",
    "Report",
    "ReportInput",
    "SymbolLine",
    "choose_examples",
    "write_report",
]
