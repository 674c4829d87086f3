"""Learners that fit a network to the symbols and read an automaton off it; both need torch.

Fsm: a machine with probable states is fitted to labels and teacher, sharpened, and read off its argmax. Transitions
begin random, with a pull to the next of as many layers as runs have steps, within the limit, and a weaker one to stay
in one's track: so the machine counts from the start, symbols differ from the first step, and tracks are what it can
remember by. Some of what reading off the argmax loses is won back by redirecting transitions on the automaton's own
roll-outs.

Clusters: a small GRU reads the symbols, and what it holds after a step, clustered, becomes the states. States are
clusters of steps of the same index: so the machine counts, which a cap on steps asks for and which clusters over all
steps forget. Where a symbol leads from a cluster is the majority of what the GRU did there. These states are too many;
they are taken away, and transitions redirected, by what that costs on the machine's own roll-outs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from prefixguard.automata.learners.rollouts import Rollouts, eliminate, redirect
from prefixguard.automata.strings import Strings, Transitions, taken
from prefixguard.bundle import N_RISKS
from prefixguard.errors import DataError
from prefixguard.learn import SoftFsm

_BATCH = 64
_MOST_STEPS = 40_000
_ROUNDS = 40
_SURE = 1e-4
# Of fsm.
_TEMPERATURES = tuple(float(t) for t in np.geomspace(1.0, 0.1, 30))  # one an epoch
_FSM_RATE = 2e-2
_RISK_GAIN = 5.0  # of risks over what is learned: they have a long way to go
_BEGIN = 4.0  # logit by which a run begins in the first state
# Of clusters.
_WIDTH = 32
_EPOCHS = 20
_RATE = 1e-2
_RISK_WEIGHT = 2.0  # of the predicted risks beside the hidden state, both standardised
_CLUSTERS = 8  # of the steps of one index
_FEWEST = 8  # steps a cluster


def learn_fsm(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states; the notes say how much probability was off the argmax.

    Raises DataError if there are no runs.
    """
    strings, notes = _few_enough("fsm", strings, seed)
    target = np.clip(strings.target, _SURE, 1 - _SURE)
    rollouts = Rollouts.of(strings, target)
    soft = _SoftMachine(strings.n_symbols, max_states, int(strings.lengths.max()), target.mean(axis=0))
    _fit(soft, strings, seed, _FSM_RATE, _TEMPERATURES, rollouts.importance)
    start, after = soft.fsm.argmax()
    read = Transitions(start, after.numpy().astype(np.int32))
    off = _off_argmax(soft, strings, rollouts.walk(read)[1])
    machine = redirect(rollouts, read, _ROUNDS, np.random.default_rng(seed))
    before, _ = rollouts.walk(machine)
    cells = np.unique(before * strings.n_symbols + strings.symbols)
    moved = int(np.count_nonzero(machine.next.ravel()[cells] != read.next.ravel()[cells]))
    notes = (
        *notes,
        f"{off:.1%} of the soft automaton's probability was off its argmax",
        f"{moved} of {len(cells)} transitions redirected on the automaton's own roll-outs",
    )
    return taken(Transitions(machine.start, machine.next, notes), strings)


def learn_clusters(strings: Strings, *, max_states: int, seed: int) -> Transitions:
    """At most `max_states` states. Raises DataError if there are no runs."""
    strings, notes = _few_enough("clusters", strings, seed)
    reader = _Reader(strings.n_symbols)
    _fit(reader, strings, seed, _RATE, (1.0,) * _EPOCHS, np.ones(N_RISKS))
    hidden, logits = _read(reader, strings)
    # The GRU has seen all runs, so what it says of one is steadier than the one run's labels and teacher.
    target = np.clip((strings.target + 1 / (1 + np.exp(-logits))) / 2, _SURE, 1 - _SURE)
    rollouts = Rollouts.of(strings, target)
    machine, depth = _layered(rollouts, _points(hidden, logits), max_states, seed)
    machine = eliminate(rollouts, machine, depth, max_states)
    machine = redirect(rollouts, machine, _ROUNDS, np.random.default_rng(seed))
    return taken(Transitions(machine.start, machine.next, notes), strings)


def _few_enough(learner: str, strings: Strings, seed: int) -> tuple[Strings, tuple[str, ...]]:
    """So many of the runs, drawn by seed, that every step can be weighed against every state; and what to note.

    Seeds torch, too. Raises DataError if there are no runs.
    """
    if not len(strings):
        raise DataError(f"{learner}: there are no runs to learn from. Give it some.")
    torch.manual_seed(seed)
    drawn = np.random.default_rng(seed).permutation(len(strings))
    n = max(int(np.searchsorted(np.cumsum(strings.lengths[drawn]), _MOST_STEPS, side="right")), 1)
    if n >= len(strings):
        return strings, ()
    return strings.of(np.sort(drawn[:n])), (f"learned from {n} of {len(strings)} runs, drawn by seed",)


