"""Findings that somebody has looked at and calls harmless, with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.stepview import Adapter


def settled(findings: Iterable[LeakFinding], waive: Mapping[str, str]) -> list[LeakFinding]:
    """The findings, those in a waived field as notes with the reason, the others with the option that would waive them.

    waive: field of a finding to reason.
    """
    found = []
    for one in findings:
        reason = waive.get(one.field)
        if reason is None:
            text = f"{one.text} Harmless, because a live run shows it too? Say so: {one.option}"
            found.append(replace(one, text=text))
        else:
            found.append(replace(one, severity="note", waived=reason, text=f"waived ({reason}): {one.text}"))
    return found


def waivers_of(adapter: Adapter, given: Mapping[str, str]) -> dict[str, str]:
    """What the adapter's spec waives, by place, and what is waived beside it; the latter has the last word."""
    spec = json.loads(adapter.to_bytes())
    return {str(one["path"]): str(one["reason"]) for one in spec.get("waived", [])} | dict(given)
