"""Numbers in words: the same digits in the terminal, on the page and in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float) -> str:
    """Three digits, without the zero before the point; a dash where there is no number.

    >>> number(0.5414), number(-0.02), number(1.0), number(float("nan"))
    ('.541', '-.020', '1.000', '–')
    """
    if not math.isfinite(value):
        return "–"
    text = f"{abs(value):.3f}"
    return ("-" if value < 0 else "") + (text[1:] if text.startswith("0.") else text)


def finite(value: float) -> float | None:
    """The number, or None, which JSON has a word for, where there is none.

    >>> finite(0.5), finite(float("nan"))
    (0.5, None)
    """
    return value if math.isfinite(value) else None


def signed(value: float) -> str:
    """The same with its sign always shown."""
    return ("+" if value >= 0 else "") + number(value)


def spread(ends: Sequence[float] | None, *, with_sign: bool = False) -> str:
    """An interval, or nothing.

    >>> spread((0.49, 0.6)), spread((-0.01, 0.2), with_sign=True), spread(None)
    ('[.490, .600]', '[-.010, +.200]', '')
    """
    if ends is None:
        return ""
    show = signed if with_sign else number
    return f"[{show(ends[0])}, {show(ends[1])}]"


def percent(value: float) -> str:
    """A share as per cent; a dash where there is no number.

    >>> percent(0.0561)
    '5.6 %'
    """
    return f"{100 * value:.1f} %" if math.isfinite(value) else "–"


def percents(ends: Sequence[float] | None) -> str:
    """An interval of a share, in whole per cent, or nothing."""
    return "" if ends is None else f"[{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"
