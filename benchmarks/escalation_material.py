"""Simulated runs for `escalation.py`: with their decisive steps, and the map that the scripted server is given."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from scripted_server import fingerprint

from prefixguard.escalate import EscalationPolicy
from prefixguard.simulation import generate
from prefixguard.stepview import StepRecord, adapter_for, read_runs
from prefixguard.trace import Mistake, Run

#: Tokens of a prompt.
BUDGET = 24_000
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
class Material:
    """Runs with their decisive steps, and the map that the server is given."""

    runs: tuple[Run[StepRecord], ...]
    truth: Mapping[str, int | None]

    @classmethod
    def made(cls, n_runs: int, seed: int) -> Material:
        """Runs of the simulation, each of a task of its own, read as anybody reads them."""
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
