"""What hooks see of every framework that is installed: all steps, all fields, live as in the file; stop and nudge work.

The frameworks themselves are in no extra of the developers': CI installs those of benchmarks/frameworks.txt apart.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from integration_players import Player
from integrations import PLAYERS, SCENARIOS, acts, cell_of

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
