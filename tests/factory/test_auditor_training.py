"""Training on TRL with a model of two layers: that it trains, resumes, and drops nothing in silence.

Skipped where the extra `factory` is not installed; CI has an environment with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("trl")

from prefixguard.auditor import MODES, hypothesis_prompts
from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate import PromptKind, ask_for_verdict
from prefixguard.factory.auditor_training import plan_of, train_as_planned
from prefixguard.factory.prompt_steps import steps_of
from prefixguard.factory.skips import Skips
from prefixguard.factory.training import bppo
from prefixguard.factory.training.bppo import BPPOTrainer, reply_pairs
from prefixguard.factory.training.models import load, trainable_tensors
from prefixguard.factory.training.replies import replies_of
from prefixguard.factory.training.stages import within_context
from prefixguard.factory.training_plan import TrainingPlan
from prefixguard.factory.training_rows import read_rows
from prefixguard.stepview import StepRecord
from prefixguard.store import Store

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"per_device_train_batch_size": 8, "logging_steps": 1, "warmup_steps": 0, "lr_scheduler_type": "constant"}


def row(number: int) -> dict:
    """A run of a few steps; where its last one failed, that is the mistake. Of rows with one there are fewer."""
    bad, names = number % 3 == 0, ("Ada", "Ben") if number % 2 else ("Ben", "Ada")
    n_steps = 2 + number % 4
    records = [
        StepRecord(
            k, "agent", names[k % 2], "look" if k < n_steps else "write", "{}", "", f"Step {number % 5}.", "done",
            "error" if bad and k == n_steps else "ok",
        )
        for k in range(1, n_steps + 1)
    ]  # fmt: skip
    step, agent = (n_steps, names[n_steps % 2]) if bad else (None, None)
    facts = {"gold_step": step, "gold_agent": agent, "n_steps": n_steps, "class": "BE" if bad else "BS"}
    messages = ask_for_verdict(PromptKind.ONLINE, records, 24_000).messages
    return {"prompt": list(messages), **facts, "family": f"t{number}", "run_id": f"r{number}"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(48)), "utf-8")
    return path


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions about a failure mode."""
    path = tmp_path_factory.mktemp("answers") / "rows.jsonl"
    lines = []
    for number in range(16):
        one = row(number)
        records = steps_of(one["prompt"]).records
        (prompt,) = hypothesis_prompts(records, MODES[:1], 24_000)
        facts = {"prompt": list(prompt), "gold_step": None, "gold_agent": None, "agents": []}
        lines.append(json.dumps(one | facts | {"class": "absent", "label": "neutral"}) + "\n")
    path.write_text("".join(lines), "utf-8")
    return path


def plan(stage: str, base: Path | str = "tiny", method: str = "full", **trl: object) -> TrainingPlan:
    return replace(plan_of(stage, base=str(base), recipe=None, method=method, seed=3), trl={**SMALL, **trl})


