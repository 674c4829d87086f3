"""An evaluation of the lab's runs, and a judge that knows how they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import Exchange, Play, says

from prefixguard.evaluate import EvaluationTable, evaluate
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import StepRecord, read_runs
from prefixguard.trace import Run


@pytest.fixture(scope="module")
def monitor(lab_bundle: Path) -> Monitor:
    return load(lab_bundle)


@pytest.fixture(scope="module")
def runs(monitor: Monitor, fresh_lab_file: Path) -> list[Run[StepRecord]]:
    """24 runs of six tasks that the monitor has not seen."""
    return list(read_runs(str(fresh_lab_file), monitor.bundle.adapter))


@pytest.fixture(scope="module")
def table(monitor: Monitor, runs: list[Run[StepRecord]]) -> EvaluationTable:
    return evaluate(monitor, runs, resamples=40)


def answer(fails: object, soon: object, reason: str = "so it seems") -> str:
    return json.dumps({"reason": reason, "fails": fails, "fails_soon": soon})


def judging(say: Callable[[str], str | Play]) -> Play:
    """A model that answers by what it was asked: `say` gets the user's message, gives the text of a reply or a play."""

    def play(exchange: Exchange) -> None:
        said = say(exchange.body["messages"][-1]["content"])
        (says(said) if isinstance(said, str) else said)(exchange)

    return play


class Scripted:
    """A judge that says of the n-th different question it is asked what `lines` hold, and remembers who was told what.

    told: user message -> reply.
    """

    def __init__(self, lines: Callable[[int], Any]) -> None:
        self.told: dict[str, Any] = {}
        self._lines, self._lock = lines, threading.Lock()

    def play(self, exchange: Exchange) -> None:
        asked = exchange.body["messages"][-1]["content"]
        with self._lock:
            said = self.told.setdefault(asked, self._lines(len(self.told)))
        (says(said) if isinstance(said, str) else said)(exchange)
