"""A proposal as an adapter: with its name and what is waived, compiled and checked. What cannot be is a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.errors import AdapterError, DataError, PrefixGuardError
from prefixguard.induce.checks import CheckReport, Finding, check_adapter, waiving
from prefixguard.induce.proposal import Proposal
from prefixguard.stepview import Adapter


def checked(
    proposal: Proposal,
    name: str,
    samples: str | Path,
    waive: Mapping[str, str],
    labels: str | Path | None,
    tell: Callable[[str], None],
) -> tuple[Proposal, Adapter | None, CheckReport]:
    """The proposal as an adapter, with what is waived in it, and what the checks say."""
    spec = waiving({**proposal.spec, "name": name}, waive)
    proposal = replace(proposal, spec=spec)
    try:
        adapter = Adapter(spec, name)
    except AdapterError as exc:
        refused = Finding("spec", "error", str(exc), "spec", remedy="Give a --hint, or mend the spec by hand.")
        return proposal, None, CheckReport(name, "", (refused,), MappingProxyType({}), MappingProxyType({}))
    try:
        return (
            proposal,
            adapter,
            check_adapter(adapter, samples, labels=labels, listen=lambda what: tell(f"checking: {what}")),
        )
    except DataError:
        raise  # labels of other runs: nothing is wrong with the spec
    except PrefixGuardError as exc:
        unread = Finding("reads", "error", str(exc), str(samples), remedy="Give a --hint, or mend the spec by hand.")
        return (
            proposal,
            adapter,
            CheckReport(name, adapter.sha256, (unread,), MappingProxyType({}), MappingProxyType({})),
        )


def waived_in(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a spec waives, and why."""
    return tuple(
        (str(one.get("path")), str(one.get("reason"))) for one in spec.get("waived", ()) if isinstance(one, dict)
    )
