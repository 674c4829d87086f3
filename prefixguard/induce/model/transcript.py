"""What was asked and answered, kept beside the adapter as JSON lines: messages, faults, scores, times, tokens."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixguard.errors import OutputError
from prefixguard.escalate import Masker


class Transcript:
    """Entries in order. Every text is masked before it is kept, and the key of the endpoint is never among them."""

    def __init__(self, masker: Masker) -> None:
        """masker: what masks; it knows the key of the endpoint."""
        self._masker = masker
        self._entries: list[dict[str, Any]] = []
        self._begin = time.monotonic()

    def add(self, kind: str, **what: Any) -> None:
        """One entry. kind: start, message, reply, trial, failure or end."""
        seconds = round(time.monotonic() - self._begin, 3)
        self._entries.append({"kind": kind, "seconds": seconds, **self._masker.mask_all(what)})

    def clean(self, text: str) -> str:
        """A text as it would be kept."""
        return self._masker.mask(text)

    @property
    def entries(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self._entries)

    def to_jsonl(self) -> str:
        """One JSON object a line."""
        return "".join(json.dumps(entry, ensure_ascii=False, default=str) + "\n" for entry in self._entries)

    def write(self, path: str | os.PathLike[str]) -> None:
        """OutputError where it cannot be written."""
        try:
            Path(path).write_bytes(self.to_jsonl().encode("utf-8", "replace"))
        except OSError as exc:
            raise OutputError(f"{path}: the transcript cannot be written ({exc.strerror or exc}).") from exc
