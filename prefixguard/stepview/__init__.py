"""StepView: the step record, and the adapters that turn raw runs of any format into records."""

from prefixguard.stepview.adapter import Adapter, list_adapters, load_adapter
from prefixguard.stepview.jsontext import canonical, decode, decode_text
from prefixguard.stepview.lines import MAX_LINE_BYTES, EventLine, read_events
from prefixguard.stepview.parser import Parser
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.stepview.record import FIELDS, Status, StepRecord, serialize
from prefixguard.stepview.side_by_side import Exchange, SideBySide, side_by_side
from prefixguard.stepview.terminal import render

__all__ = [
    "FIELDS",
    "MAX_LINE_BYTES",
    "Adapter",
    "EventLine",
    "Exchange",
    "Parser",
    "ReadReport",
    "SideBySide",
    "Status",
    "StepRecord",
    "canonical",
    "decode",
    "decode_text",
    "list_adapters",
    "load_adapter",
    "read_events",
    "read_runs",
    "render",
    "serialize",
    "side_by_side",
]
