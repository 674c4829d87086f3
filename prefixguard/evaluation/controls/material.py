"""What controls are fitted on: training runs only, their text as sparse rows made once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import DataError
from prefixguard.learn import Corpus, Rows, TrainConfig, labels, steps_of

Float = NDArray[np.float64]
#: Runs -> one float64 (T, 2) each, in their order: probability of imminent failure, and of failure.
Scorer = Callable[[NDArray[np.int64]], list[Float]]


@dataclass(frozen=True)
class Material:
    """Runs to learn from, and what several controls read of them.

    corpus: all runs; nothing is learned from those outside `train`, and of their outcomes nothing is read at all.
    train: int64 (n,). horizon: H. seed: of everything that is drawn.
    """

    corpus: Corpus
    train: NDArray[np.int64]
    horizon: int
    seed: int

    @cached_property
    def config(self) -> TrainConfig:
        """A training's defaults, with boosted trees for a head; its vocabulary's size is every control's."""
        return TrainConfig(backend="gbdt", seed=self.seed, horizon=self.horizon)

    @cached_property
    def vocabulary(self) -> tuple[Vocabulary, FitReport]:
        """Terms of at least three training tasks. Raises DataError where there is none."""
        texts, fewest = self.corpus.texts(self.train.tolist()), self.config.min_tasks
        found = fit_vocabulary(texts, max_features=self.config.max_features, min_tasks=fewest)
        if len(found[0]) == 0:
            n = len({self.corpus.task_ids[r] for r in self.train.tolist()})
            raise DataError(
                f"no word occurs in {fewest} of the tasks that controls learn from ({n}). "
                "Give training runs of more tasks, or ask only for controls that read no text."
            )
        return found

    @cached_property
    def rows(self) -> Rows:
        """Sparse rows of all steps under that vocabulary."""
        return self.corpus.encode(self.vocabulary[0])

    @cached_property
    def targets(self) -> NDArray[np.float32]:
        """Labels of the training steps, float32 (steps of train, 2): imminent, outcome."""
        return labels(self.corpus, self.horizon)[steps_of(self.corpus, self.train)]

    @cached_property
    def weights(self) -> Float:
        """Weight of each training step, float64 (steps of train,): tasks alike, in a task its runs; mean 1.

        A task that was tried more often, or took longer, says no more about the next task.
        """
        runs = self.train.tolist()
        lengths = self.corpus.lengths[self.train]
        counts: dict[str, int] = {}
        for r in runs:
            counts[self.corpus.task_ids[r]] = counts.get(self.corpus.task_ids[r], 0) + 1
        shares = 1.0 / (lengths * np.array([counts[self.corpus.task_ids[r]] for r in runs]))
        weight = np.repeat(shares, lengths)
        return np.asarray(weight / weight.mean(), dtype=np.float64)
