"""A fitted monitor, and the few runs on which it is tried: what the laws of `checks` ask."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import BundleParts, Calibration, Platt, open_bundle, write_bundle
from prefixguard.context import FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import DataError
from prefixguard.learn.compile import compile_monitor
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.trainer import Fitted
from prefixguard.runtime import Step, StepModel, open_model
from prefixguard.stepview import Spool, load_adapter

#: By how much two logits may differ that are to be the same: float32 sums in another order. Of the larger of 1 and
#: the logit.
ON_CPU = 1e-5
#: The same where torch computes on CUDA, whose recurrent kernels may round factors to 10 bits (TF32).
ON_CUDA = 1e-2
_RUNS, _STEPS = 12, 120  # runs looked at, and steps of each

Logits = list[NDArray[np.float64]]


@dataclass(frozen=True)
class Subject:
    """A monitor on trial. Made by `Subject.of`.

    corpus: the runs looked at and nothing else, cut to their first 120 steps. rows: theirs. model: the monitor
    compiled, written and opened. refit: fits it again from the beginning; None where nobody can.
    """

    fitted: FittedMonitor
    corpus: Corpus
    rows: Rows
    model: StepModel
    refit: Callable[[], FittedMonitor] | None = None

    @classmethod
    def of(
        cls,
        fitted: FittedMonitor,
        corpus: Corpus,
        *,
        runs: NDArray[np.int64] | None = None,
        refit: Callable[[], FittedMonitor] | None = None,
    ) -> Subject:
        """runs: as at `check_head`. Raises DataError for fewer than two runs, BundleError where it does not open."""
        chosen = spread(corpus) if runs is None else runs
        if len(chosen) < 2:
            raise DataError(f"{len(chosen)} runs to try the laws on. Give at least two: some compare runs.")
        looked_at = splice(corpus, chosen, [run_steps(corpus, r)[:_STEPS] for r in chosen.tolist()])
        return cls(fitted, looked_at, looked_at.encode(fitted.vocabulary), opened(fitted), refit)

    @property
    def runs(self) -> NDArray[np.int64]:
        """Numbers of all runs looked at."""
        return np.arange(len(self.corpus))

    def logits(self, corpus: Corpus | None = None) -> Logits:
        """What the monitor says of these runs before it is compiled, all at once."""
        if corpus is None:
            return self.fitted.logits(self.corpus, self.rows, self.runs)
        return self.fitted.logits(corpus, corpus.encode(self.fitted.vocabulary), np.arange(len(corpus)))

    def steps(self, run: int) -> Iterator[tuple[str, SparseRow, NDArray[np.float32]]]:
        """Tool, row and context of each step of a run."""
        indices, values, counts = self.rows.run(run)
        ends = np.cumsum(counts)
        for step, a, b in zip(run_steps(self.corpus, run), ends - counts, ends, strict=True):
            yield self.corpus.tool(int(step)), SparseRow(indices[a:b], values[a:b]), self.corpus.context[step]

    def watched(self, run: int) -> list[Step]:
        """What the opened model says of each step of a run."""
        said, state = [], self.model.initial
        for tool, row, context in self.steps(run):
            said.append(self.model.step(tool, row, context, state))
            state = said[-1].state
        return said

    def networks(self) -> list[tuple[str, torch.nn.Module]]:
        """The networks that were trained, each with a name: the heads' members, then that of the symbols."""
        found = []
        for i, head in enumerate(self.fitted.heads):
            members: Sequence[Fitted] = getattr(head, "members", ())
            found += [(f"head {i}, member {j}", member.network) for j, member in enumerate(members)]
        return found if self.fitted.symbol is None else [*found, ("symbols", self.fitted.symbol.network)]

    @property
    def on_cuda(self) -> bool:
        """Whether torch computes some of it on CUDA."""
        return any(p.is_cuda for _, network in self.networks() for p in network.parameters())

    def unlike(self, found: Logits, expected: Logits, *, exact: bool = False) -> str | None:
        """Where two lists of logits that are to be the same are not, or None. exact: to the last bit, on a CPU.

        An array of `found` may be shorter than its partner: the rest is not compared.
        """
        bound = ON_CUDA if self.on_cuda else 0.0 if exact else ON_CPU
        for run, a, b in zip(self.corpus.run_ids, found, expected, strict=True):
            b = b[: len(a)]
            wrong = ~(np.abs(a - b) <= bound * np.maximum(1, np.abs(b)))  # NaN is wrong too
            if a.shape != b.shape or wrong.any():
                t = int(wrong.any(axis=1).argmax()) if a.shape == b.shape else 0
                gap = np.abs(a[t] - b[t]).max()
                return f"run {run!r}, step {t + 1}: logits {a[t]} and {b[t]} differ by {gap:.3g}, bound {bound:g}."
        return None


