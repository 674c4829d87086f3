"""What an audit found, for people and as JSON: verdicts, costs, and the table beside auditors that know nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from prefixguard.auditor import (
    MODES,
    AuditLine,
    StepIndex,
    agents_of,
    audit_runs,
    audit_table,
    audited_lines,
    fault_lines,
    fault_table,
    published_rows,
    trivial_baselines,
)
from prefixguard.cli.console import say, write_json
from prefixguard.cli.terminal_text import visible
from prefixguard.escalate import NoReplyFault, masked_in_words, total_masked
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

#: Protocols that walk through a run, and may stop before its end.
_WALKS = ("online", "step-by-step")
#: Faults of questions that were sent and got no reply.
_NO_REPLY = frozenset(NoReplyFault) - {NoReplyFault.CIRCUIT_OPEN}


def report_audit(
    runs: Sequence[Run[StepRecord]],
    lines: Sequence[AuditLine],
    protocol: str,
    *,
    gated: bool = False,
    priced: bool = False,
    published: str | None,
    events: bool,
    as_json: bool,
    full: bool = False,
    proxy: str | None = None,
) -> None:
    """Sentences and tables on standard error; with `as_json` one object on standard output.

    gated: a monitor stood in front of the model. priced: prices were given, so costs are said. published: test set of
        published figures. events: count steps as source entries. full: every row of the table. proxy: that the model
        was asked through.
    """
    index: StepIndex = "event" if events else "record"
    usage = {**_usage(lines, priced), "proxy": proxy}
    said: dict[str, Any] = {"usage": usage}
    say(_usage_sentence(usage, protocol))
    if usage["masked"]:
        say(masked_in_words(usage["masked"]))
    if gated:
        said["gate"] = losses = gate_losses(lines)
        say(_gate_sentence(losses))
    if protocol == "hypotheses":
        _report_faults(runs, lines, said)
    elif judged := audit_runs(runs):
        rows = published_rows(published) if published is not None else ()
        system = audited_lines(protocol, judged, lines, index=index)
        table = audit_table([system], trivial_baselines(judged, index=index), published=rows)
        say(visible(table.to_text(full=full)))
        said["table"] = table.as_json()
    else:
        say("No run has a label, so verdicts are neither right nor wrong; the lines say what was found.")
    if as_json:
        write_json(said)


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


def _gate_sentence(losses: dict[str, int]) -> str:
    if not losses["failed"]:
        return "No run is known to have failed, so what the monitor in front loses is not known."
    return (
        f"Of {losses['failed']:,} failed runs {losses['alarmed']:,} were alarmed. The monitor in front lost "
        f"{losses['never_asked'] + losses['too_early']:,}: {losses['never_asked']:,} of which nothing was asked, "
        f"{losses['too_early']:,} asked about before the decisive step only; the auditor {losses['auditor']:,}."
    )


def _report_faults(runs: Sequence[Run[StepRecord]], lines: Sequence[AuditLine], said: dict[str, Any]) -> None:
    faults = fault_lines(runs, lines)
    if not faults:
        say("No run's label names faults, so what was found is neither right nor wrong; the lines say it.")
        return
    found = fault_table({"hypotheses": faults}, [mode.code for mode in MODES], agents=agents_of(runs))
    say(visible(found.to_text()))
    said["faults"] = found.as_json()


def _usage(lines: Sequence[AuditLine], priced: bool) -> dict[str, Any]:
    """Counts of verdicts and questions; tokens, seconds and cost are those of all tries, `earlier` ones among them."""
    calls = [call for line in lines for call in line.calls]
    # A question without a reply may have cost something, nobody knows what; an answer costs None without prices.
    unknown = sum(call["cost"] is None or call["fault"] in _NO_REPLY for call in calls)
    costs = [call["cost"] for call in calls if call["cost"] is not None]
    outcomes = [line.verdict["outcome"] for line in lines]
    before = [line.spent for line in lines if line.spent]
    costs += [spent["cost"] for spent in before if spent["cost"] is not None]
    unknown += sum(spent["cost_unknown"] for spent in before)
    return {
        "runs": len(lines),
        **{name: outcomes.count(name) for name in ("alarm", "safe", "abstain", "error")},
        "questions": len(calls),
        "possible_questions": sum(line.possible_calls for line in lines),
        "from_cache": sum(bool(call.get("cached")) for call in calls),
        "without_verdict": sum(call["outcome"] == "error" for call in calls),
        "tokens_in": sum(entry["tokens_in"] for entry in (*calls, *before)),
        "tokens_out": sum(entry["tokens_out"] for entry in (*calls, *before)),
        "cost": math.fsum(costs) if priced and costs else None,
        "cost_unknown": unknown,
        "masked": total_masked(_masked(line) for line in lines),
        "seconds": math.fsum(entry["seconds"] for entry in (*calls, *before)),
        "earlier": {
            "runs": len(before),
            "questions": sum(spent["questions"] for spent in before),
            "tokens_in": sum(spent["tokens_in"] for spent in before),
            "tokens_out": sum(spent["tokens_out"] for spent in before),
        },
    }


def _masked(line: AuditLine) -> dict[str, int]:
    """Different secrets of a run that were masked, by kind: a longer prefix holds those of the shorter ones."""
    most: dict[str, int] = {}
    for call in line.calls:
        for kind, n in call.get("masked", {}).items():
            most[kind] = max(n, most.get(kind, 0))
    return most


def _usage_sentence(usage: dict[str, Any], protocol: str) -> str:
    words = ("alarm", "safe", "abstain", "error")
    verdicts = ", ".join(f"{usage[name]:,} {name}" for name in words)
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
