"""One export of one framework: the scenarios are played with the export in the place of the guard, and written."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from integration_players import PLAYERS, Player
from integrations import FIELDS, SCENARIOS, Scenario, _heard, _served, truth_of

#: Plays the scenario, with this in the place of the guard; gives what the framework gives.
Play = Callable[[Any], Any]


@dataclass(frozen=True)
class Export:
    """player : that plays it. package : whose version it is of. record : from playing to the files, by name.

    without : scenarios that are not recorded, besides those that the framework has not, and why.
    """

    player: str | Player
    package: str
    record: Callable[[Play], Mapping[str, str | bytes]]
    without: Sequence[str] = ()


def as_lines(values: Sequence[Any]) -> str:
    """JSON lines, as most people write them."""
    return "".join(json.dumps(value) + "\n" for value in values)


def _play(player: Player, url: str, scenario: Scenario, guard: Any) -> Any:
    return player.play(guard, url, scenario)


def write(name: str, export: Export, out: Path) -> Path:
    """Record every scenario of one export. Gives its folder, which is written anew."""
    player = PLAYERS[export.player] if isinstance(export.player, str) else export.player
    folder = out / f"{export.package}-{importlib.metadata.version(export.package)}" / name
    shutil.rmtree(folder, ignore_errors=True)
    truth: dict[str, Any] = {}
    for scenario_name, plain in SCENARIOS.items():
        if scenario_name in player.unobservable or scenario_name in export.without:
            continue
        scenario = player.adapted(plain)
        with _served(scenario, player) as (url, requests):
            files = export.record(partial(_play, player, url, scenario))
        steps = truth_of(scenario, requests, player.heard or _heard)
        place = scenario_name.replace(", ", "_")
        truth[place] = [[dict(zip(FIELDS, step, strict=True)) for step in path] for path in steps]
        for file, text in files.items():
            (folder / place / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / place / file).write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return folder
