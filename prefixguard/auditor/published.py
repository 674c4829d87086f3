"""Published figures of auditors, each with its source and why it cannot simply be set beside another."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.results import Block, TableBlock, Text, fields_of, percent


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One system on one test set, as printed by its authors. NaN: they do not say.

    test: the set, such as "whoandwhen/hand-crafted". agent, step, exact_f1, false_alarm_rate: shares in [0, 1].
    ass: steps. source: paper and table. caveats: what has to be known before it is compared, a sentence or two each.
    """

    system: str
    test: str
    agent: float
    step: float
    exact_f1: float
    ass: float
    false_alarm_rate: float
    source: str
    caveats: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; NaN is None."""
        return fields_of(self)


def published_rows(test: str = "") -> tuple[PublishedRow, ...]:
    """The rows of a test set, or of all whose names begin so, in the order of the file; "": all.

    Raises ConfigError where there is none.

    >>> [round(row.step, 4) for row in published_rows("whoandwhen/hand") if row.system == "random (corrected)"]
    [0.0416]
    """
    rows = tuple(row for row in _all_rows() if row.test.startswith(test))
    if not rows:
        known = ", ".join(dict.fromkeys(row.test for row in _all_rows()))
        raise ConfigError(f'no published figures of "{test}": there are some of {known}.')
    return rows


@cache
def _all_rows() -> tuple[PublishedRow, ...]:
    text = (resources.files("prefixguard.auditor") / "published.json").read_text(encoding="utf-8")
    table = json.loads(text)

    def share(value: float | None) -> float:
        return math.nan if value is None else round(value / 100, 6)

    shares = ("agent", "step", "exact_f1", "false_alarm_rate")
    return tuple(
        PublishedRow(
            **row
            | {name: share(row[name]) for name in shares}
            | {"ass": math.nan if row["ass"] is None else row["ass"]}
            | {"caveats": tuple(table["caveats"][name] for name in row["caveats"])}
        )
        for row in table["rows"]
    )


def published_blocks(rows: Sequence[PublishedRow]) -> Iterator[Block]:
    """Published figures with their caveats and sources; nothing without a row."""
    if not rows:
        return
    letters: dict[str, str] = {}
    sources: dict[str, dict[str, None]] = {}
    for row in rows:
        sources.setdefault(row.source, {})[row.system] = None
        for caveat in row.caveats:
            letters.setdefault(caveat, chr(ord("a") + len(letters) % 26))
    head = ("", "test", "Exact-F1", "Step-Acc", "Agent-Acc", "ASS", "FAR", "but")
    cells = [
        (
            row.system,
            row.test,
            percent(row.exact_f1),
            percent(row.step),
            percent(row.agent),
            f"{row.ass:.2f}" if math.isfinite(row.ass) else "–",
            percent(row.false_alarm_rate),
            "".join(sorted(letters[caveat] for caveat in row.caveats)),
        )
        for row in rows
    ]
    yield TableBlock.of("Published, and not of the same protocol or runs", head, cells)
    for caveat, letter in letters.items():
        yield Text(f"{letter}: {caveat}")
    for source, systems in sources.items():
        yield Text(f"Source of {', '.join(systems)}: {source}.")
