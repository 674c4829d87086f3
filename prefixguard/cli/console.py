"""Where output goes: data to standard output, a line at a time; everything for people to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from prefixguard.cli.terminal_text import terminal, visible, visible_json
from prefixguard.errors import OutputError


def people() -> Console:
    """Standard error, as it is now."""
    return terminal(stderr=True)


def say(text: str, *, error: bool = False, style: str = "") -> None:
    """A message on standard error, never cut or wrapped where there is no terminal."""
    line = Text("Error: ", style="bold red") if error else Text()
    line.append(visible(text), style=style)
    with suppress(OSError):  # nobody is there to be told
        people().print(line, soft_wrap=True)


def say_proxy(proxy: str | None) -> None:
    """Say which proxy a model is asked through, where there is one. proxy: host and port, see `Endpoint.proxy`."""
    if proxy is not None:
        say(f"The model is asked through the proxy {proxy}, as the environment says. To go past it: NO_PROXY.")


def write_data(text: str | Text) -> None:
    """Lines of data on standard output, flushed: whoever reads them may be waiting. What acts on a terminal is escaped
    (`visible`). A text of `rich` has its colours where there is a terminal.

    Raises OutputError when it cannot be written, BrokenPipeError when nobody reads any more.
    """
    if isinstance(text, Text):
        console = terminal()
        if console.is_terminal:
            with console.capture() as captured:
                console.print(text, soft_wrap=True, end="")
            _write(captured.get())
            return
        text = text.plain
    _write(visible(text))


def write_json(value: Any) -> None:
    """As `write_data`, one JSON value on one line; what cannot be seen is escaped as JSON does, so that values stay."""
    write_json_text(json.dumps(value, ensure_ascii=False, allow_nan=False))


def write_json_text(text: str) -> None:
    """`write_json` of what is JSON text already."""
    _write(visible_json(text))


def _write(text: str) -> None:
    if sys.stdout is None:
        raise OutputError("standard output is closed. Send it to a file, or to another program.")
    try:
        stream = sys.stdout.buffer
        stream.write(text.encode("utf-8", "backslashreplace") + b"\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        abandon_output()
        raise OutputError(
            f"standard output: cannot be written ({exc.strerror}). Free space, or send it to another place."
        ) from exc


def abandon_output() -> None:
    """Let what could not be written to standard output go, so that Python does not try again at its exit."""
    with suppress(OSError, ValueError, AttributeError):  # there may be none at all
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)


def clock(console: Console) -> Progress:
    """A line with a spinner and the time that has passed; nothing where there is no terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def counting(what: str, unit: str = "runs") -> Iterator[Callable[[int], None]]:
    """Shows how many there were so far. Call what it gives with the number."""
    with clock(people()) as progress:
        task = progress.add_task(what)

        def show(count: int) -> None:
            progress.update(task, description=f"{what}: {count:,} {unit}")

        yield show


class Working:
    """Shows how many pieces of long work are done, and which one is on; without a terminal, a line each tenth."""

    def __init__(self, progress: Progress, what: str, unit: str) -> None:
        self._progress, self._what, self._unit = progress, what, unit
        self._task = progress.add_task(what)
        self._done = ""

    def on_stage(self, name: str, detail: str = "") -> None:
        """What is being done now."""
        self._progress.update(self._task, description=f"{self._what}: {self._done}{name} {detail}".rstrip())

    def on_progress(self, done: int, total: int) -> None:
        """So many are done, of so many."""
        self._done = f"{done} of {total} {self._unit} done, "
        self.on_stage("")
        if not people().is_terminal and done % max(1, total // 10) == 0:
            say(f"{self._what}: {done} of {total} {self._unit} done")


@contextmanager
def working(what: str, unit: str) -> Iterator[Working]:
    """Long work on the terminal. what: its name. unit: its pieces, in the plural."""
    with clock(people()) as progress:
        yield Working(progress, what, unit)
