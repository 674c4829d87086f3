"""Replies that were paid for, kept in a folder, so that the same question is asked once."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from prefixguard.errors import OutputError
from prefixguard.escalate import Reply, masked

_FORMAT = 1
_TYPES = {
    "text": str, "finish": str, "refusal": str, "tokens_in": int, "tokens_out": int, "estimated": bool,
    "seconds": float, "attempts": int, "model": str,
}  # fmt: skip


class KeptReplies:
    """A folder with one JSON file a question, named after its key: the raw reply, what it cost, and no word of a run
    but what the model repeats. Answers are read from replies anew each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, key: str) -> Reply | None:
        """The reply to a question; None where it was not asked yet, or its file is damaged."""
        try:
            facts = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
            if facts["format"] != _FORMAT or any(type(facts[name]) is not kind for name, kind in _TYPES.items()):
                return None
            return Reply(**{name: facts[name] for name in _TYPES})
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def save(self, key: str, reply: Reply, prompt: str, secrets: Sequence[str] = ()) -> None:
        """Keep a reply. prompt: version of the wording. secrets: masked, should the server repeat one.

        Raises OutputError where the folder cannot be written.
        """
        facts = {name: kind(getattr(reply, name)) for name, kind in _TYPES.items()}
        facts |= {name: masked(said, secrets) for name, said in facts.items() if isinstance(said, str)}
        path = self.folder / f"{key}.json"
        part = path.with_name(f"{path.name}.part-{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(
                json.dumps({"format": _FORMAT, "prompt": prompt, **facts}, indent=1) + "\n", encoding="utf-8"
            )
            part.replace(path)
        except OSError as exc:
            raise OutputError(f"{path}: cannot be written ({exc.strerror}). Name a folder with room.") from exc
