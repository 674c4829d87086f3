"""Logs of Inspect, as `inspect eval` writes them by default, and as JSON."""

from __future__ import annotations

import tempfile
from contextlib import chdir, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.record_exports.recording import SCENARIOS, Export, Play


class _Unwatched:
    """In the place of the guard. options: of Inspect's `eval`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options

    def inspect(self) -> Any:
        return nullcontext()


def _log(form: str) -> Any:
    def record(play: Play) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):  # a log names the repository that it is written in
            play(_Unwatched({"log_dir": folder, "log_format": form}))
            (path,) = Path(folder).glob(f"*.{form}")
            return {f"log.{form}": path.read_bytes()}

    return record


EXPORTS = {
    "eval": Export("inspect", "inspect-ai", _log("eval")),
    "json": Export("inspect", "inspect-ai", _log("json"), sorted({*SCENARIOS} - {"nested, parallel"})),
}
