"""The folder of an audit: its lines and its settings, so that it goes on where it stopped."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.auditor.audit_line import AuditLine
from prefixguard.errors import ConfigError, OutputError, TraceError

LINES, SETTINGS, LOCK = "verdicts.jsonl", "settings.json", "audit.lock"
#: Locks that this process holds: one with its number that is not among them was left by an earlier process.
_HELD: set[str] = set()


@dataclass(frozen=True, slots=True)
class AuditFolder:
    """Where the lines of an audit are kept, so that it goes on where it stopped."""

    path: Path

    def open(self, settings: dict[str, Any]) -> list[AuditLine]:
        """The lines that are there, a line a run: the last one that was written about it.

        What is left of a line that was cut off is removed. TraceError where a line cannot be read; ConfigError where
        the folder holds an audit with other settings; OutputError where it cannot be written.
        """
        kept = self.path / SETTINGS
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if kept.exists():
                try:
                    before = json.loads(kept.read_text(encoding="utf-8"))
                except (ValueError, RecursionError):
                    before = None
                if before != settings:
                    raise ConfigError(
                        f"{self.path}: holds an audit with other settings ({_changed(before, settings)}). Name another "
                        "folder with --out, or the settings of that one."
                    )
            else:
                _write(kept, json.dumps(settings, indent=1, sort_keys=True) + "\n")
            lines = list({line.run_id: line for line in self._lines()}.values())
            self.keep(lines)
            return lines
        except OSError as exc:
            raise OutputError(f"{self.path}: {exc.strerror or exc}. Name another folder with --out.") from exc

    def _lines(self) -> Iterator[AuditLine]:
        path = self.path / LINES
        if not path.exists():
            return
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith(b"\n"):  # the last line of an audit that was cut off
                    return
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as exc:
                    raise TraceError(
                        f"{path}:{number}: not JSON. Move the file away, or name another folder with --out."
                    ) from exc
                yield AuditLine.from_json(value, f"{path}:{number}")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else writes into the folder meanwhile. ConfigError where another audit does.

        A file with the number of this process marks it; one whose process is gone is removed.
        """
        path = self.path / LOCK
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not _made(path):
                owner = _owner(path)
                if _is_alive(owner, path):
                    raise ConfigError(
                        f"{self.path}: another audit{f' (process {owner})' if owner else ''} writes there. Wait for "
                        f"it, or name another folder with --out; if there is none any more, remove {path}."
                    )
                path.unlink(missing_ok=True)
                if not _made(path):
                    raise ConfigError(f"{self.path}: another audit began there. Name another folder with --out.")
        except OSError as exc:
            raise OutputError(f"{self.path}: {exc.strerror or exc}. Name another folder with --out.") from exc
        name = str(path.resolve())
        _HELD.add(name)
        try:
            yield
        finally:
            _HELD.discard(name)
            with contextlib.suppress(OSError):
                path.unlink()

    def keep(self, lines: Iterable[AuditLine]) -> None:
        """Replace all lines."""
        _write(self.path / LINES, "".join(_text(line) for line in lines))

    def add(self, line: AuditLine) -> None:
        """Append a line."""
        try:
            with (self.path / LINES).open("a", encoding="utf-8") as file:
                file.write(_text(line))
        except OSError as exc:
            raise OutputError(f"{self.path / LINES}: {exc.strerror or exc}.") from exc


def _made(path: Path) -> bool:
    """Whether the lock is ours: it was not there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(str(os.getpid()))
    return True


def _owner(path: Path) -> int | None:
    """The process that a lock names; None where it names none."""
    try:
        return int(path.read_bytes()[:20])
    except (OSError, ValueError):
        return None


def _is_alive(owner: int | None, path: Path) -> bool:
    """Whether the process of a lock is there. One that cannot be looked up counts as there."""
    if owner == os.getpid():
        return str(path.resolve()) in _HELD
    if owner is None or owner < 1 or os.name == "nt":
        return True
    try:
        os.kill(owner, 0)  # signal 0 only looks
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _text(line: AuditLine) -> str:
    return json.dumps(line.as_json(), ensure_ascii=True, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as exc:
        raise OutputError(f"{path}: {exc.strerror or exc}.") from exc


def _changed(before: Any, now: dict[str, Any]) -> str:
    if not isinstance(before, dict):
        return "they cannot be read"
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return ", ".join(
        f"{name}: {str(before.get(name))[:40]} there, {str(now.get(name))[:40]} here" for name in names[:4]
    )
