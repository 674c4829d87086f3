"""How agents of each framework are hooked to a guard: a method a framework, which imports it when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from prefixguard.integrations.autogen import watch_runner
from prefixguard.integrations.claude import sdk_hooks
from prefixguard.integrations.crewai import WatchedCrew
from prefixguard.integrations.google_adk import plugin
from prefixguard.integrations.inspect import InspectHooks, sample_hooks
from prefixguard.integrations.langchain import agent_middleware
from prefixguard.integrations.langgraph import callback_handler
from prefixguard.integrations.llama_index import watch_workflow
from prefixguard.integrations.mcp import watch_session
from prefixguard.integrations.openai_agents import run_hooks
from prefixguard.integrations.openai_client import watch_client, watch_function
from prefixguard.integrations.opentelemetry import span_processor
from prefixguard.integrations.pydantic_ai import capability
from prefixguard.integrations.smolagents import watch_agent

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


class FrameworkHooks:
    """What a `Guard` has for every framework. `of_run` are arguments of `Guard.run`: run_id, task_id, agent, group,
    tools, step_limit."""

    def openai(self: Any, client: C) -> C:
        """Watch a client of the openai package (`OpenAI` or `AsyncOpenAI`; chat completions, Responses, streams): its
        calls belong to the run that they are made in, `with guard.run(...)`. Returns the same client."""
        return watch_client(self, client)

    def litellm(self: Any, function: F) -> F:
        """Watch a function of litellm: `completion = guard.litellm(litellm.completion)`; or `acompletion`, `responses`,
        `aresponses`, or the same method of a `Router`. Its calls belong to the run that they are made in, `with
        guard.run(...)`. Returns the function to call instead."""
        return watch_function(self, function)

    def openai_agents(self: Any, **of_run: Any) -> Any:
        """Hooks for a run of the OpenAI Agents SDK: `Runner.run(agent, task, hooks=guard.openai_agents())`.

        of_run : arguments of `run`; the id of the run is that of the SDK's trace where none is given. Raises
        MissingExtraError.
        """
        return run_hooks(self, of_run)

    def langchain(self: Any, **of_run: Any) -> Any:
        """Middleware for a LangChain agent: `create_agent(model, tools, middleware=[guard.langchain()])`.

        of_run : arguments of `run`. Raises MissingExtraError.
        """
        return agent_middleware(self, of_run)

    def langgraph(self: Any, **of_run: Any) -> Any:
        """A callback handler for any LangGraph graph: `graph.invoke(x, config={"callbacks": [guard.langgraph()]})`.

        It records, warns and stops; a nudge needs the middleware. of_run : arguments of `run`. Raises
        MissingExtraError.
        """
        return callback_handler(self, of_run)

    def pydantic_ai(self: Any, **of_run: Any) -> Any:
        """A capability for an agent of pydantic-ai: `Agent(model, capabilities=[guard.pydantic_ai()])`.

        of_run : arguments of `run`. Raises MissingExtraError.
        """
        return capability(self, of_run)

    def claude_agent(self: Any, **of_run: Any) -> Any:
        """Hooks for the Claude Agent SDK: `ClaudeAgentOptions(hooks=guard.claude_agent())`.

        of_run : arguments of `run`; the id of a run is that of its session where none is given. Raises
        MissingExtraError.
        """
        return sdk_hooks(self, of_run)

    def smolagents(self: Any, agent: C, **of_run: Any) -> C:
        """Watch an agent of smolagents, and those that it manages, in all its runs. Returns the same agent.

        of_run : arguments of `run`.
        """
        return watch_agent(self, agent, of_run)

    def llama_index(self: Any, agent: C, **of_run: Any) -> C:
        """Watch an agent of LlamaIndex (`FunctionAgent`, `ReActAgent`, `CodeActAgent`), or an `AgentWorkflow` with its
        agents, in all its runs. Returns the same agent.

        of_run : arguments of `run`.
        """
        return watch_workflow(self, agent, of_run)

    def inspect(self: Any, *, scorer: str | None = None, **of_run: Any) -> InspectHooks:
        """Watch every sample that Inspect runs in this process, until what this returns is closed.

        scorer : the score that is the outcome; by default all have to agree. C, 1 and true are success, I, N, 0 and
        false failure; anything else is no outcome. of_run : arguments of `run`. Raises MissingExtraError.
        """
        return sample_hooks(self, scorer, of_run)

    def google_adk(self: Any, **of_run: Any) -> Any:
        """A plugin for Google's Agent Development Kit: `Runner(..., plugins=[guard.google_adk()])`, or of an `App`.

        of_run : arguments of `run`; the id of a run is that of its invocation where none is given. Raises
        MissingExtraError.
        """
        return plugin(self, of_run)

    def autogen(self: Any, agent: C, **of_run: Any) -> C:
        """Watch an agent of autogen-agentchat, or a team with its agents, in all its runs. Returns the same agent.

        of_run : arguments of `run`.
        """
        return watch_runner(self, agent, of_run)

    def otel(self: Any, **of_run: Any) -> Any:
        """A span processor for OpenTelemetry: `provider.add_span_processor(guard.otel())`, for spans by the GenAI
        conventions, with contents, and by OpenInference.

        It records and warns; whether a run is to stop says `stopped`, by the id of its trace or conversation. of_run :
        arguments of `run`. Raises MissingExtraError.
        """
        return span_processor(self, of_run)

    def crewai(self: Any, **of_run: Any) -> WatchedCrew:
        """A context in which all that CrewAI does is one run: `with guard.crewai(): crew.kickoff()`.

        of_run : arguments of `run`. Raises MissingExtraError.
        """
        return WatchedCrew(self, of_run)

    def mcp(self: Any, session: C) -> C:
        """Watch the tool calls of an MCP client's session in the run that they are made in. Returns the session."""
        return watch_session(self, session)
