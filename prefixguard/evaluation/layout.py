"""Numbers and tables as plain text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

#: Columns that text is wrapped to.
WIDTH = 118


def wrapped(text: str) -> str:
    """A sentence on lines of at most `WIDTH` columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


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


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as text: the first column to the left, all others to the right, two spaces between.

    Short rows are filled up; a column that is empty in every row is dropped.

    >>> print(aligned([["", "AUPRC"], ["monitor", ".541"], ["step index"]]))
                AUPRC
    monitor      .541
    step index
    """
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    columns = [column for column in zip(*padded, strict=True) if any(column)]
    sizes = [max(len(cell) for cell in column) for column in columns]
    lines = []
    for row in zip(*columns, strict=True):
        first = row[0].ljust(sizes[0])
        rest = [cell.rjust(size) for cell, size in zip(row[1:], sizes[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)
