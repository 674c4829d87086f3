"""The one form of the factory: runs with the mistakes that decided them, as JSON lines.

A line is a run as the adapter `openai_chat` reads it, so `parse`, `audit` and the other commands read it as it is.
Beside the run's own fields stand its labels, which that adapter never reads: what is learnt from a corpus is told here
and cannot reach a record, a feature or a prompt.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from prefixguard.auditor import MODES
from prefixguard.errors import DataError, OutputError, TraceError
from prefixguard.factory.skips import Skips
from prefixguard.stepview import Adapter, StepRecord, load_adapter, wide_view
from prefixguard.trace import Fault, Label, Mistake, Outcome

#: The adapter that reads a corpus.
CORPUS_ADAPTER = "openai_chat"
#: The fields of a run. Nothing else of it is kept: another field might say how the run ended.
RUN_FIELDS = ("run_id", "task_id", "agent", "outcome", "messages")
#: Where a run comes from. natural: a failure whose mistake nobody has found yet. safe: succeeded, and no fault was
#: found in it. injected: a fault was put into a safe run. replayed: a failure whose mistake was found by running it
#: again. proposed: a failure that models labelled.
SOURCES = ("safe", "injected", "replayed", "proposed", "imported", "natural")
#: How a mistake was found. first_cause: the first step whose correction changes the outcome. point_of_no_return: the
#: step after which the outcome no longer changes.
RULES = ("injected", "first_cause", "point_of_no_return", "proposed", "imported")
SPLITS = ("train", "test", "")
#: Bytes of a line that is read.
_LONGEST = 64 << 20
_NOT_LABELLED = "not a labelled run"
#: Code points of a text that a step keeps, unless another number is asked for: those of an audit by default.
WIDE = 72_000


@dataclass(frozen=True, slots=True)
class MistakeLabel:
    """A mistake of a failed run.

    step: record of the adapter `openai_chat`, from 1; None where nobody says at which step. agent: who made it, as the
    record spells it; None where unknown. kind: of fault, or failure mode (FM-3.2); "" where unknown. rule: of `RULES`.
    """

    step: int | None
    agent: str | None
    kind: str
    rule: str

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise DataError(f"rule {self.rule!r} of a mistake: one of {', '.join(RULES)}.")
        if self.step is not None and (isinstance(self.step, bool) or not isinstance(self.step, int) or self.step < 1):
            raise DataError(f"step {self.step!r} of a mistake: a whole number, from 1, or null.")
        for name, value in (("agent", self.agent), ("kind", self.kind)):
            if not isinstance(value, str) and (name == "kind" or value is not None):
                raise DataError(f"{name} {value!r} of a mistake: a text.")


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run with its labels. Raises DataError where the parts contradict each other.

    run: its `RUN_FIELDS`, plain JSON. source: of `SOURCES`. mistakes: the decisive one first; empty for a safe run.
    family: what must stay on one side of a split: the task, with the source run of its variants.
    provenance: how it was made (environment, seed, operator, source run, replays, contrast, votes, reasons), plain
    JSON. licence: of the text. may_train: False for sets that are for tests only. split: of `SPLITS`.
    """

    run: Mapping[str, Any]
    source: str
    mistakes: tuple[MistakeLabel, ...] = ()
    family: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    may_train: bool = True
    split: str = ""

    def __post_init__(self) -> None:
        run_id, messages = self.run.get("run_id"), self.run.get("messages")
        if not isinstance(run_id, str) or not run_id:
            raise DataError("a run without run_id: give each one of its own, a text.")
        where = f"run {run_id!r}"
        if stray := sorted(set(self.run) - set(RUN_FIELDS)):
            raise DataError(f"{where} has {stray[0]!r}: a run keeps {', '.join(RUN_FIELDS)}; see bare_run.")
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            raise DataError(f"{where}: messages are a list of objects, one or more.")
        if self.run.get("outcome") not in [outcome.value for outcome in Outcome]:
            raise DataError(f"{where}: outcome {self.run.get('outcome')!r}: success, failure or unknown.")
        for name, value, choices in (("source", self.source, SOURCES), ("split", self.split, SPLITS)):
            if value not in choices:
                raise DataError(f"{where}: {name} {value!r}: one of {', '.join(filter(None, choices))}.")
        if self.run["outcome"] == "success" and self.mistakes:
            raise DataError(f"{where} succeeded and has a decisive mistake: one of the two is wrong.")
        if self.source == "safe" and self.run["outcome"] != "success":
            raise DataError(f"{where} is called safe and did not succeed.")

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.run["run_id"])

    @property
    def is_safe(self) -> bool:
        """Whether it succeeded, so that nothing in it was a decisive mistake."""
        return bool(self.run["outcome"] == "success")

    @property
    def decisive(self) -> MistakeLabel | None:
        """The first of the mistakes whose step is known; None where there is none."""
        return next((mistake for mistake in self.mistakes if mistake.step is not None), None)

    @property
    def label(self) -> Label:
        """What a file of labels says of it."""
        found = self.decisive or (self.mistakes[0] if self.mistakes else None)
        codes = {mode.code for mode in MODES}
        faults = dict.fromkeys(Fault(one.agent, one.kind) for one in self.mistakes if one.kind in codes)
        task = self.run.get("task_id")
        mistake = None if found is None else Mistake(found.step, found.agent)
        return Label(Outcome(self.run["outcome"]), None if task is None else str(task), mistake, tuple(faults))

    @property
    def digest(self) -> str:
        """SHA-256 of all that its line says, as hex: work that is kept for a run is not taken up for another one of the
        same id."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    def records(self) -> tuple[StepRecord, ...]:
        """Its steps, as the adapter `openai_chat` reads them, with long texts kept."""
        return records_of(self.run)

    def as_json(self) -> dict[str, Any]:
        """The line."""
        labels = [{"step": one.step, "agent": one.agent, "kind": one.kind, "rule": one.rule} for one in self.mistakes]
        return {
            **{name: self.run[name] for name in RUN_FIELDS if name in self.run},
            "labels": labels,
            "source": self.source,
            "family": self.family,
            "split": self.split,
            "licence": self.licence,
            "may_train": self.may_train,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_json(cls, value: Any) -> LabelledRun:
        """A line that `as_json` made. DataError where it is none."""
        if not isinstance(value, dict) or not isinstance(value.get("labels"), list):
            raise DataError("no labelled run: an object with messages and a list of labels.")
        found = []
        for label in value["labels"]:
            if not isinstance(label, dict) or not {"step", "rule"} <= set(label):
                raise DataError("a label is an object with step, agent, kind and rule.")
            found.append(MistakeLabel(label["step"], label.get("agent"), label.get("kind", ""), label["rule"]))
        texts = {name: value.get(name, "") for name in ("source", "family", "split", "licence")}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise DataError(f"{name} {text!r}: a text.")
        provenance, may_train = value.get("provenance", {}), value.get("may_train", False)
        if not isinstance(provenance, dict) or not isinstance(may_train, bool):
            raise DataError("provenance is an object, may_train true or false.")
        return cls(bare_run(value), mistakes=tuple(found), provenance=provenance, may_train=may_train, **texts)


def corpus_labels(path: str | os.PathLike[str]) -> dict[str, Label] | None:
    """What a corpus says of its runs, by run id, for `read_runs`; None for what is no corpus, by its first line.

    A line that cannot be read has no label; `read_corpus` says which.
    """
    path = Path(path)
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            LabelledRun.from_json(json.loads(file.readline(_LONGEST)))
    except (OSError, ValueError, RecursionError):  # errors of ours among them
        return None
    return {run.run_id: run.label for run in read_corpus(path, Skips())}


def bare_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """The `RUN_FIELDS` of a run, and nothing else that it holds.

    >>> bare_run({"run_id": "a", "messages": [], "metadata": {"faults": []}})
    {'run_id': 'a', 'messages': []}
    """
    return {name: run[name] for name in RUN_FIELDS if name in run}


@cache
def _view(characters: int) -> Adapter:
    return wide_view(load_adapter(CORPUS_ADAPTER), characters)


def records_of(run: Mapping[str, Any], characters: int = WIDE) -> tuple[StepRecord, ...]:
    """The steps of a run in the form of `openai_chat`, each text of at most so many code points, for readers that are
    no monitor. `audit` keeps three for each token of a prompt's budget."""
    parser = _view(characters).parser()
    return tuple([record for message in run["messages"] for record in parser.observe(message)] + parser.end())


