"""What a report is made of: sections of blocks, which the page and the Markdown both show.

Both are written from the same blocks, so a figure cannot differ between them. Text in a block is plain text, perhaps
from runs: whoever writes it out escapes it. Only `Figure.svg` and `Cell.svg` are markup, drawn in this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Tone = Literal["plain", "faint", "care", "fine"]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. tone: how it looks; care: a warning."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Bullets:
    """Short sentences, one under another, under a title that may be empty."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. small: under the text, as an interval; svg: a drawing for the page alone."""

    text: str = ""
    small: str = ""
    svg: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; the first cell names its row.

    numbers: columns set to the right. marked: rows that stand out. words: columns of long text, which may wrap.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()
    words: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a figure's key: the class of a line or area in the style sheet, and what it is."""

    style: str
    name: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing. alt: what it shows, in words with numbers, for those who cannot see it and for Markdown.

    A drawing shrinks with the page. broad: down to where it can still be read, from there it scrolls in its own box;
    wide: not at all, and its steps can be pointed at.
    """

    svg: str
    alt: str
    caption: str
    key: tuple[Key, ...] = ()
    broad: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A picture made elsewhere, as SVG. It is shown as an image, where nothing in it can run or load anything."""

    svg: bytes
    alt: str


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text whose columns matter, or a command."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Name, value and meaning, to be seen at a glance."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Blocks side by side where there is room."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that open on a click; in print they stand open, but those of a card only where they were opened."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """An example: kind (a short word), a name, a line about it, and blocks. style: a class of the style sheet."""

    kind: str
    style: str
    name: str
    line: str
    blocks: tuple[Block, ...]


Block: TypeAlias = "Text | Bullets | Table | Figure | Image | Verbatim | Facts | Pair | Folded | Card"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. key: its name in JSON and in links. data: its figures, plain values without NaN."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The top of the report: a headline, three sentences, and the figures they rest on. good: whether to be glad."""

    headline: str
    sentences: tuple[str, ...]
    facts: Facts
    good: bool
