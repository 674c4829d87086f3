"""The scenarios of `integrations.py`, played through each framework as a user of it would write them.

`lines` counts what a user adds to a program that runs without a guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

TASK = "Where is order A1?"


@dataclass(frozen=True)
class Player:
    """play : a scenario, through the framework, watched by the guard; gives what the framework gives.

    modules, packages : that it needs.
    unobservable : scenarios that the framework has not, or does not show, and why. can : actions it cannot do, why.
    """

    play: Callable[[Any, str, Any], Any]
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    lines: int
    unobservable: dict[str, str] = field(default_factory=dict)
    can: dict[str, str] = field(default_factory=dict)
    adapted: Callable[[Any], Any] = lambda scenario: scenario
    by_requests: bool = False
    heard: Callable[[dict[str, Any]], list[tuple[str, str]]] | None = None
    serve: Callable[..., Any] | None = None


def find(id: str, n: int = 0) -> str:
    """Where an order is."""
    if id == "BROKEN":
        raise LookupError(f"no order {id}")
    return f"order {id} is in Bern"


NO_AGENTS = dict.fromkeys(("nested", "nested, parallel", "handoff"), "one agent")


def _tool_text(name: str, arguments: dict[str, Any]) -> str:
    try:
        return find(**arguments)
    except LookupError as exc:
        return f"Error: {exc}"


def play_chat(guard: Any, url: str, scenario: Any) -> None:
    import openai

    with openai.OpenAI(base_url=url, api_key="none") as client, guard.run(TASK) as run:
        chat_loop(guard.openai(client).chat.completions.create, scenario, run)


def chat_loop(create: Callable[..., Any], scenario: Any, run: Any, name: str = "clerk", task: str = TASK) -> str:
    """A loop of one's own on a function that chat completions are had from. The agent's last words."""
    import json

    def tool(tool_name: str, arguments: dict[str, Any]) -> str:
        if tool_name != "research":
            return _tool_text(tool_name, arguments)
        with run.delegate("researcher") as below:
            return chat_loop(create, scenario, below, "researcher", arguments["input"])

    messages: list[Any] = [{"role": "system", "content": f"You are the {name}."}, {"role": "user", "content": task}]
    while True:
        options = {"model": "m", "messages": messages}
        if scenario.is_streamed:
            text, made = "", {}
            for chunk in create(stream=True, **options):
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or ():
                        call = made.setdefault(part.index, [part.id, part.function.name, ""])
                        call[2] += part.function.arguments or ""
            wanted = [tuple(call) for call in made.values()]
            functions = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": given}}
                for i, name, given in wanted
            ]
            message: Any = {"role": "assistant", "content": text or None}
            messages.append(message | {"tool_calls": functions} if functions else message)
        else:
            reply = create(**options).choices[0].message
            messages.append(reply)
            text = reply.content
            wanted = [(c.id, c.function.name, c.function.arguments) for c in reply.tool_calls or ()]
        if not wanted:
            return text
        for call_id, called, given in wanted:
            messages.append({"role": "tool", "tool_call_id": call_id, "content": tool(called, json.loads(given))})


def play_responses(guard: Any, url: str, scenario: Any) -> None:
    import json

    import openai

    async def loop() -> None:
        items: list[Any] = [{"role": "user", "content": TASK}]
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client, guard.run(TASK):
            guard.openai(client)
            while True:
                options = {"model": "m", "input": items, "instructions": "You are the clerk."}
                if scenario.is_streamed:
                    async for event in await client.responses.create(stream=True, **options):
                        if event.type == "response.completed":
                            response = event.response
                else:
                    response = await client.responses.create(**options)
                items += response.output
                wanted = [item for item in response.output if item.type == "function_call"]
                if not wanted:
                    return
                for call in wanted:
                    result = _tool_text(call.name, json.loads(call.arguments))
                    items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})

    asyncio.run(loop())


def _agents_of(scenario: Any) -> Any:
    from agents import Agent, function_tool

    tool = function_tool(find)
    tools, handoffs = [tool], []
    if scenario.nested:
        inner = Agent(name="researcher", instructions="You are the researcher.", tools=[tool])
        asked = inner.as_tool("research", "Ask somebody who looks deeper.")
        tools.append(asked)
    if scenario.handoff:
        handoffs.append(Agent(name="closer", instructions="You are the closer."))
    return Agent(name="clerk", instructions="You are the clerk.", tools=tools, handoffs=handoffs)


def agents_player(api: str, *, has_tracing: bool = False) -> Callable[[Any, str, Any], Any]:
    def play(guard: Any, url: str, scenario: Any) -> Any:
        import openai
        from agents import Runner, set_default_openai_api, set_default_openai_client, set_tracing_disabled

        set_tracing_disabled(not has_tracing)
        set_default_openai_api(api)  # type: ignore[arg-type]

        async def run() -> None:
            async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
                set_default_openai_client(client)
                agent = _agents_of(scenario)
                if scenario.is_streamed:
                    result = Runner.run_streamed(agent, TASK, hooks=guard.openai_agents())
                    async for _ in result.stream_events():
                        pass
                else:
                    await Runner.run(agent, TASK, hooks=guard.openai_agents())

        asyncio.run(run())

    return play


def _langchain_agent(url: str, scenario: Any, middleware: Callable[[], list[Any]]) -> Any:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(base_url=url, api_key="none", model="m")
    looks = tool(find)
    looks.handle_tool_error = lambda exc: f"Error: {exc}"

    @tool("find")
    def safe_find(id: str, n: int = 0) -> str:
        """Where an order is."""
        from langchain_core.tools import ToolException

        try:
            return find(id, n)
        except LookupError as exc:
            raise ToolException(f"Error: {exc}") from exc

    safe_find.handle_tool_error = True
    tools = [safe_find]
    if scenario.nested:
        inner = create_agent(
            model, [safe_find], system_prompt="You are the researcher.", middleware=middleware(), name="researcher"
        )

        @tool
        def research(input: str) -> str:
            """Ask somebody who looks deeper."""
            return str(inner.invoke({"messages": [("user", input)]})["messages"][-1].content)

        tools.append(research)
    return create_agent(model, tools, system_prompt="You are the clerk.", middleware=middleware(), name="clerk")


def play_langchain(guard: Any, url: str, scenario: Any) -> Any:
    agent = _langchain_agent(url, scenario, lambda: [guard.langchain()])
    given = {"messages": [("user", TASK)]}
    if scenario.is_streamed:
        return list(agent.stream(given, stream_mode="messages"))
    return agent.invoke(given)


def play_langgraph(guard: Any, url: str, scenario: Any) -> Any:
    graph = _langchain_agent(url, scenario, list)
    given, config = {"messages": [("user", TASK)]}, {"callbacks": [guard.langgraph()]}
    if scenario.is_streamed:
        return list(graph.stream(given, config=config, stream_mode="messages"))
    return graph.invoke(given, config=config)


def _smol_agent(url: str, scenario: Any, kind: str) -> Any:
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

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
        made = ToolCallingAgent(
            [find], model, managed_agents=managed, name=name, description="Looks.", verbosity_level=0
        )
        made.prompt_templates["system_prompt"] = f"You are the {name}."
        return made

    return agent("clerk", [agent("researcher", [])] if scenario.nested else [])


def play_smolagents(guard: Any, url: str, scenario: Any) -> Any:
    agent = guard.smolagents(_smol_agent(url, scenario, "tools"))
    found = agent.run(TASK, max_steps=9, stream=scenario.is_streamed)
    if scenario.is_streamed:
        list(found)
    return agent


def _smol_scenario(scenario: Any) -> Any:
    """Managed agents are called by name, and the end is a call too."""
    from dataclasses import replace

    def adapted(reply: Any) -> Any:
        made = [
            ("researcher", {"task": given["input"]}) if name == "research" else (name, given)
            for name, given in reply["calls"]
        ]
        return {"text": reply["text"], "calls": made} if made else {
            "text": "", "calls": [("final_answer", {"answer": reply["text"]})]
        }  # fmt: skip

    return replace(scenario, scripts={name: [adapted(r) for r in script] for name, script in scenario.scripts.items()})


def _smol_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The observations that smolagents puts into user messages; results of ours are of one line, errors of two."""
    found: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message["role"] == "system" or message["role"] == "assistant":
            continue
        text = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        for part in text.replace("Error:\n", "Observation:\nError:\n").split("Observation:\n"):
            if part.startswith("New task:\n"):
                found.append(("user", part.removeprefix("New task:\n").strip()))
            elif part.startswith("Error:\n"):
                found.append(("tool", part.removeprefix("Error:\n").partition("\nNow let's retry")[0]))
            elif "final answer from your managed agent" in part:
                found += [("tool", one) for one in _answers(part)]
            else:
                found += [("tool", line) for line in part.strip().splitlines()]
    return found


