"""A suspicion of a leak is an error until the spec waives it by name.

`waived` of the spec names a raw path or a record field, with a reason. A raw path waives what is found at that place
or inside it; a field waives what is found in that field. Neither waives the other: who reads the reward by a waived
path still hears that a field tells the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from prefixguard.evaluation.leaks.raw import covers
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import FIELDS, DataPlace


def waiving(spec: Mapping[str, Any], waive: Mapping[str, str]) -> dict[str, Any]:
    """The spec with these places waived too, path or field to reason; they have the last word."""
    if not waive:
        return dict(spec)
    kept = [one for one in spec.get("waived", []) if one.get("path") not in waive]
    return {**spec, "waived": [*kept, *({"path": path, "reason": reason} for path, reason in waive.items())]}


def unused(waive: Mapping[str, str], findings: Iterable[Finding]) -> list[Finding]:
    """A note on every waiver that met no finding: it may be misspelled. findings: as they are settled."""
    met = [one.where for one in findings if one.what.startswith("waived (")]
    places = [where for where in met if where not in FIELDS]
    notes = []
    for path in waive:
        # a place is spelled by its path, an event of a judge by its name
        used = path in met or (path not in FIELDS and any(w.startswith(path) or w[:1] not in "$@" for w in places))
        if not used:
            what = f"{path!r} waived nothing: nothing was found there."
            notes.append(
                Finding("leaks.waived", "note", what, path, remedy="See that it is spelled as a finding says it.")
            )
    return notes


def settled(found: Iterable[tuple[Finding, DataPlace | None]], evidence: Evidence) -> list[Finding]:
    """The findings, those that the spec waives as notes with its reason.

    found: each with the place it is about; None where it is about the record field that `Finding.where` names.
    """
    waived = evidence.spec.get("waived", [])
    fields = {entry["path"]: entry["reason"] for entry in waived if entry["path"] in FIELDS}
    paths = "; ".join(entry["reason"] for entry in waived if entry["path"] not in FIELDS)
    places = evidence.adapter.program.readings.waived
    findings = []
    for finding, place in found:
        reason = fields.get(finding.where)
        if place is not None:
            reason = paths if any(covers(one, place) for one in places) else None
        if finding.severity != "note":
            if reason is not None:
                finding = replace(finding, severity="note", what=f"waived ({reason}): {finding.what}")
            elif place is not None or finding.where in FIELDS:
                named = finding.where if place is None else evidence.spell(place)
                finding = replace(finding, option=f"--waive '{named}=REASON'")
        findings.append(finding)
    return findings
