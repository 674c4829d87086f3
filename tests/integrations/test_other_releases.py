"""The law of the hooks: objects of another release of a framework never disturb the host, and never make a wrong run.

Every framework that is installed plays a scenario with its real objects, while what a hook reads of them is at random
not there, None, or of another type.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from integration_players import Player
from integrations import PLAYERS, SCENARIOS, _served

from prefixguard import integrations, parse
from prefixguard.integrations import Event, Guard, events
from prefixguard.runtime import Monitor

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the frameworks
THERE = [pytest.param(player, id=name) for name, player in PLAYERS.items() if all(map(find_spec, player.modules))]


class Mute:
    """Has no text, no fields, no length and no truth value, and equals nothing."""

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("of another release")

    def __str__(self) -> str:
        raise RuntimeError("of another release")

    def __bool__(self) -> bool:
        raise RuntimeError("of another release")


OTHERS: tuple[Any, ...] = (None, 7, "other", b"\xff", [], {}, [None], [["x"]], {"x": {}}, 0.5, True, object(), Mute())


@pytest.fixture
def torn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[random.Random]:
    """What hooks read of objects is another value, every sixth time."""
    rng, true = random.Random(request.param), events.field_of

    def field_of(value: Any, name: str, default: Any = None) -> Any:
        if rng.random() > 1 / 6:
            return true(value, name, default)
        return default if rng.random() < 0.4 else rng.choice(OTHERS)

    for found in pkgutil.iter_modules(integrations.__path__, f"{integrations.__name__}."):
        module = importlib.import_module(found.name)
        if hasattr(module, "field_of"):
            monkeypatch.setattr(module, "field_of", field_of)
    before = rng.getstate()
    yield rng
    assert rng.getstate() != before, "the hook read nothing"


@pytest.mark.parametrize("torn", range(3), indirect=True)
@pytest.mark.parametrize("player", THERE)
def test_the_host_goes_on_and_no_run_is_wrong(
    player: Player, torn: random.Random, events_monitor: Monitor, tmp_path: Path
) -> None:
    name = next(name for name in ("nested", "error") if name not in player.unobservable)
    scenario = player.adapted(SCENARIOS[name])
    begun, told, guard = set[str](), list[Event](), Guard(events_monitor, record=tmp_path)
    new_id, feed = guard.new_id, guard._feed

    def noted(wanted: str | None = None) -> str:
        begun.add(found := new_id(wanted))
        return found

    def kept(event: Event) -> Any:
        told.append(event)
        return feed(event)

    guard.new_id, guard._feed = noted, kept  # type: ignore[method-assign]
    with _served(scenario, player) as (url, requests):
        player.play(guard, url, scenario)  # raises nothing
    assert len(requests) >= sum(map(len, scenario.scripts.values())), "the host's loop was cut short"
    assert {event.run for event in told} <= begun
    guard.close()
    paths = {event.run: {"main"} for event in told}
    for event in told:
        assert event.agent_path == "main" or event.agent_path.rpartition("/")[0] in paths[event.run]
        paths[event.run].add(event.agent_path)


def test_two_guards_on_one_agent(events_monitor: Monitor, tmp_path: Path) -> None:
    """Each sees the whole of it, as if it were alone."""

    class Completions:
        def create(self, **options: Any) -> Any:
            given = [list(options["messages"])]
            return SimpleNamespace(choices=[{"message": {"content": f"{len(given[0])}"}}])

    client = SimpleNamespace(chat=SimpleNamespace(completions=Completions()))
    first, second = (Guard(events_monitor, record=tmp_path / name) for name in "ab")
    for guard in (first, second, first, second):
        guard.openai(client)
    with first.run("x"), second.run("x"):
        given = ({"role": "user", "content": text} for text in ("x", "y"))
        assert client.chat.completions.create(messages=given).choices[0]["message"]["content"] == "2"
    assert [guard.counters["readings"] for guard in (first, second)] == [1, 1]
    assert first.counters == second.counters


@pytest.mark.parametrize(("taken", "counted"), [(1, 1), (2, 0), (3, 0)])
def test_a_stream_that_is_given_up_is_counted(taken: int, counted: int, tmp_path: Path) -> None:
    """What came of it is recorded; one that is left after the model's last words is whole."""

    class Stream(list[Any]):
        def close(self) -> None: ...

    class Completions:
        def create(self, **_: Any) -> Any:
            ends = (("a", None), ("b", "stop"), ("", None))
            return Stream({"choices": [{"delta": {"content": text}, "finish_reason": end}]} for text, end in ends)

    client, guard = SimpleNamespace(chat=SimpleNamespace(completions=Completions())), Guard.recording(tmp_path)
    guard.openai(client)
    with guard.run("x"):
        chunks = iter(client.chat.completions.create(messages=[], stream=True))
        for _ in range(taken):
            next(chunks)
        chunks.close()
    assert guard.counters.get("streams_given_up", 0) == counted
    (run,) = parse(tmp_path, "events")
    assert [one.action for one in run.records] == ["ab"[:taken]]


@pytest.mark.parametrize("odd", OTHERS, ids=range(len(OTHERS)))
def test_ids_and_values_of_any_kind(odd: Any, events_monitor: Monitor, tmp_path: Path) -> None:
    """Whatever a host gives for an id, a text, a number: nothing is raised, and the run goes on."""
    guard = Guard(events_monitor, record=tmp_path)
    with guard.run(odd, run_id=odd, task_id=odd, agent=odd, group=odd) as run:
        for _ in range(2):
            call = run.called(odd, odd, call_id=odd, text=odd, turn=odd, tokens_in=odd, metadata=odd, cost=odd)
            run.returned(call, odd, is_error=odd, at=odd)
            run.returned(odd, odd)
            run.said(odd, id=odd, logprobs=odd, actor=odd, agent=odd)
            run.observed(odd)
        run.delegate(odd, task=odd, call_id=odd).end()
        run.is_open(odd), run.has_returned(odd)
        guard.feed(odd)
        guard.feed(Event(odd, "said"))
        guard.feed(Event(run.id, odd, odd, call_id=odd, turn=odd))
        guard.outcome(odd, odd)
        guard.stream(odd, odd), guard.stopped(odd), guard.is_open(odd), guard.go_on(odd), guard.check(odd)
        guard.take_nudge(odd), guard.next_turn(odd, odd), guard.save_run(odd)
        assert run.reading is not None and run.reading.step >= 2
    assert guard.counters.get("internal_errors", 0) == 0
    list(parse(tmp_path, "events"))
