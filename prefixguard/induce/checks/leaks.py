"""Does anything in the records tell what a live run could not know?

The records themselves are audited as `check-data` does it (`evaluation.leaks`). What only the adapter and the raw data
show is looked at here: names of places, values of hidden ones, events of a judge, sentences of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from prefixguard.evaluation.leaks import GIVEN, find_leaks
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.leak_events import find_judged_events, find_last_status
from prefixguard.induce.checks.leak_numbers import find_by_numbers
from prefixguard.induce.checks.leak_phrases import find_phrases
from prefixguard.induce.checks.leak_places import find_by_place
from prefixguard.induce.checks.leak_values import find_hidden_texts, find_outcome_left
from prefixguard.induce.checks.waivers import Suspicion, settled
from prefixguard.induce.names import Meaning, affinity
from prefixguard.stepview import FIELDS, StepRecord
from prefixguard.trace import Run

#: What a step cap or a group tells is a thing of the runs, which `check-data` says; no adapter can mend it.
_OF_THE_RUNS = "shortcut"


def check_leaks(evidence: Evidence) -> list[Finding]:
    """All searches; what the spec waives by name is a note (see `waivers`)."""
    found = settled(_search(evidence), evidence)
    evidence.figures["leaks"] = sum(one.severity == "error" for one in found)
    return found


def _search(evidence: Evidence) -> Iterator[Suspicion]:
    for search in SEARCHES:
        yield from search(evidence)


def find_in_records(evidence: Evidence) -> Iterator[Suspicion]:
    """What the leak audit finds in the records of the sample, uncut."""
    given = FIELDS if evidence.spec.get("view") == "raw" else GIVEN  # the control has all text in one field
    for one in find_leaks(map(_named, evidence.seen), given=given):
        if one.kind != _OF_THE_RUNS:
            yield Suspicion(Finding(f"leaks.{one.kind}", one.severity, one.text, one.field, one.figures))


def _named(seen: SeenRun) -> Run[StepRecord]:
    """The run with its uncut records; names of its file and of who ran it are groups, for the audit to look for.

    Each run counts as a task of its own: samples are of few tasks, and what an adapter lets through is in all of them.
    """
    names = {"file": PurePosixPath(seen.scope.file).name.split(".")[0]} if seen.scope.file else {}
    for key, value in seen.scope.run.items() if isinstance(seen.scope.run, dict) else ():
        is_text = isinstance(key, str) and isinstance(value, str)
        if is_text and max(affinity(key, Meaning.MODEL), affinity(key, Meaning.RUN_ID)) >= 1.0:
            names[f"$.{key}"] = value
    return replace(seen.run, task_id=None, records=seen.wide, groups={**names, **seen.run.groups})


#: Each yields suspicions over the evidence.
SEARCHES = (
    find_by_place,
    find_outcome_left,
    find_phrases,
    find_hidden_texts,
    find_judged_events,
    find_last_status,
    find_by_numbers,
    find_in_records,
)
