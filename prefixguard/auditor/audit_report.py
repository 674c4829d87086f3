"""What an audit found, as one result: verdicts and what they took, and the table beside auditors that know nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.auditor.audit_line import AuditLine, spent_on
from prefixguard.auditor.audit_table import AuditTable, audit_table
from prefixguard.auditor.audited_system import StepIndex, audit_runs, audited_lines, confidence_pairs
from prefixguard.auditor.baselines import trivial_baselines
from prefixguard.auditor.failure_modes import MODES
from prefixguard.auditor.fault_table import FaultTable, agents_of, fault_lines, fault_table
from prefixguard.auditor.published import published_rows
from prefixguard.escalate import ConfidenceMap, masked_in_words, total_masked
from prefixguard.results import Block, Result, Text, plain_value
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

#: Protocols that walk through a run, and may stop before its end.
_WALKS = ("online", "step-by-step")
_OUTCOMES = ("alarm", "safe", "abstain", "error")


@dataclass(frozen=True, slots=True)
class AuditReport(Result):
    """An audit of runs.

    usage: counts of verdicts and questions; tokens, seconds and cost are those of all tries, `earlier` ones among them.
    gate: failed runs behind a monitor, and by whom those without an alarm were missed (`gate_losses`); None without
    one. table: of runs that have a label; faults: of runs whose label names faults; None where there is none.
    """

    protocol: str
    usage: Mapping[str, Any]
    gate: Mapping[str, int] | None = None
    table: AuditTable | None = None
    faults: FaultTable | None = None
    full: bool = field(default=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None; what is None is left out."""
        parts = {"usage": dict(self.usage), "gate": self.gate, "faults": self.faults, "table": self.table}
        return {name: plain_value(part) for name, part in parts.items() if part is not None}

    def blocks(self) -> tuple[Block, ...]:
        """Sentences, and then the tables."""
        masked = (Text(masked_in_words(self.usage["masked"])),) if self.usage["masked"] else ()
        gate = () if self.gate is None else (Text(_gate_sentence(self.gate)),)
        if self.faults is not None:
            found = self.faults.blocks()
        elif self.table is not None:
            found = self.table.blocks(full=self.full)
        elif self.protocol == "hypotheses":
            found = (
                Text("No run's label names faults, so what was found is neither right nor wrong; the lines say it."),
            )
        else:
            found = (
                Text("No run has a label, so verdicts are neither right nor wrong; the lines say what was found."),
            )
        return (Text(_usage_sentence(self.usage, self.protocol)), *masked, *gate, *found)


def audit_report(
    runs: Sequence[Run[StepRecord]],
    lines: Sequence[AuditLine],
    protocol: str,
    *,
    gated: bool = False,
    priced: bool = False,
    published: str | None = None,
    events: bool = False,
    full: bool = False,
    proxy: str | None = None,
) -> AuditReport:
    """What `audit` said of these runs, beside what needs no auditor.

    protocol: one of `PROTOCOLS`. gated: a monitor stood in front of the model. priced: prices were given, so costs are
    known. published: test set of published figures, "" for all; None for none. events: count steps as source entries.
    full: show every row and figure. proxy: that the model was asked through.
    """
    usage = {**_usage(lines, priced), "proxy": proxy}
    losses = gate_losses(lines) if gated else None
    if protocol == "hypotheses":
        rows = fault_lines(runs, lines)
        codes = [mode.code for mode in MODES]
        faults = fault_table({"hypotheses": rows}, codes, agents=agents_of(runs)) if rows else None
        return AuditReport(protocol, usage, losses, faults=faults)
    judged = audit_runs(runs)
    if not judged:
        return AuditReport(protocol, usage, losses)
    index: StepIndex = "event" if events else "record"
    system = audited_lines(protocol, judged, lines, index=index)
    beside = published_rows(published) if published is not None else ()
    table = audit_table([system], trivial_baselines(judged, index=index), published=beside)
    return AuditReport(protocol, usage, losses, table, full=full)


def fit_confidence(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine]) -> ConfidenceMap:
    """The map that calibrates confidences like those of these lines, fitted on the runs that have a label.

    DataError where too few labelled verdicts have one: see `ConfidenceMap.fit`.
    """
    pairs = confidence_pairs(runs, lines)
    return ConfidenceMap.fit([raw for raw, _ in pairs], [right for _, right in pairs])


