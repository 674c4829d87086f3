"""pydantic-ai, by a capability: whole replies and streams, agents that are asked by tools of others.

    agent = Agent(model, capabilities=[guard.pydantic_ai()])

A nudge is put into the conversation before the next model call and stays there; a stop raises before it.
"""

from __future__ import annotations

from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.call_context import begin_run, within_call
from prefixguard.integrations.conversation import observe_again, result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


def tell_request(run: WatchedRun, message: Any, position: int) -> None:
    """The parts of a model request: results as the model reads them, and what the user said."""
    for n, part in enumerate(field_of(message, "parts") or ()):
        kind = field_of(part, "part_kind")
        call_id = field_of(part, "tool_call_id") if field_of(part, "tool_name") else None
        if kind == "tool-return":
            failed = field_of(part, "outcome", "success") != "success" or None
            result_of(run, call_id, part.model_response_str(), failed)
        elif kind == "retry-prompt" and call_id is not None:
            result_of(run, call_id, part.model_response(), True)
        elif kind == "retry-prompt":
            observe_again(run, part.model_response(), 100 * position + n)
        elif kind == "user-prompt":
            observe_again(run, text_of(field_of(part, "content")), 100 * position + n)


def tell_response(run: WatchedRun, message: Any) -> None:
    """What the model answered."""
    texts, calls = [], []
    for part in field_of(message, "parts") or ():
        kind = field_of(part, "part_kind")
        if kind == "text":
            texts.append(str(field_of(part, "content")))
        elif kind in ("tool-call", "builtin-tool-call", "native-tool-call"):
            calls.append((str(field_of(part, "tool_call_id")), field_of(part, "tool_name"), field_of(part, "args")))
    tell_reply(run, "\n".join(texts), calls, tokens_of(field_of(message, "usage")))
    for part in field_of(message, "parts") or ():
        if field_of(part, "part_kind") in ("builtin-tool-return", "native-tool-return"):
            run.returned(str(field_of(part, "tool_call_id")), part.model_response_str())


def capability(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A capability for `Agent(capabilities=[...])`, for any number of runs. of_run : arguments of `Guard.run`.

    Raises MissingExtraError.
    """
    try:
        from pydantic_ai.capabilities import AbstractCapability
    except ImportError as exc:
        raise missing_extra("watching pydantic-ai", "pydantic-ai", exc) from exc

    class WatchedCapability(AbstractCapability):  # type: ignore[misc]
        """run : of the copy that the SDK asks for at the start of each run; None of the one that the host holds."""

        run: WatchedRun | None = None

        async def for_run(self, ctx: Any) -> Any:
            mine = WatchedCapability()
            try:
                name = text_of(field_of(field_of(ctx, "agent"), "name"))
                mine.run = begin_run(guard, {"run_id": field_of(ctx, "run_id"), **of_run}, agent=name)
            except Exception as exc:
                guard.failed("a run of pydantic-ai", exc)
            return mine

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            try:
                return await handler()
            finally:
                self._tell_last(ctx)
                if self.run is not None:
                    self.run.end()

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            self._tell_last(ctx, request_context)
            if self.run is not None:
                await self.run.answered()
                self.run.check()
                enqueue = field_of(ctx, "enqueue")
                if callable(enqueue) and (text := self.run.nudge()) is not None:
                    enqueue(text)
            return request_context

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            try:
                if self.run is not None:
                    tell_response(self.run, response)
            except Exception as exc:
                guard.failed("a reply in pydantic-ai", exc)
            return response

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            with within_call(guard, self.run, text_of(field_of(call, "tool_call_id"))):
                return await handler(args)

        def _tell_last(self, ctx: Any, request: Any = None) -> None:
            """The last message, where it is one that the model is, or would have been, asked with."""
            try:
                messages = field_of(request if request is not None else ctx, "messages") or ()
                if self.run is not None and messages and field_of(messages[-1], "kind") == "request":
                    tell_request(self.run, messages[-1], len(messages))
            except Exception as exc:
                guard.failed("a model call of pydantic-ai", exc)

    return WatchedCapability()
