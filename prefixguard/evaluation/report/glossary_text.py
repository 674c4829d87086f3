"""A glossary's Markdown back into paragraphs and tables.

It is the little Markdown that GLOSSARY.md is written in: headings, paragraphs, quotations, tables, code spans, emphasis
and backslashes. What it does not know stays in the text as it is: nothing here becomes markup.
"""

from __future__ import annotations

import re

from prefixguard.evaluation.report.plain_text import WORDS
from prefixguard.results import Block, Cell, Column, Folded, Kind, Table, Text, visible

_CODE = re.compile(r"(?<!\\)(`+)(.+?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(?<!\\)\*{1,2}")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BAR = re.compile(r"(?<!\\)\|")


def glossary_blocks(text: str) -> tuple[Block, ...]:
    r"""The blocks of a glossary; what stands under a heading of the second level is folded, the title is left out.

    >>> blocks = glossary_blocks("# T\n\nA *word*.\n\n| No. | Is |\n| ---: | --- |\n| 0 | `a` \\| b |\n\n## 0: a\n\nx")
    >>> [type(block).__name__ for block in blocks], blocks[0].text, blocks[1].rows[0][1].text
    (['Text', 'Table', 'Folded'], 'A word.', 'a | b')
    """
    top: list[Block] = []
    folded: list[tuple[str, list[Block]]] = []
    for part in re.split(r"\n\s*\n", visible(text).strip("\n")):
        into = folded[-1][1] if folded else top
        if part.startswith("## "):
            folded.append((_said(part[3:]), []))
        elif part.startswith("|"):
            into.append(_table(part, folded[-1][0] if folded else "Symbols"))
        elif part.startswith("> "):
            into.append(Text(_said(part[2:]), "care"))
        elif part.strip() and not part.startswith("# "):
            into.append(Text(_said(part)))
    return (*top, *(Folded(title, tuple(blocks)) for title, blocks in folded))


def _said(text: str) -> str:
    """Without its marks, on one line."""
    parts = []
    end = 0
    for code in _CODE.finditer(text):
        parts += [_ESCAPED.sub(r"\1", _EMPHASIS.sub("", text[end : code.start()])), code[2].replace("\\|", "|").strip()]
        end = code.end()
    parts.append(_ESCAPED.sub(r"\1", _EMPHASIS.sub("", text[end:])))
    return " ".join("".join(parts).split())


def _table(part: str, caption: str) -> Table:
    lines = [[cell.strip() for cell in _BAR.split(line.strip())[1:-1]] for line in part.split("\n")]
    head, ruler, body = lines[0], lines[1] if len(lines) > 1 else [], lines[2:]
    width = len(head)
    rows = tuple(tuple(Cell(_said(cell)) for cell in (line + [""] * width)[:width]) for line in body)
    longest = [max((len(row[i].text) for row in rows), default=0) for i in range(width)]
    numbers = frozenset(i for i, mark in enumerate(ruler[:width]) if i and mark.endswith(":"))
    words = frozenset(i for i in range(1, width) if longest[i] >= WORDS and i not in numbers)
    kinds: list[Kind] = ["number" if i in numbers else "words" if i in words else "text" for i in range(width)]
    columns = tuple(Column(_said(cell), kind) for cell, kind in zip(head, kinds, strict=True))
    return Table(caption, columns, rows)
