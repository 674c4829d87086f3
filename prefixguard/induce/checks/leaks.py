"""Does anything in the records tell what a live run could not know? Asked of the leak audit (`evaluation.leaks`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from prefixguard.evaluation.leaks import GIVEN, LeakFinding, find_in_raw, find_leaks
from prefixguard.evaluation.leaks.raw import SeenRun
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.waivers import settled
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import FIELDS, StepRecord
from prefixguard.trace import Run


def check_leaks(evidence: Evidence) -> list[Finding]:
    """Raw places and uncut records of the sample; what the spec waives by name is a note (see `waivers`)."""
    found = settled(((_of_check(one), one.place) for one in _search(evidence)), evidence)
    evidence.figures["leaks"] = sum(one.severity == "error" for one in found)
    return found


def _search(evidence: Evidence) -> Iterator[LeakFinding]:
    yield from find_in_raw(evidence)
    given = FIELDS if evidence.spec.get("view") == "raw" else GIVEN  # the control has all text in one field
    for one in find_leaks(map(_named, evidence.seen), given=given):
        if one.kind != "shortcut":  # of the runs, which `check-data` says; no adapter can mend it
            yield one


def _of_check(one: LeakFinding) -> Finding:
    return Finding(f"leaks.{one.kind}", one.severity, one.text, one.field, one.figures, one.remedy)


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
