"""Train an auditor of one's own on rows of `factory build`, a stage at a time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, OutputError
from prefixguard.factory.skips import Skips
from prefixguard.factory.trained_model import CLAIM, Listener, engine_part, record_of
from prefixguard.factory.training_plan import TINY, TrainingPlan, read_recipe
from prefixguard.factory.training_rows import TrainingRow, read_rows
from prefixguard.results import Block, Result, Text

#: Tokens of a row of the tiny model, and of its reply.
_TINY_CONTEXT, _TINY_REPLY = 1024, 16


@dataclass(frozen=True, slots=True)
class TrainingReport(Result):
    """What a training did. folder: of the model. record: how it was made, as its training.json has it."""

    folder: str
    record: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The record, and where the model is."""
        return {"folder": self.folder, **self.record}

    def blocks(self) -> tuple[Block, ...]:
        """What was trained on what, and how it went."""
        record = self.record
        rows = ", ".join(f"{count:,} {kind}" for kind, count in record["rows"].items())
        numbers = record["trainable"]["numbers"]
        said = [f"{record['stage']}: {numbers:,} numbers trained on rows of classes {rows}; in {self.folder}."]
        if "pairs" in record:
            pairs, templates = record["pairs"], record["templates"]
            said.append(f"{pairs:,} pairs; in {templates:,} one of the two replies is not the model's.")
        log = record["log"]
        for name in ("loss", "reward"):
            values = [entry[name] for entry in log if name in entry]
            if values:
                said.append(f"{name} {values[0]:.3f} at first, {values[-1]:.3f} at the end.")
        if record["form"] == "short":
            said.append("A tiny model, asked in a short form of the prompt: it shows that training works, no more.")
        return tuple(map(Text, (*said, *self.notes)))


def train(
    stage: str,
    rows: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    base: str | None = None,
    recipe: str | os.PathLike[str] | None = None,
    method: str | None = None,
    seed: int = 13,
    listen: Listener | None = None,
) -> TrainingReport:
    """Train one stage; the same call goes on where it was interrupted, and gives what is there when it is done.

    stage : One of sft, bppo, grpo and hypotheses.
    rows : File of rows of factory build.
    out : Folder for the model, its record and its checkpoints.
    base : Folder of a model or adapter, or a name that transformers loads. Default: the recipe's, else a tiny model
        for the CPU.
    recipe : Options in TOML: a file, or one that is shipped: one-gpu, eight-gpus.
    method : full or lora; an adapter goes on as an adapter. Default: the recipe's, else full.
    seed : Of everything that is drawn.
    listen: told what is done, how far it is, and of how much.
    MissingExtraError without the extra `factory`; ConfigError for a model that does not load, or a folder with another
    training; DataError where nothing can be trained on, or training moved nothing.
    """
    plan = plan_of(stage, base=base, recipe=recipe, method=method, seed=seed)
    return train_as_planned(plan, rows, out=out, listen=listen)


def train_as_planned(
    plan: TrainingPlan, rows: str | os.PathLike[str], *, out: str | os.PathLike[str], listen: Listener | None = None
) -> TrainingReport:
    """`train` with all options as one plan."""
    skips, folder = Skips(), Path(out)
    wanted: list[TrainingRow] = []
    for row in read_rows(rows, skips):
        if (row.label is not None) != (plan.stage == "hypotheses"):
            skips.add("a row of another question", row.run_id)
        elif row.split == "test":
            skips.add("a row of the test side", row.run_id)
        else:
            wanted.append(row)
    if not wanted:
        said = " ".join(skips.notes())
        raise ConfigError(f"{rows}: no row for {plan.stage}. {said} Name the file of factory build that is for it.")
    with Path(rows).open("rb") as file:
        asked = {"plan": plan.as_json(), "data": hashlib.file_digest(file, "sha256").hexdigest()}
    record = record_of(folder)
    if record and {name: record.get(name) for name in asked} != asked:
        raise ConfigError(f"{folder}: holds a model of another training. Name another folder with --out.")
    if not record:
        try:
            run_stage = engine_part("stages", "factory train").run_stage  # torch is slow to import
            _claim(folder, asked)
            record = run_stage(plan, wanted, skips, folder, asked, listen or (lambda *_: None))
        except OSError as exc:
            raise OutputError(f"{folder}: {exc.strerror or exc}. Name a folder with room.") from exc
    return TrainingReport(str(folder), record, tuple(Skips.from_json(record["left_out"]).notes()))


def plan_of(
    stage: str, *, base: str | None, recipe: str | os.PathLike[str] | None, method: str | None, seed: int
) -> TrainingPlan:
    """The plan of these options; that of a tiny model has room for its rows and replies."""
    given: dict[str, Any] = {"base": base, "method": method, "seed": seed}
    if recipe is not None:
        return read_recipe(recipe, stage, **given)
    plan = TrainingPlan(stage, **{name: value for name, value in given.items() if value is not None})
    return replace(plan, context=_TINY_CONTEXT, reply_tokens=_TINY_REPLY) if is_tiny(plan.base) else plan


def is_tiny(base: str) -> bool:
    """Whether a model is one that is asked in the short form."""
    return base == TINY or record_of(Path(base)).get("form") == "short"


def _claim(folder: Path, asked: Mapping[str, Any]) -> None:
    """Say what is trained in a folder, before anything is; ConfigError where checkpoints of another training lie."""
    folder.mkdir(parents=True, exist_ok=True)
    path, text = folder / CLAIM, json.dumps(asked, sort_keys=True)
    if path.is_file() and path.read_text("utf-8") != text and (folder / "checkpoints").is_dir():
        raise ConfigError(f"{folder}: another training was interrupted here. Finish it, or name another folder.")
    path.write_text(text, "utf-8")