def read_corpus(path: str | os.PathLike[str], skips: Skips | None = None) -> Iterator[LabelledRun]:
    """The runs of a corpus, one at a time.

    skips: counts lines that cannot be read, and runs whose id occurred before; None: the first of them is an error.
    Raises TraceError for that, and for a file that is not there.
    """
    path, seen = Path(path), set[str]()
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST + 1):
                number += 1
                try:
                    run = _decoded(line)
                    if run is not None and run.run_id in seen:
                        raise DataError("the run_id occurred before")
                except DataError as exc:
                    if skips is None:
                        raise TraceError(f"{path}:{number}: {exc}") from exc
                    clause = _clause(exc)
                    skips.add(clause, f"{path}:{number}", str(exc) if clause == _NOT_LABELLED else "")
                    while len(line) > _LONGEST and not line.endswith(b"\n"):  # the rest of a line that is too long
                        line = file.readline(_LONGEST + 1)
                    continue
                if run is not None:
                    seen.add(run.run_id)
                    yield run
    except OSError as exc:
        raise TraceError(f"{path}: {exc.strerror or exc}. Name a file of labelled runs.") from exc


def _decoded(line: bytes) -> LabelledRun | None:
    """The run of a line; None for a blank one."""
    if len(line) > _LONGEST:
        raise DataError("a line that is too long")
    if not line.strip():
        return None
    try:
        return LabelledRun.from_json(json.loads(line))
    except (ValueError, RecursionError) as exc:
        if isinstance(exc, DataError):
            raise
        raise DataError("a line that is not JSON" if line.endswith(b"\n") else "a last line that was cut off") from exc


def _clause(exc: DataError) -> str:
    """A reason that adds up: without the id of the run and what it holds."""
    said = str(exc)
    return said if said.startswith(("a line", "a last", "the run_id")) else _NOT_LABELLED


def write_corpus(path: str | os.PathLike[str], runs: Iterable[LabelledRun]) -> int:
    """Write a corpus; returns the number of runs. The same runs give the same bytes.

    An existing file is replaced, at once and only when all is written. Raises OutputError where it cannot be written.
    """
    path, count = Path(path), 0
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            for run in runs:
                file.write(json.dumps(run.as_json(), allow_nan=False, sort_keys=False) + "\n")
                count += 1
        part.replace(path)
    except OSError as exc:
        raise OutputError(f"{path}: {exc.strerror or exc}. Name a place with room.") from exc
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return count
