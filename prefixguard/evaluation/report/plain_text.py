"""Plain text of a result back into paragraphs and tables.

Results print themselves for a terminal: sentences folded at `WIDTH` columns, and tables that `aligned` set, under a
title. Both can be undone: a line that was broken although its next word had room was ended on purpose; and between two
columns of a table there are two blanks in every row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prefixguard.results import WIDTH, Block, Cell, Table, Text, Verbatim, visible

#: Letters from which a cell counts as words, not as a figure.
WORDS = 24

_GAP = re.compile(r"\S {2,}\S")
_CARE = re.compile(r"(ERROR|WARNING|CAUTION|Audit with care)\b")


def text_blocks(text: str, label: str) -> tuple[Block, ...]:
    r"""Blocks of a text, parted at empty lines. label: names what has no title of its own.

    >>> [type(block).__name__ for block in text_blocks("A sentence\non two lines.\n\nTitle\na    1\nb    2", "x")]
    ['Text', 'Text', 'Table']
    """
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", visible(text).strip("\n")):
        lines = [line.rstrip() for line in part.split("\n")]
        if any(_GAP.search(line) for line in lines):
            blocks += _columns(lines, label)
        elif part.startswith(" "):
            blocks.append(Verbatim("\n".join(lines), label))
        elif part.strip():
            blocks += [Text(said, "care" if _CARE.match(said) else "plain") for said in _sentences(lines)]
    return tuple(blocks)


def _sentences(lines: Sequence[str]) -> list[str]:
    """What `wrapped` folded, unfolded."""
    found: list[list[str]] = []
    before = ""
    for line in lines:
        word = line.split(" ", 1)[0]
        if not found or len(before) + 1 + len(word) <= WIDTH:
            found.append([])
        found[-1].append(line.strip())
        before = line
    return [" ".join(said) for said in found]


def _columns(lines: Sequence[str], label: str) -> list[Block]:
    """A table with the lines above and below it; as it is where its columns cannot be told."""
    inside = [i for i, line in enumerate(lines) if _GAP.search(line) or line.startswith(" ")]
    first, last = inside[0], inside[-1] + 1
    title = _sentences(lines[:first])
    rows = _cells(lines[first:last])
    if len(rows) < 2 or len(rows[0]) < 2:
        return [Verbatim("\n".join(lines), label)]
    blocks: list[Block] = [Text(said) for said in title[:-1]]
    blocks.append(_table(rows, title[-1] if title else label))
    return blocks + [Text(said, "faint") for said in _sentences(lines[last:])]


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Cut where two columns of characters in a row are blank in all lines."""
    width = max(len(line) for line in lines)
    padded = [line.ljust(width) for line in lines]
    blank = [all(line[i] == " " for line in padded) for i in range(width)]
    starts = [0]
    for i in range(2, width):
        if not blank[i] and blank[i - 1] and blank[i - 2]:
            starts.append(i)
    # The first column may be set to the left with an empty head: its start is the start of the line.
    if len(starts) > 1 and all(blank[: starts[1]]):
        del starts[1]
    ends = [*starts[1:], width]
    return [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in padded]


def _table(rows: list[list[str]], caption: str) -> Table:
    """An interval without a head of its own goes under the figure before it."""
    head, body = rows[0], rows[1:]
    under = {
        i
        for i in range(2, len(head))
        if not head[i] and all(row[i].startswith(("[", "(")) or not row[i] for row in body)
    }
    kept = [i for i in range(len(head)) if i not in under]
    cells = tuple(tuple(Cell(row[i], row[i + 1] if i + 1 in under else "") for i in kept) for row in body)
    longest = [max(len(row[place].text) for row in cells) for place in range(len(kept))]
    return Table.of(
        caption,
        [head[i] for i in kept],
        cells,
        words={place for place in range(1, len(kept)) if longest[place] >= WORDS},
        marked={place for place, row in enumerate(cells) if row[0].text == "monitor"},
    )
