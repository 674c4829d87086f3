"""What a head is: what it is fitted on, what it says of runs, and how it computes one step inside an ONNX graph.

A bundle's logits are the mean of its heads'. All parts read the text through one table, which is gathered once a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prefixguard.learn.config import LearnListener, TrainConfig
from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.scaling import ContextScale
from prefixguard.store import Store
from prefixguard.trace import task_hash

N_RISKS = 2  # imminent, outcome


class StepPart(Protocol):
    """How a head computes one step.

    table: float32 (V, text), what each vocabulary column adds to the part's text vector.
    state: S, floats kept between steps; all zeros before the first.
    adds_in_order: whether terms are to be added one by one, in the order of the row: a bit can decide at a tree's
        threshold. Otherwise as a product does it, which takes a quarter of the time.
    """

    @property
    def table(self) -> Matrix: ...

    @property
    def adds_in_order(self) -> bool: ...

    @property
    def state(self) -> int: ...

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        """text (N, text), context of N, state (1, S) -> logits (N, 2), state after (1, S) where N is 1.

        N is 1 in the step; in the graph of reasons N variants of one step meet the same state, and none comes after.
        """
        ...


class SymbolPart(Protocol):
    """How a step's symbol is computed. table: float32 (V, text)."""

    @property
    def table(self) -> Matrix: ...

    def symbol(self, g: Graph, text: str, context: StepContext, logits: str) -> str:
        """text (N, text), context of N, the monitor's logits (N, 2) -> symbol (N,), int64."""
        ...


class FittedHead(Protocol):
    """One fitted head. A monitor's logits are the mean of its heads'."""

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Natural log-odds of both risks after every step: one array (T, 2) a run, in the order of `runs`."""
        ...

    def part(self, prefix: str) -> StepPart:
        """The head's part of the compiled step. prefix: of its names in the graph."""
        ...

    def symbols(self, m: FitMaterial) -> SymbolPart | None:
        """What gives the symbols of a monitor that has this head alone; None where they come from a network of their
        own."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the manifest says of it: plain JSON."""
        ...


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """A network, finished. epoch: the one kept, from 1. score: its validation score, NaN without validation."""

    network: Any  # torch.nn.Module, which trees do without
    epoch: int
    score: float


@dataclass(frozen=True)
class FitMaterial:
    """What heads are fitted on. labels: hard targets; soft: mixed with the teacher's out-of-fold risks. terms: of the
    vocabulary, by column."""

    corpus: Corpus
    rows: Rows
    terms: tuple[str, ...]
    scale: ContextScale
    labels: NDArray[np.float32]
    soft: NDArray[np.float32]
    pool: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    config: TrainConfig
    listener: LearnListener
    checkpoints: Store | None

    @property
    def everything(self) -> NDArray[np.int64]:
        """Runs of pool and validation."""
        return self.pool if self.validation is None else np.concatenate((self.pool, self.validation))

    def slice(self, member: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training and validation runs of a member."""
        if self.validation is not None and member == 0:
            return self.pool, self.validation
        slices = max(round(1 / self.config.validation_share), 2)
        out = held_out(self.corpus, self.everything, self.config.seed, slices, member % slices)
        return self.everything[~out], self.everything[out]


def held_out(corpus: Corpus, pool: NDArray[np.int64], seed: int, parts: int, part: int) -> NDArray[np.bool_]:
    """Which runs of the pool are in slice `part` of `parts` of its tasks, in the order of the hash of "seed:task"."""
    tasks = sorted({corpus.task_ids[r] for r in pool.tolist()}, key=lambda t: task_hash(f"{seed}:member:{t}"))
    mine = {t for i, t in enumerate(tasks) if i % parts == part}
    return np.array([corpus.task_ids[r] in mine for r in pool.tolist()], dtype=np.bool_)
