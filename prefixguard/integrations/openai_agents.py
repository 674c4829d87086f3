"""The OpenAI Agents SDK, by its run hooks: whole replies and streams, either API, handoffs, agents as tools.

    result = await Runner.run(agent, task, hooks=guard.openai_agents())

A handoff goes on in the same agent path under another name. Agents that are tools of others are watched apart: hooks
are set on them when the agent that owns them begins (the host's own are called as well), since the SDK hands the hooks
of a run to no nested run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.conversation import tell_responses_input, tell_responses_output
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun
from prefixguard.stepview import is_tools

#: How the SDK words the result of a tool that raised, where the host has not said otherwise.
_FAILED = "An error occurred while running the tool"
#: Runs with calls that a person approves, that are remembered.
_MOST_PAUSED = 10_000


def run_hooks(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """Hooks for `Runner.run`, `run_streamed` and `run_sync`, for any number of runs. of_run : arguments of `Guard.run`.

    Raises MissingExtraError.
    """
    try:
        from agents import AgentHooks, RunHooks
    except ImportError as exc:
        raise missing_extra("watching the OpenAI Agents SDK", "openai-agents", exc) from exc

    watcher = AgentsWatcher(guard, of_run)

    class WatchedRunHooks(RunHooks):  # type: ignore[misc]
        prefixguard = watcher

        async def on_agent_start(self, context: Any, agent: Any) -> None:
            watcher.begins(agent, WatchedAgentHooks)

        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            await watcher.asks(context, agent, input_items)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            watcher.answers(context, agent, response)

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            watcher.starts(context)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            watcher.returns(context, result)

        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            watcher.ends(context)

    class WatchedAgentHooks(AgentHooks):  # type: ignore[misc]
        """Hooks of an agent that is another one's tool: ours, then the host's. own : the host's; None: it has none."""

        prefixguard = watcher

        def __init__(self, own: Any) -> None:
            self.own = own

        async def on_start(self, context: Any, agent: Any) -> None:
            watcher.begins(agent, WatchedAgentHooks)
            await self._also("on_start", context, agent)

        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            await watcher.asks(context, agent, input_items, nested=True)
            await self._also("on_llm_start", context, agent, system_prompt, input_items)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            watcher.answers(context, agent, response)
            await self._also("on_llm_end", context, agent, response)

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            watcher.starts(context)
            await self._also("on_tool_start", context, agent, tool)

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            watcher.returns(context, result)
            await self._also("on_tool_end", context, agent, tool, result)

        async def on_end(self, context: Any, agent: Any, output: Any) -> None:
            await self._also("on_end", context, agent, output)

        async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
            await self._also("on_handoff", context, agent, source)

        async def _also(self, name: str, *given: Any) -> None:
            if self.own is not None:
                await getattr(self.own, name)(*given)

    return WatchedRunHooks()


