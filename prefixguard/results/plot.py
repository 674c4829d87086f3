"""A small plotting surface: data to SVG, colours left to the page's style sheet."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

Point = tuple[float, float]


class Plot:
    """Axes in the unit of the data over a drawing in pixels. What is drawn later lies on top.

    x, y: ranges of the data. width, height: pixels of the whole drawing. margins: left, top, right, bottom.
    """

    def __init__(
        self,
        x: Point,
        y: Point,
        *,
        width: float = 460,
        height: float = 300,
        margins: tuple[float, float, float, float] = (44, 12, 14, 42),
    ) -> None:
        self.width, self.height = width, height
        self.left, self.top = margins[0], margins[1]
        self.right, self.bottom = width - margins[2], height - margins[3]
        self._x, self._y = x, y
        self._parts: list[str] = []

    def across(self, value: float) -> float:
        """Pixels from the left."""
        low, high = self._x
        return self.left + (value - low) / ((high - low) or 1.0) * (self.right - self.left)

    def down(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self._y
        return self.bottom - (value - low) / ((high - low) or 1.0) * (self.bottom - self.top)

    def axes(
        self, x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]], x_name: str, y_name: str
    ) -> None:
        """A light grid, numbers at its ends, and what the axes are."""
        for value, said in y_ticks:
            y = self.down(value)
            self.add(
                f'<line class="grid" x1="{pixels(self.left)}" x2="{pixels(self.right)}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            self.text(self.left - 6, y + 4, said, anchor="end")
        for value, said in x_ticks:
            x = self.across(value)
            self.add(
                f'<line class="grid" y1="{pixels(self.bottom)}" y2="{pixels(self.bottom + 4)}" '
                f'x1="{x:.1f}" x2="{x:.1f}"/>'
            )
            self.text(x, self.bottom + 17, said, anchor="middle")
        self.add(
            f'<line class="axis" x1="{pixels(self.left)}" x2="{pixels(self.right)}" y1="{pixels(self.bottom)}" '
            f'y2="{pixels(self.bottom)}"/>'
        )
        if x_name:
            self.text((self.left + self.right) / 2, self.height - 6, x_name, anchor="middle", style="name")
        if y_name:
            middle = (self.top + self.bottom) / 2
            self.add(
                f'<text class="name" text-anchor="middle" transform="translate(12 {pixels(middle)}) rotate(-90)">'
                f"{html.escape(y_name)}</text>"
            )

    def line(self, points: Iterable[Point], style: str) -> None:
        """A line through points of the data. style: its class."""
        said = " ".join(f"{self.across(x):.1f},{self.down(y):.1f}" for x, y in points)
        self.add(f'<polyline class="line {style}" points="{said}"/>')

    def box(self, low: Point, high: Point, style: str) -> None:
        """A filled box between two corners, in data."""
        x, y = self.across(low[0]), self.down(high[1])
        width, height = self.across(high[0]) - x, self.down(low[1]) - y
        self.add(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}"/>')

    def dot(self, at: Point, style: str, radius: float = 3.5) -> None:
        """A filled circle."""
        self.add(
            f'<circle class="{style}" cx="{self.across(at[0]):.1f}" cy="{self.down(at[1]):.1f}" r="{radius:.1f}"/>'
        )

    def text(self, x: float, y: float, said: str, *, anchor: str = "start", style: str = "") -> None:
        """Text at pixels."""
        kind = f' class="{style}"' if style else ""
        self.add(f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(said)}</text>')

    def add(self, markup: str) -> None:
        """Markup as it is."""
        self._parts.append(markup)

    def svg(self, style: str = "plot") -> str:
        """The drawing. It has no name of its own: the figure around it has."""
        return (
            f'<svg class="{style}" viewBox="0 0 {pixels(self.width)} {pixels(self.height)}" '
            f'width="{pixels(self.width)}" height="{pixels(self.height)}" aria-hidden="true" focusable="false">'
            + "".join(self._parts)
            + "</svg>"
        )


def pixels(value: float) -> str:
    """A length in as few digits as it takes.

    >>> pixels(12.0), pixels(12.34)
    ('12', '12.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def shares(step: float = 0.25) -> list[tuple[float, str]]:
    """Ticks of a share from 0 to 1.

    >>> shares(0.5)
    [(0.0, '0'), (0.5, '.5'), (1.0, '1')]
    """
    n = round(1 / step)
    return [(i / n, f"{i / n:g}".replace("0.", ".")) for i in range(n + 1)]


def counts(top: float, most: int = 6) -> list[tuple[float, str]]:
    """Whole ticks from 0 to at least `top`, at most `most` steps.

    >>> counts(7)
    [(0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6'), (8.0, '8')]
    """
    size = 1
    for size in (base * 10**power for power in range(9) for base in (1, 2, 5)):
        if top <= size * (most - 1):
            break
    ticks = range(0, int(-(-max(top, 1) // size)) * size + 1, size)
    return [(float(value), f"{value:,}") for value in ticks]


def bar_chart(
    names: Sequence[str],
    bars: Sequence[Sequence[tuple[float, float, str]]],
    ticks: Sequence[tuple[float, str]],
    x_name: str,
    y_name: str,
    *,
    height: float,
    names_shown: int,
) -> str:
    """Bars next to each other, 720 pixels wide, as SVG.

    names: under each bar, at most `names_shown` of them. bars: the parts of each: from, to and style. ticks: of the
    upward axis, ascending; the first and the last are its ends. height: pixels.
    """
    plot = Plot((0.0, float(len(names))), (ticks[0][0], ticks[-1][0]), width=720, height=height)
    every = max(1, -(-len(names) // names_shown))
    plot.axes([(i + 0.5, said) for i, said in enumerate(names) if i % every == 0], ticks, x_name, y_name)
    for i, parts in enumerate(bars):
        for low, high, style in parts:
            plot.box((i + 0.06, low), (i + 0.94, high), style)
    return plot.svg()
