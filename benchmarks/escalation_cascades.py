"""What a monitor before an auditor saves and loses, at several marks and skills; replayed, and checked over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from escalation_audits import Mode, audited
from escalation_material import (
    BUDGET,
    EACH,
    GPU_HOUR,
    GPU_READS,
    GPU_WRITES,
    PRICE_IN,
    PRICE_OUT,
    REPLY_TOKENS,
    Material,
)
from scripted_server import Script, Skill, fingerprint, tokens_of

from prefixguard.auditor import EscalationTrigger, PrefixVerdict, cascade, escalated_above, escalation_mark
from prefixguard.escalate import MaskedRecords, PromptKind
from prefixguard.escalate.prompting import ask_for_verdict
from prefixguard.metrics import AuditedRun, measure_attribution
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

SHARES = (0.005, 0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0)
SKILLS, FALSE_ALARMS = (0.5, 0.7, 0.9, 1.0), (0.0, 0.01, 0.024)
#: Shares at which the replayed point is audited over HTTP too.
CHECKED = (0.05, 0.2)


def risks_of(monitor: Monitor, runs: Sequence[Run[StepRecord]]) -> dict[str, list[float]]:
    """By run id the outcome risk after every step; NaN where it was not judged."""
    return {
        run.run_id: [
            math.nan if reading.outcome_risk is None else reading.outcome_risk
            for reading in monitor.score_run(run.records)
        ]
        for run in runs
    }


def prompt_tokens(material: Material) -> dict[str, list[int]]:
    """By run id the tokens of the question on every prefix."""
    return {
        run.run_id: [
            tokens_of(ask_for_verdict(PromptKind.ONLINE, MaskedRecords.of(run.records[:step]).records, BUDGET).messages)
            for step in range(1, len(run.records) + 1)
        ]
        for run in material.runs
    }


def verdicts_of(
    material: Material, skill: Skill, seed: int, tokens: Mapping[str, Sequence[int]]
) -> dict[str, dict[int, PrefixVerdict]]:
    """What the scripted auditor says of every prefix."""
    script = Script(material.truth, skill, seed)
    found = {}
    for run in material.runs:
        name, own = fingerprint(run.records), {}
        for step, sent in enumerate(tokens[run.run_id], 1):
            said = script.verdict("online", name, step)
            cost = (sent * PRICE_IN + REPLY_TOKENS * PRICE_OUT) / 1e6
            outcome = "alarm" if isinstance(said, int) else "safe"
            own[step] = PrefixVerdict(
                "alarm" if outcome == "alarm" else "safe",
                said if isinstance(said, int) else None,
                "agent" if isinstance(said, int) else None,
                sent,
                REPLY_TOKENS,
                cost,
            )
        found[run.run_id] = own
    return found


def cascades(monitor: Monitor, material: Material, n_calibration: int, seed: int, resamples: int) -> dict[str, Any]:
    """The curves, and two of their points over HTTP."""
    calibration = risks_of(monitor, Material.made(n_calibration, seed + 1).runs)
    risks, tokens = risks_of(monitor, material.runs), prompt_tokens(material)
    marks = [escalation_mark([np.array(own) for own in calibration.values()], share, EACH) for share in SHARES]
    curves = []
    for hit in SKILLS:
        for false_alarm in FALSE_ALARMS:
            said = verdicts_of(material, Skill(hit=hit, false_alarm=false_alarm), seed, tokens)
            for mark in marks:
                found = cascade(material.runs, said, escalated_above(risks, mark.mark), n_resamples=resamples)
                curves.append({"hit": hit, "false_alarm": false_alarm, "share": mark.share, **_point(found, mark.mark)})
    checks = [
        _checked(monitor, material, risks, tokens, marks[SHARES.index(share)].mark, seed) for share in (0.05, 0.2)
    ]
    return {
        "runs": len(material.runs),
        "failed_runs": sum(run.mistake is not None for run in material.runs),
        "steps": sum(len(run.records) for run in material.runs),
        "calibration_runs": n_calibration,
        "marks": [mark.to_json() for mark in marks],
        "curves": curves,
        "over_http": checks,
    }


def _point(found: Any, mark: float) -> dict[str, Any]:
    figures, rows = found.gated_figures, found.gated.rows
    read, written = sum(row.tokens_in for row in rows), sum(row.tokens_out for row in rows)
    seconds = (read / GPU_READS + written / GPU_WRITES) / len(rows) * 1000
    return {
        "mark": mark,
        "escalated_share": found.escalated_share,
        "calls_a_run": figures.calls_per_run,
        "exact_f1": figures.exact_f1,
        "exact_f1_interval": figures.intervals.get("exact_f1"),
        "step_accuracy": figures.step_accuracy,
        "false_alarm_rate": figures.false_alarm_rate,
        "false_alarm_interval": figures.intervals.get("false_alarm_rate"),
        "tokens_a_run": (read + written) / len(rows),
        "api_per_1000_runs": figures.cost_per_1000_runs,
        "gpu_seconds_per_1000_runs": seconds,
        "gpu_per_1000_runs": seconds / 3600 * GPU_HOUR,
    }


def _checked(
    monitor: Monitor,
    material: Material,
    risks: Mapping[str, Sequence[float]],
    tokens: Mapping[str, Sequence[int]],
    mark: float,
    seed: int,
) -> dict[str, Any]:
    """A point audited over HTTP behind the gate. SystemExit where a row differs from the replayed one."""
    skill = Skill(hit=0.9, false_alarm=0.024)
    replayed = cascade(material.runs, verdicts_of(material, skill, seed, tokens), escalated_above(risks, mark))
    rows, requests = audited(Mode("gated", skill), material, seed, EscalationTrigger(monitor, replace(EACH, mark=mark)))

    def told(row: AuditedRun) -> tuple[Any, ...]:
        return row.run_id, row.outcome, row.step, row.agent, row.alarm_step, row.calls, row.tokens_in

    for one, other in zip(rows, replayed.gated.rows, strict=True):
        if told(one) != told(other):
            raise SystemExit(f"over HTTP {told(one)}, replayed {told(other)}")
    figures = measure_attribution(rows, n_resamples=0).figures
    return {
        "mark": mark,
        "rows": len(rows),
        "differing_rows": 0,
        "requests": requests,
        "calls": sum(row.calls for row in rows),
        "exact_f1": figures.exact_f1,
        "exact_f1_replayed": replayed.gated_figures.exact_f1,
        "false_alarm_rate": figures.false_alarm_rate,
        "false_alarm_rate_replayed": replayed.gated_figures.false_alarm_rate,
    }
