"""StepView: the step record, and the adapters that turn raw runs of any format into records."""

from prefixguard.stepview.adapter import (
    MAX_LINE_BYTES,
    Adapter,
    EventLine,
    list_adapters,
    load_adapter,
    raw_view,
    read_events,
    wide_view,
)
from prefixguard.stepview.compiling import DataPlace, PlaceReading, overlaps
from prefixguard.stepview.fills import SERIES, EventGaps, FillCounts, fill_marks
from prefixguard.stepview.fills import WINDOW as GAP_WINDOW
from prefixguard.stepview.found import contained
from prefixguard.stepview.identity import kind_of
from prefixguard.stepview.inspect_logs import AgentSpans, SpanAgent
from prefixguard.stepview.json_formats import NO_GROUP
from prefixguard.stepview.jsontext import canonical, decode, decode_text
from prefixguard.stepview.losses import FEWEST, NEARLY, Loss, losses, switch_of
from prefixguard.stepview.offered import EVENT_SCHEMA, is_limit, is_tools, offer_of, readable_offer
from prefixguard.stepview.parser import Parser, parse_whole
from prefixguard.stepview.paths import MISSING, Scope, parse_path, walk
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.stepview.recognition import EVENTS, Recognised, adapter_for, are_events, recognise
from prefixguard.stepview.record import FIELDS, Status, StepRecord, score_record, serialize
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.side_by_side import Exchange, RunFiles, SideBySide, run_files, side_by_side
from prefixguard.stepview.signals import JUMPS, LEFT_OUT, SIGNALS, Signals, moment_of
from prefixguard.stepview.spellings import unflatten
from prefixguard.stepview.splitter import Splitter
from prefixguard.stepview.spooled_runs import Spool, SpooledRuns
from prefixguard.stepview.terminal import render
from prefixguard.stepview.text import CUT_MARK, plain, repair, searchable, to_text

__all__ = [
    "CUT_MARK",
    "EVENTS",
    "EVENT_SCHEMA",
    "FEWEST",
    "FIELDS",
    "GAP_WINDOW",
    "JUMPS",
    "LEFT_OUT",
    "MAX_LINE_BYTES",
    "MISSING",
    "NEARLY",
    "NO_GROUP",
    "SERIES",
    "SIGNALS",
    "Adapter",
    "AgentSpans",
    "DataPlace",
    "EventGaps",
    "EventLine",
    "Exchange",
    "FillCounts",
    "Loss",
    "Parser",
    "Pattern",
    "PlaceReading",
    "ReadReport",
    "Recognised",
    "RunFiles",
    "Scope",
    "SideBySide",
    "Signals",
    "SpanAgent",
    "Splitter",
    "Spool",
    "SpooledRuns",
    "Status",
    "StepRecord",
    "adapter_for",
    "are_events",
    "canonical",
    "contained",
    "decode",
    "decode_text",
    "fill_marks",
    "is_limit",
    "is_tools",
    "kind_of",
    "list_adapters",
    "load_adapter",
    "losses",
    "moment_of",
    "offer_of",
    "overlaps",
    "parse_path",
    "parse_whole",
    "plain",
    "raw_view",
    "read_events",
    "read_runs",
    "readable_offer",
    "recognise",
    "render",
    "repair",
    "run_files",
    "score_record",
    "searchable",
    "serialize",
    "side_by_side",
    "switch_of",
    "to_text",
    "unflatten",
    "walk",
    "wide_view",
]
