"""Clusters: a small GRU reads the symbols; its hidden states, clustered, are the automaton's states.

Where a symbol leads from a cluster is the majority of what the GRU did there; since at run time the automaton follows
its own state, majorities are then taken again over its own roll-outs.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from prefixguard.automata.learners.sequences import batches, fit
from prefixguard.automata.strings import Strings, Transitions, before, walk
from prefixguard.bundle import N_RISKS, UNSEEN

_WIDTH = 32
_EPOCHS = 20
_RATE = 1e-2
_ROUNDS = 3
_RISK_WEIGHT = 2.0  # of the predicted risks beside the hidden state, both standardised
_FITTED = 20_000  # steps that clusters are fitted to


class _Reader(nn.Module):
    def __init__(self, n_symbols: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_symbols, _WIDTH)
        self.gru = nn.GRU(_WIDTH, _WIDTH, batch_first=True)
        self.readout = nn.Linear(_WIDTH, N_RISKS)

    def hidden(self, symbols: Tensor) -> Tensor:
        h: Tensor = self.gru(self.embed(symbols))[0]
        return h

    def forward(self, symbols: Tensor, tau: float) -> Tensor:
        logits: Tensor = self.readout(self.hidden(symbols))
        return logits


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states: the start, and one a cluster."""
    torch.manual_seed(seed)
    reader = _Reader(strings.n_symbols)
    fit(reader, strings, seed, _EPOCHS, _RATE, (1.0,) * _EPOCHS)
    points = _points(reader, strings)
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(points))[:_FITTED])
    n = min(max_states - 1, len(np.unique(points[chosen], axis=0)))
    clusters = KMeans(n, n_init=2, random_state=seed).fit(points[chosen])
    wanted = (clusters.predict(points) + 1).astype(np.int32)
    states, k = wanted, strings.n_symbols
    for _ in range(_ROUNDS):
        cell = before(strings, states, 0).astype(np.int64) * k + strings.symbols
        votes = np.zeros(((n + 1) * k, n + 1), dtype=np.int64)
        np.add.at(votes, (cell, wanted), 1)
        following = np.where(votes.any(axis=1), votes.argmax(axis=1), UNSEEN).reshape(n + 1, k).astype(np.int32)
        # A pair that no run has met yet goes where its symbol mostly goes, so that roll-outs never end.
        by_symbol = np.zeros((k, n + 1), dtype=np.int64)
        np.add.at(by_symbol, (strings.symbols, wanted), 1)
        complete = np.where(following == UNSEEN, by_symbol.argmax(axis=1)[None, :], following).astype(np.int32)
        states, _ = walk(0, complete, np.full(k, UNSEEN, dtype=np.int32), strings)
    taken = np.zeros(complete.shape, dtype=np.bool_)
    taken[before(strings, states, 0), strings.symbols] = True
    return Transitions(0, np.where(taken, complete, UNSEEN).astype(np.int32))


@torch.no_grad()
def _points(reader: _Reader, strings: Strings) -> NDArray[np.float64]:
    """Hidden state and predicted risks after every step, standardised, (steps, width + 2)."""
    points = np.empty((len(strings.symbols), _WIDTH + N_RISKS))
    for batch in batches(strings, None):
        hidden = reader.hidden(batch.symbols)
        both = torch.cat((hidden, reader.readout(hidden)), dim=-1).double().numpy()
        mask = batch.mask.numpy()
        points[batch.steps[mask]] = both[mask]
    points = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-6)
    points[:, _WIDTH:] *= _RISK_WEIGHT * (_WIDTH / N_RISKS) ** 0.5
    return np.asarray(np.round(points, 6))
