"""Recorded runs of any format as events, so that they train monitors that a guard feeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, OutputError
from prefixguard.integrations.events import Event
from prefixguard.integrations.recorder import Recorder
from prefixguard.runtime import parse
from prefixguard.stepview import Adapter, ReadReport, StepRecord
from prefixguard.trace import Outcome, Run

#: What runs can be converted to.
FORMATS = ("events",)


@dataclass(frozen=True, slots=True)
class Converted:
    """runs, steps : that were written. without_task : runs whose task nobody names. report : what reading met."""

    folder: Path
    runs: int
    steps: int
    without_task: int
    report: ReadReport

    def as_json(self) -> dict[str, Any]:
        """The fields as plain values."""
        counts = {name: getattr(self, name) for name in ("runs", "steps", "without_task")}
        return {"folder": str(self.folder), **counts}

    def to_text(self) -> str:
        """What was written, in a sentence, and what to do next."""
        lines = [f"{self.runs:,} runs of {self.steps:,} steps in {self.folder}."]
        if self.without_task:
            lines.append(
                f"{self.without_task:,} of them name no task: runs of one task may then stand on two sides of a split."
            )
        return "\n".join([*lines, f"Next: prefixguard train {self.folder}"])


def convert(
    runs: str | os.PathLike[str],
    adapter: str | Path | Adapter,
    out: str | os.PathLike[str],
    *,
    to: str = "events",
    labels: str | os.PathLike[str] | None = None,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Converted:
    """Write runs as events (`prefixguard/event/v1`), one file a run, as a `Guard` records them.

    What is read of a run are its steps, so texts are as long as the adapter's budgets. Steps come out of the files as
    they went in, all in one agent path.

    runs : file, folder, glob or tar of runs, or - for standard input.
    adapter : how they are read: a shipped adapter's name, or the path of a .json.
    out : folder for the events; new, or empty.
    to : what they become: events.
    labels : outcomes beside the runs.
    strict : stop at the first run that cannot be read.
    progress : called with the number of runs so far.
    Raises AdapterError, TraceError, ConfigError, OutputError.
    """
    if to not in FORMATS:
        raise ConfigError(f"runs cannot be converted to {to!r}: say {', '.join(FORMATS)}.")
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{out}: is there already and not empty. Name a new folder.")
    report = ReadReport()
    recorder = Recorder(folder)
    n_runs = steps = without_task = 0
    for run in parse(runs, adapter, labels=labels, strict=strict, report=report):
        name = recorder.free_id(run.run_id)
        recorder.write_all(name, (event.to_json() for event in events_of(run, name)))
        n_runs, steps, without_task = n_runs + 1, steps + len(run.records), without_task + (run.task_id is None)
        if progress is not None:
            progress(n_runs)
    return Converted(folder, n_runs, steps, without_task, report)


def events_of(run: Run[StepRecord], name: str) -> Iterator[Event]:
    """The events that give these steps again."""
    task = run.task_id or ""
    first = run.records[0].observation if run.records else ""
    yield Event(name, "task", text=first, task_id=task, agent=run.groups.get("agent", ""))
    for turn, record in enumerate(run.records, 1):
        actor: Any = "" if record.actor == "agent" else record.actor
        if record.observation and turn > 1:
            yield Event(name, "observed", text=record.observation)
        if record.tool == "respond" and not record.result and not record.arguments:
            yield Event(name, "said", text=record.action, agent=record.agent, actor=actor, **_took(record))
            continue
        call_id = f"c{turn}"
        yield Event(
            name, "called", text=record.action, agent=record.agent, actor=actor, turn=turn, call_id=call_id,
            tool=record.tool, arguments=record.arguments or None, **_took(record),
        )  # fmt: skip
        if record.status != "unknown" or record.result:
            yield Event(name, "returned", call_id=call_id, text=record.result, is_error=record.status == "error")
    yield Event(name, "ended")
    if run.outcome is not Outcome.UNKNOWN:
        yield Event(name, "outcome", outcome="success" if run.outcome is Outcome.SUCCESS else "failure")


def _took(record: StepRecord) -> dict[str, Any]:
    """The fields of an event that say what the step took."""
    known = {} if record.signals is None else record.signals.to_json()
    found: dict[str, Any] = {name: known[name] for name in ("seconds",) if name in known}
    found |= {name: round(known[name]) for name in ("tokens_in", "tokens_out") if name in known}
    found |= {"cost": known["dollars"]} if "dollars" in known else {}
    logprobs = {name.removeprefix("logprob_"): known[name] for name in ("logprob_mean", "logprob_min") if name in known}
    return found | ({"logprobs": logprobs} if logprobs else {})
