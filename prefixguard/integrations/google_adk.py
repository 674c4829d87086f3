"""Google's Agent Development Kit, by a plugin of the runner: every agent that it runs, whole replies and streams.

    runner = Runner(app_name="orders", agent=agent, session_service=sessions, plugins=[guard.google_adk()])

An invocation is a run. Agents that are tools, and branches that run beside others, are watched apart; one that a
conversation is transferred to goes on in the same path. A nudge is put behind what the model is asked with once, and is
not kept in the session. A stop ends the invocation by a reply that has the error code `AGENT_STOPPED`: the kit wraps
what a plugin raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.call_context import begin_run, set_call
from prefixguard.integrations.conversation import result_of, tell_reply
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

#: Invocations that are known before those are forgotten whose run is over, though nobody said so.
_MANY = 256


class InvocationWatcher:
    """Knows the agent that an event belongs to, by its invocation and branch."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self._roots: dict[str, dict[str, WatchedRun]] = {}  # by invocation, then by branch; the first is the root's
        self._failed: dict[tuple[str, str], Any] = {}  # what tools raised, by agent and call

    def begins(self, context: Any) -> None:
        """An invocation: a run, or the agent of a tool that another agent called."""
        if len(self._roots) > _MANY:
            self._roots = {key: found for key, found in self._roots.items() if self._guard.is_open(_first(found).id)}
        invocation, name = _text(context, "invocation_id"), _text(field_of(context, "agent"), "name")
        task = _said(field_of(context, "user_content"))
        run = begin_run(self._guard, {"run_id": invocation, **self._of_run}, task=task, agent=name)
        self._roots[invocation] = {_text(context, "branch"): run}

    def agent(self, invocation: str, branch: str, name: str, contents: Any = ()) -> WatchedRun | None:
        """The agent of a branch, which begins with it; None of an invocation that is not known. contents : of its first
        request: what it is asked stands last."""
        known = self._roots.get(invocation)
        if known is None or branch in known:
            return None if known is None else known[branch]
        above = max((other for other in known if branch.startswith(f"{other}.")), key=len, default=next(iter(known)))
        asked = next((text for content in reversed(list(contents or ())) if (text := _said(content))), "")
        call_id = branch.rpartition("@")[2] if "@" in branch else branch
        known[branch] = known[above].delegate(name or "agent", task=asked, call_id=call_id, answers=False)
        return known[branch]

    def of(self, context: Any, contents: Any = ()) -> WatchedRun | None:
        """The agent that a callback is about."""
        where = _text(context, "invocation_id"), _text(context, "branch")
        return self.agent(*where, _text(context, "agent_name"), contents)

    def raised(self, run: WatchedRun, call_id: str, error: Any) -> None:
        self._failed[run.key, call_id] = error

    def tell(self, event: Any) -> None:
        """What a model answered, or tools did, as the session keeps it."""
        name = _text(event, "author")
        run = self.agent(_text(event, "invocation_id"), _text(event, "branch"), name)
        if run is None or field_of(event, "partial") is True:
            return
        calls, text = [], []
        for part in _parts(field_of(event, "content")):
            if (call := field_of(part, "function_call")) is not None:
                calls.append((_text(call, "id"), field_of(call, "name"), field_of(call, "args") or {}))
            elif (answer := field_of(part, "function_response")) is not None:
                self._tell_result(run, _text(answer, "id"), field_of(answer, "response"))
            elif isinstance(said := field_of(part, "text"), str) and not field_of(part, "thought"):
                text.append(said)
        if calls or (text and name != "user"):
            usage = field_of(event, "usage_metadata")
            names = {"tokens_in": "prompt_token_count", "tokens_out": "candidates_token_count"}
            tokens = {ours: n for ours, its in names.items() if isinstance(n := field_of(usage, its), int)}
            tell_reply(run, "".join(text), calls, {"agent": name, **tokens})

    def _tell_result(self, run: WatchedRun, call_id: str, response: Any) -> None:
        """What is no object the kit puts into one, as its `result`; errors stand in `error`."""
        error, is_object = self._failed.pop((run.key, call_id), None), isinstance(response, dict)
        failed = error is not None or bool(is_object and response.get("error"))
        if is_object and list(response) in (["result"], ["error"], ["output"]):
            response = next(iter(response.values()))
        result_of(run, call_id, response, failed or None)

    def ends(self, context: Any) -> None:
        """The invocation is over, with all its branches; calls that raised what nobody answered have failed."""
        for run in reversed(list(self._roots.pop(_text(context, "invocation_id"), {}).values())):
            for call_id in run.waiting():
                if (error := self._failed.pop((run.key, call_id), None)) is not None:
                    run.returned(call_id, error)
            run.end()


def plugin(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A plugin for `Runner(plugins=[...])` or `App(plugins=[...])`. of_run : arguments of `Guard.run`.

    Raises MissingExtraError.
    """
    try:
        from google.adk.models.llm_response import LlmResponse
        from google.adk.plugins.base_plugin import BasePlugin
        from google.genai import types
    except ImportError as exc:
        raise missing_extra("watching Google ADK", "google-adk", exc) from exc

    watcher = InvocationWatcher(guard, of_run)

    class WatchedPlugin(BasePlugin):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(f"prefixguard-{id(guard):x}")  # of plugins of one name the kit takes one

        async def before_run_callback(self, *, invocation_context: Any) -> None:
            self._try(watcher.begins, invocation_context)

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
            self._try(watcher.tell, event)

        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
            run = self._try(watcher.of, callback_context, field_of(llm_request, "contents"))
            if run is not None:
                await run.answered()
            if run is not None and (why := run.stopped) is not None:
                return LlmResponse(error_code="AGENT_STOPPED", error_message=why)
            if run is not None and (text := run.nudge()) is not None:
                nudge = types.Content(role="user", parts=[types.Part(text=text)])
                self._try(lambda: llm_request.contents.append(nudge))
            return None

        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            set_call(guard, self._try(watcher.of, tool_context), _text(tool_context, "function_call_id"))

        async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
            set_call(guard, None)

        async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> None:
            run = self._try(watcher.of, tool_context)
            if run is not None:
                watcher.raised(run, _text(tool_context, "function_call_id"), error)

        async def after_run_callback(self, *, invocation_context: Any) -> None:
            self._try(watcher.ends, invocation_context)

        async def on_run_error_callback(self, *, invocation_context: Any, error: Any) -> None:
            self._try(watcher.ends, invocation_context)

        @staticmethod
        def _try(tell: Any, *args: Any) -> Any:
            """Nothing that an object of another release lacks reaches the host."""
            try:
                return tell(*args)
            except Exception as exc:
                guard.failed("an event of Google ADK", exc)
                return None

    return WatchedPlugin()


def _first(known: dict[str, WatchedRun]) -> WatchedRun:
    return next(iter(known.values()))


def _text(value: Any, name: str) -> str:
    return text_of(field_of(value, name))


def _parts(content: Any) -> Iterator[Any]:
    parts = field_of(content, "parts")
    yield from parts if isinstance(parts, list | tuple) else ()


def _said(content: Any) -> str:
    """The text of a message that the user, or an agent that asks another one, sent."""
    if field_of(content, "role") == "model":
        return ""
    return "\n".join(text for part in _parts(content) if isinstance(text := field_of(part, "text"), str))
