"""`prefixguard factory train | evaluate | demo`: an auditor of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.cli.command import command
from prefixguard.cli.progress import Activity
from prefixguard.factory import train


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
