"""Samples as the search sees them: trimmed once, and read by the real containers without touching a file again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import MISSING, Adapter, canonical
from prefixguard.stepview.found import Counts, Found, Unread
from prefixguard.stepview.paths import Scope
from prefixguard.stepview.reader import _Companions
from prefixguard.trace.documents import Document, glob_pattern, open_documents

#: Files that are looked at, and JSON values of all of them; what is beyond is trimmed from the ends of long lists.
MOST_FILES, MOST_VALUES = 60, 600_000
#: What finding layouts in a value costs, see `Evidence.work`.
_VALUE_WORK = 0.01
#: Runs of one container that candidates are judged on, spread over its documents; and events of each.
MOST_RUNS, MOST_EVENTS = 24, 150


@dataclass(frozen=True, slots=True)
class Candidate:
    """A spec without its run part, and where it comes from.

    spec: container, events, rules, and where they are needed join, turn, status. family: that made it. prior: how much
    the names of keys speak for it, in [0, 1]. why: a sentence for a person. blocks: of the rules, those for each kind
    of event, with other readings of that kind; the first of each is in the spec, in this order.
    """

    spec: Mapping[str, Any]
    family: str
    prior: float = 0.5
    why: str = ""
    blocks: tuple[tuple[tuple[Mapping[str, Any], ...], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FoundRun:
    """One run as the container finds it. file: path of its document inside the samples. scope: what its paths see."""

    file: str
    found: Found
    scope: Scope


class _Held(Document):
    """A document whose values are in memory."""

    def read(self) -> bytes:
        return b"held"

    def lines(self) -> Iterator[bytes | None]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _HeldLines(_Held):
    n: int = 0

    def lines(self) -> Iterator[bytes | None]:
        return iter([b"held\n"] * self.n)


class _HeldCounts(Counts):
    """Answers with what is held, whatever the bytes say."""

    __slots__ = ("held",)

    def __init__(self, held: Mapping[str, Any]) -> None:
        super().__init__()
        self.held = held

    def json(self, data: bytes, where: str, line: int | None = None) -> Any:
        if data != b"held":
            return super().json(data, where, line)
        value = self.held[where]
        return value if line is None else value[line - 1]


@dataclass(slots=True)
class Evidence:
    """Samples, opened for a search. Close it: an archive is unpacked while it is open.

    names: whether the names of keys may speak for a candidate. hints: what a person said. work: what the search has
    cost so far, reckoned from what was read, in units of about a millisecond of a processor of 2024.
    """

    samples: Samples
    hints: Mapping[str, Any] = field(default_factory=dict)
    names: bool = True
    files: tuple[SampleFile, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    work: float = 0.0
    _documents: list[Document] = field(default_factory=list)
    _runs: dict[str, list[FoundRun]] = field(default_factory=dict)
    _numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _companions: Any = None
    _counts: Any = None
    cache: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = tuple(_as_lines(_spread(self.samples.files, MOST_FILES)))
        each = max(2_000, MOST_VALUES // max(1, len(self.files)))
        for file in self.files:
            if file.kind in (Kind.JSON, Kind.JSONL):
                left = [each]
                self.values[file.path] = trimmed(file.value, left)
                self.work += (each - left[0]) * _VALUE_WORK
        opened = self._stack.enter_context(open_documents(self.samples.source))
        by_path = {file.path: file for file in self.files}
        held: dict[str, Any] = {}
        for document in opened.matching(["**/*"]):
            if document.path not in by_path:
                continue
            file = by_path[document.path]
            if file.path not in self.values:
                self._documents.append(document)
                continue
            value = self.values[file.path]
            held[document.where] = value
            if file.kind is Kind.JSONL:
                one: Document = _HeldLines(document.path, document.where, document.file, n=len(value))
            else:
                one = _Held(document.path, document.where, document.file)
            self._documents.append(one)
        self._counts = _HeldCounts(held)
        self._companions = _Companions(opened, self._counts)

    def close(self) -> None:
        """Nothing of the samples stays unpacked."""
        self._stack.close()

    def runs(self, adapter: Adapter) -> list[FoundRun]:
        """Runs that the adapter's container finds, at most MOST_RUNS, in turns from every document. What cannot be
        read is left out."""
        key = canonical(json.loads(adapter.to_bytes())["container"])
        if key not in self._runs:
            self._numbers[key] = {}
            self._runs[key] = self._found(adapter, self._numbers[key])
        return self._runs[key]

    def numbers(self, adapter: Adapter) -> Mapping[str, int]:
        """How many runs each document has, by its path."""
        self.runs(adapter)
        return self._numbers[canonical(json.loads(adapter.to_bytes())["container"])]

    def _found(self, adapter: Adapter, numbers: dict[str, int]) -> list[FoundRun]:
        container = adapter.program.container
        wanted = glob_pattern(container.files)
        single = len(self._documents) == 1
        per: list[list[FoundRun]] = []
        for document in self._documents:
            if not single and not wanted(document.path):
                continue
            mine: list[FoundRun] = []
            try:
                for one in container.runs(document, self._companions, self._counts):
                    numbers[document.path] = numbers.get(document.path, 0) + (not isinstance(one, Unread))
                    if isinstance(one, Unread) or len(mine) >= MOST_RUNS:
                        continue
                    scope = Scope(
                        one.document, one.run, key=one.key, position=one.position, file=document.path,
                        companions=self._companions,
                    )  # fmt: skip
                    mine.append(FoundRun(document.path, one, scope))
            except Exception:  # a sample may be of another format: it has no runs here
                continue
            per += [mine] if mine else []
        per = [per[i * len(per) // MOST_RUNS] for i in range(MOST_RUNS)] if len(per) > MOST_RUNS else per
        turns = [runs[i] for i in range(MOST_RUNS) for runs in per if i < len(runs)]
        return turns[:MOST_RUNS]

    def reach(self, adapter: Adapter) -> float:
        """Share of the samples, by size, in files in which the adapter's container finds runs."""
        runs = {run.file for run in self.runs(adapter)}
        wanted = glob_pattern(adapter.program.container.files)
        mine = [f for f in self.files if f.path in runs or (len(runs) == MOST_RUNS and wanted(f.path))]
        return sum(f.size for f in mine) / max(1, sum(f.size for f in self.files))

    def events(self, adapter: Adapter, run: FoundRun) -> list[Any]:
        """The raw events of a run, at most MOST_EVENTS: what `@` is; of text, one piece: the text itself."""
        found = adapter.program.events.listing(run.scope)
        if found is MISSING or found is None:
            return []
        return found[:MOST_EVENTS] if isinstance(found, list) else [found]


#: Levels of a document that are looked at.
_DEEPEST = 200


def trimmed(value: Any, left: list[int], depth: int = 0) -> Any:
    """The value with the ends of its lists left out once so many values were seen (`left`, counted down), and without
    what is too deep."""
    left[0] -= 1
    if depth >= _DEEPEST and isinstance(value, dict | list):
        return None
    if isinstance(value, dict):
        return {key: trimmed(item, left, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        out: list[Any] = []
        for item in value:
            if left[0] <= 0 and out:
                break
            out.append(trimmed(item, left, depth + 1))
        return out
    return value


def _as_lines(files: list[SampleFile]) -> list[SampleFile]:
    """The files; one of a single line is lines too where others of its suffix are."""
    suffixes = {PurePosixPath(file.path).suffix for file in files if file.kind is Kind.JSONL}
    return [
        replace(file, kind=Kind.JSONL, value=[file.value])
        if file.kind is Kind.JSON and PurePosixPath(file.path).suffix in suffixes - {".json"}
        else file
        for file in files
    ]


def _spread(files: tuple[SampleFile, ...], n: int) -> list[SampleFile]:
    step = max(1, -(-len(files) // n))
    return list(files[::step])
