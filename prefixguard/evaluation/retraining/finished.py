"""Folds that are done, kept in a folder, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.distribution import VERSION
from prefixguard.errors import ConfigError, DataError, OutputError
from prefixguard.learn import Corpus, TrainConfig

_FORMAT = 1
_PROTOCOL = "protocol.json"
#: Options that do not change what a fold comes to, or stand in its name.
_FREE = ("seed", "threads", "device", "budget", "confidence")


@dataclasses.dataclass(frozen=True, slots=True)
class FoldScores:
    """What one fit says of the runs held out.

    logits: float64 (steps of the test runs, 2), imminent and outcome, before calibration.
    maps: float64 (2, 2), slope and intercept of the Platt map of either risk.
    trained_on: runs that the heads were fitted on.
    """

    logits: NDArray[np.float64]
    maps: NDArray[np.float64]
    trained_on: int

    @property
    def risks(self) -> NDArray[np.float64]:
        """Calibrated risks, float64 (steps, 2)."""
        return 1 / (1 + np.exp(-np.clip(self.logits * self.maps[:, 0] + self.maps[:, 1], -500, 500)))


class FinishedFolds:
    """A folder with two files a fold: NAME.npz, its scores, and NAME.json, written last, with their digest.

    `protocol.json` beside them says what they belong to.
    """

    def __init__(self, folder: Path, protocol: Mapping[str, Any]) -> None:
        """Raises ConfigError where the folder holds folds of another configuration, DataError of other runs."""
        self.folder = folder
        path = folder / _PROTOCOL
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.exists():
                _refuse_other(folder, json.loads(path.read_text(encoding="utf-8")), protocol)
            else:
                _replace(path, json.dumps(protocol, indent=1, sort_keys=True).encode() + b"\n")
        except OSError as exc:
            raise OutputError(f"{folder}: cannot be written ({exc.strerror}). Name a folder with room.") from exc
        except ValueError as exc:
            if isinstance(exc, (ConfigError, DataError)):
                raise
            raise ConfigError(f"{path}: not readable as JSON ({exc}). Remove the folder, or name another.") from exc

    def load(self, name: str, steps: int) -> FoldScores | None:
        """The scores of a fold; None where it is not done, or its files are damaged."""
        try:
            facts = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            path = self.folder / f"{name}.npz"
            if hashlib.sha256(path.read_bytes()).hexdigest() != facts["sha256"]:
                return None
            with np.load(path, allow_pickle=False) as arrays:
                found = FoldScores(arrays["logits"], arrays["maps"], int(facts["trained_on"]))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            return None
        return found if found.logits.shape == (steps, 2) and found.maps.shape == (2, 2) else None

    def save(self, name: str, scores: FoldScores) -> None:
        """Keep a fold. Raises OutputError where the folder cannot be written."""
        path = self.folder / f"{name}.npz"
        part = path.with_name(f"{path.name}.part-{os.getpid()}")
        try:
            with part.open("wb") as file:
                np.savez_compressed(file, logits=scores.logits, maps=scores.maps)
            digest = hashlib.sha256(part.read_bytes()).hexdigest()
            part.replace(path)
            facts = {"sha256": digest, "trained_on": scores.trained_on}
            _replace(self.folder / f"{name}.json", json.dumps(facts, sort_keys=True).encode() + b"\n")
        except OSError as exc:
            part.unlink(missing_ok=True)
            raise OutputError(f"{path}: cannot be written ({exc.strerror}). Name a folder with room.") from exc


def protocol_of(corpus: Corpus, config: TrainConfig, folds: int, **more: Any) -> dict[str, Any]:
    """What folds must agree in to be of one evaluation. more: what is particular to it, plain values.

    Repetitions and seeds are not in it: more of them may be asked for later, and only the new ones are fitted.
    """
    options = {name: value for name, value in dataclasses.asdict(config).items() if name not in _FREE}
    return {
        "format": _FORMAT,
        "release": VERSION,
        "config": options,
        "folds": folds,
        "data": data_hash(corpus),
        **more,
    }


def data_hash(corpus: Corpus) -> str:
    """SHA-256 of the runs: their names, tasks, outcomes, and what their records say."""
    digest = hashlib.sha256()
    for run, task, said, failed in zip(
        corpus.run_ids, corpus.task_ids, corpus.digests, corpus.failed.tolist(), strict=True
    ):
        digest.update(json.dumps([run, task, said, failed]).encode())
    return digest.hexdigest()


def _refuse_other(folder: Path, there: Any, protocol: Mapping[str, Any]) -> None:
    """Compare what the folder says it holds with what is asked for."""
    there = there if isinstance(there, dict) else {}
    if there.get("data") != protocol["data"] and there.get("format") == protocol["format"]:
        raise DataError(
            f"{folder}: holds folds of other runs, tasks or outcomes than these. Name another folder for the results, "
            "or remove this one."
        )
    changes = []
    for name, value in protocol.items():
        old = there.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            changes += [f"{k} {old.get(k)!r}, now {v!r}" for k, v in value.items() if old.get(k) != v]
        elif old != value:
            changes.append(f"{name} {old!r}, now {value!r}")
    if changes:
        raise ConfigError(
            f"{folder}: holds folds of another configuration ({'; '.join(changes[:4])}). Name another folder for the "
            "results, remove this one, or give the options it was begun with."
        )


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    part.write_bytes(data)
    part.replace(path)
