"""Audit finished runs: every run gone through by the same protocol, several at a time, resumable, a line a run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, EndpointError, OutputError
from prefixguard.escalate.audit_line import AuditLine, audit_line
from prefixguard.escalate.inspectors import Inspector
from prefixguard.escalate.no_reply import NoReplyFault
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

LINES, SETTINGS = "verdicts.jsonl", "settings.json"
#: Runs in a row whose questions all stay without an answer until the audit is given up.
_SILENT_RUNS = 3
#: Faults of verdicts that mean that nobody answered. A refusal is one only while nothing was ever answered: a wrong key
#: is refused from the beginning, a prompt that is too long may come at any time.
_NO_REPLY = frozenset(NoReplyFault) | {"no-answer"}
_NO_ANSWER = _NO_REPLY - {NoReplyFault.REFUSED}


@dataclass(frozen=True, slots=True)
class AuditFolder:
    """Where the lines of an audit are kept, so that it goes on where it stopped."""

    path: Path

    def open(self, settings: dict[str, Any]) -> list[AuditLine]:
        """The lines that are there; those with errors are not among them, and are asked again.

        ConfigError where the folder holds an audit with other settings; OutputError where it cannot be written.
        """
        kept = self.path / SETTINGS
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if kept.exists():
                try:
                    before = json.loads(kept.read_text(encoding="utf-8"))
                except ValueError:
                    before = None
                if before != settings:
                    raise ConfigError(
                        f"{self.path}: holds an audit with other settings ({_changed(before, settings)}). Name another "
                        "folder with --out, or the settings of that one."
                    )
            else:
                _write(kept, json.dumps(settings, indent=1, sort_keys=True) + "\n")
            return [line for line in self._lines() if not line.has_errors]
        except OSError as exc:
            raise OutputError(f"{self.path}: {exc.strerror or exc}. Name another folder with --out.") from exc

    def _lines(self) -> Iterator[AuditLine]:
        path = self.path / LINES
        if not path.exists():
            return
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith("\n"):  # the last line of an audit that was cut off
                    return
                try:
                    value = json.loads(text)
                except ValueError:
                    value = None
                yield AuditLine.from_json(value, f"{path}:{number}")

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


def audit(
    runs: Iterable[Run[StepRecord]],
    inspector: Inspector,
    *,
    workers: int = 4,
    out: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    listen: Callable[[AuditLine], None] | None = None,
) -> list[AuditLine]:
    """Go through every run; a line a run, in the order of the runs.

    inspector: how. It is given every run without its labels, so that these cannot decide how a run is gone through.
    workers: runs at a time, 1 or more.
    out: a folder; lines are kept there as they come, and runs that are there without errors are not asked again.
    settings: what the audit rests on, plain values; a folder with others is refused.
    listen: told every line, also those that were kept, as it is done.
    EndpointError when nobody answers, run after run; ConfigError, OutputError as `AuditFolder.open`.
    """
    if workers < 1:
        raise ConfigError(f"workers {workers}: runs at a time, 1 or more.")
    folder = None if out is None else AuditFolder(Path(out))
    done = {line.run_id: line for line in folder.open(dict(settings or {}))} if folder is not None else {}
    if folder is not None:
        folder.keep(done.values())
    told = listen if listen is not None else _nobody
    return asyncio.run(_all(runs, inspector, workers, done, folder, told))


def unlabelled(run: Run[StepRecord]) -> Run[StepRecord]:
    """The run as somebody sees it who does not know how it ended."""
    return replace(run, outcome=Outcome.UNKNOWN, mistake=None, faults=())


async def _line(run: Run[StepRecord], inspector: Inspector) -> AuditLine:
    return audit_line(run, inspector.protocol, await inspector.inspect(unlabelled(run)))


async def _all(
    runs: Iterable[Run[StepRecord]],
    inspector: Inspector,
    workers: int,
    done: dict[str, AuditLine],
    folder: AuditFolder | None,
    told: Callable[[AuditLine], None],
) -> list[AuditLine]:
    """Lines in the order of the runs; at most `workers` runs are under way."""
    lines: list[AuditLine] = []
    silence = _Silence()
    async with contextlib.AsyncExitStack() as open_things:
        open_things.push_async_callback(inspector.aclose)
        finished = await open_things.enter_async_context(contextlib.aclosing(_in_order(runs, inspector, workers, done)))
        async for line, is_new in finished:
            lines.append(line)
            if is_new and folder is not None:
                folder.add(line)
            told(line)
            if is_new and line.calls:
                silence.hear(line)
            if silence.runs >= _SILENT_RUNS:
                raise silence.error()
    if silence.runs and not silence.answered and not done:  # fewer runs than that, and not one answer
        raise silence.error()
    return lines


@dataclass(slots=True)
class _Silence:
    """Whether anybody answers. runs: audited last without any answer. answered: has any question been, so far."""

    runs: int = 0
    answered: bool = False
    why: str = ""

    def hear(self, line: AuditLine) -> None:
        """A run that was asked about."""
        mute = _NO_ANSWER if self.answered else _NO_REPLY
        unheard = [call for call in line.calls if call["fault"] in mute]
        if len(unheard) < len(line.calls):
            self.runs, self.why = 0, ""
            self.answered = self.answered or any(call["fault"] not in _NO_REPLY for call in line.calls)
            return
        self.runs += 1
        self.why = self.why or next(filter(None, map(_why, unheard)), "") or unheard[-1]["detail"]

    def error(self) -> EndpointError:
        return EndpointError(
            f"nobody answers: {self.why or 'no reply.'} The same command goes on from here when the endpoint is back, "
            "if --out names a folder."
        )


async def _in_order(
    runs: Iterable[Run[StepRecord]], inspector: Inspector, workers: int, done: dict[str, AuditLine]
) -> AsyncGenerator[tuple[AuditLine, bool], None]:
    waiting: list[AuditLine | asyncio.Task[AuditLine]] = []
    source = iter(runs)
    more = True
    try:
        while more or waiting:
            under_way = sum(isinstance(entry, asyncio.Task) for entry in waiting)
            while more and under_way < workers:
                run = next(source, None)
                if run is None:
                    more = False
                elif (line := done.get(run.run_id)) is not None and _is_of(line, run):
                    waiting.append(line)
                else:
                    waiting.append(asyncio.create_task(_line(run, inspector)))
                    under_way += 1
            if waiting:
                first = waiting.pop(0)
                yield (await first, True) if isinstance(first, asyncio.Task) else (first, False)
    finally:
        tasks = [entry for entry in waiting if isinstance(entry, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_of(line: AuditLine, run: Run[StepRecord]) -> bool:
    """Whether a line that is there may be this run's: other files have runs of the same name."""
    return (line.n_steps, line.task_id) == (len(run.records), run.task_id)


def _why(call: Mapping[str, Any]) -> str:
    """What the endpoint did; "" of a question that was never sent."""
    if call["fault"] != NoReplyFault.CIRCUIT_OPEN:
        return str(call["detail"])
    notes = (str(note).partition("; trying again")[0] for note in call.get("notes", ()))
    return next((f"{note}." for note in notes), "")  # of a try before the circuit opened


def _nobody(_: AuditLine) -> None:
    return None


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
