"""How well a draft reads the samples: the score by which one way to read them is preferred."""

from __future__ import annotations

from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.offline.draft import Draft
from prefixguard.induce.offline.places import text_size
from prefixguard.induce.offline.plan_types import Plans
from prefixguard.induce.offline.rows import RowPlan
from prefixguard.induce.offline.source import Source
from prefixguard.induce.offline.units import Table
from prefixguard.stepview import Adapter, read_runs


def left_behind(draft: Draft, drafts: list[Draft]) -> float:
    """Share of the text of a list that reads well which a list inside it has: what stands beside is lost."""
    path = f"{draft.source.runs or '$'}{draft.source.event_places[0][1:]}"
    share = 1.0
    for other in drafts:
        outer = f"{other.source.runs or '$'}{other.source.event_places[0][1:]}"
        if other is not draft and other.quality >= 0.6 and path.startswith(outer) and path != outer:
            share = min(share, draft.source.share / max(1e-9, other.source.share))
    return share


def told(plans: Plans | None, rows: RowPlan | None) -> float:
    """Share of the events of which something other than their order says what they are, in [0, 1]."""
    if plans is None:
        return max(0.0, min(1.0, rows.sure)) if rows is not None else 0.0
    speaking = [made for made in plans.kinds if made.said is not None or made.calls or made.results]
    n = sum(len(made.own.elements) for made in speaking)
    return sum(len(made.own.elements) for made in speaking if made.sure >= 0.7) / max(1, n)


def quality_of(spec: dict[str, Any], source: Source, table: Table) -> float:
    """How well a spec reads the samples, in [0, 1]: 0.3 for calls with a result, 0.2 for steps with a tool, 0.25 for
    text that reaches a record, 0.15 for records in most runs, 0.1 for runs of two steps or more."""
    try:
        adapter = Adapter(spec)
        runs = []
        for run in read_runs(source.root, adapter):
            runs.append(run)
            if len(runs) >= 40:
                break
    except PrefixGuardError:
        return 0.0
    records = [record for run in runs for record in run.records]
    if not records:
        return 0.0
    acts = [record for record in records if record.tool != "respond"]
    answered = sum(bool(record.result) for record in acts) / len(acts) if acts else 0.3
    tools = sum(bool(record.tool) for record in acts) / len(records) if acts else 0.0
    share = len(acts) / len(records)
    said = sum(len(r.action) + len(r.arguments) + len(r.result) + len(r.observation) for r in records)
    views = source.views[: len(runs)]
    raw = sum(min(text_size(list(view.events)), 2000 * max(1, len(view.events))) for view in views) or 1
    covered = min(1.0, said / raw)
    long = sum(len(run.records) >= 2 for run in runs) / len(runs)
    read = 0.3 * answered * min(1.0, share * 2) + 0.2 * tools + 0.25 * covered
    return (
        (read + 0.15 * min(1.0, len(runs) / 3) + 0.1 * long)
        * min(1.0, source.share / 0.3)
        * min(1.0, 0.4 + source.novelty)
        * (1 - 0.5 * source.inner)
    )