@pytest.fixture(scope="module")
def taught(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows the form of a reply."""
    out = tmp_path_factory.mktemp("taught")
    report = train_as_planned(plan("sft", max_steps=30), rows, out=out)
    log = report.record["log"]
    assert log[-1]["loss"] < log[0]["loss"] / 2
    assert report.record["rows"] == {"BE": 16, "BS": 32} and report.record["largest_move"] > 0
    return out


@pytest.fixture(scope="module")
def adapter(rows: Path, taught: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter on it, trained a little by bppo."""
    out = tmp_path_factory.mktemp("adapter")
    bppo = replace(plan("bppo", taught, "lora", max_steps=12, learning_rate=5e-3), rollouts=4, lora={"r": 8})
    report = train_as_planned(bppo, rows, out=out)
    margins = [entry["rewards/margins"] for entry in report.record["log"]]
    assert sum(margins[-3:]) > sum(margins[:3])
    assert 0 < report.record["templates"] <= report.record["pairs"] / 2
    return out


def test_a_training_that_is_done_is_not_done_again(rows: Path, taught: Path) -> None:
    def never(*_: object) -> None:
        raise AssertionError("nothing is trained")

    again = train_as_planned(plan("sft", max_steps=30), rows, out=taught, listen=never)
    assert again.record["stage"] == "sft" and "short form" in again.to_text()
    with pytest.raises(ConfigError, match=r"holds a model of another training. Name another folder with --out."):
        train_as_planned(plan("sft", max_steps=31), rows, out=taught)


def test_an_adapter_goes_on_as_itself_and_is_compared_with_itself(rows: Path, adapter: Path, tmp_path: Path) -> None:
    """Stage 2 is held near stage 1, not near the model below it: at the first step the two are the same."""
    options = {
        "max_steps": 2,
        "learning_rate": 1e-2,
        "beta": 0.1,
        "per_device_train_batch_size": 16,
        "temperature": 1.0,
    }
    grpo = plan("grpo", adapter, "lora", **options)
    log = train_as_planned(grpo, rows, out=tmp_path).record["log"]
    assert log[0]["kl"] == pytest.approx(0, abs=1e-6) and log[1]["kl"] > 1e-6
    assert (tmp_path / "adapter_config.json").is_file() and not (tmp_path / "ref").exists()


def test_an_adapter_that_is_loaded_frozen_is_refused(adapter: Path) -> None:
    assert trainable_tensors(load(str(adapter), trainable=True).model)
    with pytest.raises(DataError, match="no tensor of the model is trainable"):
        trainable_tensors(load(str(adapter), trainable=False).model)


@pytest.mark.parametrize("stage", ["sft", "bppo", "grpo", "hypotheses"])
def test_an_interrupted_training_ends_as_one_that_was_not(
    stage: str, rows: Path, answers: Path, taught: Path, tmp_path: Path
) -> None:
    def stop(what: str, done: int, of: int) -> None:
        if what == "training" and done == 3:
            raise KeyboardInterrupt

    one, given = replace(plan(stage, taught, max_steps=4, save_steps=2), rollouts=2), rows
    if stage == "hypotheses":
        given = answers
    with pytest.raises(KeyboardInterrupt):
        train_as_planned(one, given, out=tmp_path / "cut", listen=stop)
    with pytest.raises(ConfigError, match="another training was interrupted here"):
        train_as_planned(replace(one, seed=4), given, out=tmp_path / "cut")
    with pytest.raises(ConfigError, match=r"its training was interrupted\. Give the same command again"):
        load(str(tmp_path / "cut"), trainable=False)
    steps: list[int] = []
    train_as_planned(
        one,
        given,
        out=tmp_path / "cut",
        listen=lambda what, done, _: steps.append(done) if what == "training" else None,
    )
    train_as_planned(one, given, out=tmp_path / "whole")
    assert steps == [3, 4]
    cut, whole = (load(str(tmp_path / name), trainable=False).model.state_dict() for name in ("cut", "whole"))
    assert all(cut[name].equal(whole[name]) for name in whole)


def test_replies_are_drawn_on_from_where_it_was_interrupted(
    rows: Path, taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, drawn = replace(plan("bppo", taught, max_steps=1), rollouts=2), list[int]()

    def stop(*said: object) -> None:
        raise KeyboardInterrupt

    def counted(loaded, prompts, **options):
        drawn.append(len(prompts))
        return replies_of(loaded, prompts, **options)

    monkeypatch.setattr(bppo, "replies_of", counted)
    with pytest.raises(KeyboardInterrupt):
        train_as_planned(one, rows, out=tmp_path, listen=stop)
    train_as_planned(one, rows, out=tmp_path)
    assert drawn == [32, 16] and not (tmp_path / "rollouts").exists()


def test_rows_of_the_test_side_are_not_trained_on(rows: Path, taught: Path, tmp_path: Path) -> None:
    """Whatever file they come in: each row says on which side it is."""
    lines = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    held_out = [one | {"split": "test"} for one in lines]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines + held_out[:7]), "utf-8")
    report = train_as_planned(plan("sft", taught, max_steps=1), tmp_path / "mixed.jsonl", out=tmp_path / "mixed")
    assert sum(report.record["rows"].values()) == len(lines)
    assert report.record["left_out"]["a row of the test side"]["count"] == 7
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(one) + "\n" for one in held_out), "utf-8")
    with pytest.raises(ConfigError, match=r"no row for sft. 48 left out: a row of the test side \("):
        train_as_planned(plan("sft", taught), tmp_path / "test.jsonl", out=tmp_path / "none")


def test_rows_that_do_not_fit_are_counted(rows: Path, taught: Path) -> None:
    loaded, skips = load(str(taught), trainable=False), Skips()
    found = read_rows(rows, Skips())
    lengths = sorted(loaded.tokens(one.prompt, one.target) for one in found)
    short = replace(plan("sft"), context=lengths[20])
    assert len(within_context(loaded, found, short, skips)) + skips.total == len(found) and skips.total > 0
    loaded.model.config.max_position_embeddings = lengths[10]  # what the model reads, where that is less
    assert len(within_context(loaded, found, short, Skips())) < len(found) - skips.total
    with pytest.raises(DataError, match="every row is longer than the context, 3 tokens"):
        within_context(loaded, found, replace(short, context=3, reply_tokens=2), Skips())


def test_replies_that_were_drawn_are_kept(rows: Path, taught: Path, tmp_path: Path) -> None:
    found, one = read_rows(rows, Skips())[:8], replace(plan("bppo"), rollouts=2, templates=1.0)
    store, ignore = Store(tmp_path), lambda done, of: None
    loaded = load(str(taught), trainable=False)
    first = reply_pairs(loaded, found, one, store, Skips(), ignore)
    loaded.model.generate = None  # nothing more is drawn
    assert reply_pairs(loaded, found, one, store, Skips(), ignore) == first
    for pair in first:
        assert pair.row.reward(pair.wrong) < pair.row.reward(pair.right) == 1


def test_both_classes_are_drawn_equally_often() -> None:
    trainer = BPPOTrainer.__new__(BPPOTrainer)
    trainer.classes, trainer.train_dataset = ["BS"] * 90 + ["BE"] * 10, [None] * 100
    drawn = [trainer.classes[at] for _ in range(40) for at in trainer._get_train_sampler()]
    assert 0.45 < drawn.count("BE") / len(drawn) < 0.55
    trainer.train_dataset = [None] * 99
    with pytest.raises(DataError, match="100 pairs, of which TRL kept 99"):
        trainer._get_train_sampler()


@pytest.mark.parametrize("spoil", [lambda folder: None, lambda folder: (folder / "config.json").write_text("{")])
def test_a_model_that_does_not_load_is_a_sentence(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path)
    with pytest.raises(ConfigError, match=r"no model can be loaded \(.*Name a folder of a model or an adapter") as said:
        load(str(tmp_path), trainable=False)
    assert str(said.value).startswith(str(tmp_path))
