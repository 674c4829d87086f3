"""Blocks, of which every result is made for people; the terminal, the page and the Markdown are written from them.

All writers read the same blocks, so a figure cannot differ between them. Text in a block is plain text, perhaps from
runs: the writer escapes it. Only `Figure.svg` and `Cell.svg` are markup, drawn in this package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Tone = Literal["plain", "faint", "care", "fine"]
ColumnKind = Literal["text", "number", "words"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A title inside a section, or over the blocks that follow it."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph. tone: how it looks on the page; care: a warning."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Bullets:
    """Short sentences, one under another, under a title that may be empty. An item of several lines has its subject in
    the first, and the others under it."""

    items: tuple[str | tuple[str, ...], ...]
    title: str = ""

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The lines of each item."""
        return tuple((item,) if isinstance(item, str) else item for item in self.items)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. small: beside or under the text, as an interval; svg: a drawing for the page alone; why: what
    the page says of them where they are pointed at."""

    text: str = ""
    small: str = ""
    svg: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    kind: numbers are set to the right; words are long text, which wraps. short: its name in the terminal, where the
    full one has no room. For want of room the terminal leaves out the small part of its cells where it is brief, and
    the whole column where it is hidden.
    """

    name: str
    kind: ColumnKind = "text"
    short: str = ""
    brief: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows under columns; the first cell names its row. marked: rows that stand out."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        caption: str,
        head: Sequence[str | Column],
        rows: Sequence[Sequence[str | tuple[str, str] | Cell]],
        *,
        words: Collection[int] = (),
        marked: Collection[int] = (),
    ) -> TableBlock:
        """A table from plain rows, which are filled up where they are short.

        head: names or columns; a name is a column of text in the first place, of numbers in all others, and of long
        text in the places `words`. rows: a cell is its text, (text, small) or a `Cell`.

        >>> TableBlock.of("Runs", ["", "failed"], [["air", ("12.0 %", "[8, 15]")], ["retail"]]).rows[1]
        (Cell(text='retail', small='', svg='', why=''), Cell(text='', small='', svg='', why=''))
        """
        columns = tuple(
            one if isinstance(one, Column) else Column(one, "words" if i in words else "number" if i else "text")
            for i, one in enumerate(head)
        )
        return cls(caption, columns, tuple(_filled(row, len(columns)) for row in rows), frozenset(marked))

    @property
    def filled(self) -> list[int]:
        """Places of the columns that hold text: the first, and all that are not drawings alone or empty."""
        return [
            i
            for i in range(len(self.columns))
            if not i or not self.rows or any(r[i].text or r[i].small for r in self.rows)
        ]


def _filled(row: Sequence[str | tuple[str, str] | Cell], width: int) -> tuple[Cell, ...]:
    cells = [one if isinstance(one, Cell) else Cell(one) if isinstance(one, str) else Cell(*one) for one in row]
    return (*cells, *[Cell()] * (width - len(cells)))


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a figure's key: the class of a line or area in the style sheet, and what it is."""

    style: str
    name: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing. alt: what it shows, in words with numbers, for the other writers and for those who cannot see it.

    A drawing shrinks with a narrow page. broad: it shrinks only while it can be read, then it scrolls in its own box.
    wide: it never shrinks, and its steps can be pointed at.
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
    """Text whose columns matter, or a command. label: what it is, for those who cannot see it."""

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


Block: TypeAlias = "Heading | Text | Bullets | TableBlock | Figure | Image | Verbatim | Facts | Pair | Folded | Card"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page. key: its name in JSON and in links. data: its figures, plain values without NaN.

    missing: it holds one line that says why there is nothing to show.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The top of a page: a headline, a few sentences, and the figures they rest on. good: the result is good."""

    headline: str
    sentences: tuple[str, ...]
    facts: Facts
    good: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: its title, what it comes to, and its sections."""

    title: str
    summary: Summary
    sections: tuple[Section, ...]
