"""The rows of a table: what is fitted on the paper's training side and scored on its test side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import probes
import torch
from numpy.typing import NDArray

from prefixguard.automata import LEARNERS, Strings
from prefixguard.automata.build import build, walk_training
from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import DataError
from prefixguard.learn import Corpus, FittedMonitor, Rows, TrainConfig, fit_monitor, labels, steps_of
from prefixguard.learn.scaling import fit_scale
from prefixguard.learn.trainer import epoch
from reproduce.material import Sides

HORIZON = 3
#: K of the paper's setting as `probes.papers_setting` has it; the paper took 32 on TerminalBench.
SYMBOLS = 16
PAPER, TREES, GRU, DFA = "paper's setting", "gbdt", "gru", "DFA"
#: In the order in which they are made; the DFA reads the symbols of the GRU's monitor.
FITTED = (PAPER, TREES, GRU, DFA)
_MAX_STATES = 512  # the paper's largest DFA has 187
_BATCH = 128
_SURE = 1e-6

#: What is kept of a fit, by name.
Arrays = Mapping[str, NDArray[Any]]


class Fits:
    """Fits the rows of one reading and seed. Vocabulary and encoding are made once, when first asked for."""

    def __init__(self, corpus: Corpus, sides: Sides, seed: int, *, quick: bool) -> None:
        """quick: smaller networks, for a first look; the paper's setting is what it is."""
        self.corpus, self.sides, self.seed = corpus, sides, seed
        small: dict[str, Any] = {"members": 1, "epochs": 6, "symbol_epochs": 4}
        self._options = small if quick else {}
        self._encoded: tuple[tuple[Vocabulary, FitReport], Rows] | None = None

    def fit(self, row: str, symbols: NDArray[np.int32] | None = None) -> Arrays:
        """Scores (steps of the test runs, 2), and what else is worth keeping.

        symbols: of every step, of row `gru`; the DFA needs them.
        Raises DataError where a row cannot be fitted on these runs.
        """
        if row == PAPER:
            return self._paper()
        if row == TREES:
            return {"scores": np.concatenate(self._monitor("gbdt").logits(self.corpus, self._rows, self.sides.test))}
        if row == GRU:
            return self._gru()
        if row == DFA and symbols is not None:
            return self._dfa(symbols)
        raise DataError(f"row {row!r}: not one of {', '.join(FITTED)}, or its symbols are not there.")

    @property
    def _rows(self) -> Rows:
        return self._encode()[1]

    def _encode(self) -> tuple[tuple[Vocabulary, FitReport], Rows]:
        if self._encoded is None:
            config = TrainConfig()
            train = self.sides.train
            texts = self.corpus.texts(train.tolist())
            vocabulary = fit_vocabulary(texts, max_features=config.max_features, min_tasks=config.min_tasks)
            self._encoded = vocabulary, self.corpus.encode(vocabulary[0])
        return self._encoded

    def _monitor(self, backend: str) -> FittedMonitor:
        config = TrainConfig(seed=self.seed, horizon=HORIZON, backend=backend, **self._options)
        vocabulary, rows = self._encode()
        return fit_monitor(
            self.corpus, self.sides.train, config, validation=self.sides.validation, rows=rows, vocabulary=vocabulary
        )

    def _paper(self) -> Arrays:
        corpus, sides = self.corpus, self.sides
        scale = fit_scale(
            corpus.context[steps_of(corpus, sides.train)],
            corpus.lengths[sides.train],
            corpus.failed[sides.train],
            horizon=HORIZON,
            bins=TrainConfig().bins,
        )
        scores = probes.papers_setting(
            corpus, self._rows, scale, sides.train, sides.validation, sides.test, labels(corpus, HORIZON), self.seed
        )
        return {"scores": scores}

    def _gru(self) -> Arrays:
        fitted = self._monitor("gru")
        scores = np.concatenate(fitted.logits(self.corpus, self._rows, self.sides.test))
        if fitted.symbol is None:
            raise DataError("the monitor learned no symbols.")
        return {"scores": scores, "symbols": symbols_of(self.corpus, self._rows, fitted)}

    def _dfa(self, symbols: NDArray[np.int32]) -> Arrays:
        """RPNI on hard symbols; risks from labels alone, calibrated on the paper's calibration side, no clock."""
        corpus, sides = self.corpus, self.sides
        targets = labels(corpus, HORIZON)
        codes = {task: code for code, task in enumerate(sorted(set(corpus.task_ids)))}
        everything = Strings(
            symbols=symbols,
            n_symbols=max(TrainConfig().symbols, int(symbols.max()) + 1),
            first=corpus.first,
            failed=corpus.failed,
            tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
            labels=targets,
            teacher=targets,
        )
        train, test = everything.of(sides.train), everything.of(sides.test)
        found = LEARNERS["rpni"](train, max_states=_MAX_STATES, seed=self.seed)
        walked = walk_training(found, train)
        automaton = build(walked, train, everything.of(sides.calibration), ())
        states, unseen = walked.walk(test)
        risk = np.clip(automaton.risk[states, 0], _SURE, 1 - _SURE)
        return {
            "scores": np.log(risk / (1 - risk)),
            "states": np.array(automaton.n_states),
            "unseen": np.array(unseen.mean()),
        }


@torch.no_grad()
def symbols_of(corpus: Corpus, rows: Rows, fitted: FittedMonitor) -> NDArray[np.int32]:
    """The symbol that the monitor's symbols-only network gives each step of the corpus, int32 (steps,)."""
    if fitted.symbol is None:
        raise DataError("a monitor of trees learns no symbols.")
    network = fitted.symbol.network.cpu().eval()
    out = np.empty(int(corpus.first[-1]), dtype=np.int32)
    for batch in epoch(corpus, rows, np.arange(len(corpus)), _BATCH, None):
        _, p = network(batch, fitted.config.tau_end)  # (B, T, K)
        hard = p.argmax(-1).numpy()
        for j, r in enumerate(batch.runs.tolist()):
            out[corpus.first[r] : corpus.first[r + 1]] = hard[j, : int(corpus.lengths[r])]
    return out
