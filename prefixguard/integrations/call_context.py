"""Which tool call of which agent a task or thread is in, so that an agent that a tool runs is watched below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

#: Of every guard, since several may watch one agent: the run that makes the call, and the call's id.
_WITHIN: ContextVar[Mapping[int, tuple[WatchedRun, str]]] = ContextVar(
    "prefixguard_calls", default=MappingProxyType({})
)


def begin_run(
    guard: RunKeeper, of_run: Mapping[str, Any], *, task: str = "", agent: str = "", under: WatchedRun | None = None
) -> WatchedRun:
    """A run of this guard, or the part of a sub-agent in the run whose tool call this context is in.

    of_run : arguments of `Guard.run`. task : what the agent is asked. agent : its name. under : the agent that runs it,
    where that is known and its call is not.
    """
    within = _WITHIN.get().get(id(guard)) or (None if under is None else (under, ""))
    if within is None:
        return guard.run(task, **{"agent": agent, **of_run})
    above, call_id = within
    if not call_id and len(waiting := above.waiting()) == 1:
        call_id = waiting[0]
    return above.delegate(agent or "agent", task=task, call_id=call_id, answers=False)


def set_call(guard: RunKeeper, run: WatchedRun | None, call_id: str = "") -> None:
    """From now on this task or thread is within this call of the run, or in none where the run is None: for hooks that
    are called before and after it. call_id : "" where nobody says which one it is."""
    others = {key: found for key, found in _WITHIN.get().items() if key != id(guard)}
    _WITHIN.set(others if run is None else {**others, id(guard): (run, call_id)})


@contextmanager
def within_call(guard: RunKeeper, run: WatchedRun | None, call_id: str) -> Iterator[None]:
    """What is done inside is done within this call of the run; nothing changes where the run is None."""
    if run is None:
        yield
        return
    mark = _WITHIN.set({**_WITHIN.get(), id(guard): (run, call_id)})
    try:
        yield
    finally:
        _WITHIN.reset(mark)


def is_watched(function: Any, guard: RunKeeper) -> bool:
    """Is this a function of the host's that this guard has wrapped? Guards wrap one another's wrappers."""
    while function is not None:
        if getattr(function, "prefixguard", None) is guard:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def watched_by(guard: RunKeeper, function: Any) -> Callable[..., Any]:
    """The wrapper, marked as this guard's."""
    function.prefixguard = guard
    made: Callable[..., Any] = function
    return made
