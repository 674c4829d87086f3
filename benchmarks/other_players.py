"""The scenarios of `integrations.py`, played through frameworks whose releases need packages of their own: those of
frameworks_others.txt.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from integration_players import NO_AGENTS, TASK, Player, chat_loop, find


def renamed(names: dict[str, Callable[[Any], tuple[str, Any]]]) -> Callable[[Any], Any]:
    """Scenarios with the calls that a framework has other tools for. names : by name of a call, the other one."""

    def adapted(scenario: Any) -> Any:
        return replace(
            scenario,
            scripts={
                agent: [
                    {**reply, "calls": [names[n](given) if n in names else (n, given) for n, given in reply["calls"]]}
                    for reply in script
                ]
                for agent, script in scenario.scripts.items()
            },
        )

    return adapted


def heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What a request of chat completions says that the agent heard. Results stand in the order of their calls: in the
    request they stand as they came."""
    found: list[tuple[str, str]] = []
    results: dict[str, str] = {}
    for message in body["messages"]:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
        results |= {call["id"]: "" for call in message.get("tool_calls") or ()}
        if message["role"] == "tool":
            results[message["tool_call_id"]] = text
        elif message["role"] == "user":
            found.append(("user", text))
    return found + [("tool", text) for text in results.values()]


def play_litellm(guard: Any, url: str, scenario: Any) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # asks nobody for prices
    import litellm

    completion = guard.litellm(litellm.completion)
    with guard.run(TASK):
        chat_loop(partial(completion, base_url=url, api_key="none", custom_llm_provider="openai"), scenario)


def play_llama_index(guard: Any, url: str, scenario: Any) -> None:
    import httpx
    from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai import OpenAI

    def agent(name: str, llm: Any, tools: list[Any]) -> Any:
        made = FunctionAgent(
            name=name, description=name, system_prompt=f"You are the {name}.", tools=tools, llm=llm,
            streaming=scenario.is_streamed,
        )  # fmt: skip
        return made if scenario.handoff else guard.llama_index(made)

    async def run() -> None:
        def look(id: str, n: int = 0) -> str:
            """Where an order is."""
            return find(id, n)

        async def research(input: str) -> str:
            """Ask somebody who looks deeper."""
            return str(await inner.run(input))

        async with httpx.AsyncClient() as client:
            llm = OpenAI("gpt-4o", api_base=url, api_key="none", async_http_client=client)
            looks = FunctionTool.from_defaults(look, name="find")
            inner = agent("researcher", llm, [looks])
            if scenario.handoff:
                agents = [agent("clerk", llm, [looks]), agent("closer", llm, [])]
                await guard.llama_index(AgentWorkflow(agents=agents, root_agent="clerk")).run(user_msg=TASK)
            else:
                await agent("clerk", llm, [looks, research]).run(user_msg=TASK)

    asyncio.run(run())


OTHERS: dict[str, Player] = {
    "litellm": Player(play_litellm, ("litellm",), ("litellm",), 3, NO_AGENTS),
    "llama_index": Player(
        play_llama_index, ("llama_index",), ("llama-index-core",), 1,
        adapted=renamed({"transfer_to_closer": lambda _: ("handoff", {"to_agent": "closer", "reason": "it is late"})}),
        heard=heard,
    ),
}  # fmt: skip
