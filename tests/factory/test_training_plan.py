"""Recipes: what a stage is trained with, and what is refused before anything is loaded."""

from __future__ import annotations

import importlib
import json
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from prefixguard.errors import ConfigError, MissingExtraError
from prefixguard.escalate import PromptKind, ask_for_verdict
from prefixguard.factory.auditor_training import train
from prefixguard.factory.training_plan import SHIPPED, STAGES, TrainingPlan, read_recipe
from prefixguard.stepview import StepRecord

RECIPE = """
[model]
base = "some/model"
method = "lora"
context = 4096
reply_tokens = 512
[lora]
r = 8
[reward]
name = "multi_granular"
sigma = 2.0
[bppo]
rollouts = 4
learning_rate = 1e-6
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, "utf-8")
    return path


def _row_file(folder: Path, split: str) -> Path:
    record = StepRecord(1, "agent", "", "respond", "", "", "Hello.", "", "ok")
    messages = ask_for_verdict(PromptKind.ONLINE, [record], 24_000).messages
    row = {"prompt": list(messages), "n_steps": 1, "class": "SAFE", "family": "f", "run_id": "r", "split": split}
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


def test_a_recipe_is_a_plan(tmp_path: Path) -> None:
    plan = read_recipe(write(tmp_path, RECIPE), "bppo", seed=7, base=None)
    assert (plan.base, plan.method, plan.context, plan.rollouts, plan.seed) == ("some/model", "lora", 4096, 4, 7)
    assert (plan.lora, plan.trl, plan.reward) == ({"r": 8}, {"learning_rate": 1e-6}, "multi_granular")
    assert plan.constants.sigma == 2.0
    assert read_recipe(tmp_path / "recipe.toml", "grpo", base="mine").base == "mine"  # what is given wins


def test_options_of_a_recipe_win_over_ours() -> None:
    plan = TrainingPlan("grpo", trl={"learning_rate": 1.0, "use_vllm": True})
    options = plan.options(tiny=False)
    assert (options["learning_rate"], options["use_vllm"], options["beta"]) == (1.0, True, 1e-3)
    assert options["max_completion_length"] == plan.reply_tokens
    assert all(TrainingPlan(stage).options(tiny=False)["max_length"] == 8192 for stage in STAGES if stage != "grpo")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[model\n", "not TOML"),
        ("[grpe]\n", "table grpe: one of model, lora, reward, sft, bppo, grpo, hypotheses."),
        ("base = 1\n", "table base: one of model"),
        ("sft = 1\n", "sft stands outside a table: put it under [model] or a stage."),
        ("[model]\nbatch = 1\n", "[model] batch: one of base, context, method, reply_tokens."),
        ("[reward]\neta = 1\n", "[reward] eta: name, or one of the constants of RewardConstants."),
        ("[reward]\ninvalid = 0.5\n", "invalid 0.5: 1 or more"),
        ("[model]\nmethod = 'qlora'\n", "method 'qlora': one of full, lora."),
        ("[model]\ncontext = 'long'\n", "context 'long': a whole number, 2 or more."),
    ],
)
def test_a_recipe_that_cannot_be_used_says_what_and_where(tmp_path: Path, text: str, sentence: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        read_recipe(path, "sft")
    assert str(refused.value).startswith(str(path)) and sentence in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"stage": "ppo"}, "stage 'ppo': one of sft, bppo, grpo, hypotheses."),
        ({"stage": "sft", "rollouts": 1}, "rollouts 1: a whole number, 2 or more."),
        ({"stage": "sft", "context": 100, "reply_tokens": 100}, "reply_tokens 100: fewer than context, 100."),
        ({"stage": "sft", "templates": 1.5}, "templates 1.5: a share, from 0 to 1."),
    ],
)
def test_a_plan_is_checked_when_it_is_made(given, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        TrainingPlan(**given)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("stage", STAGES)
def test_shipped_recipes_are_plans_with_options_that_the_engine_has(name: str, stage: str) -> None:
    plan = read_recipe(name, stage)
    assert plan.context > plan.reply_tokens and plan.trl["bf16"] is True
    trl = pytest.importorskip("trl")
    config = {"bppo": trl.DPOConfig, "grpo": trl.GRPOConfig}.get(stage, trl.SFTConfig)
    known = {field.name for field in fields(config)}
    assert set(plan.options(tiny=False)) <= known
    assert set(TrainingPlan(stage).options(tiny=True)) <= known


def test_without_the_engine_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> ModuleType:
        if "factory.training" in name:
            raise ModuleNotFoundError("No module named 'trl'", name="trl")
        return import_module(name)

    import_module = importlib.import_module
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"factory train needs trl. Install it with: pip install .*\[factory\]"):
        train("sft", _row_file(tmp_path, "train"), out=tmp_path / "m")


def test_a_base_that_is_a_path_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"base /nope: no such folder\."):
        TrainingPlan("sft", base="/nope")
    assert TrainingPlan("sft", base=str(tmp_path)) and TrainingPlan("sft", base="owner/name")


def test_rows_that_cannot_be_trained_on_are_refused_before_the_engine_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded(*_: object) -> None:
        raise AssertionError("torch takes long to import")

    monkeypatch.setattr("prefixguard.factory.auditor_training.engine_part", loaded)
    with pytest.raises(ConfigError, match="a row of the test side"):
        train("sft", _row_file(tmp_path, "test"), out=tmp_path / "m")


def test_the_tiny_model_has_a_checkpoint_soon() -> None:
    assert all(TrainingPlan(stage).options(tiny=True)["save_steps"] <= 10 for stage in STAGES)
