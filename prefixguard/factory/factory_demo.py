"""The whole factory on the simulation: runs, faults, decisive steps, rows, a tiny auditor, and an audit with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.auditor import AuditTable
from prefixguard.factory.auditor_training import TrainingReport, train
from prefixguard.factory.building import build
from prefixguard.factory.collecting import collect
from prefixguard.factory.corpus_report import CorpusReport
from prefixguard.factory.injecting import inject
from prefixguard.factory.replaying import replay
from prefixguard.factory.stage_table import evaluate
from prefixguard.factory.trained_model import Listener
from prefixguard.results import Block, Heading, Result, Text
from prefixguard.store import OnProgress

#: Faults that show in the few words that the tiny model is given of a step, and the failure mode that each is.
VISIBLE: Mapping[str, str] = {
    "gave_up": "FM-3.1",
    "bad_argument": "FM-1.1",
    "made_up_order": "FM-2.6",
    "mistyped_lookup": "FM-2.6",
}
#: Runs and tasks, faults of a kind, re-rolls of each action, and runs that are audited.
_RUNS, _TASKS, _FAULTS, _ROLLS, _AUDITED = 800, 200, 100, 2, 12


@dataclass(frozen=True, slots=True)
class FactoryDemo(Result):
    """What each part made. corpora, trainings: in their order."""

    corpora: Mapping[str, CorpusReport]
    trainings: tuple[TrainingReport, ...]
    table: AuditTable

    def as_json(self) -> dict[str, Any]:
        """All parts."""
        return {
            **{name: report.as_json() for name, report in self.corpora.items()},
            "train": [report.as_json() for report in self.trainings],
            "evaluate": self.table.as_json(),
        }

    def blocks(self) -> tuple[Block, ...]:
        """All parts, one after the other."""
        found: list[Block] = []
        for name, corpus in self.corpora.items():
            found += [Heading(name), Text(corpus.to_text())]
        for training in self.trainings:
            found += [Heading(f"train {training.record['stage']}"), *training.blocks()]
        return (*found, Heading("evaluate"), *self.table.blocks(), Heading("what this shows"), *_lesson(self.table))


def _lesson(table: AuditTable) -> tuple[Text, ...]:
    """What the tiny auditor can do, and what it cannot, after its audit."""
    last = [row for row in table.rows if not row.trivial][-1]
    found = last.figures.counts
    failed = f"{found.alarmed:,.0f} of {found.unsafe:,.0f} failed runs"
    safe = f"{found.false_alarms:,.0f} of {found.safe:,.0f} safe ones"
    return (
        Text(
            f"The tiny auditor ({last.name}) alarmed in {failed} and in {safe}; it named the right step in "
            f"{found.exact:,.0f}. It learnt faults that show in a few words, and was tried on no others."
        ),
        Text(
            "It cannot audit runs of your own. It sees a few words of the five newest steps, no argument or result, so "
            "it misses every fault that does not show in them, and it knows no world but this one. For a real auditor "
            "the commands are the same: corpora of your runs, and a model of seven billion numbers (--recipe one-gpu; "
            "docs/factory.md)."
        ),
    )


def demo(
    *,
    out: str | os.PathLike[str] = "factory-demo",
    seed: int = 13,
    listen: Listener | None = None,
) -> FactoryDemo:
    """Collect, inject, replay, build, train a tiny auditor, and audit with it, on the simulation.

    out : Folder for all that is made; the demo goes on there where it was interrupted.
    seed : Of everything that is drawn.
    listen: told what is done, how far it is, and of how much.
    The simulation is scripted and the model has two layers: it shows how all works, and says nothing of real agents.
    """
    told, folder = listen or (lambda *_: None), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    runs, injected, replayed = (folder / f"{name}.jsonl" for name in ("runs", "injected", "replayed"))
    corpora, trainings = dict[str, CorpusReport](), list[TrainingReport]()

    def hook(what: str) -> OnProgress:
        told(what, 0, 1)
        return lambda done, of: told(what, done, of) if done else None

    corpora["collect"] = collect(
        "simulation", runs, count=_RUNS, tasks=_TASKS, seed=seed, on_progress=hook("playing runs")
    )
    corpora["inject"] = inject(
        runs, injected, per_kind=_FAULTS, per_run=3, kinds=tuple(VISIBLE), seed=seed, on_progress=hook("injecting")
    )
    corpora["replay"] = replay(runs, replayed, rolls=_ROLLS, seed=seed, on_progress=hook("replaying failures"))
    # What replay found is of all kinds, and most of them do not show in the few words that the tiny model is given.
    corpora["build"] = build(
        [injected, runs], out=folder / "rows", kinds=VISIBLE, test_share=0.3, seed=seed,
        on_progress=hook("building rows"),
    )  # fmt: skip
    base = None
    for stage in ("sft", "bppo"):
        told(f"training: {stage}", 0, 1)
        rows, model = folder / "rows" / "train-verdicts.jsonl", folder / stage
        trainings.append(train(stage, rows, out=model, base=base, seed=seed, listen=told))
        base = str(model)
    told("auditing", 0, 1)
    table = evaluate(
        [folder / "sft", folder / "bppo"],
        corpus=[injected, runs],
        rows=folder / "rows" / "test-verdicts.jsonl",
        limit=_AUDITED,
        out=folder / "evaluation",
        reply_tokens=32,
        listen=told,
    )
    return FactoryDemo(corpora, tuple(trainings), table)
