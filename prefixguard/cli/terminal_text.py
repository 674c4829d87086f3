"""Text from outside on its way to a terminal or into a line of JSON: nothing that acts there, and nothing unseen."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

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
