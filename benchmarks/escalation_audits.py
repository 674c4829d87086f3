"""Audits over HTTP by a scripted auditor of known skill, and what they measure beside what they must."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from escalation_law import Expected, expected_of
from escalation_material import BUDGET, PRICE_IN, PRICE_OUT, Material
from scripted_server import Script, ScriptedServer, Skill, seen_in

from prefixguard.auditor import EscalationTrigger, WalkProtocol, audit, audited_lines
from prefixguard.escalate import AsyncClient, Endpoint, LlmAuditor, MaskedRecords, PromptKind
from prefixguard.escalate.prompting import ask_for_verdict, halves
from prefixguard.metrics import AuditedRun, measure_attribution
from prefixguard.stepview import StepRecord

_WORDS = {"SAFE": "safe", "UNSURE": "abstain", None: "error"}
#: What a run of steps judged one by one is, without an alarm: the first of these that any of them was.
_WORST: tuple[str | None, ...] = (None, "UNSURE")


@dataclass(frozen=True, slots=True)
class Mode:
    """One audit. tries: requests for a question at most. timeout: seconds for a request."""

    name: str
    skill: Skill
    kind: PromptKind = PromptKind.ONLINE
    tries: int = 1
    timeout: float = 60.0
    patient: bool = True


MODES = (
    Mode("always right", Skill()),
    Mode("right in 7 of 10 runs", Skill(hit=0.7, wrong=0.5)),
    Mode("right in 7 of 10 calls", Skill(hit=0.7, wrong=0.5, by_call=True)),
    Mode("right, false alarms 2.4 % a call", Skill(false_alarm=0.024)),
    Mode("right in 8 of 10 runs, false alarms 1 % a call", Skill(hit=0.8, wrong=0.3, false_alarm=0.01)),
    Mode("500 on half of the requests, one retry", Skill(hit=0.8, false_alarm=0.024, fail=0.5), tries=2),
    Mode("unparsable, 3 of 10", Skill(hit=0.8, false_alarm=0.024, broken=0.3)),
    Mode("names a step that was not shown, 1 of 10", Skill(false_alarm=0.024, beyond=0.1)),
    Mode("lies in 1 of 10 calls", Skill(hit=0.6, lie=0.1)),
    Mode("other answers in 6 of 10 replies", Skill(hit=0.8, false_alarm=0.024, inject=0.6)),
    Mode("slow in 2 of 10, waited for", Skill(hit=0.8, false_alarm=0.024, slow=0.2, slow_seconds=0.2)),
    Mode(
        "slow in 1 of 20, given up",
        Skill(false_alarm=0.024, slow=0.05, slow_seconds=12.0),
        timeout=4.0,
        patient=False,
    ),
    Mode("whole run at once", Skill(hit=0.7, wrong=0.5, false_alarm=0.2, broken=0.1), PromptKind.POST_HOC),
    Mode("step by step", Skill(hit=0.7, false_alarm=0.02, broken=0.1), PromptKind.STEP_BY_STEP),
    Mode("binary search", Skill(hit=0.8, broken=0.05), PromptKind.BINARY_SEARCH),
)


def audited(
    mode: Mode, material: Material, seed: int, gate: EscalationTrigger | None = None
) -> tuple[list[AuditedRun], int]:
    """Rows of an audit over HTTP, and requests that the server received."""
    with ScriptedServer(Script(material.truth, mode.skill, seed)) as server:
        endpoint = Endpoint(
            "scripted",
            server.url,
            timeout=mode.timeout,
            max_retries=mode.tries - 1,
            first_wait=0.01,
            price_in=PRICE_IN,
            price_out=PRICE_OUT,
        )
        auditor = LlmAuditor(AsyncClient(endpoint, breaker=False), mode.kind, budget_tokens=BUDGET)
        lines = audit(material.runs, WalkProtocol(auditor, gate), workers=16)
        return list(audited_lines(mode.name, material.runs, lines).rows), server.requests


def scripted(mode: Mode, material: Material, seed: int) -> dict[str, tuple[str, int | None]]:
    """By run id the outcome and the step that the script's coins give, without a server."""
    script = Script(material.truth, mode.skill, seed)
    return {run.run_id: _scripted(mode, script, run.records) for run in material.runs}


