"""TextWorld: games that are made by seed, in a process of its own."""

from __future__ import annotations

import os

from prefixguard.errors import ConfigError, ReplayError
from prefixguard.factory.environments.channel import ProcessChannel, worker
from prefixguard.factory.environments.remote import RemoteEnvironment

#: The environment variable that names the interpreter which has textworld.
PYTHON = "PREFIXGUARD_TEXTWORLD_PYTHON"
_INSTALL = f"It needs an interpreter with textworld (pip install textworld==1.7.0), named with --python or in {PYTHON}."


def textworld(python: str = "") -> RemoteEnvironment:
    """TextWorld in a process of its own. Tasks are seeds of games; the agent follows the walkthrough, and the agent
    "careless" leaves out some of its commands. python: the interpreter that has it; "": that of
    `PREFIXGUARD_TEXTWORLD_PYTHON`.

    Raises ConfigError without an interpreter, ReplayError where textworld does not begin in it.
    """
    python = python or os.environ.get(PYTHON, "")
    if not python:
        raise ConfigError(f"the environment textworld has no interpreter. {_INSTALL}")
    channel = ProcessChannel([python, worker("textworld_worker")], "textworld")
    try:
        channel.ask({"do": "tasks", "count": 1})
    except ReplayError as exc:
        channel.close()
        raise ReplayError(f"{exc} {_INSTALL}") from exc
    return RemoteEnvironment(channel, "textworld", {"name": "textworld"}, licence="MIT")
