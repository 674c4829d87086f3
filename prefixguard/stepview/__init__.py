"""StepView: the step record, and the adapters that turn raw runs of any format into records."""

from prefixguard.stepview.adapter import Adapter, list_adapters, load_adapter
from prefixguard.stepview.parser import Parser
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.stepview.record import FIELDS, Status, StepRecord, serialize

__all__ = [
    "FIELDS",
    "Adapter",
    "Parser",
    "ReadReport",
    "Status",
    "StepRecord",
    "list_adapters",
    "load_adapter",
    "read_runs",
    "serialize",
]
