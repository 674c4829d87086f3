"""Training on right replies: of verdicts, and of answers about failure modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from prefixguard.factory.short_form import in_form
from prefixguard.factory.training.models import LoadedModel
from prefixguard.factory.training_rows import TrainingRow


def sft_trainer(loaded: LoadedModel, rows: Sequence[TrainingRow], options: dict[str, Any], lora: Any) -> SFTTrainer:
    """The loss is that of the reply alone: rows are prompt and completion."""
    table = [
        {"prompt": in_form(loaded.form, row.prompt), "completion": [{"role": "assistant", "content": row.target}]}
        for row in rows
    ]
    return SFTTrainer(
        model=loaded.model,
        args=SFTConfig(**options),
        train_dataset=Dataset.from_list(table),
        processing_class=loaded.tokenizer,
        peft_config=lora,
    )
