"""What is known of a set before it is read: where it is from, its split, what was published, how it leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from prefixguard.errors import DataError, TraceError
from prefixguard.stepview import ReadReport, Status, StepRecord
from prefixguard.trace import Outcome, Run, open_documents
from reproduce.splits import Split

ADAPTERS = Path(__file__).parent / "adapters"
#: Largest file that is read as one piece, in bytes. The published ones are far smaller.
LARGEST_FILE = 4 << 30

Runs = Iterator[Run[StepRecord]]
#: From the folder with the downloads to its runs; the report is filled while they are taken.
Reader = Callable[[Path, ReadReport], Runs]


@dataclass(frozen=True, slots=True)
class Published:
    """AUPRC as published: strongest backend, raw-text control, DFA; and the DFA's states. Source: METHOD 12."""

    strongest: float
    raw_text: float
    dfa: float
    dfa_states: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One set.

    rows: runs the paper had. seeds: of its fits. symbols: its K. download: what to get and where to put it.
    files: globs, at least one file of which must be there. read: without the reference's leak. read_leaked: with it.
    leak: what the leak is, in words. task: a run's task as the reference spells it, which its split hashes.
    """

    name: str
    title: str
    rows: int
    seeds: tuple[int, ...]
    symbols: int
    split: Split
    published: Published
    download: str
    files: tuple[str, ...]
    read: Reader
    read_leaked: Reader
    leak: str
    task: Callable[[Run[StepRecord]], str]

    def missing(self, folder: Path) -> str | None:
        """Why the set cannot be read from this folder; None where it can."""
        if not folder.is_dir():
            return f"{folder}: there is no such folder."
        with open_documents(folder) as documents:
            if next(documents.matching(self.files), None) is None:
                return f"{folder}: no file matches {' or '.join(self.files)}."
        return None


def refuse_large(folder: Path, patterns: Iterable[str], largest: int = LARGEST_FILE) -> None:
    """DataError where a file that would be read as one piece is larger than `largest` bytes."""
    with open_documents(folder) as documents:
        for document in documents.matching(tuple(patterns)):
            size = documents.size(document.path)
            if size > largest:
                raise DataError(
                    f"{document.where}: {size:,} bytes, more than the {largest:,} that are read at once. It is not of "
                    "the published set: remove it."
                )


def counted(runs: Runs, folder: Path) -> Runs:
    """The runs; DataError where there is none at all."""
    some = False
    try:
        for run in runs:
            some = True
            yield run
    except TraceError as exc:
        if some:
            raise
        raise DataError(f"{folder}: no run was read. {exc}") from exc
    if not some:
        raise DataError(f"{folder}: no run was read. Are these the files that the set is made of?")


def status_leaked(runs: Iterable[Run[StepRecord]]) -> Runs:
    """The same runs, the outcome written into the status of the last record, as the reference's importers do.

    The reference writes `success` or `failure` there; a record has `ok` and `error`, which tell the same.
    """
    for run in runs:
        if run.records and run.outcome is not Outcome.UNKNOWN:
            status: Status = "error" if run.outcome is Outcome.FAILURE else "ok"
            run = replace(run, records=(*run.records[:-1], replace(run.records[-1], status=status)))
        yield run
