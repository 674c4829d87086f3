"""A trained model's folder: how it was made, and the files that need the engine, which load when they are asked for."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from prefixguard.bundle import replace_file
from prefixguard.errors import ConfigError, missing_extra

#: Told what is done, how far it is, and of how much.
Listener = Callable[[str, int, int], None]
#: What is written beside a model: how it was made.
RECORD = "training.json"
#: What is written before a training begins: what is trained. Without a record beside it the training is not done.
CLAIM = "asked.json"


def record_of(folder: Path) -> dict[str, Any]:
    """How a model was made; empty where nothing says it. ConfigError for a record that cannot be read."""
    path = folder / RECORD
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_bytes()))
    except (ValueError, TypeError, RecursionError) as exc:
        raise ConfigError(f"{path}: cannot be read. Train the model again, into another folder.") from exc


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write how a model was made; last of all, and whole, so that it says that the model is there."""
    replace_file(folder / RECORD, (json.dumps(record, indent=1, default=str) + "\n").encode())


def engine_part(module: str, what: str) -> ModuleType:
    """A file of `prefixguard.factory.training`. what: what was asked for. MissingExtraError without the extra."""
    try:
        return importlib.import_module(f"prefixguard.factory.training.{module}")
    except ModuleNotFoundError as exc:
        if (exc.name or "").startswith("prefixguard"):
            raise
        raise missing_extra(what, "factory", exc) from exc
