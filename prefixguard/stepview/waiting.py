"""Texts that wait: what a parser may keep of a run between two events, and the cut of what does not fit."""

from __future__ import annotations

from prefixguard.stepview.text import CUT_MARK

#: Bytes for all that waits: calls for their results, speech for its call, observations for the next step, and of text
#: formats the event in the making.
ROOM = 6_750
#: Code points that the budgets of observation, action and arguments may have together for `ROOM` to hold. An adapter
#: with wider ones is for readers that are no monitor; it gets room for all of them.
_WIDEST = 12_000
#: Least bytes that a text keeps.
SHORTEST = 96
#: Bytes of an object that holds a text: a string of Python, or UTF-8 with its place.
_TEXT, _PACKED_TEXT = 58, 150


def room_for(budgets: dict[str, tuple[int, int]]) -> int:
    """Bytes for what waits, with these budgets."""
    widest = sum(sum(budgets[name]) for name in ("observation", "action", "arguments"))
    return ROOM if widest <= _WIDEST else 4 * (widest + sum(budgets["result"]))


def body_for(budgets: dict[str, tuple[int, int]], room: int) -> tuple[int, int]:
    """Bytes that are kept of the head and the tail of an event of a text format: three times as many as the widest
    field has code points, as far as there is room."""
    head, tail = (3 * max(pair[side] for pair in budgets.values()) for side in (0, 1))
    most = room * 3 // 4
    if head + tail > most:
        head, tail = most * head // (head + tail), most * tail // (head + tail)
    return head, tail


def cost(text: str | None) -> int:
    """Bytes that a text takes besides its own while it waits."""
    if not text:
        return 0
    return _TEXT if text.isascii() else _PACKED_TEXT


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def level(sizes: list[int], room: int) -> int:
    """The most that every text may have, so that all together fit; `SHORTEST` at least.

    >>> level([10, 400, 900], 610)
    300
    """
    left = room
    for n, one in enumerate(sorted(sizes)):
        share = left // (len(sizes) - n)
        if one > share:
            return max(share, SHORTEST)
        left -= one
    return room


def cut_to(text: str, most: int) -> str:
    """The head and the tail of a text, in `most` bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    left = most - len(CUT_MARK)
    tail = left * 2 // 5
    return data[: left - tail].decode("utf-8", "ignore") + CUT_MARK + data[len(data) - tail :].decode("utf-8", "ignore")
