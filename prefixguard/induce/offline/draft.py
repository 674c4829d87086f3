"""One way to read the samples, to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.plan_types import Plans
from prefixguard.induce.offline.rows import RowPlan
from prefixguard.induce.offline.source import Source
from prefixguard.induce.offline.units import Table, Unit
from prefixguard.induce.proposal import LeftOut, Mapped


@dataclass(slots=True)
class Draft:
    """One way to read the samples, to the end. quality: in [0, 1], see `quality_of`."""

    source: Source
    spec: dict[str, Any]
    quality: float
    table: Table
    units: list[Unit]
    plans: Plans | None
    rows: RowPlan | None
    mapped: list[Mapped]
    left_out: list[LeftOut]
