"""An open run as plain JSON values, so that another process goes on with it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from prefixguard.alarm import Level
from prefixguard.errors import SavedSessionError
from prefixguard.integrations.registry import AgentStream, OpenRun
from prefixguard.runtime import Monitor, Reading
from prefixguard.stepview import readable_offer

_NUMBERS, _TEXTS = ("turn", "came_back"), ("agent", "last_text")


def kept_run(run: OpenRun) -> dict[str, Any]:
    """The run, and the session of each of its agents. It holds text of the run: keep it as safe as the run itself."""
    return {
        "run": run.run, "task_id": run.task_id, "group": run.group, "agent": run.agent, "stopped": run.stopped,
        "tools": run.offer.tools, "step_limit": run.offer.step_limit,
        "streams": [_kept_stream(stream) for stream in run.streams.values()],
    }  # fmt: skip


def resumed_run(kept: Any, monitor: Monitor | None) -> OpenRun:
    """The run that was kept. Raises SavedSessionError where it is damaged, or was judged by another monitor."""
    try:
        run = OpenRun(str(kept["run"]), str(kept["task_id"]), kept["group"], str(kept["agent"]))
        run.stopped, run.offer = kept["stopped"], readable_offer(kept.get("tools"), kept.get("step_limit"))
        for one in kept["streams"]:
            stream = _resumed_stream(one, monitor)
            run.streams[stream.path] = stream
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise SavedSessionError(f"The kept run is damaged ({type(exc).__name__}). Begin a new one.") from exc
    return run


def _kept_stream(stream: AgentStream) -> dict[str, Any]:
    plain = {name: getattr(stream, name) for name in ("path", "task", "is_over", *_NUMBERS, *_TEXTS)}
    is_judged = stream.session is not None and not stream.is_over
    return plain | {
        "open_calls": list(stream.open_calls), "returned": list(stream.returned), "nudges": list(stream.nudges),
        "alarmed_at": None if stream.alarm is None else stream.alarm.step,
        "session": b64encode(stream.session.save()).decode() if is_judged and stream.session is not None else None,
    }  # fmt: skip


def _resumed_stream(kept: Mapping[str, Any], monitor: Monitor | None) -> AgentStream:
    session = None
    if monitor is not None and not kept["is_over"]:
        session = monitor.restore(b64decode(kept["session"], validate=True))
    stream = AgentStream(str(kept["path"]), session)
    stream.task, stream.is_over = kept["task"], bool(kept["is_over"])
    for names, kind in ((_NUMBERS, int), (_TEXTS, str)):
        for name in names:
            setattr(stream, name, kind(kept[name]))
    stream.open_calls = dict.fromkeys(map(str, kept["open_calls"]))
    stream.returned.extend(map(str, kept["returned"]))
    stream.nudges = list(map(str, kept["nudges"]))
    if (step := kept["alarmed_at"]) is not None:  # that it sounded is all that counts: it sounds once
        stream.alarm = Reading(int(step), None, None, Level.ALARM, None, None, (), None, 0.0)
    return stream
