"""A table with a title and lines below it, as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.results import aligned, escaped, wrapped

#: Columns that a name may fill.
NAME_WIDTH = 25


@dataclass(frozen=True, slots=True)
class TextBlock:
    """cells: rows, the head first; a column that is empty in every row is not shown. below: sentences."""

    title: str
    cells: tuple[tuple[str, ...], ...]
    below: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Plain aligned text, without a newline at the end."""
        parts = [wrapped(self.title)] if self.title else []
        if self.cells:
            parts.append(aligned([(cut(row[0]), *row[1:]) for row in self.cells]))
        return "\n".join([*parts, *(wrapped(line) for line in self.below)])

    def to_markdown(self) -> str:
        """Title, table and lines as Markdown; names form no markup."""
        parts = [f"**{escaped(self.title)}**"] if self.title else []
        if self.cells:
            width = max(len(row) for row in self.cells)
            rows = [(*row, *[""] * (width - len(row))) for row in self.cells]
            kept = [place for place in range(width) if any(row[place] for row in rows)]
            head, *rest = [f"| {' | '.join(escaped(row[place]) for place in kept)} |" for row in rows]
            rule = f"| {' | '.join('---' if place == 0 else '---:' for place in kept)} |"
            parts.append("\n".join([head, rule, *rest]))
        return "\n\n".join([*parts, *(escaped(line) for line in self.below)])


def cut(name: str) -> str:
    """A name of at most `NAME_WIDTH` columns."""
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"


def blocks_to_text(blocks: Sequence[TextBlock]) -> str:
    """Blocks with an empty line between, without a newline at the end."""
    return "\n\n".join(block.to_text() for block in blocks)


def blocks_to_markdown(blocks: Sequence[TextBlock]) -> str:
    """Blocks as Markdown, ending in a newline."""
    return "\n\n".join(block.to_markdown() for block in blocks) + "\n"
