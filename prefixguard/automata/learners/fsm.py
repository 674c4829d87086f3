"""Soft automaton: a machine with probable states is fitted to labels and teacher, sharpened, read off its argmax.

Transitions begin random, with a pull to the next of as many layers as runs have steps, within the budget, and a weaker
one to stay in one's track: so the machine counts from the start, symbols differ from the first step, and tracks are
what it can remember by. What reading off the argmax loses, some of it is won back by redirecting transitions on the
automaton's own roll-outs.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.automata.learners.rollouts import RolloutMachine, Rollouts, redirect, taken
from prefixguard.automata.learners.sequences import batches, few_enough, fit
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.bundle import N_RISKS
from prefixguard.errors import DataError
from prefixguard.learn import SoftFsm

_EPOCHS = 30
_RATE = 2e-2
_RISK_GAIN = 5.0  # of risks over what is learned: they have a long way to go
_WARM, _COLD = 1.0, 0.1
_BEGIN = 4.0  # logit by which a run begins in the first state
_ROUNDS = 40
_SURE = 1e-4


class _SoftMachine(nn.Module):
    """A `SoftFsm` over given symbols with a risk in every state."""

    def __init__(self, n_symbols: int, n_states: int, longest: int, base: NDArray[np.float64]) -> None:
        super().__init__()
        states = torch.arange(n_states)
        n_layers = min(longest + 1, max(n_states // 2, 1))
        layer = states * n_layers // n_states
        onward = (layer + 1).clamp(max=n_layers - 1)[:, None] == layer[None, :]  # (S, S)
        track = states - torch.searchsorted(layer, layer)  # place of a state within its layer
        self.fsm = SoftFsm(onward.float().expand(n_symbols, -1, -1), track)
        with torch.no_grad():
            self.fsm.theta[0] += _BEGIN
        odds = torch.from_numpy(np.log(base / (1 - base)).astype(np.float32))
        self.risk = nn.Parameter((odds + torch.randn(n_states, N_RISKS)) / _RISK_GAIN)  # (S, 2)

    def forward(self, symbols: Tensor, tau: float) -> Tensor:
        return self.fsm.walk(symbols, tau) @ (self.risk * _RISK_GAIN)


def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states; the notes say how much probability was off the argmax.

    Raises DataError if there are no runs.
    """
    if not len(strings):
        raise DataError("fsm: there are no runs to learn from. Give it some.")
    strings, notes = few_enough(strings, seed)
    target = np.clip((strings.labels.astype(np.float64) + strings.teacher) / 2, _SURE, 1 - _SURE)
    rollouts = Rollouts.of(strings, target)
    torch.manual_seed(seed)
    soft = _SoftMachine(strings.n_symbols, max_states, int(strings.lengths.max()), target.mean(axis=0))
    temperatures = tuple(float(t) for t in np.geomspace(_WARM, _COLD, _EPOCHS))
    fit(soft, strings, seed, _EPOCHS, _RATE, temperatures, rollouts.importance)
    start, after = soft.fsm.argmax()
    read = RolloutMachine(start, after.numpy().astype(np.int64))
    off = _off_argmax(soft, strings, rollouts.walk(read)[1])
    machine = redirect(rollouts, read, _ROUNDS, np.random.default_rng(seed))
    before, _ = rollouts.walk(machine)
    cells = np.unique(before * strings.n_symbols + rollouts.symbols)
    moved = int(np.count_nonzero(machine.next.ravel()[cells] != read.next.ravel()[cells]))
    notes = (
        *notes,
        f"{off:.1%} of the soft automaton's probability was off its argmax",
        f"{moved} of {len(cells)} transitions redirected on the automaton's own roll-outs",
    )
    return taken(machine, rollouts, notes)


@torch.no_grad()
def _off_argmax(machine: _SoftMachine, strings: Strings, states: NDArray[np.int64]) -> float:
    """Share of the probability mass that is not in `states`, the argmax automaton's, (steps,)."""
    off = 0.0
    for batch in batches(strings, None):
        soft = machine.fsm.walk(batch.symbols, _COLD)
        hard = torch.from_numpy(states[batch.steps])
        off += float((1 - soft.gather(2, hard[..., None])[..., 0])[batch.mask].double().sum())
    return off / len(strings.symbols)
