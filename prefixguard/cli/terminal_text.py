"""Text from outside on its way to a terminal or into a line of JSON: nothing that acts there, and nothing unseen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

#: Categories that are not shown: control and format characters (bidi marks, zero width, ZWJ too), lone surrogates,
#: private use, unassigned, separators of lines and paragraphs.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
#: Where they may be in JSON, which escapes the others itself.
_IN_JSON = re.compile("[\x7f-\U0010ffff]")


def visible(text: str) -> str:
    r"""Text that a terminal shows as it is: what acts on one, or cannot be seen, as its escape; lines stay, tabs are
    four spaces. Escaping twice is escaping once. An emoji joined by ZWJ is shown as its parts, with `\u200d` between.

    >>> visible("a\x1b[31m\nb\ttab \u202ec")
    'a\\x1b[31m\nb    tab \\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" or _is_seen(c) else c.encode("unicode_escape").decode("ascii")
        for c in text.replace("\t", "    ").replace("\r\n", "\n")
    )


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in _UNSEEN


def visible_json(text: str) -> str:
    r"""A JSON text with the same values, in which what cannot be seen stands as `\uXXXX`.

    >>> visible_json('["\x9b \u202e é"]')
    '["\\u009b \\u202e é"]'
    """
    if text.isprintable():
        return text
    return _IN_JSON.sub(lambda met: met[0] if met[0].isprintable() or _is_seen(met[0]) else _escape(met[0]), text)


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
