"""pydantic-ai, by a capability: whole replies and streams, agents that are asked by tools of others.

    agent = Agent(model, capabilities=[guard.pydantic_ai()])

A nudge is put into the conversation before the next model call and stays there; a stop raises before it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.call_context import begin_run, within_call
from prefixguard.integrations.conversation import observe_again, result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

#: Runs that wait for results from elsewhere, such as a person's approval, that are remembered.
_MOST_PAUSED = 10_000


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


def _paused_run(paused: OrderedDict[str, WatchedRun], messages: Any) -> WatchedRun | None:
    """The run that waits for calls of the last reply of these messages, which goes on now; None where none does."""
    last = next((one for one in reversed(messages or ()) if field_of(one, "kind") == "response"), None)
    called = [text_of(field_of(part, "tool_call_id")) for part in field_of(last, "parts") or ()]
    key = next((key for key, run in list(paused.items()) if any(map(run.is_open, filter(None, called)))), None)
    return None if key is None else paused.pop(key, None)


def capability(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A capability for `Agent(capabilities=[...])`, for any number of runs. of_run : arguments of `Guard.run`.

    Raises MissingExtraError.
    """
    try:
        from pydantic_ai.capabilities import AbstractCapability
    except ImportError as exc:
        raise missing_extra("watching pydantic-ai", "pydantic-ai", exc) from exc

    paused: OrderedDict[str, WatchedRun] = OrderedDict()

    class WatchedCapability(AbstractCapability):  # type: ignore[misc]
        """run : of the copy that the SDK asks for at the start of each run; None of the one that the host holds. came :
        what tools gave or raised since the model was asked, by the call's id."""

        run: WatchedRun | None = None

        def __init__(self) -> None:
            self.came: dict[str, Any] = {}

        async def for_run(self, ctx: Any) -> Any:
            mine = WatchedCapability()
            try:
                mine.run = _paused_run(paused, field_of(ctx, "messages"))
                if mine.run is None:
                    name = text_of(field_of(field_of(ctx, "agent"), "name"))
                    mine.run = begin_run(guard, {"run_id": field_of(ctx, "run_id"), **of_run}, agent=name)
            except Exception as exc:
                guard.failed("a run of pydantic-ai", exc)
            return mine

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            is_paused = False
            try:
                result = await handler()
                is_paused = type(field_of(result, "output")).__name__ == "DeferredToolRequests"
                return result
            finally:
                self._tell_last(ctx)
                self._end(is_paused)

        def _end(self, is_paused: bool) -> None:
            """The run is over, or waits: what the model is asked no more stands in no message."""
            if self.run is None:
                return
            for call_id in self.run.waiting():
                result = self.came.get(call_id)
                if call_id in self.came and not (is_paused and isinstance(result, BaseException)):
                    self.run.returned(call_id, result)
            if not is_paused:
                self.run.end()
                return
            paused[self.run.key] = self.run
            if len(paused) > _MOST_PAUSED:
                paused.popitem(last=False)[1].end()

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            self._tell_last(ctx, request_context)
            self.came.clear()
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
            call_id = text_of(field_of(call, "tool_call_id"))
            with within_call(guard, self.run, call_id):
                try:
                    result = self.came[call_id] = await handler(args)
                except Exception as exc:
                    self.came[call_id] = exc
                    raise
            return result

        def _tell_last(self, ctx: Any, request: Any = None) -> None:
            """The last message, where it is one that the model is, or would have been, asked with."""
            try:
                messages = field_of(request if request is not None else ctx, "messages") or ()
                if self.run is not None and messages and field_of(messages[-1], "kind") == "request":
                    tell_request(self.run, messages[-1], len(messages))
            except Exception as exc:
                guard.failed("a model call of pydantic-ai", exc)

    return WatchedCapability()
