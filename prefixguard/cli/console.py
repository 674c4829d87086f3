"""Where output goes: data to standard output, a line at a time; everything for people to standard error.

Text from outside does nothing on a terminal or in a line of JSON, and nothing of it is unseen.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from prefixguard.errors import OutputError
from prefixguard.results import visible as visible

#: Where what cannot be seen may be in JSON, which escapes the rest of it itself.
_IN_JSON = re.compile("[\x7f-\U0010ffff]")


def visible_json(text: str) -> str:
    r"""A JSON text with the same values, in which what cannot be seen stands as `\uXXXX`.

    >>> visible_json('["\x9b \u202e é"]')
    '["\\u009b \\u202e é"]'
    """
    if text.isprintable():
        return text
    return _IN_JSON.sub(lambda met: met[0] if visible(met[0]) == met[0] else _escape(met[0]), text)


def _escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


class _Shown:
    """What a console prints, with its text made visible after it was laid out."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.inner, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _Hook(RenderHook):
    """Wraps whatever is printed: messages, tables and progress lines alike."""

    def process_renderables(self, renderables: Iterable[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """See `RenderHook`."""
        return [_Shown(one) for one in renderables]


def terminal(*, stderr: bool = False) -> Console:
    """A console for standard output or standard error that shows text as it is (no markup) and lets none act on it."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.push_render_hook(_Hook())
    return console


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
