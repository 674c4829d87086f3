"""Which exceptions, raised while a session works, are the host's and must reach it.

The host's, so passed on:

- everything that is no `Exception`: KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError;
- every OSError, TimeoutError among them: a session reads and writes nothing, so it cannot be its own;
- what was raised in code that interrupted ours: a signal handler, a trace function. Such code was handed the frame that
  it interrupted, and by that it is known;
- an exception of a class of the host's with no code of the host's under ours, as PyThreadState_SetAsyncExc raises it.

Ours, so told in a reading of level UNKNOWN: other exceptions of the classes of Python, numpy, onnxruntime, re2, orjson
and this package, and whatever an event's own methods raise.

A StopIteration that interrupts is beyond this rule: Python itself takes it for the end of the loop that it meets. A
host must not raise one.
"""

from __future__ import annotations

import sys
from types import FrameType

#: Top-level modules whose classes of exceptions, and whose frames, are not the host's.
_OURS = sys.stdlib_module_names | {"builtins", "numpy", "onnxruntime", "orjson", "re2", "_re2", "prefixguard"}


def is_hosts(exc: BaseException) -> bool:
    """Whether this exception, just caught in our code, is the host's affair."""
    if not isinstance(exc, Exception) or isinstance(exc, OSError) or was_interrupted(exc):
        return True
    if _is_ours(type(exc).__module__):
        return False
    trace = exc.__traceback__
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_globals.get("__name__")):
            return False  # our code called this one: a method of the event
        trace = trace.tb_next
    return True


def was_interrupted(exc: BaseException) -> bool:
    """Whether it was raised in a function that interrupted the one before it in the traceback."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        if _was_handed(trace.tb_next.tb_frame, trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _was_handed(frame: FrameType, interrupted: FrameType) -> bool:
    """Whether an argument of the frame's function, or one of its *args, is the other frame."""
    return any(
        value is interrupted or (type(value) is tuple and any(one is interrupted for one in value))
        for value in frame.f_locals.values()
    )


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _OURS
