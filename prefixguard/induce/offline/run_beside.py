"""Files that stand beside the runs, under one template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefixguard.induce.samples import SampleFile


@dataclass(frozen=True)
class Beside:
    """Companion files under one template. files: of each run, None where there is none. needs: see OutcomeCandidate."""

    template: str
    files: tuple[SampleFile | None, ...]
    needs: tuple[tuple[str, Any], ...] = ()

    @property
    def coverage(self) -> float:
        return sum(1 for file in self.files if file is not None) / max(1, len(self.files))

    @property
    def is_shared(self) -> bool:
        """Is one file for many runs?"""
        there = [file.path for file in self.files if file is not None]
        return len(set(there)) <= max(1, 0.34 * len(there)) and len(there) > 1
