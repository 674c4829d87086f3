"""Training on rewards of the model's own replies (AgentForesight 3.2, AgenTracer 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from prefixguard.factory.short_form import in_form
from prefixguard.factory.training.models import LoadedModel
from prefixguard.factory.training_plan import TrainingPlan
from prefixguard.factory.training_rows import TrainingRow


def grpo_trainer(
    loaded: LoadedModel, rows: Sequence[TrainingRow], plan: TrainingPlan, options: dict[str, Any], lora: Any
) -> GRPOTrainer:
    """Rewards come from the row, so from the parser that `audit` uses."""

    def reward(completions: list[list[dict[str, str]]], place: list[int], **_: Any) -> list[float]:
        return [
            rows[at].reward(said[0]["content"], plan.reward, plan.constants)
            for said, at in zip(completions, place, strict=True)
        ]

    table = [{"prompt": in_form(loaded.form, row.prompt), "place": place} for place, row in enumerate(rows)]
    return GRPOTrainer(
        model=loaded.model,
        reward_funcs=reward,
        args=GRPOConfig(**options),
        train_dataset=Dataset.from_list(table),
        processing_class=loaded.tokenizer,
        peft_config=lora,
    )
