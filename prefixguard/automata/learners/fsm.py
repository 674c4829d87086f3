"""Soft automaton: a machine with probable states is fitted to labels and teacher, sharpened, read off its argmax."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prefixguard.automata.learners.sequences import batches, fit
from prefixguard.automata.strings import Strings, Transitions, before, walk
from prefixguard.bundle import N_RISKS, UNSEEN
from prefixguard.learn import SoftFsm

_EPOCHS = 30
_RATE = 2e-2
_WARM, _COLD = 1.0, 0.1
_SURE = 1e-3


class _Machine(nn.Module):
    """A `SoftFsm` over given symbols with a risk in every state."""

    def __init__(self, strings: Strings, n_states: int) -> None:
        super().__init__()
        k = strings.n_symbols
        teacher = np.clip(strings.teacher.astype(np.float64), _SURE, 1 - _SURE)
        odds = np.log(teacher / (1 - teacher))
        counts = np.bincount(strings.symbols, minlength=k)
        means = [np.bincount(strings.symbols, odds[:, i], k) / np.maximum(counts, 1) for i in range(N_RISKS)]
        # Symbols in order of risk share the states between them; where states are left, each level has several modes.
        rank = np.empty(k, dtype=np.int64)
        rank[np.argsort(means[0], kind="stable")] = np.arange(k)
        n_levels = min(k, n_states)
        level = torch.from_numpy(rank * n_levels // k)
        states = torch.arange(n_states)
        self.fsm = SoftFsm((states[None, :] % n_levels == level[:, None]).float(), states // n_levels)
        of_level = torch.zeros(n_levels, N_RISKS)
        for i in range(N_RISKS):
            total = torch.zeros(n_levels).index_add_(0, level, torch.from_numpy((means[i] * counts).astype(np.float32)))
            mass = torch.zeros(n_levels).index_add_(0, level, torch.from_numpy(counts.astype(np.float32)))
            of_level[:, i] = total / mass.clamp(min=1)
        self.risk = nn.Parameter(of_level[states % n_levels] + 0.3 * torch.randn(n_states, N_RISKS))

    def forward(self, symbols: Tensor, tau: float) -> Tensor:
        p = F.one_hot(symbols, self.fsm.raw.shape[0]).float()
        states: Tensor = self.fsm(p, tau)
        return states @ self.risk


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states; the notes say how much probability was off the argmax."""
    torch.manual_seed(seed)
    machine = _Machine(strings, max_states)
    temperatures = tuple(float(t) for t in np.geomspace(_WARM, _COLD, _EPOCHS))
    fit(machine, strings, seed, _EPOCHS, _RATE, temperatures)
    start, after = machine.fsm.argmax()
    following = after.numpy().astype(np.int32)
    states, _ = walk(start, following, np.full(strings.n_symbols, UNSEEN, dtype=np.int32), strings)
    taken = np.zeros(following.shape, dtype=np.bool_)
    taken[before(strings, states, start), strings.symbols] = True
    off = _off_argmax(machine, strings, states)
    return Transitions(
        start,
        np.where(taken, following, UNSEEN).astype(np.int32),
        (f"{off:.1%} of the soft automaton's probability was off its argmax",),
    )


@torch.no_grad()
def _off_argmax(machine: _Machine, strings: Strings, states: np.ndarray) -> float:
    off = 0.0
    for batch in batches(strings, None):
        soft = machine.fsm(F.one_hot(batch.symbols, strings.n_symbols).float(), _COLD)
        hard = torch.from_numpy(states[batch.steps].astype(np.int64))
        off += float((1 - soft.gather(2, hard[..., None])[..., 0])[batch.mask].double().sum())
    return off / len(strings.symbols)
