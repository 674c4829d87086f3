"""One stage of training, from a model's folder to a model's folder, with the checks that it trains."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset, disable_progress_bars
from transformers import PrinterCallback, TrainerCallback, set_seed
from transformers.trainer_utils import get_last_checkpoint
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from prefixguard.errors import DataError
from prefixguard.factory.short_form import in_form
from prefixguard.factory.skips import Skips
from prefixguard.factory.trained_model import RECORD, Listener, record_of, write_record
from prefixguard.factory.training.bppo import bppo_trainer, reply_pairs
from prefixguard.factory.training.models import (
    LoadedModel,
    largest_move,
    load,
    lora_config,
    samples,
    trainable_tensors,
)
from prefixguard.factory.training.tiny_model import make_tiny
from prefixguard.factory.training_plan import TINY, TrainingPlan
from prefixguard.factory.training_rows import TrainingRow, classes
from prefixguard.store import Store

_PACKAGES = ("torch", "transformers", "trl", "peft", "datasets")
#: What a log entry tells of each stage, where it is there.
_TOLD = ("loss", "reward", "kl", "rewards/margins", "rewards/accuracies", "grad_norm")


def run_stage(
    plan: TrainingPlan,
    rows: Sequence[TrainingRow],
    skips: Skips,
    out: Path,
    asked: Mapping[str, Any],
    listen: Listener,
) -> dict[str, Any]:
    """Train, and write model, tokenizer and record to `out`. Returns the record.

    asked: what the training rests on, plain JSON, written into the record. listen: told what is done, how far it is,
    and of how much. A training that was interrupted goes on from its last checkpoint.
    """
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "0")) or torch.get_num_threads())
    logging.disable_progress_bar()
    disable_progress_bars()
    base = plan.base
    if base == TINY:
        base = str(out / "base")
        if not (out / "base" / RECORD).is_file():
            make_tiny(rows, out / "base", plan.seed)
            write_record(out / "base", {"stage": "base", "form": "short", "seed": plan.seed})
    loaded = load(base, trainable=True)
    kept = within_context(loaded, rows, plan, skips)
    options = plan.options(tiny=loaded.form == "short") | {"output_dir": str(out / "checkpoints")}
    # An adapter goes on as the same adapter; only a model that has none yet is given one.
    lora = lora_config(plan.lora) if plan.method == "lora" and not loaded.is_adapter else None
    set_seed(plan.seed)
    state = PartialState()
    found: dict[str, Any] = {}
    if plan.stage == "grpo":
        trainer: Any = _grpo_trainer(loaded, kept, plan, options, lora)
    elif plan.stage == "bppo":
        store = Store(out / "rollouts", dict(asked))
        with state.main_process_first():  # it draws them and keeps them; the others take them from there
            pairs = reply_pairs(loaded, kept, plan, store, skips, lambda done, of: listen("drawing replies", done, of))
        if not pairs:
            raise DataError(f"no pair of a right and a wrong reply. {' '.join(skips.notes())} Train with grpo instead.")
        found = {"pairs": len(pairs), "templates": sum(pair.is_template for pair in pairs)}
        kept = [pair.row for pair in pairs]
        trainer = bppo_trainer(loaded, pairs, options, lora)
    else:
        trainer = _sft_trainer(loaded, kept, options, lora)
    if len(trainer.train_dataset) != len(kept):
        raise DataError(f"TRL kept {len(trainer.train_dataset):,} of {len(kept):,} rows. Give it a longer context.")
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Told(listen))
    tensors = trainable_tensors(trainer.model)
    before = samples(tensors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train(resume_from_checkpoint=_checkpoint(out))
    found |= {"largest_move": largest_move(before, trainable_tensors(trainer.model))}
    _forget_reference(trainer.model)
    trainer.save_model(str(out))
    if state.is_main_process:
        loaded.tokenizer.save_pretrained(out)
    record = {
        "stage": plan.stage,
        "form": loaded.form,
        "adapter_of": loaded.origin if hasattr(trainer.model, "peft_config") else None,
        **asked,
        "rows": classes(kept),
        "left_out": skips.as_json(),
        **found,
        "trainable": {"tensors": len(tensors), "numbers": sum(tensor.numel() for tensor in tensors.values())},
        "options": {name: value for name, value in sorted(options.items()) if name != "output_dir"},
        "packages": {name: version(name) for name in _PACKAGES},
        "log": [_entry(entry) for entry in trainer.state.log_history if "loss" in entry or "reward" in entry],
        "earlier": {name: value for name, value in record_of(Path(base)).items() if name in ("stage", "plan", "rows")},
    }
    state.wait_for_everyone()
    if state.is_main_process:
        write_record(out, record)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        shutil.rmtree(out / "rollouts", ignore_errors=True)
    return record


def _sft_trainer(loaded: LoadedModel, rows: Sequence[TrainingRow], options: dict[str, Any], lora: Any) -> SFTTrainer:
    """Training on right replies. The loss is that of the reply alone: rows are prompt and completion."""
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


def _grpo_trainer(
    loaded: LoadedModel, rows: Sequence[TrainingRow], plan: TrainingPlan, options: dict[str, Any], lora: Any
) -> GRPOTrainer:
    """Training on rewards of the model's own replies (AgentForesight 3.2, AgenTracer 4.3). They come from the row, so
    from the parser that `audit` uses."""

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


def within_context(
    loaded: LoadedModel, rows: Sequence[TrainingRow], plan: TrainingPlan, skips: Skips
) -> list[TrainingRow]:
    """The rows whose prompt and reply fit the plan's context and the model's; TRL would cut or drop the others without
    a word. DataError where none."""
    kept = []
    context = min(plan.context, int(getattr(loaded.model.config, "max_position_embeddings", None) or plan.context))
    for row in rows:
        tokens = loaded.tokens(row.prompt, "" if plan.stage == "grpo" else row.target)
        room = context - (plan.reply_tokens if plan.stage in ("grpo", "bppo") else 0)
        if tokens <= room:
            kept.append(row)
        else:
            skips.add("longer than the context", row.run_id)
    if not kept:
        raise DataError(f"every row is longer than the context, {context:,} tokens. Give it a longer context.")
    return kept


def _checkpoint(out: Path) -> str | None:
    """The last checkpoint of a training that was interrupted."""
    folder = out / "checkpoints"
    found = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    return None if found is None else str(found)


def _forget_reference(model: Any) -> None:
    """Drop the frozen copy of an adapter, with which TRL compared it, so that it is not saved beside it."""
    if "ref" in getattr(model, "peft_config", {}):
        model.delete_adapter("ref")


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"step": entry["step"], **{name: entry[name] for name in _TOLD if name in entry}}


class _Told(TrainerCallback):
    """Tells every step of training."""

    def __init__(self, listen: Listener) -> None:
        self._listen = listen

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """So many steps are done, of so many."""
        self._listen("training", state.global_step, state.max_steps)
