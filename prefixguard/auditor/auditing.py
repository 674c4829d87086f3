"""Audit finished runs: every run gone through by the same protocol, several at a time, resumable, a line a run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefixguard.auditor.audit_line import AuditLine, audit_line, records_digest, relabelled, spent_on
from prefixguard.auditor.protocols import AuditProtocol
from prefixguard.errors import ConfigError, EndpointError, OutputError, TraceError, UsageError
from prefixguard.escalate import NoReplyFault
from prefixguard.stepview import StepRecord
from prefixguard.store import Kept, Store
from prefixguard.trace import Outcome, Run

#: Runs in a row whose questions all stay without an answer until the audit is given up.
_SILENT_RUNS = 3
#: Faults of verdicts that mean that nobody answered. A refusal is one only while nothing was ever answered: a wrong key
#: is refused from the beginning, a prompt that is too long may come at any time.
_NO_REPLY = frozenset(NoReplyFault) | {"no-answer"}
_NO_ANSWER = _NO_REPLY - {NoReplyFault.REFUSED}


def audit(
    runs: Iterable[Run[StepRecord]],
    protocol: AuditProtocol,
    *,
    workers: int = 4,
    out: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    listen: Callable[[AuditLine], None] | None = None,
) -> list[AuditLine]:
    """Go through every run; a line a run, in the order of the runs.

    protocol: how. It is given every run without its labels, so that these cannot decide how a run is gone through.
    workers : runs at a time, 1 or more.
    out: a folder; lines are kept there as they come, and written to verdicts.jsonl at the end. A run whose line is
        there without errors, and whose records say the same now, is not asked about again; what its labels say is
        taken from the run.
    settings: what the audit rests on, plain values; an audit with others lies beside it in the folder.
    listen: told every line, also those that were kept, in the order of the runs.
    EndpointError when nobody answers, run after run; OutputError as `AuditFolder`. UsageError where
    an event loop is running: await `audit_async` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(audit_async(runs, protocol, workers=workers, out=out, settings=settings, listen=listen))
    raise UsageError(
        "audit() runs an event loop of its own, and one is running here (a notebook, a server). Await audit_async(...) "
        "with the same arguments, or asyncio.to_thread(audit, ...)."
    )


async def audit_async(
    runs: Iterable[Run[StepRecord]],
    protocol: AuditProtocol,
    *,
    workers: int = 4,
    out: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    listen: Callable[[AuditLine], None] | None = None,
) -> list[AuditLine]:
    """`audit` on the event loop that is running."""
    if workers < 1:
        raise ConfigError(f"workers {workers}: runs at a time, 1 or more.")
    folder = None if out is None else AuditFolder(out, settings or {})
    lines: list[AuditLine] = []

    def told(line: AuditLine) -> None:
        lines.append(line)
        if listen is not None:
            listen(line)

    try:
        await _all(runs, protocol, workers, folder, told)
    finally:
        if folder is not None:
            folder.write(lines)
    return lines


def unlabelled(run: Run[StepRecord]) -> Run[StepRecord]:
    """The run as somebody sees it who does not know how it ended."""
    return replace(run, outcome=Outcome.UNKNOWN, mistake=None, faults=())


async def _all(
    runs: Iterable[Run[StepRecord]],
    protocol: AuditProtocol,
    workers: int,
    folder: AuditFolder | None,
    told: Callable[[AuditLine], None],
) -> None:
    """Tells lines in the order of the runs; at most `workers` runs are under way. A slow run holds up no other one."""
    ready: dict[int, AuditLine] = {}  # by place; those before `n_told` are told
    under_way: dict[asyncio.Task[AuditLine], int] = {}
    silence, source, n_told, n_runs = _Silence(), iter(runs), 0, 0

    async def line_of(run: Run[StepRecord], before: AuditLine | None) -> AuditLine:
        """before: the line that this one replaces; what was spent on it is not forgotten."""
        line = audit_line(run, protocol.name, await protocol.inspect(unlabelled(run)))
        return line if before is None else replace(line, spent=spent_on(before))

    def tell() -> None:
        nonlocal n_told
        while n_told in ready:
            n_told += 1
            told(ready.pop(n_told - 1))

    async with contextlib.AsyncExitStack() as open_things:
        open_things.push_async_callback(protocol.aclose)
        open_things.push_async_callback(_cancel, under_way)
        more = True
        while more or under_way:
            while more and len(under_way) < workers:
                run = next(source, None)
                if run is None:
                    more = False
                    continue
                line = None if folder is None else folder.get(run.run_id)
                if line is not None and not line.has_errors and line.digest == records_digest(run.records):
                    ready[n_runs] = relabelled(line, run)
                    tell()
                else:
                    under_way[asyncio.create_task(line_of(run, line))] = n_runs
                n_runs += 1
            if not under_way:
                break
            finished, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            # All are kept before any is told: whoever listens may end the audit.
            new = sorted((under_way.pop(task), task.result()) for task in sorted(finished, key=under_way.__getitem__))
            for place, line in new:
                ready[place] = line
                if folder is not None:
                    folder.keep(line)
            tell()
            for _, line in new:
                silence.hear(line)
                if silence.runs >= _SILENT_RUNS:
                    raise silence.error()
    if silence.runs and not silence.answered:  # fewer runs than that, and not one answer
        raise silence.error()


async def _cancel(under_way: dict[asyncio.Task[AuditLine], int]) -> None:
    for task in under_way:
        task.cancel()
    await asyncio.gather(*under_way, return_exceptions=True)


@dataclass(slots=True)
class _Silence:
    """Whether anybody answers. runs: audited last without any answer. answered: has any question been, so far."""

    runs: int = 0
    answered: bool = False
    why: str = ""

    def hear(self, line: AuditLine) -> None:
        """A run that was asked about. What was answered from an earlier reply says nothing about the endpoint."""
        asked = [call for call in line.calls if not call.get("cached")]
        if not asked:
            return
        mute = _NO_ANSWER if self.answered else _NO_REPLY
        unheard = [call for call in asked if call["fault"] in mute]
        if len(unheard) < len(asked):
            self.runs, self.why = 0, ""
            self.answered = self.answered or any(call["fault"] not in _NO_REPLY for call in asked)
            return
        self.runs += 1
        self.why = self.why or next(filter(None, map(_why, unheard)), "") or unheard[-1]["detail"]

    def error(self) -> EndpointError:
        return EndpointError(
            f"nobody answers: {self.why or 'no reply.'} The same command goes on from here when the endpoint is back, "
            "if --out names a folder."
        )


def _why(call: Mapping[str, Any]) -> str:
    """What the endpoint did; "" of a question that was never sent."""
    if call["fault"] != NoReplyFault.CIRCUIT_OPEN:
        return str(call["detail"])
    notes = (str(note).partition("; trying again")[0] for note in call.get("notes", ()))
    return next((f"{note}." for note in notes), "")  # of a try before the circuit opened


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
        where = f"{self.path}: run {run_id}"
        return None if found is None else AuditLine.from_json(json.loads(found.facts["line"]), where)

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
