"""The process behind `prefixguard hook claude-code`: a guard that judges what one command after another hands over.

    state folder, mode 0700:  lock, socket, worker.log, failed, counters.json, problems.jsonl, runs/SESSION.json

Whoever holds the lock is the worker. Every run is kept in its file after each hook, so that a worker that is killed, or
leaves since nothing happened, loses nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep, time
from typing import IO, Any, Final

from prefixguard.bundle.files import replace_file
from prefixguard.errors import PrefixGuardError, SavedSessionError
from prefixguard.integrations.claude import ClaudeSession, ClaudeWatcher
from prefixguard.integrations.guard import Guard

#: Seconds without a hook after which the worker leaves; a run that is kept for longer without one is removed.
IDLE: Final = 1800.0
_OLD = 30 * 86400.0
#: Seconds between two looks whether the socket is still there: a hook that finds none waits as long.
_LOOKS = 0.5
#: Seconds that a worker waits for another one, which has the lock, to listen or to leave.
_YIELDS = 15.0
#: Runs that are open at once at most; one that makes room is taken from its file as soon as it goes on.
_MOST_OPEN = 256
_MOST_PAYLOAD, _MOST_KEPT, _SECONDS = 16 << 20, 64 << 20, 5.0


def work(options: Mapping[str, Any]) -> int:
    """Answer hooks until none has come for a while. Returns the exit code."""
    folder: Path = options["folder"]
    with (folder / "lock").open("ab") as lock:
        if not _locked(lock, folder):
            return 0  # there is one
        lock.truncate(0)
        lock.write(str(os.getpid()).encode())
        lock.flush()
        try:
            guard = Guard(
                options["monitor"], on_alarm=lambda _: sessions.on_alarm, record=options["record"],
                max_open_runs=_MOST_OPEN, idle_seconds=_OLD,
            )  # fmt: skip
        except PrefixGuardError as exc:
            sys.stderr.write(f"{exc}\n")
            (folder / "failed").touch()
            return 1
        (folder / "failed").unlink(missing_ok=True)
        sessions = KeptSessions(guard, folder)
        with listening(folder) as server:
            serve(server, sessions)
    return 0


def _locked(lock: IO[bytes], folder: Path) -> bool:
    """Take the lock; False where another worker has it and listens. One whose socket was removed is about to leave."""
    until = monotonic() + _YIELDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if (folder / "socket").exists() or monotonic() > until:
                return False
            sleep(_LOOKS / 10)


@contextmanager
def listening(folder: Path) -> Iterator[socket.socket]:
    """The socket in this folder, while it listens. The process stays in the folder: names of sockets are short."""
    os.chdir(folder)
    Path("socket").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind("socket")
        mine = _inode()
        server.listen(128)
        yield server
        if _inode() == mine:  # not the one of the next worker
            Path("socket").unlink(missing_ok=True)


def _inode() -> int | None:
    """Which file is the socket in this folder; None where there is none."""
    try:
        return Path("socket").stat().st_ino
    except OSError:
        return None


def serve(server: socket.socket, sessions: KeptSessions, idle: float = IDLE) -> None:
    """Answer one hook after the other until none has come for so many seconds, or the socket is removed."""
    server.settimeout(min(idle, _LOOKS))
    last, mine = monotonic(), _inode() or -1
    while True:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            if monotonic() - last >= idle or _inode() != mine:
                return
            continue
        last = monotonic()
        with connection, suppress(OSError):  # whoever asked may be gone
            connection.settimeout(_SECONDS)
            parts, size = [], 0
            while (part := connection.recv(65536)) and size <= _MOST_PAYLOAD:
                parts.append(part)
                size += len(part)
            connection.sendall(json.dumps(sessions.answer(b"".join(parts))).encode())


class KeptSessions:
    """The watcher of one state folder, whose runs are in the folder between two hooks.

    on_alarm : what the command that asked last wants done at an alarm: a session may change it.
    """

    def __init__(self, guard: Guard, folder: Path) -> None:
        self.on_alarm = "warn"
        self._guard, self._watcher, self._folder = guard, ClaudeWatcher(guard, {}), folder
        self._runs = folder / "runs"
        self._runs.mkdir(mode=0o700, exist_ok=True)
        self._before = _counters(folder)
        self._sweep()

    def answer(self, data: bytes) -> dict[str, Any]:
        """What the hook answers. data : the payload, behind a line that says what an alarm does, if any does. Raises
        nothing of its own."""
        wanted, _, rest = data.partition(b"\n")
        if wanted in (b"nudge", b"stop", b"warn"):
            self.on_alarm, data = wanted.decode(), rest
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            payload = None
        session_id = payload.get("session_id") if isinstance(payload, dict) else None
        known = session_id if isinstance(session_id, str) else ""
        path = self._runs / f"{_digest(known)}.json"
        if known:
            self._resume(known, path)
        answer = self._watcher.answer(payload)
        try:
            if known:
                self._keep(known, path)
            counted = {name: self._before.get(name, 0) + n for name, n in self._guard.counters.items()}
            replace_file(self._folder / "counters.json", json.dumps(self._before | counted).encode(), 0o600)
        except Exception as exc:
            self._guard.failed("the state of a session", exc)
        return answer

    def _resume(self, session_id: str, path: Path) -> None:
        try:
            known = self._watcher.sessions.get(session_id)
            if (known is not None and self._guard.is_open(known.run)) or not path.exists():
                return
            if path.stat().st_size > _MOST_KEPT:
                raise SavedSessionError("The kept run is too large.")
            kept = json.loads(path.read_bytes())
            session = ClaudeSession(**kept["session"])
            self._guard.resume_run(kept["run"])
            self._watcher.sessions[session_id] = session
        except Exception as exc:  # a new run begins
            self._guard.count("lost_sessions")
            self._guard.failed("the kept state of a session", exc)

    def _keep(self, session_id: str, path: Path) -> None:
        session = self._watcher.sessions.get(session_id)
        run = None if session is None else self._guard.save_run(session.run)
        if session is None or run is None:
            path.unlink(missing_ok=True)
        else:
            replace_file(path, json.dumps({"session": asdict(session), "run": run}).encode(), 0o600)

    def _sweep(self) -> None:
        """Runs that nobody went on with for a month."""
        for path in self._runs.glob("*.json"):
            with suppress(OSError):
                if time() - path.stat().st_mtime > _OLD:
                    path.unlink()


def _digest(session_id: str) -> str:
    return hashlib.blake2b(session_id.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _counters(folder: Path) -> dict[str, int]:
    try:
        found = json.loads((folder / "counters.json").read_bytes())
        return {str(name): int(n) for name, n in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
