"""`prefixguard factory import | annotate | build`: corpora of labelled runs, from others and by models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.cli.command import command
from prefixguard.cli.progress import Activity
from prefixguard.factory import build as build_rows
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


@command("factory.build", json="Counts, and what was left out, as JSON.")
def build(corpora: list[Path], **given: Any) -> Any:
    """Make the rows that an auditor is trained and tested on, of corpora of labelled runs.

    A failed run is cut before its decisive step and at it; a successful one at the same length stands beside it. Every
    prompt is the one that `audit --protocol online` sends. Families of runs stand on one side; what may not be trained
    on, or stands in a test set, is not trained on; and what is left out is counted.

    Examples:

        prefixguard factory build injected.jsonl safe.jsonl --out rows
        prefixguard factory build mine.jsonl aftraj.jsonl --against whoandwhen.jsonl --out rows
        prefixguard factory build runs.jsonl --kind unverified=FM-3.2 --kind gave_up=FM-3.1 --out rows
    """
    with Activity("Building") as work:
        return build_rows(corpora, on_progress=work.on_progress, **given)
