"""The event loop of a thread in the background: its run, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """The background thread. It knows no desk, so that one that nobody holds any more can go."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        with suppress(Exception):
            loop.run_until_complete(_cancel(asyncio.all_tasks(loop), 1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def leave_loop(
    auditor: Any, loop: asyncio.AbstractEventLoop, workers: Iterable[asyncio.Task[None]], grace: float
) -> None:
    """On the loop: cancels the workers, closes the auditor's client, stops the loop. grace: seconds for
    each."""

    async def leave() -> None:
        # Tasks of the auditor's own packages end with the worker that waits for them; cancelled by us, they complain.
        await _cancel(list(workers), grace)
        aclose = getattr(auditor, "aclose", None)
        if aclose is not None:
            with suppress(Exception):
                await asyncio.wait_for(aclose(), grace)

    def stop(_: object) -> None:
        loop.stop()

    loop.create_task(leave()).add_done_callback(stop)


async def _cancel(tasks: Iterable[asyncio.Task[Any]], grace: float) -> None:
    """Cancels them, and waits a moment for them to end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=grace)


def stop_loop(loop: asyncio.AbstractEventLoop) -> None:
    """From any thread, also where the loop is closed already."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(loop.stop)