def gate_losses(lines: Sequence[AuditLine]) -> dict[str, int]:
    """Failed runs behind a monitor, and by whom those without an alarm were missed.

    never_asked: the monitor escalated no prefix. too_early: none that holds the decisive step, where that is known.
    auditor: the others; it was asked and raised no alarm, or gave no verdict.
    """
    failed = [line for line in lines if line.outcome is Outcome.FAILURE]
    missed = [line for line in failed if line.verdict["outcome"] != "alarm"]
    asked = [line for line in missed if line.calls]
    early = [line for line in asked if line.gold_step is not None and line.calls[-1]["prefix"] < line.gold_step]
    return {
        "failed": len(failed),
        "alarmed": len(failed) - len(missed),
        "never_asked": len(missed) - len(asked),
        "too_early": len(early),
        "auditor": len(asked) - len(early),
    }


def _gate_sentence(losses: Mapping[str, int]) -> str:
    if not losses["failed"]:
        return "No run is known to have failed, so what the monitor in front loses is not known."
    return (
        f"Of {losses['failed']:,} failed runs {losses['alarmed']:,} were alarmed. The monitor in front lost "
        f"{losses['never_asked'] + losses['too_early']:,}: {losses['never_asked']:,} of which nothing was asked, "
        f"{losses['too_early']:,} asked about before the decisive step only; the auditor {losses['auditor']:,}."
    )


def _usage(lines: Sequence[AuditLine], priced: bool) -> dict[str, Any]:
    """Counts of verdicts and questions; tokens, seconds and cost are those of all tries, `earlier` ones among them."""
    calls = [call for line in lines for call in line.calls]
    before = [line.spent for line in lines if line.spent]
    costs = [entry["cost"] for entry in (*calls, *before) if entry["cost"] is not None]
    outcomes = [line.verdict["outcome"] for line in lines]
    earlier = {name: sum(spent[name] for spent in before) for name in ("questions", "tokens_in", "tokens_out")}
    return {
        "runs": len(lines),
        **{name: outcomes.count(name) for name in _OUTCOMES},
        "questions": len(calls),
        "possible_questions": sum(line.possible_calls for line in lines),
        "from_cache": sum(bool(call.get("cached")) for call in calls),
        "without_verdict": sum(call["outcome"] == "error" for call in calls),
        "tokens_in": sum(entry["tokens_in"] for entry in (*calls, *before)),
        "tokens_out": sum(entry["tokens_out"] for entry in (*calls, *before)),
        "cost": math.fsum(costs) if priced and costs else None,
        "cost_unknown": sum(spent_on(line)["cost_unknown"] for line in lines),
        "masked": total_masked(_masked(line) for line in lines),
        "seconds": math.fsum(entry["seconds"] for entry in (*calls, *before)),
        "earlier": {"runs": len(before), **earlier},
    }


def _masked(line: AuditLine) -> dict[str, int]:
    """Different secrets of a run that were masked, by kind: a longer prefix holds those of the shorter ones."""
    most: dict[str, int] = {}
    for call in line.calls:
        for kind, n in call.get("masked", {}).items():
            most[kind] = max(n, most.get(kind, 0))
    return most


def _usage_sentence(usage: Mapping[str, Any], protocol: str) -> str:
    verdicts = ", ".join(f"{usage[name]:,} {name}" for name in _OUTCOMES)
    text = f"{usage['runs']:,} runs: {verdicts}."
    if usage["questions"] or usage["possible_questions"]:
        text += f" {usage['questions']:,} questions"
        if protocol in _WALKS:
            text += f" of {usage['possible_questions']:,} that a walk to the end of every run asks"
        text += (
            f" ({usage['from_cache']:,} answered before, {usage['without_verdict']:,} without a verdict), "
            f"{usage['tokens_in']:,} tokens sent and {usage['tokens_out']:,} received"
        )
        if usage["cost"] is not None:
            text += f", at a cost of {usage['cost']:.4f}"
            if usage["cost_unknown"]:
                text += f" and what {usage['cost_unknown']:,} questions cost that got no reply or had no price"
        if earlier := usage["earlier"]["questions"]:
            text += f"; {earlier:,} questions of earlier tries, of {usage['earlier']['runs']:,} runs, are counted in"
        text += "."
    return text