_SymbolBatch = tuple[Tensor, Tensor, Tensor, NDArray[np.int64]]


def _batches(strings: Strings, rng: np.random.Generator | None) -> Iterator[_SymbolBatch]:
    """Runs of like length side by side; shuffled where a generator is given.

    Yields symbols, int64 (B, T); target, float32 (B, T, 2); mask, bool (B, T); positions in the strings, int64 (B, T),
    those of padding 0.
    """
    order = np.argsort(strings.lengths, kind="stable")
    starts = np.arange(0, len(order), _BATCH)
    if rng is not None:
        rng.shuffle(starts)
    target = strings.target.astype(np.float32)
    for start in starts.tolist():
        runs = order[start : start + _BATCH]
        lengths = strings.lengths[runs]
        t = np.arange(int(lengths.max()))
        mask = t[None, :] < lengths[:, None]
        steps = np.where(mask, strings.first[runs][:, None] + t[None, :], 0)
        symbols = torch.from_numpy(strings.symbols[steps].astype(np.int64))
        yield symbols, torch.from_numpy(target[steps]), torch.from_numpy(mask), steps


def _fit(
    model: nn.Module,
    strings: Strings,
    seed: int,
    rate: float,
    temperatures: tuple[float, ...],
    importance: NDArray[np.float64],
) -> None:
    """Fit `model` (called with symbols (B, T) and a temperature, giving logits (B, T, 2)) in place.

    Loss: mean over runs of the mean over their steps, as networks on records are fitted. temperatures: one an epoch.
    importance: float64 (2,), what each risk counts for.
    """
    counts = torch.from_numpy(importance.astype(np.float32))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rng = np.random.default_rng(seed)
    for epoch, temperature in enumerate(temperatures):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - 0.9 * epoch / max(len(temperatures) - 1, 1))
        for symbols, target, mask, _ in _batches(strings, rng):
            logits = model(symbols, temperature)
            each = F.binary_cross_entropy_with_logits(logits, target, reduction="none") @ counts
            weight = mask / mask.sum(1, keepdim=True)
            optimizer.zero_grad()
            ((each * weight).sum() / len(weight)).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


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


@torch.no_grad()
def _off_argmax(machine: _SoftMachine, strings: Strings, states: NDArray[np.int64]) -> float:
    """Share of the probability mass that is not in `states`, the argmax automaton's, (steps,)."""
    off = 0.0
    for symbols, _, mask, steps in _batches(strings, None):
        soft = machine.fsm.walk(symbols, _TEMPERATURES[-1])
        hard = torch.from_numpy(states[steps])
        off += float((1 - soft.gather(2, hard[..., None])[..., 0])[mask].double().sum())
    return off / len(strings.symbols)


class _Reader(nn.Module):
    """A GRU over embedded symbols, and a readout of both risks."""

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


@torch.no_grad()
def _read(reader: _Reader, strings: Strings) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Hidden state (steps, width) and logits of both risks (steps, 2) after every step."""
    hidden, logits = np.empty((len(strings.symbols), _WIDTH)), np.empty((len(strings.symbols), N_RISKS))
    for symbols, _, mask, steps in _batches(strings, None):
        h, at = reader.hidden(symbols), mask.numpy()
        hidden[steps[at]] = h.double().numpy()[at]
        logits[steps[at]] = reader.readout(h).double().numpy()[at]
    return hidden, logits


def _points(hidden: NDArray[np.float64], logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """What steps are clustered by, (steps, width + 2)."""
    weight = _RISK_WEIGHT * (_WIDTH / N_RISKS) ** 0.5
    parts = [hidden / np.maximum(hidden.std(axis=0), 1e-6), weight * logits / np.maximum(logits.std(axis=0), 1e-6)]
    return np.asarray(np.round(np.concatenate(parts, axis=1), 6))


def _layered(
    rollouts: Rollouts, points: NDArray[np.float64], max_states: int, seed: int
) -> tuple[Transitions, NDArray[np.int64]]:
    """Clusters of the steps of each index as states, and the index of each; 0 is the start.

    The machine counts up to half of its states; steps after that are clustered together.
    """
    every = rollouts.strings.layers
    n_layers = min(max(max_states // 2, 1), len(every))
    layers = [*every[: n_layers - 1], np.concatenate(every[n_layers - 1 :])]
    states, depth = np.zeros(len(points), dtype=np.int64), [0]
    for index, at in enumerate(layers, 1):
        k = min(_CLUSTERS, max(len(at) // _FEWEST, 1), len(np.unique(points[at], axis=0)))
        found = KMeans(k, n_init=1, random_state=seed).fit_predict(points[at])
        states[at] = len(depth) + found
        depth += [index] * k
    return rollouts.complete(states, 0, len(depth)), np.array(depth)
