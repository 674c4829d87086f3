"""Sinks on this machine: lines of a Python logger, and JSON lines in a file."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from prefixguard.alarm import Level
from prefixguard.integrations.sinks.queue import WatchedReading, blames, verdict_in_words
from prefixguard.runtime import plain


class LogSink:
    """Readings and verdicts as lines of a Python logger: alarms as warnings, all others at the level `info`."""

    def __init__(self, name: str = "prefixguard.readings") -> None:
        self._logger = logging.getLogger(name)

    def emit(self, watched: WatchedReading) -> None:
        is_alarm = watched.reading.level is Level.ALARM if watched.verdict is None else blames(watched)
        self._logger.log(logging.WARNING if is_alarm else logging.INFO, in_words(watched))


class FileSink:
    """Readings as JSON lines in a file, which its owner alone can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def emit(self, watched: WatchedReading) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write((json.dumps(watched.to_json(), ensure_ascii=False) + "\n").encode("utf-8", "replace"))


def in_words(watched: WatchedReading) -> str:
    """A reading as one harmless line; names and reasons come from outside."""
    reading = watched.reading
    who = plain(f"{watched.run} {watched.agent_path}", 160)
    if watched.verdict is not None:
        return f"{who} step {watched.about}: {plain(verdict_in_words(watched.verdict), 400)}"
    if reading.level is Level.UNKNOWN:
        return f"{who} step {reading.step}: UNKNOWN: {plain(reading.unknown_reason or '', 300)}"
    why = "".join(f"; {plain(reason, 400)}" for reason in reading.reasons)
    risk = "" if reading.outcome_risk is None else f", {reading.outcome_risk:.0%} risk of failure"
    return f"{who} step {reading.step}: {reading.level.value}{risk}{why}"
