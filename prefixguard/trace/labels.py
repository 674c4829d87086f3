"""Outcomes of runs in a file of labels, and which label belongs to which run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import DataError, TraceError
from prefixguard.trace.named_file import read_named
from prefixguard.trace.run import Fault, Mistake, Outcome

#: Bytes of a file of labels that is read: a few million labels.
LARGEST_LABELS = 256 << 20

#: Digits of the largest step, and how failure modes are called.
_DIGITS, _MODE = 9, re.compile(r"FM-[1-9]\.[1-9]")
_WORDS = {"success": Outcome.SUCCESS, "failure": Outcome.FAILURE, "unknown": Outcome.UNKNOWN, "": Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Label:
    """What a file of labels says of one run. task_id, mistake: None where it does not say; faults: empty there."""

    outcome: Outcome
    task_id: str | None
    mistake: Mistake | None = None
    faults: tuple[Fault, ...] = ()


def read_labels(path: Path) -> dict[str, Label]:
    """Labels by run id, from JSON lines or (in a .csv) a table, with run_id, outcome and perhaps task_id,
    mistake_step and mistake_agent.

    The latter are of the decisive mistake of a failed run: the number of its record, from 1, and who acted there. In
    JSON lines `labels`, a list of objects with step, agent and kind, stands for several: the first that has a step is
    decisive, and a kind such as FM-3.2 is a failure mode. So a corpus of `prefixguard.factory` is a file of labels.

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
        label = _label(row, where)
        if labels.setdefault(name, label) != label:
            raise TraceError(f"{where}: run {name!r} was labelled before, and otherwise. Keep one of the two lines.")
    if not labels:
        raise TraceError(f"{path}: holds no label. Write run_id,outcome[,task_id]; a pipe can be read once only.")
    return labels


def outcome_of(row: Mapping[str, Any], where: str) -> Outcome:
    """The outcome that a row names. TraceError, with the words there are, for anything else."""
    if "outcome" not in row:
        raise TraceError(f"{where}: no outcome. Write success, failure or unknown.")
    value = row["outcome"]
    if value is None:
        return Outcome.UNKNOWN
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    raise TraceError(f"{where}: outcome {value!r}. Write success, failure or unknown.")


def _label(row: Mapping[str, Any], where: str) -> Label:
    outcome, task = outcome_of(row, where), _task(row, where)
    given = row.get("labels")
    if given is None:
        alone = {"step": row.get("mistake_step"), "agent": row.get("mistake_agent")}
        given = [alone] if any(value not in (None, "") for value in alone.values()) else []
    elif not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise TraceError(f"{where}: labels are a list of objects with step, agent and kind.")
    mistakes = [Mistake(_step(one.get("step"), where), _agent(one.get("agent"), where)) for one in given]
    if mistakes and outcome is not Outcome.FAILURE and any(one.step is not None for one in mistakes):
        raise TraceError(f"{where}: a run that is called {outcome.value} has a decisive step: only failures have one.")
    decisive = next((one for one in mistakes if one.step is not None), mistakes[0] if mistakes else None)
    kinds = [one.get("kind") for one in given]
    modes = [kind if isinstance(kind, str) and _MODE.fullmatch(kind) else None for kind in kinds]
    faults = [Fault(one.agent, mode) for one, mode in zip(mistakes, modes, strict=True) if mode is not None]
    return Label(outcome, task, decisive, tuple(dict.fromkeys(faults)))


def _step(value: Any, where: str) -> int | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isascii() and value.strip().isdigit() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TraceError(f"{where}: step {value!r}. Write the number of a record, from 1 (parse --json shows them).")
    return value


