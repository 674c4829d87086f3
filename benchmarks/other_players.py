"""The scenarios of `integrations.py`, played through frameworks whose releases need packages of their own: those of
frameworks_others.txt.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from integration_players import NO_HANDOFF, TASK, Player, chat_loop, find


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
    with guard.run(TASK) as run:
        chat_loop(partial(completion, base_url=url, api_key="none", custom_llm_provider="openai"), scenario, run)


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


def play_google_adk(guard: Any, url: str, scenario: Any) -> None:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from google.adk.agents import LlmAgent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.adk.tools.agent_tool import AgentTool
    from google.genai import types

    model = LiteLlm("openai/m", api_base=url, api_key="none")

    def agent(name: str, **options: Any) -> Any:
        return LlmAgent(
            name=name, model=model, instruction=f"You are the {name}.", description="Looks deeper.",
            on_tool_error_callback=lambda tool, args, tool_context, error: {"error": str(error)}, **options
        )  # fmt: skip

    async def run() -> None:
        nested = [AgentTool(agent("researcher", tools=[find]))] if scenario.nested else []
        above = {"disallow_transfer_to_parent": True, "disallow_transfer_to_peers": True}
        sub_agents = [agent("closer", **above)] if scenario.handoff else []
        clerk = agent("clerk", tools=[find, *nested], sub_agents=sub_agents)
        runner = InMemoryRunner(agent=clerk, app_name="orders", plugins=[guard.google_adk()])
        session = await runner.session_service.create_session(app_name="orders", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=TASK)])
        mode = StreamingMode.SSE if scenario.is_streamed else StreamingMode.NONE
        config = RunConfig(streaming_mode=mode)
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config):
            pass

    asyncio.run(run())


def adk_scenario(scenario: Any) -> Any:
    """Agents are tools by their names; one that takes over has said nothing yet."""
    adapted = renamed(
        {
            "research": lambda given: ("researcher", {"request": given["input"]}),
            "transfer_to_closer": lambda _: ("transfer_to_agent", {"agent_name": "closer"}),
        }
    )(scenario)
    scripts = {name: [script[-1]] * 3 if name == "closer" else script for name, script in adapted.scripts.items()}
    return replace(adapted, scripts=scripts)


def adk_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Results are objects; an agent that takes over is told in quotes what was done before."""
    found: list[tuple[str, str]] = []
    for role, text in heard(body):
        if role == "tool":
            found.append((role, next(iter(json.loads(text).values()))))
        elif text.startswith("For context"):
            quoted = re.findall(r"tool returned result:\n<<<.*>>>\n(.*)\n<<<", text)
            found += [("tool", next(iter(ast.literal_eval(one).values())) or "") for one in quoted]
        else:
            found.append((role, text))
    return found


def play_autogen(guard: Any, url: str, scenario: Any) -> None:
    import httpx
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import TextMentionTermination
    from autogen_agentchat.teams import Swarm
    from autogen_agentchat.tools import AgentTool
    from autogen_core.models import ModelInfo
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = ModelInfo(vision=False, function_calling=True, json_output=False, family="m", structured_output=False)

    async def run() -> None:
        async with httpx.AsyncClient() as http:
            model = OpenAIChatCompletionClient(
                model="m", base_url=url, api_key="none", model_info=info, http_client=http
            )

            def agent(name: str, tools: list[Any], **options: Any) -> Any:
                return AssistantAgent(
                    name, model, tools=tools, system_message=f"You are the {name}.", description="Looks deeper.",
                    max_tool_iterations=9, model_client_stream=scenario.is_streamed, **options
                )  # fmt: skip

            nested = []
            if scenario.nested:
                inner = guard.autogen(agent("researcher", [find]))
                nested.append(AgentTool(inner, return_value_as_last_message=True))
            if scenario.handoff:
                members = [agent("clerk", [find], handoffs=["closer"]), agent("closer", [])]
                runner: Any = Swarm(members, termination_condition=TextMentionTermination("It is in Bern"))
            else:
                runner = agent("clerk", [find, *nested])
            guard.autogen(runner)
            if scenario.is_streamed:
                async for _ in runner.run_stream(task=TASK):
                    pass
            else:
                await runner.run(task=TASK)

    asyncio.run(run())


def autogen_scenario(scenario: Any) -> Any:
    """Agents are tools by their names; one that takes over has said nothing yet."""
    adapted = renamed({"research": lambda given: ("researcher", {"task": given["input"]})})(scenario)
    scripts = {name: [script[-1]] * 3 if name == "closer" else script for name, script in adapted.scripts.items()}
    return replace(adapted, scripts=scripts)


def autogen_heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """An agent that takes over is told that it does, and no results of before."""
    found = heard(body)
    if "closer" in str(body["messages"][0]["content"]):
        return [found[0], ("tool", find("A1")), ("tool", found[1][1])]
    return found


def play_crewai(guard: Any, url: str, scenario: Any) -> None:
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    llm = LLM(model="openai/m", base_url=url, api_key="none", stream=scenario.is_streamed)

    def agent(name: str, delegates: bool = False) -> Any:
        return Agent(
            role=name, goal="Find it.", backstory=f"You are the {name}.", llm=llm, tools=[tool("find")(find)],
            allow_delegation=delegates, cache=False,
        )  # fmt: skip

    clerk = agent("clerk", delegates=bool(scenario.nested))
    agents = [clerk, *map(agent, scenario.nested)]
    task = Task(description=TASK, expected_output="A place.", agent=clerk)
    with guard.crewai():
        Crew(agents=agents, tasks=[task]).kickoff()


def crewai_scenario(scenario: Any) -> Any:
    """Work is delegated by a tool of CrewAI's own. It drops what a model says beside its calls, and stops an agent that
    repeats itself."""
    asks = {"context": "", "coworker": "researcher"}
    adapted = renamed({"research": lambda given: ("delegate_work_to_coworker", {"task": given["input"], **asks})})(
        scenario
    )

    def told(reply: Any, n: int) -> Any:
        made = [(name, given | {"n": n} if given.get("id") == "BROKEN" else given) for name, given in reply["calls"]]
        return {"text": "" if made else reply["text"], "calls": made}

    scripts = {name: [told(r, n) for n, r in enumerate(script)] for name, script in adapted.scripts.items()}
    return replace(adapted, scripts=scripts)


OTHERS: dict[str, Player] = {
    "litellm": Player(play_litellm, ("litellm",), ("litellm",), 3, NO_HANDOFF),
    "llama_index": Player(
        play_llama_index, ("llama_index",), ("llama-index-core",), 1,
        adapted=renamed({"transfer_to_closer": lambda _: ("handoff", {"to_agent": "closer", "reason": "it is late"})}),
        heard=heard,
    ),
    "google_adk": Player(
        play_google_adk, ("google", "google.adk", "litellm"), ("google-adk",), 1, adapted=adk_scenario, heard=adk_heard
    ),
    "autogen": Player(
        play_autogen, ("autogen_agentchat", "autogen_ext"), ("autogen-agentchat",), 1,
        {"nested, parallel": "an agent has one memory"}, adapted=autogen_scenario, heard=autogen_heard
    ),
    "crewai": Player(
        play_crewai, ("crewai",), ("crewai",), 1,
        NO_HANDOFF | {"nested, parallel": "an agent works on one task at a time"}, adapted=crewai_scenario, heard=heard
    ),
}  # fmt: skip
