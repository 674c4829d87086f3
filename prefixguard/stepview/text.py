"""From any JSON value to text, and from any text to text of bounded length that is valid UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefixguard.stepview.jsontext import canonical

#: Put where text was cut. It holds no letter and no digit, so that no stage reads it as a word.
CUT_MARK = "\n[...]\n"

#: Code points kept of a field, head and tail, where a spec does not say.
DEFAULT_BUDGETS: dict[str, tuple[int, int]] = {
    "observation": (1200, 800),
    "action": (1200, 800),
    "arguments": (1500, 500),
    "result": (1200, 800),
}

#: Longest text that a regular expression of a record value sees; longer ones are cut to head and tail before.
LONGEST_SEARCHED = 65_536

#: Content blocks of one value that become text; where there are more, `CUT_MARK` replaces the rest.
MOST_BLOCKS = 10_000
#: Code points of them, together.
_MOST_CHARACTERS = 1 << 24
_DEEPEST, _DEAR = 8, 100

_MARKERS = {"image_url": "<image>", "input_image": "<image>", "input_audio": "<audio>", "input_file": "<file>"}


def repair(text: str) -> str:
    """The text with surrogate pairs joined and lone ones replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cut(text: str, head: int, tail: int) -> str:
    """At most head + tail code points of the text, with a mark where it was cut. Costs the same for any length.

    >>> cut("abcdefgh", 2, 1)
    'ab\\n[...]\\nh'
    """
    return cutter((head, tail))(text)


def cutter(budget: tuple[int, int]) -> Callable[[str], str]:
    """`cut` with its budget filled in."""
    head, tail = budget
    limit = head + tail

    def bounded(text: str) -> str:
        if len(text) > limit:
            text = text[:head] + CUT_MARK + (text[-tail:] if tail else "")
        return text if text.isascii() else repair(text)

    return bounded


def searchable(text: str) -> str:
    """The text, or its head and tail where it is too long to search while an agent waits."""
    if len(text) > LONGEST_SEARCHED:
        half = LONGEST_SEARCHED // 2
        return text[:half] + CUT_MARK + text[-half:]
    return text


def plain(text: str, limit: int) -> str:
    r"""Text from outside, made harmless for a terminal or a log: one line, control characters escaped, cut to `limit`.

    >>> plain("red\x1b[31m\n" + "x" * 50, 20)
    'red\\x1b[31m\\nxxxxxx…'
    """
    if len(text) > limit or not text.isprintable():
        text = text[: limit + 1].replace("\n", "\\n")  # the usual one, at once
        if not text.isprintable():
            text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def to_text(value: Any) -> str:
    """Text of a value: strings as they are, content blocks joined by newlines, other blocks as markers.

    >>> to_text([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "..."}}])
    'look\\n<image>'
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return _Blocks().text(value, 0)
    if isinstance(value, dict):
        return _Blocks().block(value, 0)
    return canonical(value)


class _Blocks:
    """Content blocks as text, in bounded work: lists may hold themselves, or the same list many times."""

    __slots__ = ("_characters", "_visits")

    def __init__(self) -> None:
        self._visits = MOST_BLOCKS
        self._characters = _MOST_CHARACTERS

    def text(self, blocks: list[Any], depth: int) -> str:
        if depth > _DEEPEST:
            self._visits -= _DEAR
            return canonical(blocks) if self._visits > 0 else ""
        parts = []
        for block in blocks:
            if self._visits <= 0 or self._characters <= 0:
                parts.append(CUT_MARK.strip())
                break
            self._visits -= 1
            if isinstance(block, dict):
                part = self.block(block, depth + 1)
            elif isinstance(block, list):
                part = self.text(block, depth + 1)
            else:
                part = to_text(block)
            if part:
                self._characters -= len(part)
                parts.append(part)
        return "\n".join(parts)

    def block(self, block: dict[str, Any], depth: int) -> str:
        text = block.get("text")
        if isinstance(text, str):
            return text
        if isinstance(text, dict) and isinstance(text.get("value"), str):
            return str(text["value"])
        content = block.get("content")
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            return self.text(content, depth + 1)
        kind = block.get("type")
        if not isinstance(kind, str):
            return canonical(block)
        own = block.get(kind) if kind in ("thinking", "refusal", "summary") else None
        return own if isinstance(own, str) else _MARKERS.get(kind, f"<{kind}>")
