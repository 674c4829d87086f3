"""LangGraph: the final state, and what `stream` yields, as LangChain's own functions write them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from integration_players import PLAYERS, TASK, _langchain_agent

from benchmarks.record_exports.recording import Export, Play, as_lines

_GIVEN: Any = {"messages": [("user", TASK)]}


def _play_state(_: Any, url: str, scenario: Any) -> Any:
    return _langchain_agent(url, scenario, list).invoke(_GIVEN)


def _play_stream(_: Any, url: str, scenario: Any) -> Any:
    return list(_langchain_agent(url, scenario, list).stream(_GIVEN, stream_mode="updates", subgraphs=True))


def _state(play: Play) -> dict[str, str]:
    from langchain_core.messages import messages_to_dict

    return {"state.json": json.dumps({"messages": messages_to_dict(play(None)["messages"])})}


def _stream(play: Play) -> dict[str, str]:
    from langchain_core.load import dumpd

    return {"updates.jsonl": as_lines([dumpd(part) for part in play(None)])}


EXPORTS = {
    "state": Export(replace(PLAYERS["langgraph"], play=_play_state), "langgraph", _state),
    "updates": Export(replace(PLAYERS["langgraph"], play=_play_stream), "langgraph", _stream),
}
