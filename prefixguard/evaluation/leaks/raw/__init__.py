"""Leaks that only the raw data and the spec of an adapter show: what is read from where, and what a judge wrote."""

from collections.abc import Iterator

from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.evaluation.leaks.raw.phrases import find_phrases
from prefixguard.evaluation.leaks.raw.places import find_by_place
from prefixguard.evaluation.leaks.raw.runs import MOST_WORDS, Leaf, RawRuns, RecordWords, SeenRun, covers, is_within
from prefixguard.evaluation.leaks.raw.values import (
    find_by_numbers,
    find_hidden_texts,
    find_judged_events,
    find_last_status,
    find_outcome_left,
)

__all__ = ["MOST_WORDS", "SEARCHES", "Leaf", "RawRuns", "RecordWords", "SeenRun", "covers", "find_in_raw", "is_within"]

#: Each looks for one kind of leak, in this order.
SEARCHES = (
    find_by_place,
    find_outcome_left,
    find_phrases,
    find_hidden_texts,
    find_judged_events,
    find_last_status,
    find_by_numbers,
)


def find_in_raw(raw: RawRuns) -> Iterator[LeakFinding]:
    """What all searches find, before anything is waived."""
    for search in SEARCHES:
        yield from search(raw)
