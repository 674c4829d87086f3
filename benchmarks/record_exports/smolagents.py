"""Memories of smolagents: `agent.memory.get_full_steps()`, a file for every agent."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.record_exports.recording import Export, Play


class _Nothing:
    """In the place of the guard."""

    def smolagents(self, agent: Any) -> Any:
        return agent


def _memory(play: Play) -> dict[str, str]:
    agent = play(_Nothing())
    agents = [agent, *agent.managed_agents.values()]
    return {f"{one.name}.json": json.dumps(one.memory.get_full_steps(), default=str) for one in agents}


EXPORTS = {"memory": Export("smolagents", "smolagents", _memory)}
