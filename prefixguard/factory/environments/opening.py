"""Environments by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from prefixguard.errors import ConfigError, UnreplayableRun
from prefixguard.factory.environments.channel import HttpChannel
from prefixguard.factory.environments.remote import RemoteEnvironment, shipped_world
from prefixguard.factory.environments.replayable import ReplayableEnvironment
from prefixguard.factory.environments.simulation import SIMULATED_FAULTS, SimulationEnvironment
from prefixguard.factory.environments.tau2 import tau2
from prefixguard.factory.environments.tool_faults import TOOL_FAULTS
from prefixguard.factory.labelled import LabelledRun

_NAMES = "simulation, simulation:WORLD (a seed of tasks), textworld, tau2-retail, tau2-airline, or the http:// address"
#: The environment variable that names the interpreter which has textworld.
_TEXTWORLD = "PREFIXGUARD_TEXTWORLD_PYTHON"
_INSTALL = (
    f"It needs an interpreter with textworld (pip install textworld==1.7.0), named with --python or in {_TEXTWORLD}."
)


def open_environment(named: str | Mapping[str, Any], python: str = "") -> ReplayableEnvironment:
    """An environment, ready to play.

    named: simulation, simulation:WORLD (a whole number, the seed of its tasks; 0 without), textworld, tau2-retail,
    tau2-airline, or the http:// address of one's own; or what the provenance of a run says of its environment.
    python: interpreter that has what the environment needs, where it runs in a process of its own; "": see
    `docs/factory.md`. Raises ConfigError for any other name, ReplayError where the environment does not begin.
    """
    spec = {"name": named} if isinstance(named, str) else dict(named)
    name, _, world = str(spec.get("name", "")).partition(":")
    if name == SimulationEnvironment.name:
        number = str(spec.get("world", world or 0))
        if not number.isdigit():
            raise ConfigError(f"environment {named!r}: the world of the simulation is a whole number, 0 or more.")
        return SimulationEnvironment(int(number))
    if name.startswith("tau2-"):
        return tau2(name.removeprefix("tau2-"), python)
    if name == "textworld":
        return shipped_world(name, "textworld_games", python=python, variable=_TEXTWORLD, install=_INSTALL)
    if str(spec.get("name")).startswith(("http://", "https://")):
        address = str(spec["name"])
        return RemoteEnvironment(HttpChannel(address), "http", {"name": address}, chances="free")
    raise ConfigError(f"there is no environment {named!r}; there are {_NAMES} of one's own.")


#: Kinds of faults that any environment can make.
KNOWN_FAULTS = frozenset({*SIMULATED_FAULTS, *TOOL_FAULTS})


def kinds_of(run: LabelledRun) -> tuple[str, ...]:
    """Kinds of faults that the environment of a run can make, whether it is up or not."""
    spec = run.provenance.get("environment")
    name = spec.get("name") if isinstance(spec, Mapping) else None
    return SIMULATED_FAULTS if name == SimulationEnvironment.name else TOOL_FAULTS


class Environments:
    """The environments that made the runs of a corpus, each opened once. Use as a context manager.

    python: as for `open_environment`.
    """

    def __init__(self, python: str = "") -> None:
        self._python, self._open = python, dict[str, ReplayableEnvironment]()

    def of(self, run: LabelledRun) -> ReplayableEnvironment:
        """The one that made a run. UnreplayableRun where its provenance names none."""
        spec = run.provenance.get("environment")
        if not isinstance(spec, Mapping):
            raise UnreplayableRun(f"run {run.run_id!r} was not made in an environment: its provenance names none.")
        key = json.dumps(spec, sort_keys=True)
        if key not in self._open:
            self._open[key] = open_environment(spec, self._python)
        return self._open[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._open.values():
            one.close()
