"""A suspicion of a leak is an error until the spec waives it by name.

`waived` of the spec names a raw path or a record field, with a reason. A raw path waives what is found at that place
or inside it; a field waives what is found in that field. Neither waives the other: who reads the reward by a waived
path still hears that a field tells the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import FIELDS, Place, overlaps


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A finding, and the place it is about; None where it is about the record field that `finding.where` names."""

    finding: Finding
    place: Place | None = None


def settled(suspicions: Iterable[Suspicion], evidence: Evidence) -> list[Finding]:
    """The findings, those that the spec waives as notes with its reason."""
    waived = evidence.spec.get("waived", [])
    fields = {entry["path"]: entry["reason"] for entry in waived if entry["path"] in FIELDS}
    paths = [entry["reason"] for entry in waived if entry["path"] not in FIELDS]
    places = evidence.adapter.program.readings.waived
    found = []
    for one in suspicions:
        reason = None
        if one.place is not None:
            for place in places:
                if len(place.steps) <= len(one.place.steps) and overlaps(place, one.place):
                    reason = "; ".join(paths)
                    break
        else:
            reason = fields.get(one.finding.where)
        finding = one.finding
        if reason is not None and finding.severity != "note":
            finding = replace(finding, severity="note", what=f"waived ({reason}): {finding.what}")
        found.append(finding)
    return found
