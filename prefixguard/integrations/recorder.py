"""Writes the events of runs, one file a run, as monitors are trained on them and as hooks feed them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from prefixguard.errors import OutputError, TraceError
from prefixguard.integrations.events import MAIN, Event

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_MOST_LINE = 8 << 20


def file_name(run: str) -> str:
    """The file of a run: its id where that is a plain name, else a digest of it.

    >>> file_name("chat-17"), len(file_name("../../etc/passwd"))
    ('chat-17.jsonl', 38)
    """
    if _PLAIN_NAME.fullmatch(run):
        return f"{run}.jsonl"
    return hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=16).hexdigest() + ".jsonl"


class Recorder:
    """A folder of recorded runs. Safe for threads; processes may write to the same folder, each its own runs.

    A line is written whole, as soon as its event has happened. Files can be read by their owner alone, since they hold
    what the agent saw.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """folder: made if it is not there. Raises OutputError where nothing can be written."""
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise OutputError(
                f"{folder}: runs cannot be recorded there ({exc.strerror}). Name a folder that can be written."
            ) from exc

    def free_id(self, run: str) -> str:
        """This id, or with a number behind it where a run of that name is recorded; its file is made, empty, so that it
        is taken for all processes. Raises OutputError."""
        name, n = run, 1
        while True:
            path = self.folder / file_name(name)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
                return name
            except FileExistsError:
                n += 1
                name = f"{run}-{n}"
            except OSError as exc:
                raise OutputError(f"{path}: cannot be made ({exc.strerror}). Look after room and rights.") from exc

    def write(self, line: Mapping[str, Any]) -> None:
        """Append an event (`Event.to_json`) to the file of its run. Raises OutputError where it cannot."""
        self.write_all(line["run"], [line])

    def _is_torn(self, run: str) -> bool:
        """Does the file end within a line, since the process died as it was written?"""
        with (self.folder / file_name(run)).open("rb") as file:
            return file.seek(0, os.SEEK_END) > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"

    def write_all(self, run: str, lines: Iterable[Mapping[str, Any]], after_break: bool = False) -> None:
        """Append the run's events at once. after_break : the file ends within a line."""
        path = self.folder / file_name(run)
        text = "\n" * after_break + "".join(
            json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines
        )
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(text.encode("utf-8", "replace"))
        except FileNotFoundError as exc:
            raise OutputError(f"{self.folder}: is no more, so nothing is recorded. Make it again.") from exc
        except OSError as exc:
            raise OutputError(
                f"{path}: an event cannot be recorded ({exc.strerror}). Look after room and rights."
            ) from exc

    def outcome(self, run: str, outcome: Literal["success", "failure"], at: float | None = None) -> None:
        """Append how the run ended, once for each of its agents. Said again, the last one counts.

        Raises TraceError where no run of this id is recorded, OutputError where it cannot be written.
        """
        paths = self.agent_paths(run)
        if not paths:
            raise TraceError(
                f"{self.folder}: no run {run!r:.100} is recorded, so its outcome stands nowhere. Name the id that "
                "its events have."
            )
        lines = [Event(run, "outcome", path, outcome=outcome, at=at).to_json() for path in paths]
        self.write_all(run, lines, after_break=self._is_torn(run))

    def agent_paths(self, run: str) -> tuple[str, ...]:
        """Agents of a recorded run, in the order in which they begin; none where there is no such run."""
        found: dict[str, None] = {}
        try:
            with (self.folder / file_name(run)).open("rb") as file:
                while line := file.readline(_MOST_LINE):
                    try:
                        path = json.loads(line).get("agent_path", MAIN)
                    except (ValueError, AttributeError, RecursionError):
                        continue  # the end of a line that was cut off as the process died
                    if isinstance(path, str):
                        found[path] = None
        except OSError:
            return ()
        return tuple(found)
