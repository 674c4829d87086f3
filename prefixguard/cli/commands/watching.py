"""`prefixguard watch`: a line after every step."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import typer
from rich.text import Text

from prefixguard.bundle import Trust
from prefixguard.cli.command import Older, command
from prefixguard.cli.console import say, visible, write_data, write_json
from prefixguard.cli.escalation import ESCALATION, SERVER, EscalatedLines, close_escalator, escalator_of
from prefixguard.cli.shown import DriftLine, ReadingLines, notes_of, refuse_empty, unlike_lines
from prefixguard.errors import UsageError
from prefixguard.escalate import EscalatedReading, Escalator, escalate_records, watch_escalated
from prefixguard.runtime import Level, Monitor, Reading, load, score, watch
from prefixguard.stepview import ReadReport, read_runs
from prefixguard.trace import RunOffer, read_named, standard_input

_LARGEST_HEADER = 64 << 20  # bytes


@command(
    {"watch": "", "Endpoint": " ".join(SERVER)},
    arguments="monitor run",
    words={
        "group": "With -: the run's group, if the monitor has thresholds by group (see `calibrate`).",
        "tools": "With -: name of a tool that the run can call; one a use.",
        "step_limit": "With -: steps that the run may have. No risk rests on it, nor on the tools.",
        "state": "With -: go on with the run saved in this file, if it is there; save it there at the end.",
        "end": "With --state: the run is over with this input; the file is removed.",
        "timeout": "Seconds for one question, from the step that asks it.",
    },
    json="A JSON object a step, as `score` writes them.",
    panels=dict.fromkeys(ESCALATION, "With --escalate"),
    also=escalator_of,
    older={"rung": Older("--intervention"), "mark": Older("--threshold", "float | None")},
)
def watch_runs(
    monitor: Path,
    adapter: str | None,
    group: str | None,
    tools: list[str] | None,
    step_limit: int | None,
    state: Path | None,
    end: bool,
    trust: Trust | None,
    as_json: bool,
    run: str = "-",
    header: Path | None = None,
    run_id: str | None = None,
    fail_on_alarm: bool = False,
    escalate: str | None = None,
    behaviours: Path | None = None,
    reasons: Literal["behaviours", "features"] = "behaviours",
    **asked: Any,
) -> None:
    """Watch a run while it goes on: a line after every step, flushed at once.

    From standard input a line is one raw event as the adapter knows it: a JSON value (for chat formats: one message),
    or, for adapters of text, a line of that text. An event that cannot be read is a line of level UNKNOWN that says
    why; the watch goes on. An alarm stays, also where the risk falls below the threshold again.

    With --state FILE a run is watched across processes: each call goes on where the last one stopped, and saves the
    session when its input is over, whole or not at all; interrupted, it leaves the file as it was. The call with --end
    is the run's last. The file holds text of the run that waits for its step, and only its owner can read it.

    Of a file, each line begins with the id of its run. With several runs, a line on standard error says when runs of
    new tasks are no longer like the runs that set the alarm, so that its false-alarm budget is not to be relied on.

    With --escalate the model is asked when the risk comes above the threshold, and every so many steps while it stays
    above, but not more often than the gap and the limits of calls let it. `audit --monitor` asks by the same rules with
    a gap of 1 and without limits of calls. A verdict that comes after the last step is told at the end.

    Examples:

        my-agent --log-events | prefixguard watch monitors/mine -
        tail -n +1 -f events.jsonl | prefixguard watch monitors/mine - --json
        prefixguard watch monitors/mine finished_run.json --fail-on-alarm
        my-agent --log-events | prefixguard watch rules - --adapter openai_chat       # without training
        my-agent --log-events | prefixguard watch rules - --tools search --tools pay --step-limit 30
        cat new_events.jsonl | prefixguard watch monitors/mine - --state run7.session
        cat last_events.jsonl | prefixguard watch monitors/mine - --state run7.session --end
        my-agent --log-events | prefixguard watch monitors/mine - --escalate qwen --base-url http://localhost:8000/v1

    run : A file of runs as the adapter reads them; or - (standard input), one raw event a line.
    header : With -: JSON file of what is known at the start (the object without events).
    run_id : with a file: watch this run only. With -: what the run is called.
    fail_on_alarm : leave with exit code 1 if an alarm sounded.
    escalate : ask this language model about steps of high risk. The run's text is sent to it.
    behaviours : with the monitor rules: a file of behaviours besides those of the catalogue.
    reasons : What reasons are made of: behaviours (what the agent does), or features (and words, of the model).
    """
    if end and state is None:
        raise UsageError("--end goes with --state FILE: without it, a run is over with its input. Leave it out.")
    if state is not None and (run != "-" or escalate is not None):
        other = "--escalate: questions under way cannot be saved" if run == "-" else "a file: its runs are whole"
        raise UsageError(f"--state does not go with {other}. Leave one of them out.")
    opened = load(monitor, adapter=adapter, trust=trust, behaviours=behaviours, reasons=reasons)
    escalator = None
    if escalate is None:
        usual = inspect.signature(watch_runs.callback).parameters
        stray = [name for name, value in asked.items() if value != usual[name].default]
        if stray:
            words = ", ".join("--no-mask" if name == "mask" else f"--{name.replace('_', '-')}" for name in stray)
            raise UsageError(f"{words}: goes with --escalate MODEL, which says whom to ask. Name it.")
    else:
        if asked["calls_a_minute"] is None and run == "-":
            asked["calls_a_minute"] = 120
        escalator = escalator_of(opened, escalate, **asked)
    try:
        readings: Iterable[tuple[str, Reading | EscalatedReading]]
        if run == "-":
            offer = RunOffer(None if tools is None else tuple(tools), step_limit)
            name = run_id or "stdin"
            readings = _of_stream(opened, escalator, asked["patience"], header, group, offer, state, end, name)
            alarmed = _print(readings, as_json, opened.bundle.glosses, named=False)
        else:
            if header is not None:
                raise UsageError("--header goes with standard input; a file of runs has its own. Leave it out.")
            if group is not None:
                raise UsageError("--group goes with standard input; a file's runs have their own groups. Leave it out.")
            if tools is not None or step_limit is not None:
                raise UsageError("--tools and --step-limit go with standard input; a file's runs have their own.")
            report = ReadReport()
            readings = _of_file(opened, escalator, asked["patience"], run, run_id, report)
            alarmed = _print(readings, as_json, opened.bundle.glosses, named=True)
            refuse_empty(report, run)
            for note in (*notes_of(report), *unlike_lines(report, opened, run)):
                say(note)
    finally:
        if escalator is not None:
            close_escalator(escalator, priced=None not in (asked["price_in"], asked["price_out"]))
    if alarmed and fail_on_alarm:
        raise typer.Exit(1)


def _of_stream(
    monitor: Monitor,
    escalator: Escalator | None,
    patience: float,
    header: Path | None,
    group: str | None,
    offer: RunOffer,
    state: Path | None,
    end: bool,
    name: str,
) -> Iterator[tuple[str, Reading | EscalatedReading]]:
    """The run on standard input."""
    groups = monitor.bundle.calibration.groups
    known = () if groups is None else sorted(groups.of)
    if group is not None and group not in known:
        named = f"its groups: {', '.join(known)}" if known else "the monitor has none by group"
        say(f"No thresholds for group {group}: the common ones are used ({named}).")
    start, stream = _header(header), standard_input()
    said: Iterator[Reading | EscalatedReading]
    if escalator is None:
        said = watch(
            monitor, stream, header=start, group=group, state=state, end=end,
            tools=offer.tools, step_limit=offer.step_limit,
        )  # fmt: skip
    else:
        said = watch_escalated(escalator, stream, header=start, group=group, patience=patience, offer=offer)
    return ((name, reading) for reading in said)


def _of_file(
    monitor: Monitor, escalator: Escalator | None, patience: float, path: str, wanted: str | None, report: ReadReport
) -> Iterator[tuple[str, Reading | EscalatedReading]]:
    """Run by run, or the one that is wanted."""
    found, drift = False, DriftLine(monitor)
    for run in read_runs(path, monitor.bundle.adapter, report=report):
        is_wanted = wanted is None or run.run_id == wanted
        found |= is_wanted
        if is_wanted and escalator is not None:
            group = monitor.group_of(run)
            for reading in escalate_records(escalator, run.records, group=group, patience=patience, offer=run.offer):
                yield run.run_id, reading
        for scored in score(monitor, [run]) if wanted is None or (is_wanted and escalator is None) else ():
            if escalator is None:
                yield from ((run.run_id, reading) for reading in scored.readings)
            if wanted is None:
                drift.observe(scored)
    if report.runs and not found:
        raise UsageError(f"{path}: none of its {report.runs:,} runs is called {wanted!r}. See: prefixguard score")


def _print(
    said: Iterable[tuple[str, Reading | EscalatedReading]], as_json: bool, glosses: tuple[str, ...], *, named: bool
) -> bool:
    """Print every reading as it comes; whether an alarm sounded. glosses: of an automaton's symbols. named: whether
    every line begins with its run."""
    alarmed, current, told, lines = False, None, EscalatedLines(glosses), ReadingLines(names=glosses)
    for name, reading in said:
        alarmed |= reading.level is Level.ALARM
        if name != current:
            current, told, lines = name, EscalatedLines(glosses), ReadingLines(names=glosses)
        if as_json:
            document = reading.to_json() if isinstance(reading, Reading) else told.document(reading)
            if document is not None:
                write_json({"run_id": name, **document})
            continue
        for line in [lines.line(reading)] if isinstance(reading, Reading) else told.lines(reading):
            write_data(Text(f"{visible(name)}  ").append_text(line) if named else line)
    return alarmed


def _header(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        value = json.loads(read_named(path, _LARGEST_HEADER))
    except (ValueError, RecursionError) as exc:  # what cannot be read among them
        raise UsageError(f"{path}: cannot be read as JSON ({exc}). Give the run's object without its events.") from exc
    if not isinstance(value, dict):
        raise UsageError(f"{path}: holds no JSON object. Give the run's object without its events.")
    return value
