"""What a check found, and the waivers that make a suspicion a note.

A suspicion of a leak is an error until the spec waives it by name. `waived` of the spec names a raw path or a record
field, with a reason. A raw path waives what is found at that place or inside it; a field waives what is found in that
field. Neither waives the other: who reads the reward by a waived path still hears that a field tells the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from prefixguard.evaluation.leaks.raw import RawRuns, covers
from prefixguard.results import finite
from prefixguard.stepview import FIELDS, DataPlace

Severity = Literal["error", "warning", "note"]

#: Worst first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

#: What to do about the findings that checks make themselves, by kind; those of leaks come with theirs.
_REMEDIES = {
    "reads.unread": (
        "Narrow `container.files` if these are no runs; otherwise mend the part of the spec that the reason names."
    ),
    "reads.ungrouped": (
        'If they are part of a run, group by something that all lines have: another field, {"first": [...]}, or '
        '{"file": "stem"}.'
    ),
    "reads.empty": "They may be runs that crashed at once. If they have events, a rule has to take them.",
    "reads.labels": "Mend the labels.",
    "reads.ids": 'Build `run.id` from more fields, for instance with {"join": [{"file": "path"}, "$.id"]}.',
    "reads.skipped": 'Give them a rule; {"emit": "skip"} says that leaving them out is meant.',
    "reads.outcome": "Say under `run.outcome` where it is told, or give a file of labels; the rest is not trained on.",
    "reads.companions": 'Check the template of {"sibling": ...}, and that RUNS is a folder that holds those files too.',
    "reads.task": "Say under `run.task` what was asked: an id, or the text of the question.",
    "coverage": "Look at the places and kinds that are named beside this.",
    "coverage.kind": "Give them a rule that reads them; or skip them if the agent does not see them.",
    "coverage.place": "Read it if the agent sees it; name it under `hidden` if it is written after the run.",
    "doubling.text": (
        "Let one rule read it; an event that repeats the one before it is skipped (drop_repeats by its id)."
    ),
    "doubling.history": "Read only what is new in an event: its last message, not its whole input.",
    "joins.missing": (
        "Check call_id on both sides, or join by order; a result that stands in the call's own event is a `step`."
    ),
    "joins.late": 'Try "scope": "run", "mismatch": "else" or {"by": "order"} under `join`.',
    "joins.parallel": 'Read the list with "each": "@.tool_calls[*]", so that every call is a record.',
    "order.events": 'With "scope": "run" a call waits for those before it; otherwise this is a defect.',
    "sense.tool": "Read the tool from inside that text, or where it is named.",
    "sense.no_tool": "Say where the tool is named: --hint tool=PATH.",
    "sense.no_result": (
        "Say where results are (--hint result=PATH), or where calls and results have their ids (--hint call_id=PATH)."
    ),
    "sense.one_run": (
        "Say where runs begin: --hint runs=PATH. If it is one run in many files, give samples of several runs."
    ),
    "sense.runs_per_file": "Read a file as one run, and give its heading to `run`.",
    "sense.text": "Look at the places that are named beside this, and say what they are with --hint.",
    "stream.offline": 'For live use, replace it by a test of the event itself ("until").',
    "stream.window": "Events arrive too far out of order for the window: raise `window`.",
    "stream": (
        "Read nothing that is only there when the run is over: hidden and outcome places are not in the header of a "
        "live run, nor is the document (%)."
    ),
    "time": "Long regular expressions over whole events cost most: test a short field first, cut less.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person or a proposer should know of.

    check: the check, and after a dot the kind of finding ("leaks.verdict"). severity: an `error` means that the adapter
    must not be used as it is. what: a sentence. where: a raw path as the spec spells paths ("$.info.reward"), a record
    field ("status"), a part of the spec or a file. numbers: what was measured. remedy: what to do.
    option: the option of the command line that waives it; empty where it cannot be.
    """

    check: str
    severity: Severity
    what: str
    where: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    remedy: str = ""
    option: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; a figure that is no number is None."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "numbers": {name: finite(value) for name, value in self.numbers.items()}
        }


def finding(check: str, severity: Severity, what: str, where: str = "", /, **numbers: float) -> Finding:
    """A finding with the remedy of its kind."""
    return Finding(check, severity, what, where, numbers, _REMEDIES.get(check, ""))


def settled(one: Finding, raw: RawRuns, place: DataPlace | None = None) -> Finding:
    """The finding: a note with the reason if the spec waives it, else with the option that would.

    place: what it is about; None where it is about the record field that `where` names.
    """
    if one.severity == "note":
        return one
    waived = {entry["path"]: entry["reason"] for entry in raw.spec.get("waived", [])}
    reason = waived.get(one.where) if one.where in FIELDS else None
    if place is not None:
        is_waived = any(covers(other, place) for other in raw.adapter.program.readings.waived)
        reason = "; ".join(why for path, why in waived.items() if path not in FIELDS) if is_waived else None
    if reason is not None:
        return replace(one, severity="note", what=f"waived ({reason}): {one.what}")
    if place is None and one.where not in FIELDS:
        return one
    named = one.where if place is None else raw.spell(place)
    return replace(one, option=f"--waive '{named}=REASON'")


def waiving(spec: Mapping[str, Any], waive: Mapping[str, str]) -> dict[str, Any]:
    """The spec with these places waived too, path or field to reason; they have the last word."""
    kept = [one for one in spec.get("waived", []) if one.get("path") not in waive]
    added = [{"path": path, "reason": reason} for path, reason in waive.items()]
    return {**spec, "waived": kept + added} if waive else dict(spec)


def unused(waive: Iterable[str], findings: Iterable[Finding]) -> Iterator[Finding]:
    """A note on every waiver that met no finding: it may be misspelled. findings: as they are settled."""
    met = [one.where for one in findings if one.what.startswith("waived (")]
    # a place is spelled by its path, an event of a judge by its name
    places = [where for where in met if where not in FIELDS]
    for path in waive:
        if path not in met and (path in FIELDS or not any(w.startswith(path) or w[:1] not in "$@" for w in places)):
            what = f"{path!r} waived nothing: nothing was found there."
            yield Finding("leaks.waived", "note", what, path, remedy="See that it is spelled as a finding says it.")
