"""Where an interrupted training goes on from: one file a network, replaced after every epoch. Arrays only."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import OutputError


class Checkpoints:
    """Checkpoints of one training, kept in a folder beside its bundle until the bundle is written.

    key: hash of configuration and data; checkpoints of another training are not taken up.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key

    def load(self, name: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Arrays and facts of the last epoch of network `name`; None where there are none that fit."""
        path = self.folder / f"{name}.npz"
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as data:
                facts = json.loads(str(data["__facts__"]))
                if facts.get("key") != self.key:
                    return None
                return {k: data[k] for k in data.files if k != "__facts__"}, facts
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # absent, or cut off while it was written: begin again

    def save(self, name: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Replace the checkpoint of network `name`. Raises OutputError when it cannot be written."""
        buffer = io.BytesIO()
        # savez stores, it never pickles these: plain numeric arrays and one string.
        np.savez(buffer, allow_pickle=False, __facts__=np.array(json.dumps({**facts, "key": self.key})), **arrays)
        temporary = self.folder / f"{name}.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(buffer.getvalue())
            temporary.replace(self.folder / f"{name}.npz")
        except OSError as exc:
            raise OutputError(f"{temporary}: cannot write the checkpoint ({exc}). Free space or choose --out.") from exc

    def clear(self) -> None:
        """Remove the folder."""
        for path in sorted(self.folder.glob("*.npz")) + sorted(self.folder.glob("*.tmp")):
            path.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()
