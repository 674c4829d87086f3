"""How an environment in another process is asked: JSON lines over its standard streams, or HTTP; always within a time
limit."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from prefixguard.errors import ReplayError
from prefixguard.escalate import shown_url

#: Seconds for one answer, and for the first one of a process, which imports what it needs.
SECONDS, FIRST_SECONDS = 60.0, 120.0
#: Seconds in which a process may end by itself.
_GRACE = 3.0
#: Bytes of an answer, and characters of what a process said before it ended.
_LONGEST, _TOLD = 16 << 20, 600


class Channel(Protocol):
    """Asks an environment. Every method may raise ReplayError: it is not there, hangs, crashed, or answers nonsense."""

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer, an object without an "error"."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def _checked(raw: bytes, where: str) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise ReplayError(f"{where} answered {raw[:80]!r}: one JSON object was expected.")
    if "error" in answer:
        raise ReplayError(f"{where}: {str(answer['error'])[:_TOLD]}")
    return answer


class ProcessChannel:
    """A process of our own that reads a JSON line and writes one. It is begun with the first question, and again after
    it crashed or was too slow. An answer that is late never becomes the answer of another question.

    command: what is run. name: for messages. seconds, first: for an answer, and for the first one.
    """

    def __init__(
        self, command: Sequence[str], name: str, *, seconds: float = SECONDS, first: float = FIRST_SECONDS
    ) -> None:
        self._command, self._name, self._seconds, self._first = list(command), name, seconds, first
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._errors: list[bytes] = []

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Channel`."""
        limit = self._seconds if self._process is not None else self._first
        process = self._process or self._begin()
        try:
            if process.stdin is not None:
                process.stdin.write(json.dumps(dict(request)).encode() + b"\n")
                process.stdin.flush()
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            self._kill()
            raise ReplayError(f"{self._name} did not answer within {limit:g} seconds, and was ended.") from None
        except OSError:
            line = b""
        except BaseException:  # interrupted: its answer would be taken for that of the next question
            self._kill()
            raise
        if not line.endswith(b"\n"):
            self._kill()
            said = b"".join(self._errors[-20:]).decode("utf-8", "replace").strip()[-_TOLD:]
            raise ReplayError(f"{self._name} ended{f', and said: {said}' if said else ' without a word'}")
        return _checked(line, self._name)

    def close(self) -> None:
        """End the process: it may clear up behind itself, for a moment."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(_GRACE)
        self._kill()

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as exc:
            raise ReplayError(f"{self._name}: {self._command[0]} does not run ({exc.strerror or exc}).") from exc
        lines, errors = queue.SimpleQueue[bytes](), list[bytes]()

        def read() -> None:
            with contextlib.suppress(OSError, ValueError):  # closed under our hands
                while process.stdout is not None and (line := process.stdout.readline(_LONGEST)):
                    lines.put(line)
            lines.put(b"")

        def listen() -> None:
            with contextlib.suppress(OSError, ValueError):
                while process.stderr is not None and (line := process.stderr.readline(10_000)):
                    errors.append(line)
                    del errors[:-40]

        for work in (read, listen):
            threading.Thread(target=work, name="prefixguard-environment", daemon=True).start()
        self._process, self._lines, self._errors = process, lines, errors
        return process


class HttpChannel:
    """A server of somebody's own: POST ADDRESS/VERB with a JSON object, answered by one."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """See `Channel`."""
        address = f"{self._address}/{request['do']}"
        where = shown_url(address)
        asked = urllib.request.Request(
            address, json.dumps(dict(request)).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
                return _checked(answer.read(_LONGEST), where)
        except (urllib.error.URLError, OSError, ValueError) as exc:
            if isinstance(exc, ReplayError):
                raise
            why = str(getattr(exc, "reason", None) or exc)
            if isinstance(exc, urllib.error.HTTPError):
                with contextlib.suppress(OSError):
                    why = f"answered {exc.code}: {exc.read(1000).decode('utf-8', 'replace').strip()[:80]!r}"
            raise ReplayError(f"{where}: {why}. Is the environment's server up?") from exc

    def close(self) -> None:
        """Nothing is held."""
