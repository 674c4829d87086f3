"""Material for tests of the report: invented runs whose every figure is known, plain and hostile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prefixguard.alarm import AlarmPolicy, AlarmState, Level, alarm_table
from prefixguard.evaluation import EvaluationTable, RunsLeftOut, ScoreRow, evaluate_scores, rule_threshold
from prefixguard.evaluation.report import (
    AutomatonView,
    ExampleRun,
    ExampleStep,
    ReportInput,
    SymbolLine,
    choose_examples,
)
from prefixguard.results import Block, Result, TableBlock, Text
from prefixguard.runtime import Reading

#: Text that tries to leave its place in HTML, in attributes, in SVG, in Markdown and on a terminal.
HOSTILE = (
    "<script>window.taken = 1</script>",
    "\"><img src=x onerror='window.taken = 2'>",
    "</title></svg></style><script>window.taken = 3</script>",
    "![x](https://example.com/pixel.png) [y](javascript:window.taken=4) | a | b |",
    "{{script}} {{style}} \x1b[31m red \u202e drow \x00 end",
    "'onmouseover='window.taken=5' " + "long" * 300,
)

SVG = (
    b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="1400" height="200" viewBox="0 0 1400 200">'
    b'<rect width="1400" height="200" fill="#ffffff"/><circle cx="100" cy="100" r="60" fill="#cc5a1e"/></svg>\n'
)
HOSTILE_SVG = SVG.replace(
    b"</svg>",
    b'<script>parent.taken = 6; window.taken = 6</script><image href="https://example.com/a.png"/></svg>',
)


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """A result that speaks for itself."""

    text: str

    def as_json(self) -> dict[str, Any]:
        return {"text": self.text, "nothing": float("nan")}

    def blocks(self) -> tuple[Block, ...]:
        return (Text(self.text), TableBlock.of("Tokens", ["field", "token", "AUROC"], [["status", self.text, ".513"]]))


LEAKS = "Leak audit of 90 runs. Nothing was found."


def with_ids(table: EvaluationTable, run_ids: Sequence[str]) -> EvaluationTable:
    """The table of scores, with names for the runs behind it."""
    return replace(table, behind=replace(table.behind, keys=tuple((run_id, "") for run_id in run_ids)))


def invented_input(
    n: int = 90, *, seed: int = 0, hostile: bool = False, bare: bool = False, resamples: int = 60
) -> ReportInput:
    """n runs of n/3 tasks, their risk drifting up where they fail; every kind of example is among them.

    hostile: every text is an attack. bare: nothing but table and scores.
    """
    rng = np.random.default_rng(seed)
    imminent, outcome, failed = [], [], []
    for _ in range(n):
        length, fail = int(rng.integers(2, 26)), bool(rng.random() < 0.4)
        drift = np.cumsum(rng.normal(0.22 if fail else -0.05, 0.4, length)) - 1
        outcome.append(1 / (1 + np.exp(-drift)))
        imminent.append(outcome[-1] * np.linspace(0.1, 0.9, length))
        failed.append(fail)
    outcome[0][0] = imminent[0][0] = np.nan  # one step that was not judged
    lengths = [len(risk) for risk in outcome]

    def said(i: int, otherwise: str) -> str:
        return f"{HOSTILE[i % len(HOSTILE)]} {i}" if hostile else otherwise

    tasks = [said(i // 3, f"task {i // 3}") for i in range(n)]
    run_ids = [said(i, f"run-{i}") for i in range(n)]
    groups = [said(i % 3, f"agent {i % 3}") for i in range(n)]
    policy = AlarmPolicy()
    thresholds = alarm_table(np.linspace(0.2, 0.75, 60), policy, watch=0.45)
    repeated = [np.asarray(risk > 0.8, dtype=np.float64) for risk in outcome]
    rule = ScoreRow(
        said(0, "same call again"), repeated, repeated, thresholds={None: rule_threshold()}, note=said(1, "n in a row")
    )
    known = [np.full(k, float(fail)) for k, fail in zip(lengths, failed, strict=True)]
    oracle = ScoreRow(said(2, "outcome known"), known, known, oracle=True, note="knows how the run ends")
    table = evaluate_scores(
        imminent,
        outcome,
        failed,
        tasks,
        groups=groups,
        grouped_by="agent",
        policy=policy,
        thresholds=thresholds,
        baselines=[rule, oracle],
        calibration_lengths=list(range(5, 25)) * 3,
        resamples=resamples,
        left_out=RunsLeftOut({"train": 12}, without_outcome=2),
        notes=[said(3, "One run could not be read.")],
    )
    given = ReportInput(with_ids(table, run_ids), policy=policy, thresholds=thresholds, title=said(2, "Invented runs"))
    if bare:
        return given
    threshold = thresholds[0.1].alarm
    chosen = choose_examples(outcome, failed, run_ids, threshold, policy, horizon=3)
    examples = []
    for choice in chosen:
        state = AlarmState(policy, thresholds[0.1])
        readings = []
        for step, (soon, at_all) in enumerate(zip(imminent[choice.run], outcome[choice.run], strict=True), 1):
            level = state.step(float(at_all))
            judged = level is not Level.UNKNOWN
            readings.append(
                Reading(
                    step,
                    float(soon) if judged else None,
                    float(at_all) if judged else None,
                    level,
                    0,
                    None,
                    (said(step, "steps that failed: 3 (usually 0)"),) if level in (Level.WATCH, Level.ALARM) else (),
                    None if judged else said(step, "the step was too long"),
                    10.0,
                )
            )
        steps = [
            ExampleStep(said(i, "search"), "ok", said(i + 1, 'search {"q":"x"} → none')) for i in range(len(readings))
        ]
        examples.append(ExampleRun(choice.run, steps, readings))
    leaks = Finding(said(0, LEAKS) + ("\n\n" + "\n".join(HOSTILE) if hostile else ""))
    return replace(
        given,
        table=given.table.with_sections({"leaks": leaks}),
        examples=examples,
        monitor=said(0, "monitors/x"),
        manifest={
            "id": "ab" * 32,
            "kind": "onnx",
            "backend": "gru",
            "seed": 13,
            "libraries": {"numpy": "2"},
            "adapter": {"name": said(1, "chat"), "version": "1.0.0"},
        },
        command=said(2, "prefixguard evaluate monitors/x runs.jsonl --report out.html"),
        facts={said(3, "sha256 of runs.jsonl"): said(4, "cd" * 32)},
        notes=[said(4, "A remark.")],
        automaton=AutomatonView(
            said(1, "small"),
            4,
            3,
            HOSTILE_SVG if hostile else SVG,
            [
                SymbolLine(i, said(i, f"symbol {i}"), said(i, "tool is x"), 0.2, -0.1, said(i, "x → y"))
                for i in range(3)
            ],
        ),
    )
