"""What hooks see of every framework that is installed: all steps, all fields, live as in the file; stop and nudge work.

The frameworks themselves are in no extra of the developers': CI installs those of benchmarks/frameworks.txt apart.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from integration_players import Player
from integrations import PLAYERS, SCENARIOS, acts, beside, cell_of
from scripted_model import _asked

from prefixguard.runtime import Monitor

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the frameworks
THERE = [pytest.param(player, id=name) for name, player in PLAYERS.items() if all(map(find_spec, player.modules))]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("player", THERE)
def test_every_step_and_field(player: Player, scenario: str, events_monitor: Monitor) -> None:
    if scenario in player.unobservable:
        pytest.skip(player.unobservable[scenario])
    cell = cell_of(player, player.adapted(SCENARIOS[scenario]), events_monitor)
    assert cell.wrong == []
    assert (cell.recorded, cell.live, cell.same, cell.counters) == (cell.true, cell.true, True, {})


@pytest.mark.parametrize("action", ["stop", "nudge"])
@pytest.mark.parametrize("player", THERE)
def test_alarms_reach_the_agent(player: Player, action: str, events_monitor: Monitor) -> None:
    if action in player.can:
        pytest.skip(player.can[action])
    assert acts(player, events_monitor, action)


def test_newer_objects_with_fields_missing_disturb_nobody(events_monitor: Monitor) -> None:
    """Objects of a framework's other release: what cannot be read is counted, and the host's call goes through."""
    from types import SimpleNamespace

    from prefixguard.integrations import Guard

    class Completions:
        def create(self, **options: object) -> object:
            return SimpleNamespace(of_a_later_release=options)

    client = SimpleNamespace(chat=SimpleNamespace(completions=Completions()))
    guard = Guard(events_monitor)
    assert guard.openai(client) is client
    with guard.run("x"):
        for messages in (None, 7, [object()], [{"role": ["a"]}], [{"role": "tool"}]):
            assert client.chat.completions.create(messages=messages).of_a_later_release["messages"] is messages
    assert client.chat.completions.create(messages=[]) is not None
    assert guard.counters["calls_outside_runs"] == 1


def test_rows_that_are_not_measured_stay(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"langchain": 1, "openai_chat": 2, "of_before": 3}')
    assert list(beside(tmp_path / "r.json", {"mcp": 4, "langchain": 5}).items()) == [
        ("openai_chat", 2), ("langchain", 5), ("mcp", 4)
    ]  # fmt: skip
    assert beside(tmp_path / "none.json", {"mcp": 4}) == {"mcp": 4}


def test_the_scripted_model_keeps_its_place() -> None:
    """A conversation whose first message grows is the same one; another one that begins alike is another."""
    asked: dict[str, int] = {}

    def ask(task: str) -> int:
        return _asked(asked, {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": task}]})

    assert [ask(task) for task in ("Find A1.", "Find A1.\nError: none", "Find A2.", "Find A1.", "Find A2.\n")] == [
        0, 1, 0, 2, 1,
    ]  # fmt: skip
