"""Does anything in the records tell what a live run could not know? By names, values, words, order and statistics."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.leak_events import find_judged_events, find_last_status
from prefixguard.induce.checks.leak_future import find_future
from prefixguard.induce.checks.leak_numbers import find_by_numbers
from prefixguard.induce.checks.leak_phrases import find_phrases
from prefixguard.induce.checks.leak_places import find_by_place
from prefixguard.induce.checks.leak_statistics import find_by_statistics
from prefixguard.induce.checks.leak_values import (
    find_hidden_texts,
    find_identities,
    find_lengths,
    find_outcome_left,
)
from prefixguard.induce.checks.waivers import Suspicion, settled

#: Each yields suspicions over the evidence.
SEARCHES = (
    find_by_place,
    find_outcome_left,
    find_phrases,
    find_hidden_texts,
    find_judged_events,
    find_last_status,
    find_lengths,
    find_identities,
    find_future,
    find_by_statistics,
    find_by_numbers,
)


def check_leaks(evidence: Evidence) -> list[Finding]:
    """All searches; what the spec waives by name is a note (see `waivers`)."""
    found = settled(_search(evidence), evidence)
    evidence.figures["leaks"] = sum(one.severity == "error" for one in found)
    return found


def _search(evidence: Evidence) -> Iterator[Suspicion]:
    for search in SEARCHES:
        yield from search(evidence)
