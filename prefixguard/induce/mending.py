"""Freezing what a person mended: the report says what, and the checks are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.drafting import checked, waived_in
from prefixguard.induce.freezing import check_name, check_target, freeze
from prefixguard.induce.golden import Golden, golden_samples
from prefixguard.induce.induction import OUT, Induced
from prefixguard.induce.proposal import Proposal
from prefixguard.induce.report import Report
from prefixguard.induce.samples import open_samples
from prefixguard.stepview import load_adapter


def freeze_mended(
    spec: str | Path | Mapping[str, Any],
    samples: str | Path,
    *,
    mended: Sequence[str],
    induced: Induced | None = None,
    out: str | Path = OUT,
    labels: str | Path | None = None,
    waive: Mapping[str, str] = MappingProxyType({}),
    overwrite: bool = False,
) -> Induced:
    """Check and freeze a spec that a person has mended after an induction, or written.

    spec: the path of its .json, or the spec itself. mended: what was changed by hand and why, a sentence each: it
    stands in the report. waive: as in `induce_adapter`. induced: the induction it began with, whose report is kept in
    the new one.
    Writes nothing where a check fails. Raises AdapterError for a spec that is wrong, otherwise as `induce_adapter`.
    """
    given = json.loads(load_adapter(spec).to_bytes()) if isinstance(spec, str | Path) else dict(spec)
    name = check_name(str(given.get("name", "")))
    check_target(out, name, overwrite)
    before = induced.report if induced is not None else None
    proposal = replace(before.proposal, spec=given) if before is not None else Proposal(given, origin="hand")
    proposal, adapter, check = checked(proposal, name, samples, waive, labels, lambda _: None)
    if adapter is None:
        raise AdapterError(check.findings[0].what)
    golden = golden_samples(samples, adapter) if check.ok else Golden({}, b"")
    report = Report(
        name,
        adapter.version,
        adapter.sha256,
        open_samples(samples),
        replace(proposal, score=check.score()),
        check,
        before.recognised if before is not None else (),
        before.usage if before is not None else None,
        waived_in(proposal.spec),
        golden.notes,
        tuple(mended),
    )
    paths = None
    if check.ok:
        paths = freeze(adapter, report.to_dict(), report.to_markdown(), golden, out, overwrite=overwrite)
    return Induced(adapter, proposal, report, paths)