def spread(corpus: Corpus) -> NDArray[np.int64]:
    """Twelve runs, or all where there are fewer: the shortest, the longest, and evenly between by length."""
    order = np.argsort(corpus.lengths, kind="stable")
    return np.asarray(order[np.unique(np.linspace(0, len(order) - 1, _RUNS).astype(np.int64))] if len(order) else order)


def splice(corpus: Corpus, runs: NDArray[np.int64], pieces: Sequence[NDArray[np.int64]]) -> Corpus:
    """A corpus of runs with other steps: run i is called and ended as `runs[i]` and consists of the steps pieces[i]."""
    documents = Spool()
    for step in np.concatenate(pieces).tolist():
        documents.append(corpus.documents.read(step, step + 1))
    numbers = runs.tolist()
    return Corpus(
        run_ids=[corpus.run_ids[r] for r in numbers],
        task_ids=[corpus.task_ids[r] for r in numbers],
        digests=[corpus.digests[r] for r in numbers],
        groups=[corpus.groups[r] for r in numbers],
        failed=corpus.failed[runs],
        first=np.concatenate(([0], np.cumsum([len(piece) for piece in pieces]))).astype(np.int64),
        context=corpus.context[np.concatenate(pieces)],
        documents=documents,
    )


def without_text(rows: Rows, runs: NDArray[np.int64]) -> Rows:
    """The rows of all runs of a corpus, those of steps 1, 3, 5, ... emptied. runs: all numbers, in order."""
    spool, every = Spool(), []
    for r in runs.tolist():
        indices, values, counts = rows.run(r)
        full = np.arange(len(counts)) % 2 == 1
        keep = np.repeat(full, counts)
        of_index = np.uint16 if rows.index_bytes == 2 else np.int32
        spool.append(indices[keep].astype(of_index).tobytes() + values[keep].tobytes())
        every.append(np.where(full, counts, 0).astype(np.int32))
    return Rows(spool, np.concatenate(every), rows.first, rows.index_bytes, rows.n_columns)


def opened(fitted: FittedMonitor) -> StepModel:
    """The monitor compiled, written as a bundle and opened; uncalibrated, and without its adapter."""
    model, reasons = compile_monitor(fitted)
    arrays = {"typical": fitted.scale.typical, "names": np.array([f.name for f in FEATURES])}
    identity = Calibration(Platt(1.0, 0.0), Platt(1.0, 0.0), Thresholds(None, 1.0, 0, 0, 0, "no runs"), AlarmPolicy())
    adapter = load_adapter("openai_chat")  # the laws begin where texts have become rows: any adapter will do
    parts = BundleParts(adapter.to_bytes(), fitted.vocabulary.to_bytes(), arrays, model, reasons, identity)
    folder = Path(tempfile.mkdtemp(prefix="prefixguard-"))
    try:
        write_bundle(folder / "bundle", parts)
        return open_model(open_bundle(folder / "bundle"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_steps(corpus: Corpus, run: int) -> NDArray[np.int64]:
    """Numbers of the steps of a run."""
    return np.arange(corpus.first[run], corpus.first[run + 1])
