"""Clusters: a small GRU reads the symbols; what it holds after a step, clustered, is the automaton's states.

States are clusters of steps of the same index: so the machine counts, which a cap on steps asks for and which clusters
over all steps forget by and by. Where a symbol leads from a cluster is the majority of what the GRU did there. These
states are too many; they are taken away, and transitions redirected, by what that costs on the machine's own roll-outs.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from prefixguard.automata.learners.rollouts import RolloutMachine, Rollouts, complete, eliminate, redirect, taken
from prefixguard.automata.learners.sequences import batches, few_enough, fit
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.bundle import N_RISKS
from prefixguard.errors import DataError

_WIDTH = 32
_EPOCHS = 20
_RATE = 1e-2
_RISK_WEIGHT = 2.0  # of the predicted risks beside the hidden state, both standardised
_CLUSTERS = 8  # of the steps of one index
_FEWEST = 8  # steps a cluster
_ROUNDS = 40
_SURE = 1e-4


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
    """At most `max_states` states. Raises DataError if there are no runs."""
    if not len(strings):
        raise DataError("clusters: there are no runs to learn from. Give it some.")
    strings, notes = few_enough(strings, seed)
    torch.manual_seed(seed)
    reader = _Reader(strings.n_symbols)
    fit(reader, strings, seed, _EPOCHS, _RATE, (1.0,) * _EPOCHS)
    hidden, logits = _read(reader, strings)
    # The GRU has seen all runs, so what it says of one is steadier than the one run's labels and teacher.
    said = (strings.labels.astype(np.float64) + strings.teacher) / 2
    target = np.clip((said + 1 / (1 + np.exp(-logits))) / 2, _SURE, 1 - _SURE)
    rollouts = Rollouts.of(strings, target)
    machine, depth = _layered(rollouts, _points(hidden, logits), max_states, seed)
    machine = eliminate(rollouts, machine, depth, max_states)
    machine = redirect(rollouts, machine, _ROUNDS, np.random.default_rng(seed))
    return taken(machine, rollouts, notes)


def _layered(
    rollouts: Rollouts, points: NDArray[np.float64], max_states: int, seed: int
) -> tuple[RolloutMachine, NDArray[np.int64]]:
    """Clusters of the steps of each index as states, and the index of each; 0 is the start.

    The machine counts up to half of its states; steps after that are clustered together.
    """
    n_layers = min(max(max_states // 2, 1), len(rollouts.layers))
    layers = [*rollouts.layers[: n_layers - 1], np.concatenate(rollouts.layers[n_layers - 1 :])]
    states, depth = np.zeros(len(points), dtype=np.int64), [0]
    for index, at in enumerate(layers, 1):
        k = min(_CLUSTERS, max(len(at) // _FEWEST, 1), len(np.unique(points[at], axis=0)))
        found = KMeans(k, n_init=1, random_state=seed).fit_predict(points[at])
        states[at] = len(depth) + found
        depth += [index] * k
    return complete(rollouts, states, 0, len(depth)), np.array(depth)


@torch.no_grad()
def _read(reader: _Reader, strings: Strings) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hidden state (steps, width) and logits of both risks (steps, 2) after every step."""
    hidden, logits = np.empty((len(strings.symbols), _WIDTH)), np.empty((len(strings.symbols), N_RISKS))
    for batch in batches(strings, None):
        h = reader.hidden(batch.symbols)
        mask = batch.mask.numpy()
        hidden[batch.steps[mask]] = h.double().numpy()[mask]
        logits[batch.steps[mask]] = reader.readout(h).double().numpy()[mask]
    return hidden, logits


def _points(hidden: NDArray[np.float64], logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """What steps are clustered by, (steps, width + 2)."""
    weight = _RISK_WEIGHT * (_WIDTH / N_RISKS) ** 0.5
    parts = [hidden / np.maximum(hidden.std(axis=0), 1e-6), weight * logits / np.maximum(logits.std(axis=0), 1e-6)]
    return np.asarray(np.round(np.concatenate(parts, axis=1), 6))
