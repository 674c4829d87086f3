"""Prefixes cut at the decisive step, as questions of `audit --protocol online` with the answers that are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prefixguard.auditor import query_steps
from prefixguard.escalate import MaskedRecords, PromptKind, agent_of, ask_for_verdict, same_agent
from prefixguard.factory.labelled import LabelledRun, records_of
from prefixguard.factory.skips import Skips
from prefixguard.stepview import StepRecord

#: SAFE: a prefix of a run that succeeded. BS: of a failed run, the step before the mistake. BE: up to the mistake.
RowClass = Literal["SAFE", "BS", "BE"]
#: Code points of a text that a step keeps for each token of the budget, as `audit` has it.
_WIDE = 3


def audited_records(run: Mapping[str, Any], budget_tokens: int) -> tuple[StepRecord, ...]:
    """The steps of a run as `audit` shows them to a model."""
    return records_of(run, _WIDE * budget_tokens)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a failed run is cut.

    before: steps of the prefix that ends before the mistake; 0 where no agent acted before it. at: the decisive step.
    """

    before: int
    at: int


def cut_of(run: LabelledRun, records: Sequence[StepRecord], skips: Skips) -> Cut | None:
    """Where the run is cut; None where it cannot be, which is counted."""
    mistake = run.decisive
    asked = query_steps(records)
    if mistake is None or mistake.step is None:
        reason = "no decisive step is known, for verdicts"
    elif mistake.step not in asked:
        reason = "no agent acts at the decisive step"
    elif mistake.agent is not None and not same_agent(mistake.agent, agent_of(records[mistake.step - 1])):
        reason = "the agent of the label did not act at the decisive step"
    else:
        return Cut(max((step for step in asked if step < mistake.step), default=0), mistake.step)
    skips.add(reason, run.run_id)
    return None


def prefix_row(
    run: LabelledRun,
    records: Sequence[StepRecord],
    length: int,
    kind: RowClass,
    *,
    budget_tokens: int,
    mask: bool,
    skips: Skips,
) -> dict[str, Any] | None:
    """The row of one prefix; None, and counted, where its prompt does not show the mistake.

    length: steps of the prefix; of kind BE its last step is the decisive one. Nothing of what comes after is looked at.
    """
    shown = MaskedRecords.of(records[:length], mask=mask)
    prompt = ask_for_verdict(PromptKind.ONLINE, shown.records, budget_tokens)
    if kind == "BE" and any(begin <= length <= end for begin, end in prompt.excerpt.elided):
        skips.add("the prompt has no room for the decisive step", run.run_id)
        return None
    return {
        "prompt": list(prompt.messages),
        "gold_step": length if kind == "BE" else None,
        "gold_agent": agent_of(shown.records[-1]) if kind == "BE" else None,
        "n_steps": length,
        "class": kind,
        "family": run.family,
        "run_id": run.run_id,
    }
