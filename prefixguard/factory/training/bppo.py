"""Training on pairs of a right and a wrong reply, safe and unsafe prefixes equally often (AgentForesight 3.1, Eq. 9).

The sum over classes of class means is twice the mean over rows whose classes are drawn equally often, so TRL's loss of
DPO stays as it is and only the sampler is ours. Replies are the model's own. Where none of them is right the row's
target stands for one, and where none is wrong the row's opposite, both counted and bounded: how the source paired such
prompts is not said. Without the latter a model that calls safe prefixes safe would be shown alarms alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from datasets import Dataset
from torch.utils.data import WeightedRandomSampler
from trl import DPOConfig, DPOTrainer

from prefixguard.errors import DataError
from prefixguard.factory.short_form import in_form
from prefixguard.factory.skips import Skips
from prefixguard.factory.training.models import LoadedModel
from prefixguard.factory.training.replies import replies_of
from prefixguard.factory.training_plan import TrainingPlan
from prefixguard.factory.training_rows import TrainingRow
from prefixguard.store import Kept, OnProgress, Store

_BATCH = 32


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """A right and a wrong reply to a row's prompt. is_template: one of them is the row's, not the model's."""

    row: TrainingRow
    right: str
    wrong: str
    is_template: bool


class BPPOTrainer(DPOTrainer):
    """DPO that draws safe and unsafe prefixes equally often. classes: of the pairs, set after it is made."""

    classes: Sequence[str] = ()

    def _get_train_sampler(self, dataset: Any = None) -> WeightedRandomSampler:
        if len(self.classes) != len(self.train_dataset):
            raise DataError(f"{len(self.classes):,} pairs, of which TRL kept {len(self.train_dataset):,}.")
        counts = Counter(self.classes)
        return WeightedRandomSampler([1 / counts[one] for one in self.classes], len(self.classes), replacement=True)


def reply_pairs(
    loaded: LoadedModel,
    rows: Sequence[TrainingRow],
    plan: TrainingPlan,
    store: Store,
    skips: Skips,
    listen: OnProgress,
) -> list[ReplyPair]:
    """A pair of each row, from `plan.rollouts` replies of the model at temperature 1.

    store: keeps replies, so that an interrupted training does not draw them again. listen: told rows done, and all.
    Pairs with a reply of the row's own are left out beyond the share of templates.
    """
    pairs: list[ReplyPair] = []
    rng = Random(f"{plan.seed}/pairs")
    for begin in range(0, len(rows), _BATCH):
        batch = rows[begin : begin + _BATCH]
        kept = store.get("rollouts", begin=begin)
        if kept is None:
            drawn = replies_of(
                loaded,
                [row.prompt for row in batch],
                n=plan.rollouts,
                temperature=1.0,
                reply_tokens=plan.reply_tokens,
                seed=plan.seed + begin,
            )
            kept = Kept({"replies": drawn})
            store.put(kept, "rollouts", begin=begin)
        for row, replies in zip(batch, kept.facts["replies"], strict=True):
            worth = [row.reward(reply, plan.reward, plan.constants) for reply in replies]
            best = row.reward(row.target, plan.reward, plan.constants)
            right = [reply for reply, value in zip(replies, worth, strict=True) if value >= best]
            wrong = [reply for reply, value in zip(replies, worth, strict=True) if value < best]
            chosen, rejected = rng.choice(right or [row.target]), rng.choice(wrong or [row.opposite])
            pairs.append(ReplyPair(row, chosen, rejected, not (right and wrong)))
        listen(begin + len(batch), len(rows))
    return _capped(pairs, plan, skips)


def _capped(pairs: Sequence[ReplyPair], plan: TrainingPlan, skips: Skips) -> list[ReplyPair]:
    """The pairs without templates beyond their share of what is left, drawn by the seed."""
    templates = [pair for pair in pairs if pair.is_template]
    own = len(pairs) - len(templates)
    most = len(templates) if plan.templates == 1 else int(own * plan.templates / (1 - plan.templates))
    gone = set(map(id, Random(f"{plan.seed}/templates").sample(templates, max(0, len(templates) - most))))
    for pair in templates:
        if id(pair) in gone:
            skips.add("all replies are right, or none, and the share of templates is reached", pair.row.run_id)
    return [pair for pair in pairs if id(pair) not in gone]


def bppo_trainer(loaded: LoadedModel, pairs: Sequence[ReplyPair], options: dict[str, Any], lora: Any) -> BPPOTrainer:
    """DPO on the pairs. An adapter is compared with itself as it was loaded, by a frozen copy."""
    table = [
        {
            "prompt": in_form(loaded.form, pair.row.prompt),
            "chosen": [{"role": "assistant", "content": pair.right}],
            "rejected": [{"role": "assistant", "content": pair.wrong}],
        }
        for pair in pairs
    ]
    trainer = BPPOTrainer(
        model=loaded.model,
        args=DPOConfig(**options),
        train_dataset=Dataset.from_list(table),
        processing_class=loaded.tokenizer,
        peft_config=lora,
    )
    trainer.classes = ["safe" if pair.row.gold_step is None else "unsafe" for pair in pairs]
    return trainer
