"""Sessions of MCP clients: their tool calls are steps of the run that they are made in.

session = guard.mcp(session)
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from prefixguard.errors import ConfigError
from prefixguard.integrations.call_context import is_watched, watched_by
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, current_run

S = TypeVar("S")


def watch_session(guard: RunKeeper, session: S) -> S:
    """The same session, whose calls of tools belong to the run that they are made in (`with guard.run(...)`).

    A call that the model has asked for already (of the same tool, or of one whose name ends with it, with the same
    arguments) is the same call, and gets its result here.
    Raises AgentStopped from `call_tool` where the run is to stop, ConfigError for what is no session.
    """
    original = getattr(session, "call_tool", None)
    if original is None:
        raise ConfigError(f"{type(session).__name__} is no MCP session: give the ClientSession.")
    if is_watched(original, guard):
        return session

    @functools.wraps(original)
    async def call_tool(name: str, arguments: Any = None, *args: Any, **options: Any) -> Any:
        run = current_run(guard)
        if run is None:
            guard.count("calls_outside_runs")
            return await original(name, arguments, *args, **options)
        await run.answered()
        run.check()
        call_id = run.claim(name, arguments) or run.called(name, arguments)
        try:
            result = await original(name, arguments, *args, **options)
        except Exception as exc:
            run.returned(call_id, exc)
            raise
        try:
            failed = bool(field_of(result, "is_error") or field_of(result, "isError"))
            text = text_of(list(field_of(result, "content") or ())) or text_of(
                field_of(result, "structured_content") or field_of(result, "structuredContent")
            )
            run.returned(call_id, text, is_error=failed)
        except Exception as exc:
            guard.failed("a result of an MCP session", exc)
        return result

    session.call_tool = watched_by(guard, call_tool)  # type: ignore[attr-defined]
    return session