def _agent(value: Any, where: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise TraceError(f"{where}: agent {value!r} is no text.")
    return value


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
            raise TraceError(
                f"{path} line 1: the columns are {shown}; needed: run_id,outcome[,task_id,mistake_step,mistake_agent]."
            )
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


#: Ids that a message shows of labels and of runs.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class LabelTally:
    """How labels and runs met: each a number, and the first few of them.

    unmatched: labels of no run that was read. ambiguous: labels whose name several files, or several labels of one
    file, answer to; they are nobody's. unlabelled: runs without a label.
    """

    unmatched: int = 0
    ambiguous: int = 0
    unlabelled: int = 0
    first_unmatched: tuple[str, ...] = ()
    first_ambiguous: tuple[str, ...] = ()
    first_unlabelled: tuple[str, ...] = ()

    def notes(self) -> Iterator[str]:
        """A sentence for everything that a person should know; none where every label is of a run and the other way
        round."""
        if self.unmatched:
            does = "label names" if self.unmatched == 1 else "labels name"
            yield f"{self.unmatched:,} {does} no run that was read: {_shown(self.first_unmatched, self.unmatched)}."
        if self.ambiguous:
            does = "label fits" if self.ambiguous == 1 else "labels fit"
            yield (
                f"{self.ambiguous:,} {does} several files, or a file that another label fits, and counted for none: "
                f"{_shown(self.first_ambiguous, self.ambiguous)}. Write the path inside the folder of runs, or the "
                "run_id that parse --json prints."
            )
        if self.unlabelled:
            has = "run has" if self.unlabelled == 1 else "runs have"
            first = _shown(self.first_unlabelled, self.unlabelled)
            yield f"{self.unlabelled:,} {has} no label and the outcome that the trace gives: {first}."


class LabelBook:
    """Labels, looked up by the id of a run or by the file that it is alone in.

    An id that a run is called by always finds its label. Besides, a run that has a file to itself goes by the path of
    that file inside the folder of runs, by the same path with folders above it (`runs/a/q1.json`, an absolute path),
    by the end of its path (`q1.json`), and by each of these without suffixes. The way that most labels are spelled goes
    first, then the path inside the folder; a name that several files answer to is nobody's.
    """

    def __init__(self, labels: Mapping[str, Label], files: Iterable[str] = (), folders: Sequence[str] = ()) -> None:
        """labels: by run id, as `read_labels` gives them. files: paths of all documents inside the folder of runs.
        folders: what that folder is called, with the folders above it."""
        self._labels = labels
        self._unused = dict.fromkeys(labels)
        self._of_file: dict[str, str] = {}
        self._ambiguous: set[str] = set()
        self._n_runs = self._n_unlabelled = 0
        self._runs: list[str] = []
        self._unlabelled: list[str] = []
        if labels:
            self._join(files, [_parts(folder) for folder in folders] or [[]])

    def _join(self, files: Iterable[str], folders: Sequence[list[str]]) -> None:
        """Decide which label is of which file.

        A book spells its paths in one way. Where some fit one file as they are and another with folders above, the way
        that fits the most labels goes first, and of equals the path inside the folder.
        """
        wanted = {name for label in self._labels for name in _names(_parts(label))}
        answering: dict[str, list[tuple[int, int, str]]] = {}  # name -> folders above, suffixes left out, file
        for file in files:
            for name, (above, left_out) in _answers(_parts(file), folders).items():
                if name in wanted:
                    answering.setdefault(name, []).append((above, left_out, file))
        fitting = {
            label: next((answering[name] for name in _names(_parts(label)) if name in answering), [])
            for label in self._labels
        }
        often = Counter(above for fits in fitting.values() for above in {above for above, _, _ in fits} if above >= 0)
        usual = max(often, key=lambda above: (often[above], -above), default=0)
        claims: dict[str, list[str]] = {}
        for label, fits in fitting.items():
            ranked = sorted(((above != usual, above != 0, left_out), file) for above, left_out, file in fits)
            nearest = [file for rank, file in ranked if rank == ranked[0][0]]
            if len(nearest) == 1:
                claims.setdefault(nearest[0], []).append(label)
            elif nearest:
                self._ambiguous.add(label)
        for file, names in claims.items():
            if len({self._labels[label] for label in names}) == 1:
                self._of_file[file] = names[0]
            else:
                self._ambiguous.update(names)

    def find(self, run_id: str, file: str | None = None, caller: Label | None = None) -> Label | None:
        """The label of a run; None where it has none. file: the path of its document, if it is alone in it. caller: of
        the run that it is a delegate of, which is its label where it has none."""
        if not self._labels or (caller is not None and run_id not in self._labels):
            return caller
        self._n_runs += 1
        if len(self._runs) < SHOWN:
            self._runs.append(run_id)
        key: str | None = run_id
        if run_id not in self._labels:
            key = self._of_file.get(file) if file is not None else None
            key = key if key in self._unused else None  # it is another run's id
        if key is None:
            self._n_unlabelled += 1
            if len(self._unlabelled) < SHOWN:
                self._unlabelled.append(run_id)
            return None
        self._unused.pop(key, None)
        return self._labels[key]

    def tally(self) -> LabelTally:
        """How labels met the runs that were asked for so far."""
        ambiguous = [label for label in self._unused if label in self._ambiguous]
        unmatched = [label for label in self._unused if label not in self._ambiguous]
        return LabelTally(
            len(unmatched),
            len(ambiguous),
            self._n_unlabelled,
            tuple(unmatched[:SHOWN]),
            tuple(ambiguous[:SHOWN]),
            tuple(self._unlabelled),
        )

    def refuse_strangers(self, path: Path) -> None:
        """DataError if there are labels and runs, and not one of the labels is of one of the runs."""
        if not self._labels or not self._n_runs or len(self._unused) < len(self._labels):
            return
        labels = ", ".join(map(repr, list(self._labels)[:SHOWN]))
        runs = ", ".join(map(repr, self._runs))
        several = " Names that several files have label none of them." if self._ambiguous else ""
        raise DataError(
            f"{path}: none of its {len(self._labels)} labels is of a run that was read. It labels {labels}; the runs "
            f"are {runs}.{several} Write the run ids, or the paths of the files, as they are there."
        )


def _shown(first: Sequence[str], count: int) -> str:
    return ", ".join(map(repr, first)) + (" ..." if count > len(first) else "")


def _parts(path: str) -> list[str]:
    r"""Folders and name of a path, however it is spelled.

    >>> _parts("./runs\\a//q1.json")
    ['runs', 'a', 'q1.json']
    """
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def _names(parts: Sequence[str]) -> list[str]:
    """A path, then the same with up to three suffixes of its name left out."""
    if not parts:
        return []
    above, name = "".join(f"{part}/" for part in parts[:-1]), parts[-1]
    found = [above + name]
    for _ in range(3):
        stem, dot, suffix = name.rpartition(".")
        if not (dot and stem and suffix.isascii() and suffix.isalnum() and len(suffix) <= 8 and not suffix.isdigit()):
            break
        name = stem
        found.append(above + name)
    return found


def _answers(parts: list[str], folders: Sequence[list[str]]) -> dict[str, tuple[int, int]]:
    """Names that a file answers to, each with how many folders it has above the path inside the folder of runs (fewer
    than 0: it is the end of that path) and how many suffixes are left out."""
    found: dict[str, tuple[int, int]] = {}
    for folder in folders:
        whole = [*folder, *parts]
        for length in range(1, len(whole) + 1):
            for left_out, name in enumerate(_names(whole[-length:])):
                found.setdefault(name, (length - len(parts), left_out))
    return found
