"""Models and adapters: loaded, looked at before and after training, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from prefixguard.errors import ConfigError, DataError
from prefixguard.factory.short_form import PromptForm, in_form
from prefixguard.factory.trained_model import CLAIM, record_of

#: Tensors, and numbers of each, by which it is seen whether training moved a model.
_TENSORS, _NUMBERS = 16, 100_000


@dataclass(frozen=True)
class LoadedModel:
    """A model, its tokenizer, and how it is asked. origin: the folder or name of the model without an adapter."""

    model: Any
    tokenizer: Any
    form: PromptForm
    origin: str

    @property
    def is_adapter(self) -> bool:
        """Whether it is an adapter on another model."""
        return isinstance(self.model, PeftModel)

    def tokens(self, messages: Sequence[Mapping[str, str]], reply: str = "") -> int:
        """Tokens of a prompt in the model's form, and of a reply to it."""
        shown = in_form(self.form, messages)
        ids = self.tokenizer.apply_chat_template(shown, add_generation_prompt=True, return_dict=False)
        return len(ids) + (len(self.tokenizer(reply, add_special_tokens=False)["input_ids"]) + 1 if reply else 0)


def load(base: str, *, trainable: bool, dtype: torch.dtype | None = None) -> LoadedModel:
    """The model of a folder, or of a name that transformers knows; an adapter with its model.

    ConfigError, in a sentence, for whatever cannot be loaded.
    """
    folder = Path(base)
    record = record_of(folder)
    if (folder / CLAIM).is_file() and not record:
        raise ConfigError(f"{base}: its training was interrupted. Give the same command again, and it goes on.")
    try:
        origin = base
        if (folder / "adapter_config.json").is_file():
            origin = str(PeftConfig.from_pretrained(base).base_model_name_or_path)
        options = {} if dtype is None else {"dtype": dtype}
        model = AutoModelForCausalLM.from_pretrained(origin, **options)
        if origin != base:
            # Without is_trainable an adapter is loaded frozen, and a training of it changes nothing.
            model = PeftModel.from_pretrained(model, base, is_trainable=trainable)
        tokenizer = AutoTokenizer.from_pretrained(base, padding_side="left")
    except Exception as exc:  # the libraries raise many types, without a common base
        said = str(exc).strip().splitlines()
        raise ConfigError(
            f"{base}: no model can be loaded ({type(exc).__name__}: {said[0][:200] if said else ''}). Name a folder of "
            "a model or an adapter, or a model that transformers can fetch."
        ) from exc
    if tokenizer.chat_template is None:
        raise ConfigError(f"{base}: its tokenizer has no chat template, so nobody can ask it. Take a chat model.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    form: PromptForm = "short" if record.get("form") == "short" else "full"
    if form == "short":
        torch.set_num_threads(1)  # its matrices are so small that more threads only wait for each other
    return LoadedModel(model, tokenizer, form, origin)


def lora_config(options: Mapping[str, Any]) -> LoraConfig:
    """Of VerifyMAS: rank 64, alpha 16, all linear layers; options win."""
    ours = {"r": 64, "lora_alpha": 16, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
    return LoraConfig(**{**ours, **options})


def trainable_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors that training changes. DataError where there are none: the training would do nothing, in silence."""
    found: dict[str, torch.Tensor] = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    if not found:
        raise DataError("no tensor of the model is trainable, so training would change nothing. Load it trainable.")
    return found


def samples(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A copy of some numbers of some tensors, spread over the model, to see later whether they moved."""
    names = sorted(tensors)
    chosen = names[:: max(1, len(names) // _TENSORS)]
    return {name: tensors[name].detach().flatten()[:_NUMBERS].to("cpu", copy=True) for name in chosen}


def largest_move(before: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> float:
    """The largest change of a number that was sampled. DataError where none moved."""
    after = {name: tensors[name].detach().flatten()[:_NUMBERS].to("cpu") for name in before}
    moved = max(float((after[name] - before[name]).abs().max()) for name in before)
    if not moved > 0:
        raise DataError("no weight moved in training: is the learning rate too small for the weights' precision?")
    return moved
