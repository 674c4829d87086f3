"""`prefixguard factory train | evaluate | demo`: an auditor of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.bundle import Trust
from prefixguard.cli.command import command
from prefixguard.cli.progress import Activity
from prefixguard.factory import demo, evaluate, train
from prefixguard.runtime import load


@command("factory.train", json="The record of the training as JSON.")
def train_auditor(stage: str, rows: Path, out: Path, **options: Any) -> Any:
    """Train an auditor on rows of `factory build`, a stage at a time: sft, then bppo, then grpo; or hypotheses.

    The engine is TRL (the extra `factory`). Without --base and --recipe a tiny model is made of the rows, which a CPU
    trains in a minute or two: it shows that training works, and is worth nothing as an auditor.

    Examples:

        prefixguard factory train sft rows/train-verdicts.jsonl --out models/sft
        prefixguard factory train bppo rows/train-verdicts.jsonl --base models/sft --out models/bppo
        prefixguard factory train grpo rows/train-verdicts.jsonl --base models/bppo --out models/grpo
        prefixguard factory train sft rows/train-verdicts.jsonl --recipe one-gpu --out models/sft7b
        prefixguard factory train hypotheses rows/train-hypotheses.jsonl --out models/verifier
    """
    with Activity(f"Training {stage}", pieces="steps") as work:
        return train(stage, rows, out=out, listen=lambda what, done, of: work.on_progress(done, of), **options)


@command("factory.evaluate", json="The table as JSON.")
def evaluate_auditors(models: list[Path], monitor: Path | None, trust: Trust | None = None, **options: Any) -> Any:
    """Audit labelled runs with models of your own, side by side: the stages of a training, beside auditors that know
    nothing (a fixed step, the most active agent, chance) and, with --monitor, beside a monitor's own verdicts.

    Each model is served on loopback and asked as `audit --protocol online` asks any model.

    Examples:

        prefixguard factory evaluate models/sft models/bppo models/grpo --corpus injected.jsonl --corpus runs.jsonl
        prefixguard factory evaluate models/grpo --corpus runs.jsonl --rows rows/test-verdicts.jsonl --out evaluation
    """
    opened = None if monitor is None else load(monitor, adapter="openai_chat", trust=trust)
    with Activity("Auditing") as work:
        return evaluate(models, monitor=opened, listen=lambda what, done, of: work.on_progress(done, of), **options)


@command("factory.demo", json="Counts, trainings and the table as JSON.")
def demo_factory(**options: Any) -> Any:
    """Collect runs of the simulation, inject faults, find the mistakes of failures by replay, build rows, train a tiny
    auditor and audit with it. It takes a few minutes on two cores.

    Example:

        prefixguard factory demo --out demo-factory
    """
    with Activity(pieces="", plain=True) as work:

        def listen(what: str, done: int, of: int) -> None:
            if done == 0:
                work.on_stage(what)
            else:
                work.on_progress(done, of)

        return demo(listen=listen, **options)
