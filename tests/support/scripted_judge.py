"""A judge of prefixes that says what a test wants it to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from model_server import Exchange, says


def answer(fails: object, soon: object, reason: str = "so it seems") -> str:
    """A reply in the form that is asked for."""
    return json.dumps({"reason": reason, "fails": fails, "fails_soon": soon})


class Scripted:
    """To the n-th different question, from 0, it says `lines(n)`: the text of a reply, or a play.

    told: user message -> what was said.
    """

    def __init__(self, lines: Callable[[int], Any]) -> None:
        self.told: dict[str, Any] = {}
        self._lines, self._lock = lines, threading.Lock()

    def play(self, exchange: Exchange) -> None:
        asked = exchange.body["messages"][-1]["content"]
        with self._lock:
            said = self.told.setdefault(asked, self._lines(len(self.told)))
        (says(said) if isinstance(said, str) else said)(exchange)
