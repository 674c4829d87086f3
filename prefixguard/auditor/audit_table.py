"""Auditors of the same runs side by side, always beside what needs no auditor, on request beside published figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.auditor.audit_blocks import audit_blocks
from prefixguard.auditor.audit_summary import summary_blocks
from prefixguard.auditor.audited_system import AuditedSystem
from prefixguard.auditor.published import PublishedRow
from prefixguard.auditor.text_blocks import blocks_to_markdown, blocks_to_text
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.figures import Difference
from prefixguard.metrics import (
    ATTRIBUTION_FIGURES,
    Attribution,
    AuditCounts,
    Quartiles,
    attribution_differences,
    measure_attribution,
)
from prefixguard.results import finite


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One auditor. ahead: the table's first auditor minus this one, by figure; empty for the first itself, and where
    only trivial auditors are shown."""

    name: str
    figures: Attribution
    note: str
    trivial: bool
    hindsight: bool
    ahead: Mapping[str, Difference] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        figures = self.figures
        return {
            "name": self.name,
            "note": self.note,
            "trivial": self.trivial,
            "hindsight": self.hindsight,
            "counts": {name: getattr(figures.counts, name) for name in AuditCounts.__slots__},
            **{name: finite(getattr(figures, name)) for name in ATTRIBUTION_FIGURES},
            "delay": _quartiles_json(figures.delay),
            "lead": _quartiles_json(figures.lead),
            "deployable": figures.deployable,
            "intervals": {name: list(ends) for name, ends in figures.intervals.items()},
            "first_minus_this": {
                name: {"value": finite(one.value), "interval": None if one.interval is None else list(one.interval)}
                for name, one in self.ahead.items()
            },
        }


@dataclass(frozen=True, slots=True)
class AuditTable:
    """What an audit found. rows: auditors in the order given, then the trivial ones. notes: sentences at the end."""

    runs: int
    tasks: int
    rows: tuple[AuditRow, ...]
    published: tuple[PublishedRow, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None."""
        return {
            "runs": self.runs,
            "tasks": self.tasks,
            "systems": [row.as_json() for row in self.rows],
            "published": [row.as_json() for row in self.published],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """`as_json` as one line of text."""
        return json.dumps(self.as_json(), allow_nan=False, ensure_ascii=False)

    def to_text(self, full: bool = False) -> str:
        """Plain aligned text of at most 118 columns, ending without a newline.

        One block: the auditors and the trivial rows that are hardest to beat. full: every row, figure and difference.
        """
        return blocks_to_text(audit_blocks(self) if full else summary_blocks(self))

    def to_markdown(self) -> str:
        """Every row, figure and difference as Markdown, ending in a newline."""
        return blocks_to_markdown(audit_blocks(self))


def audit_table(
    systems: Sequence[AuditedSystem],
    baselines: Sequence[AuditedSystem],
    *,
    normalise: Callable[[str], str] | None = None,
    published: Sequence[PublishedRow] = (),
    notes: Sequence[str] = (),
    n_resamples: int = 1000,
    seed: int = 13,
) -> AuditTable:
    """Figures of auditors with intervals, and of the first against every other, paired by task.

    systems: auditors; may be none. baselines: `trivial_baselines` of the same runs; never none.
    normalise: as for `attribution`. published: `published_rows`.
    Raises ConfigError without a baseline or where two auditors have one name, DataError where runs differ.
    """
    if not baselines:
        raise ConfigError(
            "an audit table without trivial baselines: a fixed step or agent may do as well. Give trivial_baselines."
        )
    everyone = [*systems, *baselines]
    names = [system.name for system in everyone]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f'two auditors of a table are named "{twice[0]}". Give each a name of its own.')
    measured = [
        measure_attribution(system.rows, normalise=normalise, n_resamples=n_resamples, seed=seed) for system in everyone
    ]
    first = measured[0]
    for system, found in zip(everyone, measured, strict=True):
        if found.run_ids != first.run_ids:
            raise DataError(
                f'"{names[0]}" audited {len(first.run_ids):,} runs and "{system.name}" {len(found.run_ids):,}, or '
                "others. Give every auditor the same runs, and the baselines too."
            )
    rows = []
    for place, (system, found) in enumerate(zip(everyone, measured, strict=True)):
        ahead: dict[str, Difference] = {}
        if systems and place:
            ahead = {name: Difference(*one) for name, one in attribution_differences(first, found).items()}
        trivial = system.trivial or place >= len(systems)
        rows.append(AuditRow(system.name, found.figures, system.note, trivial, system.hindsight, ahead))
    return AuditTable(len(first.run_ids), len(first.tasks), tuple(rows), tuple(published), tuple(notes))


def _quartiles_json(quartiles: Quartiles) -> dict[str, Any]:
    parts = {name: finite(getattr(quartiles, name)) for name in ("median", "low", "high")}
    return {**parts, "runs": quartiles.runs}
