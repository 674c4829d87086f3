"""Outcomes that stand beside the runs, in a file of labels: run_id, outcome and, where known, task_id."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.trace.named_file import read_named
from prefixguard.trace.run import Outcome

#: Bytes of a file of labels that is read: a few million labels.
LARGEST_LABELS = 256 << 20

_WORDS = {"success": Outcome.SUCCESS, "failure": Outcome.FAILURE, "unknown": Outcome.UNKNOWN, "": Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Label:
    """What a file of labels says of one run. task_id: None where it does not say."""

    outcome: Outcome
    task_id: str | None


def read_labels(path: Path) -> dict[str, Label]:
    """Labels by run id, from JSON lines or (in a .csv) a table, with run_id, outcome and perhaps task_id.

    A pipe that the process was started with (`<(command)`) is read to its end; what it holds is JSON lines if it begins
    with a brace. An outcome is the word success, failure or unknown (empty or null: unknown). Anything else, `true` and
    1 among them, is refused with its place: whether 1 means solved or failed is for a person to say.
    TraceError, too, for what is no file, is larger than `LARGEST_LABELS`, or holds no label.
    """
    data = read_named(path, LARGEST_LABELS, remedy="Check the path of the labels.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise TraceError(f"{path}: not UTF-8 ({exc.reason} at byte {exc.start}). Save the labels as UTF-8.") from exc
    del data
    labels: dict[str, Label] = {}
    is_table = path.suffix.lower() == ".csv" or (not path.suffix and text.lstrip()[:1] not in ("", "{"))
    for number, row in (_csv_rows if is_table else _json_rows)(io.StringIO(text, newline=""), path):
        where = f"{path} line {number}"
        name = row.get("run_id")
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name:
            raise TraceError(f"{where}: no run_id. Every line needs run_id and outcome.")
        label = Label(_outcome(row, where), _task(row, where))
        if labels.setdefault(name, label) != label:
            raise TraceError(f"{where}: run {name!r} was labelled before, and otherwise. Keep one of the two lines.")
    if not labels:
        raise TraceError(f"{path}: holds no label. Write run_id,outcome[,task_id]; a pipe can be read once only.")
    return labels


def _outcome(row: Mapping[str, Any], where: str) -> Outcome:
    if "outcome" not in row:
        raise TraceError(f"{where}: no outcome. Write success, failure or unknown.")
    value = row["outcome"]
    if value is None:
        return Outcome.UNKNOWN
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    raise TraceError(f"{where}: outcome {value!r}. Write success, failure or unknown.")


def _task(row: Mapping[str, Any], where: str) -> str | None:
    task = row.get("task_id")
    if task is None or task == "":
        return None
    if isinstance(task, str | int) and not isinstance(task, bool):
        return str(task)
    raise TraceError(f"{where}: task_id {task!r} is neither a text nor a whole number.")


def _csv_rows(stream: io.StringIO, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(stream)
    try:
        names = reader.fieldnames or []
        if "run_id" not in names or "outcome" not in names:
            shown = ", ".join(names[:8]) or "none"
            raise TraceError(f"{path} line 1: the columns are {shown}; needed: run_id,outcome[,task_id].")
        for row in reader:
            yield reader.line_num, row
    except csv.Error as exc:
        raise TraceError(f"{path} line {reader.line_num}: not CSV ({exc}).") from exc


def _json_rows(stream: io.StringIO, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise TraceError(
                f"{path} line {number}: not JSON ({exc}). Labels are one JSON object a line, or a .csv."
            ) from exc
        if not isinstance(row, dict):
            raise TraceError(f'{path} line {number}: not an object. Write {{"run_id": ..., "outcome": ...}}.')
        yield number, row