class AgentsWatcher:
    """Knows to which run, and to which agent of it, the context of a hook belongs.

    The SDK makes one context for each run and hands it to the hooks of models; a tool's context, and that of a nested
    run, hold the very object of the call.
    """

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self._runs: weakref.WeakKeyDictionary[Any, WatchedRun] = weakref.WeakKeyDictionary()
        self._calls: dict[int, tuple[Any, WatchedRun]] = {}  # calls without a result
        self._spans: dict[int, Any] = {}  # of the tools that run, by their call
        self._asking: OrderedDict[str, WatchedRun] = OrderedDict()  # runs that may wait for a person
        self._below: dict[int, WatchedRun] = {}  # nested runs by their call
        self._nudges: weakref.WeakKeyDictionary[Any, list[tuple[int, str]]] = weakref.WeakKeyDictionary()

    def begins(self, agent: Any, hooks: Any) -> None:
        """Set hooks of this class on the agents that are tools of the agent; in place of those of another guard."""
        try:
            for tool in field_of(agent, "tools") or ():
                inner = field_of(tool, "_agent_instance") if field_of(tool, "_is_agent_tool") else None
                if inner is None or getattr(inner.hooks, "prefixguard", None) is self:
                    continue
                is_ours = hasattr(inner.hooks, "prefixguard")
                inner.hooks = hooks(inner.hooks.own if is_ours else inner.hooks)
        except Exception as exc:
            self._guard.failed("the tools of an agent of the OpenAI Agents SDK", exc)

    async def asks(self, context: Any, agent: Any, items: Any, nested: bool = False) -> None:
        """A model is about to be asked; nudges are added to the items. AgentStopped where the run is to stop."""
        try:
            run = self._runs.get(context) or self._open(context, agent, nested, items)
            if run is None:
                return
            tell_responses_input(run, items, agent=_name(agent))
        except Exception as exc:
            self._guard.failed("a model call of the OpenAI Agents SDK", exc)
            return
        await run.answered()
        run.check()
        if not isinstance(items, list):
            return
        nudges = self._nudges.setdefault(context, [])
        if (text := run.nudge()) is not None:
            nudges.append((len(items), text))
        for position, text in reversed(nudges):  # the SDK's history does not keep them
            items.insert(position, {"role": "user", "content": text})

    def answers(self, context: Any, agent: Any, response: Any) -> None:
        """A model has answered."""
        try:
            run = self._runs.get(context)
            if run is None:
                return
            output = field_of(response, "output") or ()
            for item in output:
                if field_of(item, "call_id"):
                    self._calls[id(item)] = (item, run)
            tell_responses_output(run, output, field_of(response, "usage"), agent=_name(agent))
            asking = {
                field_of(tool, "name") for tool in field_of(agent, "tools") or () if field_of(tool, "needs_approval")
            }
            if any(field_of(item, "call_id") and field_of(item, "name") in asking for item in output):
                self._asking[run.id] = run
                if len(self._asking) > _MOST_PAUSED:
                    self._asking.popitem(last=False)
        except Exception as exc:
            self._guard.failed("a reply in the OpenAI Agents SDK", exc)

    def starts(self, context: Any) -> None:
        """A tool is run. Where it raises, and its host wants that raised, its span alone knows of it."""
        try:
            from agents import get_current_span

            call = id(field_of(context, "tool_call"))
            if call in self._calls:
                self._spans[call] = get_current_span()
        except Exception as exc:
            self._guard.failed("a tool in the OpenAI Agents SDK", exc)

    def returns(self, context: Any, result: Any) -> None:
        """A tool has returned; results of which the SDK tells no call are told with the next model call."""
        try:
            call = field_of(context, "tool_call")
            item, run = self._calls.pop(id(call), (None, None))
            self._spans.pop(id(call), None)
            if run is None or item is not call:
                return
            text = result if isinstance(result, str) else text_of(result) if _is_output(result) else str(result)
            run.returned(str(field_of(call, "call_id")), text, is_error=True if text.startswith(_FAILED) else None)
            below = self._below.pop(id(call), None)
            if below is not None:
                self._forget(below)
        except Exception as exc:
            self._guard.failed("a tool's result in the OpenAI Agents SDK", exc)

    def ends(self, context: Any) -> None:
        """The last agent of a run has its output. Nested runs end with their call."""
        usage = field_of(context, "usage")
        for known, run in list(self._runs.items()):
            if (known is context or (usage is not None and field_of(known, "usage") is usage)) and run.parent is None:
                self._forget(run)

    def _open(self, context: Any, agent: Any, nested: bool, items: Any) -> WatchedRun | None:
        run = None if nested else self._resumed(items)
        if nested:
            call = field_of(context, "tool_call")
            item, above = self._calls.get(id(call), (None, None))
            if above is None or item is not call:
                return None  # the agent is run by itself
            run = self._below[id(call)] = above.delegate(
                _name(agent), call_id=str(field_of(call, "call_id")), answers=False
            )
        elif run is None:
            from agents import get_current_trace

            of_run = {"agent": _name(agent), "tools": _tools(agent), **self._of_run}
            trace = get_current_trace()
            if not of_run.get("run_id") and trace is not None and trace.trace_id != "no-op":
                of_run["run_id"] = trace.trace_id
            run = self._guard.run(**of_run)
        self._runs[context] = run
        if not nested:
            weakref.finalize(context, self._left, run)  # a run that ends by an exception has no other end
        return run

    def _resumed(self, items: Any) -> WatchedRun | None:
        """The run that waited for a person, where a model is asked with results of its calls."""
        called = [str(field_of(item, "call_id")) for item in items or () if field_of(item, "type") == "function_call"]
        return next(
            (run for run in list(self._asking.values()) if any(run.is_open(i) or run.has_returned(i) for i in called)),
            None,
        )

    def _left(self, run: WatchedRun) -> None:
        """The SDK is done with a context of a run. Unless the run goes on in another one, or a person is asked, it is
        over."""
        if run not in self._runs.values() and not (run.id in self._asking and run.waiting()):
            self._forget(run)

    def _forget(self, run: WatchedRun) -> None:
        for key in [key for key, (_, of) in list(self._calls.items()) if of is run]:
            (item, _), span = self._calls.pop(key), self._spans.pop(key, None)
            try:
                error, call_id = field_of(span, "error"), text_of(field_of(item, "call_id"))
                if error and run.is_open(call_id):
                    raised = field_of(field_of(error, "data"), "error") or field_of(error, "message")
                    run.returned(call_id, raised, is_error=True)
            except Exception as exc:
                self._guard.failed("what a tool raised in the OpenAI Agents SDK", exc)
        self._asking.pop(run.id, None)
        run.end()


def _tools(agent: Any) -> list[str] | None:
    """Names of its tools; None where others come besides: of MCP servers, or of agents that it hands over to."""
    if field_of(agent, "mcp_servers") or field_of(agent, "handoffs"):
        return None
    names = [field_of(tool, "name") for tool in field_of(agent, "tools") or ()]
    return names if is_tools(names) else None


def _name(agent: Any) -> str:
    return str(field_of(agent, "name") or "agent")


def _is_output(result: Any) -> bool:
    """Is it one of the SDK's tool outputs (text, image, file), or a list of them?"""
    first = result[0] if isinstance(result, list) and result else result
    return str(field_of(first, "type", "")) in ("text", "image", "file")
