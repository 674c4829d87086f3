"""The folder of an audit: its lines as they come, so that it goes on where it stopped, and all of them in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prefixguard.auditor.audit_line import AuditLine
from prefixguard.errors import ConfigError, OutputError, TraceError
from prefixguard.store import Kept, Store

#: The lines of the audit that ended last, for whoever reads them. Nothing is taken up from it.
LINES = "verdicts.jsonl"
#: What release 0.3 wrote beside its lines; with it, `LINES` of that release are taken up.
_OLD_SETTINGS = "settings.json"


class AuditFolder:
    """Where the lines of an audit are kept, each as soon as it is there (`prefixguard.store`).

    An audit with other settings lies beside this one in the same folder; several may go on at once.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        """settings: all that verdicts rest on, plain JSON values. OutputError where the folder cannot be made;
        TraceError or ConfigError where what release 0.3 kept in it cannot be read."""
        self.path = Path(path)
        self._settings = json.loads(json.dumps(dict(settings)))
        self._store = Store(self.path, {"settings": self._settings})
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take_up_old()
        except OSError as exc:
            raise OutputError(f"{self.path}: {exc.strerror or exc}. Name another folder with --out.") from exc

    def get(self, run_id: str) -> AuditLine | None:
        """The line that was kept last of a run; None where there is none."""
        found = self._store.get("audit", run=run_id)
        return (
            None
            if found is None
            else AuditLine.from_json(json.loads(found.facts["line"]), f"{self.path}: run {run_id}")
        )

    def keep(self, line: AuditLine) -> None:
        """Keep a line; an earlier one of its run is replaced. OutputError where that cannot be."""
        self._store.put(_kept(line), "audit", run=line.run_id)

    def write(self, lines: Iterable[AuditLine]) -> None:
        """Write `LINES`: these, and then those kept of other runs. OutputError where that cannot be."""
        by_run = {line.run_id: _text(line) for line in lines}
        for asked, kept in self._store.each("audit"):
            if asked.get("settings") == self._settings:
                by_run.setdefault(asked["run"], str(kept.facts["line"]))
        part = self.path / f".{LINES}.{os.getpid()}.part"
        try:
            part.write_text("".join(f"{text}\n" for text in by_run.values()), "utf-8")
            part.replace(self.path / LINES)
        except OSError as exc:
            raise OutputError(f"{self.path / LINES}: {exc.strerror or exc}.") from exc

    def _take_up_old(self) -> None:
        """Keeps the lines that release 0.3 wrote, under their own settings."""
        beside, path = self.path / _OLD_SETTINGS, self.path / LINES
        if not beside.exists() or not path.exists():
            return
        try:
            store = Store(self.path, {"settings": json.loads(beside.read_text(encoding="utf-8"))})
        except (ValueError, RecursionError) as exc:
            raise ConfigError(f"{beside}: cannot be read. Move it away, or name another folder with --out.") from exc
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith(b"\n"):  # the last line of an audit that was cut off
                    break
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as exc:
                    raise TraceError(
                        f"{path}:{number}: not JSON. Move the file away, or name another folder with --out."
                    ) from exc
                line = AuditLine.from_json(value, f"{path}:{number}")
                store.put(_kept(line), "audit", run=line.run_id)
        beside.unlink()


def _text(line: AuditLine) -> str:
    return json.dumps(line.as_json(), allow_nan=False)


def _kept(line: AuditLine) -> Kept:
    return Kept({"line": _text(line)})  # as text: its keys stay in their order
