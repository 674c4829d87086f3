"""Blocks as Markdown: the same figures as the page, drawings in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from prefixguard.results.blocks import (
    Block,
    Bullets,
    Card,
    Cell,
    Facts,
    Figure,
    Folded,
    Heading,
    Image,
    Page,
    Pair,
    TableBlock,
    Text,
    Verbatim,
)
from prefixguard.results.text import visible

#: What could begin markup, a link, an image or a cell inside a line; underscores inside words cannot.
_SPECIAL = re.compile(r"([\\`*\[\]<#|~&!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\.|:(?=//))", re.IGNORECASE)
#: What could begin a list, a heading, a quotation or a rule.
_START = re.compile(r"^(\d*)(>|[+-](?=[\s+-]|$)|(?<=\d)[.)](?=\s|$))")
_TICKS = re.compile("`+")


def to_markdown(blocks: Sequence[Block], *, level: int = 2) -> str:
    """Blocks as Markdown, ending in a newline. Text from runs forms no markup, no link and no image.

    level: of the headings, from 1.

    >>> print(to_markdown([TableBlock.of("Runs", ["", "AUPRC"], [["a|b", (".541", "[.490, .600]")]])]), end="")
    **Runs**
    <BLANKLINE>
    |  | AUPRC |
    | --- | ---: |
    | a\\|b | .541 \\[.490, .600\\] |
    """
    return _joined(_inside(blocks, level))


def page_markdown(page: Page) -> str:
    """A whole page as Markdown: the same figures as its page, drawings in words."""
    summary = page.summary
    lines = [f"# {escaped(page.title)}", "", f"**{escaped(summary.headline)}.**", ""]
    for sentence in summary.sentences:
        lines += [escaped(sentence), ""]
    lines += [*_block(summary.facts, 3), ""]
    for section in page.sections:
        lines += [f"## {escaped(section.title)}", "", *_inside(section.blocks, 3)]
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def escaped(text: str) -> str:
    r"""Text as Markdown shows it as it is, on one line.

    >>> print(escaped("a|b *c* snake_case"), escaped("- no list"), escaped("1. nor this"), escaped("-.214"), sep="; ")
    a\|b \*c\* snake_case; \- no list; 1\. nor this; -.214
    """
    line = " ".join(visible(text).split())
    return _START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", line))


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * level} {escaped(block.text)}"
        case Text():
            yield f"> {escaped(block.text)}" if block.tone == "care" else escaped(block.text)
        case Bullets():
            if block.title:
                yield escaped(block.title)
                yield ""
            for first, *under in block.lines:
                yield f"- {escaped(first)}"
                yield from (f"  - {escaped(line)}" for line in under)
        case TableBlock():
            yield from _table(block)
        case Figure():
            yield f"*Drawing.* {escaped(block.alt)}"
        case Image():
            yield f"*Picture.* {escaped(block.alt)}"
        case Verbatim():
            fence = "`" * max(3, max((len(found) for found in _TICKS.findall(block.text)), default=0) + 1)
            yield f"{fence}text"
            yield visible(block.text)
            yield fence
        case Facts():
            yield from (f"- {escaped(what)}: **{escaped(value)}** {escaped(said)}" for what, value, said in block.items)
        case Pair():
            yield from _inside(block.blocks, level)
        case Folded():
            yield f"**{escaped(block.summary)}**"
            yield ""
            yield from _inside(block.blocks, level)
        case Card():
            yield f"{'#' * level} {escaped(block.kind)}: {escaped(block.name)}"
            yield ""
            yield escaped(block.line)
            yield ""
            yield from _inside(block.blocks, level + 1)


def _inside(blocks: Sequence[Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, level)
        yield ""


def _table(table: TableBlock) -> Iterator[str]:
    """Columns that hold nothing but drawings are left out."""
    kept = table.filled
    if table.caption:
        yield f"**{escaped(table.caption)}**"
        yield ""
    yield f"| {' | '.join(escaped(table.columns[i].name) for i in kept)} |"
    yield f"| {' | '.join('---:' if table.columns[i].kind == 'number' else '---' for i in kept)} |"
    for place, row in enumerate(table.rows):
        cells = [_cell(row[i]) for i in kept]
        if place in table.marked and cells[0]:
            cells[0] = f"**{cells[0]}**"
        yield f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    return " ".join(escaped(part) for part in (cell.text, cell.small) if part)
