"""`prefixguard factory import | annotate | build`: corpora of labelled runs, from others and by models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.cli.command import command
from prefixguard.factory import import_set as import_published


@command("factory.import_set", json="Counts, and what was left out, as JSON.")
def import_set(name: str, runs: str, out: Path) -> Any:
    """Make a corpus of a published set of labelled runs: aftraj, aegis, mast, whoandwhen or tracertraj.

    Licences are heeded: a set that may not be trained on is marked so, and `factory build` leaves it out of training.

    Examples:

        prefixguard factory import whoandwhen Who_and_When/ whoandwhen.jsonl
        prefixguard factory import aftraj AFTraj/ aftraj.jsonl
        prefixguard audit whoandwhen.jsonl --model qwen --base-url http://localhost:8000/v1
    """
    return import_published(name, runs, out)