def _scripted(mode: Mode, script: Script, records: Sequence[StepRecord]) -> tuple[str, int | None]:
    def said(shown: int, within: tuple[int, int] | None = None) -> int | str | None:
        asked = ask_for_verdict(mode.kind, MaskedRecords.of(records[:shown]).records, BUDGET, within=within)
        return script.outcome(seen_in(asked.messages), mode.tries, mode.patient)

    n = len(records)
    if mode.kind is PromptKind.BINARY_SEARCH:
        begin, end = 1, n
        while begin < end:
            answer = said(n, (begin, end))
            if not isinstance(answer, int):
                return _WORDS[answer], None
            begin, end = next(half for half in halves((begin, end)) if half[0] == answer)
        return "alarm", begin
    answers: list[str | None] = []
    for shown in [n] if mode.kind is PromptKind.POST_HOC else range(1, n + 1):
        answer = said(shown)
        if isinstance(answer, int):
            return "alarm", answer
        answers.append(answer)
    if mode.kind is PromptKind.STEP_BY_STEP:  # each judges its own step: one without a verdict is never made good
        return next((_WORDS[word] for word in _WORST if word in answers), _WORDS[answers[-1]]), None
    return _WORDS[answers[-1]], None


def compared(mode: Mode, material: Material, rows: Sequence[AuditedRun], requests: int, seed: int) -> dict[str, Any]:
    """Measured figures beside those that the script must give, and every run beside what its coins give."""
    coins = scripted(mode, material, seed)
    differing = sum(coins[row.run_id] != (row.outcome, row.step) for row in rows)
    by_id = {row.run_id: row for row in rows}
    error = mode.skill.error_rate(mode.tries, mode.patient)
    laws = [
        expected_of(mode.skill, mode.kind, len(run.records), None if run.mistake is None else run.mistake.step, error)
        for run in material.runs
    ]
    failed = np.array([run.mistake is not None for run in material.runs])
    found = measure_attribution(rows, n_resamples=0).figures
    measured = {
        "step_accuracy": found.step_accuracy,
        "false_alarm_rate": found.false_alarm_rate,
        "errors": found.errors,
        "exact_f1": found.exact_f1,
        "failed_calls": found.failed_calls,
    }
    law = Expected.of(laws, failed, seed=7)
    figures = {}
    for name, value in measured.items():
        if name == "failed_calls":
            calls = sum(row.calls for row in rows)
            mean, sd = error, math.sqrt(error * (1 - error) / max(calls, 1))
        else:
            mean, sd = law.figures[name]
        z = 0.0 if math.isclose(value, mean, abs_tol=1e-12) else (value - mean) / sd if sd else math.inf
        figures[name] = {"expected": mean, "sd": sd, "measured": value, "z": z}
    return {
        "mode": mode.name,
        "kind": mode.kind.value,
        "skill": asdict(mode.skill),
        "runs": len(rows),
        "failed_runs": int(failed.sum()),
        "calls": sum(by_id[run.run_id].calls for run in material.runs),
        "requests": requests,
        "differing_rows": differing,
        "figures": figures,
    }


def audits(material: Material, seed: int, modes: Sequence[Mode] = MODES) -> list[dict[str, Any]]:
    found = []
    for number, mode in enumerate(modes):  # coins of its own for each, so that rows do not miss together
        began = perf_counter()
        rows, requests = audited(mode, material, seed + number)
        found.append(compared(mode, material, rows, requests, seed + number))
        print(f"{mode.name}: {found[-1]['calls']:,} calls in {perf_counter() - began:.1f} s", file=sys.stderr)
    return found
