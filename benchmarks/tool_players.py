"""Players of tools without their model, sessions of MCP; and of agents whose calls are code, smolagents' CodeAgent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from integration_players import NO_AGENTS, NO_HANDOFF, TASK, Player, find
from scripted_model import Reply, serve


def play_mcp(guard: Any, url: str, scenario: Any) -> None:
    """A loop around a model that nobody watches, whose tools are those of an MCP server."""
    import openai
    from mcp import Client
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("orders", log_level="ERROR")

    @server.tool(name="find", structured_output=False)
    def look(id: str, n: int = 0) -> str:
        """Where an order is."""
        try:
            return find(id, n)
        except LookupError as exc:
            raise ToolError(str(exc)) from exc

    async def loop() -> None:
        messages: list[Any] = [{"role": "system", "content": "You are the clerk."}, {"role": "user", "content": TASK}]
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client, Client(server) as session:
            session = guard.mcp(session)
            async with guard.run(TASK):
                while True:
                    answer = await client.chat.completions.create(model="m", messages=messages)
                    messages.append(reply := answer.choices[0].message)
                    if not reply.tool_calls:
                        return
                    wanted = [(call.function.name, json.loads(call.function.arguments)) for call in reply.tool_calls]
                    results = await asyncio.gather(*(session.call_tool(name, given) for name, given in wanted))
                    for call, result in zip(reply.tool_calls, results, strict=True):
                        text = "\n".join(block.text for block in result.content)
                        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    asyncio.run(loop())


def _mcp_scenario(scenario: Any) -> Any:
    """What the model says beside its calls does not pass through the session, so it says nothing."""
    scripts = {
        name: [{**reply, "text": ""} for reply in script if reply["calls"]] for name, script in scenario.scripts.items()
    }
    return replace(scenario, scripts=scripts)


def play_code_agent(guard: Any, url: str, scenario: Any) -> None:
    from smolagents import CodeAgent, OpenAIServerModel, tool

    model = OpenAIServerModel("m", api_base=url, api_key="none")

    @tool
    def find(id: str, n: int = 0) -> str:
        """Where an order is.

        Args:
            id: of the order
            n: nothing
        """
        return _find(id, n)

    def agent(name: str, managed: list[Any]) -> Any:
        made = CodeAgent([find], model, managed_agents=managed, name=name, description="Looks.", verbosity_level=0)
        made.prompt_templates["system_prompt"] = f"You are the {name}."
        return made

    watched = guard.smolagents(agent("clerk", [agent("researcher", [])] if scenario.nested else []))
    found = watched.run(TASK, max_steps=9, stream=scenario.is_streamed)
    if scenario.is_streamed:
        list(found)


def _code_scenario(scenario: Any) -> Any:
    """All calls of a reply are one piece of code, and the end is code too: one call of the interpreter a reply."""

    def adapted(reply: Reply) -> Reply:
        lines = [
            f"print(researcher(task={given['input']!r}))" if name == "research"
            else f"print({name}({', '.join(f'{key}={value!r}' for key, value in given.items())}))"
            for name, given in reply["calls"]
        ]  # fmt: skip
        code = "\n".join(lines) or f"final_answer({reply['text']!r})"
        said = f"{reply['text'] if lines else ''}\n<code>\n{code}\n</code>".lstrip()
        told = None if lines else f"Execution logs:\nLast output from code snippet:\n{reply['text']}"
        return {"text": said, "calls": [("python_interpreter", code)], "result": told}

    return replace(scenario, scripts={name: [adapted(r) for r in script] for name, script in scenario.scripts.items()})


def _serve_code(scripts: Mapping[str, Sequence[Reply]], saw: Any, by_requests: bool) -> Any:
    """The code stands in what the model says, and no call beside it."""
    said = {name: [{**reply, "calls": []} for reply in script] for name, script in scripts.items()}
    return serve(said, saw, by_requests=by_requests)


def _code_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The task, and what each piece of code wrote or how it failed."""
    heard: list[tuple[str, str]] = []
    for message in body["messages"]:
        text = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        if message["role"] != "user":
            continue
        if text.startswith("New task:\n"):
            heard.append(("user", text.removeprefix("New task:\n").strip()))
        elif "\nError:\n" in text:
            heard.append(("tool", text.partition("\nError:\n")[2].partition("\nNow let's retry")[0]))
        else:
            heard.append(("tool", text.removeprefix("Observation:\n")))
    return heard


_find = find
TOOLS: dict[str, Player] = {
    "mcp": Player(
        play_mcp, ("mcp", "openai", "mcp.server.mcpserver"), ("mcp",), 2,  # the last is there from release 2 on
        NO_AGENTS | {"streaming": "results come whole"}, {"nudge": "tools only"}, _mcp_scenario
    ),
    "smolagents_code": Player(
        play_code_agent, ("smolagents",), ("smolagents",), 2,
        NO_HANDOFF | {"nested, parallel": "one piece of code"}, {}, _code_scenario, True, _code_heard, _serve_code
    ),
}  # fmt: skip
