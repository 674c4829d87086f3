"""A live run can be saved and taken up again between any two events, whatever its format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import TraceError
from prefixguard.stepview import Adapter, Parser, list_adapters, load_adapter

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
NAMES = list_adapters()
LiveRuns = dict[str, Callable[[Path], Iterator[tuple[dict[str, Any], list[Any]]]]]
#: What a forged state may hold anywhere.
HOSTILE: list[Any] = [
    None, True, -1, 0, 7, 1 << 80, 1.5, float("nan"), "", "x", "\ud800", "9" * 5000, "[" * 5000, [], [[]], [1, "x"], {},
    {"x": 1}, ["0", "x"], [1, "x", 3, "[1]", 2], "é" * 3000,
]  # fmt: skip


def taken_up(adapter: Adapter, parser: Parser) -> Parser:
    fresh = adapter.parser()
    fresh.resume(json.loads(json.dumps(parser.state())))
    return fresh


@pytest.mark.parametrize("name", NAMES)
def test_saving_between_any_two_events_changes_nothing(name: str, live_runs: LiveRuns) -> None:
    adapter = load_adapter(name)
    for header, events in live_runs[name](GOLDEN / name / "runs"):
        straight, saved = adapter.parser(header), taken_up(adapter, adapter.parser(header))
        for event in events:
            assert saved.observe(event) == straight.observe(event)
            state = saved.state()
            assert state == straight.state()
            saved = taken_up(adapter, saved)
            assert saved.state() == state
            assert (saved.counters, saved.other_run) == (straight.counters, straight.other_run)
        assert saved.end() == straight.end()
        assert straight.other_run is None
        assert saved.gaps.state() == straight.gaps.state()


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*at, key))


def _with(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[at[0]] = _with(value[at[0]], at[1:], new)
    return copied


@pytest.mark.parametrize("name", NAMES)
def test_a_forged_state_is_a_trace_error_or_a_state(name: str, live_runs: LiveRuns) -> None:
    adapter = load_adapter(name)
    header, events = next(iter(live_runs[name](GOLDEN / name / "runs")))
    parser = adapter.parser(header)
    for event in events[: len(events) // 2 + 1]:
        parser.observe(event)
    state = parser.state()
    dice = random.Random(name)
    places = list(_places(state))
    for place in dice.choices(places, k=150):
        forged = _with(state, place, dice.choice(HOSTILE))
        fresh = adapter.parser()
        try:
            fresh.resume(forged)
        except TraceError as error:
            assert "state" in str(error)
            continue
        for event in [*events[:4], None]:
            try:
                fresh.observe(event)
            except TraceError:
                assert event is None or adapter.program.events.split is not None or name == "scores"
        fresh.end()
        json.dumps(fresh.state())


def test_a_state_of_another_adapter_says_what_to_do() -> None:
    with pytest.raises(TraceError, match="Restore the run with the adapter and the release that saved it"):
        load_adapter("tau2").parser().resume(load_adapter("react_log").parser().state())
