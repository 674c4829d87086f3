"""Blocks as plain text for a terminal: `WIDTH` columns, no colours, nothing in it that acts on one.

A paragraph begins on a new line, directly under the paragraph or table before it; all other blocks have an empty line
above them. Figures and pictures are replaced by their alternative text.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from prefixguard.results.blocks import (
    Block,
    Bullets,
    Card,
    Facts,
    Figure,
    Folded,
    Heading,
    Image,
    Pair,
    TableBlock,
    Text,
    Verbatim,
)

#: Columns that text is wrapped to.
WIDTH = 118
#: Columns that a cell of text keeps, at least, where its table has to be squeezed.
NARROWEST = 14
_GAP = 2
#: Categories that are not shown: control and format characters (bidi marks, zero width, ZWJ too), lone surrogates,
#: private use, unassigned, separators of lines and paragraphs.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def to_text(blocks: Sequence[Block]) -> str:
    """The blocks as text of at most `WIDTH` columns, ending without a newline.

    >>> print(to_text([Text("2 runs."), TableBlock.of("Runs", ["", "AUPRC"], [["air", (".541", "[.490, .600]")]])]))
    2 runs.
    <BLANKLINE>
    Runs
         AUPRC
    air   .541 [.490, .600]
    """
    lines: list[str] = []
    before: Block | None = None
    for block in _flat(blocks):
        told = "\n".join(line.rstrip() for line in visible(_written(block)).split("\n"))
        if not told:
            continue
        below = isinstance(block, Text) and isinstance(before, Text | TableBlock | Heading)
        if before is not None and not below and not isinstance(before, Heading):
            lines.append("")
        lines.append(told)
        before = block
    return "\n".join(lines)


def wrapped(text: str, *, hanging: str = "") -> str:
    """A sentence on lines of at most `WIDTH` columns. hanging: what every line but the first begins with."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=hanging)


def visible(text: str) -> str:
    r"""Text that a terminal shows as it is: what acts on one, or cannot be seen, as its escape; lines stay, tabs are
    four spaces. Escaping twice is escaping once. An emoji joined by ZWJ is shown as its parts, with `\u200d` between.

    >>> visible("a\x1b[31m\nb\ttab \u202ec")
    'a\\x1b[31m\nb    tab \\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        c
        if c.isprintable() or c == "\n" or unicodedata.category(c) not in _UNSEEN
        else c.encode("unicode_escape").decode("ascii")
        for c in text.replace("\t", "    ").replace("\r\n", "\n")
    )


def _flat(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks inside others one after another, under their titles."""
    for block in blocks:
        match block:
            case Pair():
                yield from _flat(block.blocks)
            case Folded():
                yield Heading(block.summary)
                yield from _flat(block.blocks)
            case Card():
                yield Heading(f"{block.kind}: {block.name}")
                yield Text(block.line)
                yield from _flat(block.blocks)
            case _:
                yield block


def _written(block: Block) -> str:
    match block:
        case Heading() | Text():
            return wrapped(visible(block.text))
        case Bullets():
            items = [
                wrapped(f"{'  ' if at else '- '}{visible(line)}", hanging="  ")
                for lines in block.lines
                for at, line in enumerate(lines)
            ]
            return "\n".join([wrapped(visible(block.title)), *items] if block.title else items)
        case TableBlock():
            caption = [wrapped(visible(block.caption))] if block.caption else []
            return "\n".join([*caption, *_table(block)])
        case Facts():
            facts = (f"{what}: {value} {said}".rstrip() for what, value, said in block.items)
            return "\n".join(wrapped(visible(fact), hanging="  ") for fact in facts)
        case Figure():
            return wrapped(visible(": ".join(part for part in (block.caption, block.alt) if part)))
        case Image():
            return wrapped(visible(block.alt))
        case Verbatim():
            return block.text
        case _:
            return ""


def _table(table: TableBlock) -> Iterator[str]:
    """Small parts in a column of their own beside their figures; empty columns and a head without a word left out."""
    columns: list[_Column] = []
    for i in table.filled:
        column = table.columns[i]
        if column.hidden:
            continue
        head, right = _one_line(column.short or column.name), column.kind == "number"
        columns.append(_Column([head, *(_one_line(row[i].text) for row in table.rows)], right))
        small = [_one_line(row[i].small) for row in table.rows]
        if any(small) and not column.brief:
            columns.append(_Column(["", *small], True, gap=1 if right else _GAP))
    if not _squeeze(columns):
        yield from _stacked([*zip(*(column.cells for column in columns), strict=True)])
        return
    for row in zip(*(column.cells for column in columns), strict=True):
        folded = [_folded(cell, column.size) for cell, column in zip(row, columns, strict=True)] if any(row) else []
        for parts in zip_longest(*folded, fillvalue=""):
            yield "".join(column.set(part) for column, part in zip(columns, parts, strict=True))[_GAP:]


@dataclass
class _Column:
    """A column as it is laid out. gap: blanks before it."""

    cells: list[str]
    right: bool
    gap: int = _GAP
    size: int = 0

    def set(self, part: str) -> str:
        return " " * self.gap + (part.rjust(self.size) if self.right else part.ljust(self.size))


def _squeeze(columns: Sequence[_Column]) -> bool:
    """Sets widths: as wide as columns are, or with those of text squeezed. False where nothing helps."""
    for column in columns:
        column.size = max(map(len, column.cells))
    room = WIDTH + _GAP - sum(column.gap for column in columns)
    if sum(column.size for column in columns) <= room:
        return True
    soft = sorted((column for column in columns if not column.right), key=lambda column: column.size)
    room -= sum(column.size for column in columns if column.right)
    for place, column in enumerate(soft):  # the narrow ones first: what they do not need is left to the wide
        share = room // (len(soft) - place)
        if share < min(NARROWEST, column.size):
            return False
        column.size = min(column.size, share)
        room -= column.size
    return bool(soft)


def _stacked(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table that is too wide: every row as lines of its own, a figure a line."""
    head, *body = rows
    for row in body:
        told: list[tuple[str, list[str]]] = []
        for name, cell in zip(head, row, strict=True):
            if name or not told:
                told.append((name, []))
            told[-1][1].extend([cell] if cell else [])  # a part without a head belongs to the figure before it
        yield wrapped(" ".join(told[0][1]))
        yield from (wrapped(f"  {name}: {' '.join(parts)}", hanging="    ") for name, parts in told[1:] if parts)


def _folded(cell: str, size: int) -> list[str]:
    return [cell] if len(cell) <= size else textwrap.wrap(cell, size, break_on_hyphens=False)


def _one_line(text: str) -> str:
    """Text of a cell; blanks at its start, which set a row in, are kept."""
    return visible(text).replace("\n", " ").rstrip()
