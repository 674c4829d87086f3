"""Running agents: one vocabulary of events, a recorder, and the guard that stands between an agent and a monitor."""

from prefixguard.integrations.alarms import Alarm
from prefixguard.integrations.events import KINDS, MAIN, Event, plain_json, text_of
from prefixguard.integrations.guard import Guard
from prefixguard.integrations.recorder import Recorder
from prefixguard.integrations.sinks import FileSink, LogSink, Sink, WatchedReading
from prefixguard.integrations.watched_run import WatchedRun

__all__ = [
    "KINDS",
    "MAIN",
    "Alarm",
    "Event",
    "FileSink",
    "Guard",
    "LogSink",
    "Recorder",
    "Sink",
    "WatchedReading",
    "WatchedRun",
    "plain_json",
    "text_of",
]
