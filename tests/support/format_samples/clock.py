"""Ids and times that are the same every time."""

from __future__ import annotations

import hashlib
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from .stories import Story

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Clock:
    """Time of one run, which goes on when asked, and names of things in it."""

    def __init__(self, format_name: str, story: Story) -> None:
        self._seed = f"{format_name}:{story.name}"
        self._n = 0
        self.now = _START + timedelta(hours=int(story.name[1:]) * 5, minutes=int(story.name[1:]) * 7)

    def tick(self, seconds: float = 2.0) -> datetime:
        """The time after so many seconds."""
        self.now += timedelta(seconds=seconds)
        return self.now

    def iso(self, seconds: float = 2.0) -> str:
        return self.tick(seconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def nanos(self, seconds: float = 2.0) -> str:
        return f"{int(self.tick(seconds).timestamp() * 1000)}000000"

    def hex(self, length: int) -> str:
        """A new name of so many hexadecimal digits."""
        self._n += 1
        return hashlib.sha256(f"{self._seed}:{self._n}".encode()).hexdigest()[:length]

    def uuid(self) -> str:
        return str(uuid.UUID(self.hex(32)))


def pretty(value: Any) -> str:
    """JSON over several lines."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def line(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


SYSTEM = "You are the operations assistant of Relay Ltd. Use the tools; ask before you spend money; be brief."