def _answers(text: str) -> list[str]:
    lines = text.strip().splitlines()
    return ["\n".join(lines[n : n + 2]) for n in range(0, len(lines), 2)]


def play_pydantic_ai(guard: Any, url: str, scenario: Any) -> Any:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="none"))

    def agent(name: str) -> Any:
        made = Agent(
            model, name=name, instructions=f"You are the {name}.", retries=20, capabilities=[guard.pydantic_ai()]
        )

        @made.tool_plain
        def find(id: str, n: int = 0) -> str:
            """Where an order is."""
            try:
                return _find(id, n)
            except LookupError as exc:
                raise ModelRetry(str(exc)) from exc

        return made

    clerk = agent("clerk")
    if scenario.nested:
        inner = agent("researcher")

        @clerk.tool_plain
        async def research(input: str) -> str:
            """Ask somebody who looks deeper."""
            return str((await inner.run(input)).output)

    async def run() -> Any:
        async def look(_: Any, events: Any) -> None:
            async for _event in events:
                pass

        return await clerk.run(TASK, event_stream_handler=look if scenario.is_streamed else None)

    return asyncio.run(run())


def claude_player(is_command: bool) -> Callable[[Any, str, Any], Any]:
    """Claude Code itself, as the SDK begins it; hooks in this process, or the command that its settings name.

    Where hooks are in this process, it gives the SDK's messages and the text of the session files, by path.
    """

    def play(guard: Any, url: str, scenario: Any) -> Any:
        import json
        import tempfile
        from pathlib import Path

        from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, create_sdk_mcp_server, query, tool

        parts = {"id": {"type": "string"}, "n": {"type": "integer"}}

        @tool("find", "Where an order is.", {"type": "object", "properties": parts, "required": ["id"]})
        async def look(given: dict[str, Any]) -> dict[str, Any]:
            text = _tool_text("find", given)
            return {"content": [{"type": "text", "text": text}], "is_error": text.startswith("Error")}

        async def run(folder: str, watched: dict[str, Any]) -> list[Any]:
            no_login = dict.fromkeys(("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"), "")
            quiet = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"), "1")
            home = {"HOME": folder, "CLAUDE_CONFIG_DIR": folder, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
            options = ClaudeAgentOptions(
                system_prompt="You are the clerk.", cwd=folder, env=home | no_login | quiet, setting_sources=[],
                mcp_servers={"orders": create_sdk_mcp_server("orders", tools=[look])},
                agents={"helper": AgentDefinition(description="Looks deeper.", prompt="You are the researcher.")},
                allowed_tools=["mcp__orders__find", "Agent"], include_partial_messages=scenario.is_streamed, **watched,
            )  # fmt: skip
            return [message async for message in query(prompt=TASK, options=options)]

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if not is_command:
                messages = asyncio.run(run(folder, {"hooks": guard.claude_agent()}))
                projects = Path(folder) / "projects"
                files = {str(p.relative_to(projects)): p.read_text() for p in projects.rglob("*.jsonl")}
                return messages, files
            with _claude_worker(guard, folder) as settings:
                path = Path(folder) / "settings.json"
                path.write_text(json.dumps(settings))
                return asyncio.run(run(folder, {"settings": str(path)}))

    return play


@contextmanager
def _claude_worker(guard: Any, folder: str) -> Iterator[dict[str, Any]]:
    """The worker of the command, in this process, so that its readings are seen. Gives the settings."""
    import os
    import threading
    from pathlib import Path

    from prefixguard.hook import hook_settings, state_folder
    from prefixguard.integrations.claude_worker import KeptSessions, listening, serve

    given: dict[str, Any] = {"record": guard.recorder.folder, "state": Path(folder) / "state"}
    state, before = state_folder(**given), Path.cwd()
    state.mkdir(0o700, parents=True)
    try:
        with listening(state) as server:
            thread = threading.Thread(target=serve, args=(server, KeptSessions(guard, state), 3.0))
            thread.start()
            yield hook_settings(**given)
            thread.join()
    finally:
        os.chdir(before)


def _claude_scenario(scenario: Any) -> Any:
    """Tools of servers have their names before them; sub-agents are asked by a tool of Claude Code's own."""
    from dataclasses import replace

    def adapted(call: tuple[str, Any]) -> tuple[str, Any]:
        name, given = call
        if name != "research":
            return f"mcp__orders__{name}", given
        return "Agent", {
            "subagent_type": "helper", "description": "Look", "prompt": given["input"], "run_in_background": False
        }  # fmt: skip

    scripts = {
        name: [{**reply, "calls": [adapted(call) for call in reply["calls"]]} for reply in script]
        for name, script in scenario.scripts.items()
    }
    return replace(scenario, scripts=scripts)


def _claude_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What a request of the Messages API says that the agent heard, without what Claude Code adds. Results stand in the
    order of their calls: in the request they stand as they came."""
    heard: list[tuple[str, str]] = []
    results: dict[str, str] = {}
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                results[block["id"]] = ""
            elif block["type"] == "tool_result":
                inner = block["content"]
                text = inner if isinstance(inner, str) else "\n".join(str(part.get("text", "")) for part in inner)
                results[block["tool_use_id"]] = text
            elif message["role"] == "user" and not block.get("text", "<system-").startswith("<system-"):
                heard.append(("user", block["text"]))
    return heard + [("tool", text) for text in results.values()]


def _serve_claude(scripts: Any, saw: Any, by_requests: bool) -> Any:
    import scripted_messages

    return scripted_messages.serve(scripts, saw)


def play_inspect(guard: Any, url: str, scenario: Any) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, guard.inspect():
        return inspect_eval(url, scenario, **getattr(guard, "options", {"log_dir": folder}))


def inspect_eval(url: str, scenario: Any, **options: Any) -> Any:
    """A task of one sample; options of Inspect's `eval`. Gives its logs."""
    from inspect_ai import Task, eval
    from inspect_ai.agent import AgentPrompt, as_tool, handoff, react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import ToolError, tool

    model = get_model("openai/m", base_url=url, api_key="none", responses_api=False, streaming=scenario.is_streamed)

    @tool
    def find() -> Any:
        async def execute(id: str, n: int = 0) -> str:
            """Where an order is.

            Args:
                id: of the order
                n: nothing
            """
            try:
                return _find(id, n)
            except LookupError as exc:
                raise ToolError(str(exc)) from exc

        return execute

    def agent(name: str, *others: Any) -> Any:
        return react(
            name=name, description="Looks.", prompt=AgentPrompt(f"You are the {name}.", None, None, None),
            tools=[find(), *others], submit="closer" in scenario.nested,
        )  # fmt: skip

    others = {"researcher": as_tool, "closer": handoff}
    below = [others[name](agent(name)) for name in scenario.nested]
    samples = [Sample(id="one", input=TASK, target="Bern")]
    task = Task(samples, solver=agent("clerk", *below), scorer=includes(), name="orders")
    return eval(task, model=model, display="none", **options)


def _inspect_scenario(scenario: Any) -> Any:
    """Agents that are tools have their names; an agent that is handed to gives back, and they submit their answers."""
    from dataclasses import replace

    from scripted_model import calls

    def adapted(reply: Any) -> Any:
        renamed = [("researcher" if name == "research" else name, given) for name, given in reply["calls"]]
        return {**reply, "calls": renamed}

    scripts = {name: [adapted(reply) for reply in script] for name, script in scenario.scripts.items()}
    if not scenario.handoff:
        return replace(scenario, scripts=scripts)
    said = calls(("submit", {"answer": scripts["closer"][-1]["text"]}))
    scripts = {"clerk": [*scripts["clerk"], said], "closer": [said]}
    return replace(scenario, scripts=scripts, handoff=False, nested=("closer",))


def _inspect_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What a request says, errors without what Inspect's provider puts before them."""
    return [
        (message["role"], str(message["content"]).removeprefix("Error: "))
        for message in body["messages"]
        if message["role"] in ("user", "tool")
    ]


_find = find
NO_HANDOFF = {"handoff": "has none"}
PLAYERS: dict[str, Player] = {
    "openai_chat": Player(play_chat, ("openai",), ("openai",), 3, NO_HANDOFF),
    "openai_responses": Player(play_responses, ("openai",), ("openai",), 3, NO_AGENTS),
    "openai_agents": Player(agents_player("responses"), ("agents",), ("openai-agents",), 3),
    "openai_agents_chat": Player(agents_player("chat_completions"), ("agents",), ("openai-agents",), 3),
    "langchain": Player(
        play_langchain, ("langchain", "langchain_openai"), ("langchain", "langgraph"), 3, NO_HANDOFF
    ),
    "langgraph": Player(
        play_langgraph, ("langchain", "langchain_openai"), ("langgraph", "langchain-core"), 3, NO_HANDOFF,
        {"nudge": "middleware only"},
    ),
    "pydantic_ai": Player(
        play_pydantic_ai, ("pydantic_ai", "openai"), ("pydantic-ai-slim",), 3, NO_HANDOFF
    ),
    "smolagents": Player(
        play_smolagents, ("smolagents",), ("smolagents",), 2,
        NO_HANDOFF | {"nested, parallel": "an agent has one memory"}, {}, _smol_scenario, True, _smol_heard
    ),
    "inspect": Player(
        play_inspect, ("inspect_ai", "openai"), ("inspect-ai",), 2, {}, {}, _inspect_scenario, True, _inspect_heard
    ),
    "claude_agent": Player(
        claude_player(False), ("claude_agent_sdk",), ("claude-agent-sdk",), 2, NO_HANDOFF, {}, _claude_scenario,
        heard=_claude_heard, serve=_serve_claude
    ),
    "claude_code": Player(
        claude_player(True), ("claude_agent_sdk",), ("claude-agent-sdk",), 1, NO_HANDOFF, {}, _claude_scenario,
        heard=_claude_heard, serve=_serve_claude
    ),
}  # fmt: skip
