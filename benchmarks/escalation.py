"""The escalation tier end to end: a scripted auditor of known skill over real HTTP, and cascades in the lab.

    python benchmarks/escalation.py [MONITOR] [--runs 200] [--curve-runs 400] [--json out.json] [--markdown out.md]

Three parts, all on fresh runs of the simulated shop, of which the decisive step is known:

    audits    the real client, prompts, parser and walk through `audit`; figures beside what the script must give
    ledger    the real `Escalator` on live runs; every question offered ends in exactly one way
    cascades  share of steps escalated against Exact-F1, false alarms, calls and money; replayed from verdicts on all
              prefixes, and at two points audited over HTTP behind the gate, which must give the very same rows
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from escalation_law import Expected, expected_of
from escalation_text import to_markdown
from scripted_server import Script, ScriptedServer, Skill, fingerprint, tokens_of

from prefixguard.escalate import (
    AsyncClient,
    CircuitBreaker,
    Endpoint,
    EscalationPolicy,
    Escalator,
    Gate,
    LlmAuditor,
    PromptKind,
    VerdictCache,
    WalkInspector,
    audit,
    escalation_mark,
)
from prefixguard.escalate.prompting import ask_for_verdict
from prefixguard.evaluate.audit import PrefixVerdict, audited_lines, cascade, escalated_above
from prefixguard.lab import generate
from prefixguard.metrics import AuditedRun, measure_attribution
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import StepRecord, adapter_for, read_runs
from prefixguard.trace import Mistake, Run

MONITOR = Path(__file__).parent.parent / "monitors" / "lab"
RESULTS = Path(__file__).parent / "results"
BUDGET = 24_000
SHARES = (0.005, 0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0)
SKILLS, FALSE_ALARMS = (0.5, 0.7, 0.9, 1.0), (0.0, 0.01, 0.024)
#: Every step above the mark is asked about.
EACH = EscalationPolicy(every=1, gap=1, calls_a_run=None, calls_a_minute=None)
#: Every step of every run is asked about.
ALL = replace(EACH, mark=1e-9)
#: Stated examples, not measured: prices of a hosted model per million tokens; a rented GPU that serves a 7B model, and
#: what it reads and writes a second with many questions at a time; tokens of a reply with its reasoning.
PRICE_IN, PRICE_OUT = 0.4, 1.6
GPU_HOUR, GPU_READS, GPU_WRITES = 2.0, 10_000, 1_000
REPLY_TOKENS = 300


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
        Skill(false_alarm=0.024, slow=0.05, slow_seconds=20.0),
        timeout=4.0,
        patient=False,
    ),
    Mode("whole run at once", Skill(hit=0.7, wrong=0.5, false_alarm=0.2, broken=0.1), PromptKind.POST_HOC),
    Mode("step by step", Skill(hit=0.7, false_alarm=0.02, broken=0.1), PromptKind.STEP_BY_STEP),
    Mode("binary search", Skill(hit=0.8, broken=0.05), PromptKind.BINARY_SEARCH),
)


@dataclass(frozen=True, slots=True)
class Material:
    """Runs with their decisive steps, and the map that the server is given."""

    runs: tuple[Run[StepRecord], ...]
    truth: Mapping[str, int | None]

    @classmethod
    def made(cls, n_runs: int, seed: int) -> Material:
        """Runs of the lab, each of a task of its own, read as anybody reads them."""
        made = {run["run_id"]: run["metadata"]["mistake_step"] for run in generate(n_runs, seed, trials=1)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.jsonl"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(run) + "\n" for run in generate(n_runs, seed, trials=1))
            read = list(read_runs(str(path), adapter_for("openai_chat", str(path))))
        runs = tuple(
            run if made[run.run_id] is None else replace(run, mistake=Mistake(made[run.run_id], "agent"))
            for run in read
        )
        truth = {fingerprint(run.records): made[run.run_id] for run in runs}
        if len(truth) != len(runs):
            raise SystemExit("two runs begin with the same step; take another seed.")
        return cls(runs, truth)


def audited(mode: Mode, material: Material, seed: int, gate: Gate | None = None) -> tuple[list[AuditedRun], int]:
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
        auditor = LlmAuditor(AsyncClient(endpoint), mode.kind, budget_tokens=BUDGET)
        lines = audit(material.runs, WalkInspector(auditor, gate), workers=16)
        return list(audited_lines(mode.name, material.runs, lines).rows), server.requests


def compared(mode: Mode, material: Material, rows: Sequence[AuditedRun], requests: int) -> dict[str, Any]:
    """Measured figures beside those that the script must give."""
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
        "figures": figures,
    }


def audits(material: Material, seed: int, modes: Sequence[Mode] = MODES) -> list[dict[str, Any]]:
    found = []
    for number, mode in enumerate(modes):  # coins of its own for each, so that rows do not miss together
        began = perf_counter()
        rows, requests = audited(mode, material, seed + number)
        found.append(compared(mode, material, rows, requests))
        print(f"{mode.name}: {found[-1]['calls']:,} calls in {perf_counter() - began:.1f} s", file=sys.stderr)
    return found


@dataclass(frozen=True, slots=True)
class Load:
    """One filling of the ledger. again: every run is watched twice (the second time the cache answers)."""

    name: str
    skill: Skill
    policy: EscalationPolicy = ALL
    workers: int = 8
    breaker: bool = False
    drain: bool = True
    again: bool = False
    dead: bool = False


LOADS = (
    Load("right", Skill()),
    Load("right, watch mark and default budgets", Skill(), EscalationPolicy()),
    Load("500 on 7 of 10 requests", Skill(fail=0.7)),
    Load("500 always, circuit breaker", Skill(fail=1.0), breaker=True),
    Load("unparsable, 3 of 10", Skill(broken=0.3)),
    Load("names a step that was not shown", Skill(beyond=0.3)),
    Load("other answers in the reply", Skill(inject=1.0)),
    Load("lies", Skill(lie=0.5, hit=0.5)),
    Load("slow, closed meanwhile", Skill(slow=0.3, slow_seconds=1.0), drain=False),
    Load("queue of one, one worker", Skill(slow=0.2, slow_seconds=0.05), replace(ALL, queue=1), 1),
    Load("3 questions a run, 100 a minute", Skill(), replace(ALL, calls_a_run=3, calls_a_minute=100)),
    Load("every run twice, with a cache", Skill(broken=0.2), again=True),
    Load("nobody listens, circuit breaker", Skill(), breaker=True, dead=True),
)


def ledger(load_: Load, monitor: Monitor, material: Material, events: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Live runs, some threads at once; the ledger after the close. SystemExit where its law does not hold."""
    with ScriptedServer(Script(material.truth, load_.skill)) as server, _dead_port() as dead, _folder() as folder:
        endpoint = Endpoint("scripted", dead if load_.dead else server.url, max_retries=1, first_wait=0.01, timeout=30)
        breaker = CircuitBreaker() if load_.breaker else None
        auditor = LlmAuditor(AsyncClient(endpoint, breaker=breaker), budget_tokens=BUDGET)
        cache = VerdictCache(folder) if load_.again else None
        escalator = Escalator(monitor, auditor, load_.policy, cache, workers=load_.workers, breaker=breaker)

        def watch(own: Sequence[Sequence[Any]]) -> None:
            for messages in own:
                session = escalator.start()
                for message in messages:
                    session.observe(message)
                session.end()
                if load_.drain:
                    session.wait(60.0)

        for _ in range(2 if load_.again else 1):
            threads = [threading.Thread(target=watch, args=(events[i::4],)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        counts = escalator.close(drain=load_.drain, seconds=60.0).as_json()
        ended = counts["answered"] + counts["cached"] + counts["dropped"] + counts["failed"]
        if counts["offered"] != ended or counts["pending"]:
            raise SystemExit(f"{load_.name}: questions were lost or counted twice: {counts}")
        # What a breaker refuses after a first try, and what is closed on its way, may have been received all the same.
        exact = not (load_.dead or load_.breaker or "closed" in counts["failed_by_reason"])
        if exact and counts["attempts"] != server.requests:
            raise SystemExit(
                f"{load_.name}: {counts['attempts']} attempts counted, {server.requests} requests received"
            )
        return {"load": load_.name, **counts, "requests": server.requests}


@contextmanager
def _dead_port() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


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
            tokens_of(ask_for_verdict(PromptKind.ONLINE, run.records[:step], BUDGET).messages)
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
    rows, requests = audited(Mode("gated", skill), material, seed, Gate(monitor, replace(EACH, mark=mark)))

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


def measure(path: Path, n_runs: int, n_curve: int, seed: int, resamples: int) -> dict[str, Any]:
    monitor = load(path)
    began = perf_counter()
    material = Material.made(n_runs, seed)
    found: dict[str, Any] = {"monitor": monitor.bundle.id, "seed": seed, "audits": audits(material, seed)}
    events = [run["messages"] for run in generate(min(n_runs, 60), seed, trials=1)]
    found["ledger"] = [ledger(one, monitor, material, events) for one in LOADS]
    print(f"ledger done after {perf_counter() - began:.0f} s", file=sys.stderr)
    found["cascades"] = cascades(monitor, Material.made(n_curve, seed + 2), n_curve, seed + 2, resamples)
    found["prices"] = {
        "in_per_million": PRICE_IN,
        "out_per_million": PRICE_OUT,
        "gpu_hour": GPU_HOUR,
        "gpu_reads_a_second": GPU_READS,
        "gpu_writes_a_second": GPU_WRITES,
        "reply_tokens": REPLY_TOKENS,
    }
    found["seconds"] = round(perf_counter() - began, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path, nargs="?", default=MONITOR)
    parser.add_argument("--runs", type=int, default=200, help="runs that are audited and watched")
    parser.add_argument("--curve-runs", type=int, default=400, help="runs of the cascades, and of their calibration")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--json", type=Path, default=RESULTS / "escalation.json")
    parser.add_argument("--markdown", type=Path, default=RESULTS / "escalation.md")
    options = parser.parse_args()
    found = measure(options.monitor, options.runs, options.curve_runs, options.seed, options.resamples)
    options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    options.markdown.write_text(to_markdown(found), encoding="utf-8")
    print(to_markdown(found))


if __name__ == "__main__":
    main()
