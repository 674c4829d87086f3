"""Outcomes that stand beside the runs, in a file of labels: run_id, outcome and, where known, task_id."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import DataError, TraceError
from prefixguard.trace.run import Outcome

_WORDS = {"success": Outcome.SUCCESS, "failure": Outcome.FAILURE, "unknown": Outcome.UNKNOWN, "": Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Label:
    """What a file of labels says of one run. task_id: None where it does not say."""

    outcome: Outcome
    task_id: str | None


class LabelBook:
    """Labels, looked up by the id of a run or by the file that it is alone in.

    A run that has a file to itself also goes by the path of that file, its name, and its name without suffixes, and so
    does a label: `q1.json`, `runs/q1.json` and `q1` are one run as long as no other file, and no other label, would
    answer to the name.
    """

    def __init__(self, labels: Mapping[str, Label], files: Iterable[str] = ()) -> None:
        """labels: by run id, as `read_labels` gives them. files: paths of all documents, to see which names are
        several files'."""
        self._labels = labels
        self._unused = dict.fromkeys(labels)
        self._runs: list[str] = []
        self._loose: dict[str, set[str]] = {}
        self._files: Counter[str] = Counter()
        if labels:
            for run_id in labels:
                for name in _names(run_id):
                    self._loose.setdefault(name, set()).add(run_id)
            for path in files:
                self._files.update(_names(path))

    def find(self, run_id: str, file: str | None = None) -> Label | None:
        """The label of a run; None where it has none. file: the path of its document, if it is alone in it."""
        if not self._labels:
            return None
        if len(self._runs) < _SHOWN:
            self._runs.append(run_id)
        key = run_id if run_id in self._labels else self._by_file(file) if file is not None else None
        if key is None:
            return None
        self._unused.pop(key, None)
        return self._labels[key]

    def _by_file(self, file: str) -> str | None:
        for name in _names(file):
            found = self._loose.get(name, set())
            if len(found) == 1 and self._files[name] <= 1:
                return next(iter(found))
        return None

    @property
    def unmatched(self) -> int:
        """How many labels no run asked for so far."""
        return len(self._unused)

    def refuse_strangers(self, path: Path) -> None:
        """DataError if there are labels and runs, and not one of the labels is of one of the runs."""
        if not self._labels or not self._runs or len(self._unused) < len(self._labels):
            return
        told = ", ".join(map(repr, list(self._labels)[:_SHOWN]))
        runs = ", ".join(map(repr, self._runs))
        raise DataError(
            f"{path}: none of its {len(self._labels)} labels is of a run that was read. It labels {told}; the runs "
            f"are {runs}. Write the run ids, or the names of the files, as they are there."
        )


#: Ids that a message shows of labels and of runs.
_SHOWN = 3


def _names(path: str) -> list[str]:
    """What a file may be called, the fullest name first: its path, its name, its name without suffixes."""
    name = path.rstrip("/").rpartition("/")[2]
    found = [path, name]
    for _ in range(3):
        stem, dot, suffix = name.rpartition(".")
        if not (dot and stem and suffix.isascii() and suffix.isalnum() and len(suffix) <= 8 and not suffix.isdigit()):
            break
        name = stem
        found.append(name)
    return list(dict.fromkeys(found))


def read_labels(path: Path) -> dict[str, Label]:
    """Labels by run id, from a .jsonl or .csv file with run_id, outcome and perhaps task_id.

    An outcome is the word success, failure or unknown (empty or null: unknown). Anything else, `true` and 1 among
    them, is refused with its place: whether 1 means solved or failed is for a person to say.
    """
    labels: dict[str, Label] = {}
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path)
    try:
        for number, row in rows:
            where = f"{path} line {number}"
            name = row.get("run_id")
            if isinstance(name, int) and not isinstance(name, bool):
                name = str(name)
            if not isinstance(name, str) or not name:
                raise TraceError(f"{where}: no run_id. Every line needs run_id and outcome.")
            label = Label(_outcome(row, where), _task(row, where))
            if labels.setdefault(name, label) != label:
                raise TraceError(
                    f"{where}: run {name!r} was labelled before, and otherwise. Keep one of the two lines."
                )
    except OSError as exc:
        raise TraceError(f"{path}: cannot be read ({exc.strerror or exc}). Check the path of the labels.") from exc
    except UnicodeDecodeError as exc:
        raise TraceError(f"{path}: not UTF-8 ({exc.reason} at byte {exc.start}). Save the labels as UTF-8.") from exc
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


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        names = reader.fieldnames or []
        if "run_id" not in names or "outcome" not in names:
            raise TraceError(
                f"{path} line 1: the columns are {', '.join(names) or 'none'}; needed: run_id,outcome[,task_id]."
            )
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as exc:
            raise TraceError(f"{path} line {reader.line_num}: not CSV ({exc}).") from exc


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig") as stream:
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
