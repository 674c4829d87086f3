"""What a training is: its stage, its model, and the options of the engine, from a recipe in TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.factory.rewards import REWARDS, RewardConstants
from prefixguard.trace import read_named

#: sft: on right replies. bppo: on pairs of a right and a wrong reply. grpo: on rewards of its own replies.
#: hypotheses: on right answers about failure modes.
STAGES = ("sft", "bppo", "grpo", "hypotheses")
METHODS = ("full", "lora")
#: Recipes for a model of seven billion numbers, by name.
SHIPPED = {name: Path(__file__).parent / "recipes" / f"{name}.toml" for name in ("one-gpu", "eight-gpus")}
#: The name of the model of two layers that is made from the rows, for a CPU.
TINY = "tiny"

#: Options of TRL that hold unless a recipe says otherwise: those of AgentForesight (table 4) for bppo and grpo, of
#: VerifyMAS (table 10) for hypotheses. AgentForesight has no sft stage; its options are ours.
_COMMON = {"report_to": "none", "disable_tqdm": True, "save_strategy": "steps", "save_steps": 50, "save_total_limit": 1}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sft": {
        "learning_rate": 1e-5, "num_train_epochs": 2, "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 16, "lr_scheduler_type": "cosine", "warmup_steps": 20, "weight_decay": 0.01,
    },
    "bppo": {
        "learning_rate": 5e-7, "num_train_epochs": 3, "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 16, "lr_scheduler_type": "cosine", "warmup_steps": 50, "weight_decay": 0.01,
        "beta": 0.1,
    },
    "grpo": {
        "learning_rate": 1e-6, "num_train_epochs": 8, "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 32, "lr_scheduler_type": "constant", "beta": 1e-3, "loss_type": "dapo",
        "use_bias_correction_kl": False, "temperature": 1.0, "top_p": 1.0, "num_generations": 8,
    },
    "hypotheses": {
        "learning_rate": 1e-4, "num_train_epochs": 2, "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 32, "lr_scheduler_type": "cosine", "warmup_steps": 0.1, "weight_decay": 0.01,
        "max_grad_norm": 1.0,
    },
}  # fmt: skip
_CPU = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "warmup_steps": 0, "save_steps": 10}
#: Of the tiny model. DPO alone pushes the replies of so small a model out of their form, so right replies are learnt
#: beside it (TRL's second loss). At temperature 1 it draws steps beyond the prefix, which are no verdicts, so that grpo
#: would teach it to name earlier steps than it is sure of.
_TINY_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sft": {"learning_rate": 4e-3, "max_steps": 250, "per_device_train_batch_size": 16},
    "bppo": {
        "learning_rate": 3e-3, "max_steps": 160, "per_device_train_batch_size": 32,
        "loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 1.0],
    },
    "grpo": {
        "learning_rate": 2e-4, "max_steps": 120, "per_device_train_batch_size": 64, "loss_type": "grpo",
        "temperature": 0.7,
    },
    "hypotheses": {"learning_rate": 4e-3, "max_steps": 400, "per_device_train_batch_size": 16},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """A stage of training. ConfigError where its parts do not fit.

    stage: of STAGES. base: a folder of a model or adapter, a name that transformers loads, or TINY. method: of METHODS;
        an adapter goes on as an adapter. seed: of everything that is drawn.
    context: tokens of prompt and reply together; longer rows are left out. reply_tokens: of them for a reply.
    rollouts: bppo: replies drawn of each prompt. templates: bppo: at most this share of the pairs may have a
        reply of the row's own, because no rollout was right, or none wrong.
    reward: grpo and bppo: of `REWARDS`. constants: of the rewards.
    lora: options of `peft.LoraConfig`. trl: options of the stage's TRL config; they win over ours.
    """

    stage: str
    base: str = TINY
    method: str = "full"
    seed: int = 13
    context: int = 8192
    reply_tokens: int = 1024
    rollouts: int = 8
    templates: float = 0.5
    reward: str = "three_axis"
    constants: RewardConstants = field(default_factory=RewardConstants)
    lora: Mapping[str, Any] = field(default_factory=dict)
    trl: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("stage", self.stage, STAGES),
            ("method", self.method, METHODS),
            ("reward", self.reward, tuple(REWARDS)),
        ):
            if value not in choices:
                raise ConfigError(f"{name} {value!r}: one of {', '.join(choices)}.")
        if self.base.startswith(("/", "./", "../", "~")) and not Path(self.base).is_dir():
            raise ConfigError(f"base {self.base}: no such folder.")
        for name, number, least in (
            ("context", self.context, 2), ("reply_tokens", self.reply_tokens, 1), ("rollouts", self.rollouts, 2)
        ):  # fmt: skip
            if type(number) is not int or number < least:
                raise ConfigError(f"{name} {number!r}: a whole number, {least} or more.")
        if self.reply_tokens >= self.context:
            raise ConfigError(f"reply_tokens {self.reply_tokens}: fewer than context, {self.context}.")
        if not 0 <= self.templates <= 1:
            raise ConfigError(f"templates {self.templates}: a share, from 0 to 1.")

    def options(self, *, tiny: bool) -> dict[str, Any]:
        """The options of the stage's TRL config. tiny: the model is one of ours for a CPU."""
        found = {**_COMMON, **_OPTIONS[self.stage], "seed": self.seed}
        if tiny:
            found |= {**_CPU, "gradient_accumulation_steps": 1, **_TINY_OPTIONS[self.stage]}
        if self.stage == "grpo":
            found["max_completion_length"] = self.reply_tokens
        else:
            found["max_length"] = self.context
        return found | dict(self.trl)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def read_recipe(path: str | os.PathLike[str], stage: str, **given: Any) -> TrainingPlan:
    """The plan of a stage from a recipe in TOML: a file, or the name of one of `SHIPPED`.

    Tables: `model` (base, method, context, reply_tokens), `lora` (options of `peft.LoraConfig`), `reward` (name, and
    constants), and one a stage (rollouts, templates; all else are options of TRL's config). given: what wins over the
    recipe; None counts as not given. ConfigError, naming the file, where it cannot be read or used.
    """
    path = SHIPPED.get(str(path), Path(path))
    try:
        recipe = tomllib.loads(read_named(path, 1 << 20).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"{path}: not TOML ({exc}).") from exc
    if unknown := sorted(set(recipe) - {"model", "lora", "reward", *STAGES}):
        raise ConfigError(f"{path}: table {unknown[0]}: one of model, lora, reward, {', '.join(STAGES)}.")
    if stray := next((name for name, table in recipe.items() if not isinstance(table, dict)), None):
        raise ConfigError(f"{path}: {stray} stands outside a table: put it under [model] or a stage.")
    reward, own, model = dict(recipe.get("reward", {})), dict(recipe.get(stage, {})), dict(recipe.get("model", {}))
    plan = {name: own.pop(name) for name in ("rollouts", "templates") if name in own}
    if "name" in reward:
        plan["reward"] = reward.pop("name")
    allowed = {"base", "method", "context", "reply_tokens"}
    if unknown := sorted(set(model) - allowed):
        raise ConfigError(f"{path}: [model] {unknown[0]}: one of {', '.join(sorted(allowed))}.")
    if unknown := sorted(set(reward) - {one.name for one in fields(RewardConstants)}):
        raise ConfigError(f"{path}: [reward] {unknown[0]}: name, or one of the constants of RewardConstants.")
    try:
        plan |= {**model, "lora": recipe.get("lora", {}), "trl": own, "constants": RewardConstants(**reward)}
        return TrainingPlan(stage, **plan | {name: value for name, value in given.items() if value is not None})
    except (ConfigError, TypeError) as exc:
        raise ConfigError(f"{path}: {exc}") from exc
