"""A soft finite automaton: a distribution over states that every symbol moves by a row-stochastic matrix.

    u = W2 GELU(W1 [e, c]) in R^2            where a step lies on a plane                           ours
    logit_k = beta (u . code_k - |code_k|^2 / 2)       nearest of K codes: the symbol               PrefixGuard 4.3
    s_t = sum_k p_t[k] s_{t-1} softmax_rows(A_k / tau)                                              PrefixGuard 4.4
    logits = R[state], averaged over s_t     imminent and outcome

Everything the monitor knows of a run is where its state is: nothing goes around the symbols. States are `levels` times
`modes`: each symbol pulls towards its own level and, weakly, leaves the mode as it was, which is what the machine can
remember by. So symbols differ from the first step; transitions that all start alike, as in the public reference, give
symbols no gradient and a risk that stays constant. Transitions sharpen as the temperature falls, symbols are drawn hard
in training, and at the end the machine is nearly its own argmax; how nearly is measured.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prefixguard.learn.config import TrainConfig
from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.head import FitMaterial
from prefixguard.learn.network import ContextEncoding, array
from prefixguard.learn.neural_heads import NetworkHead, choose_device, fit_member
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.trainer import Batch, Target, epoch

_PLANE = 2  # dimensions that symbols are told apart in
SHARPNESS = 6.0  # beta
_SPREAD = 0.5  # standard deviation of the transitions' logits at the start
_PULL = 6.0  # logit by which a symbol prefers its own level at the start
_STAY = 1.5  # logit by which the mode prefers to stay
_CODES = 1.5  # standard deviation of the codes
_GAIN, READOUT_GAIN = 5.0, 3.0  # of transitions and risks over what is learned: they have a long way to go


class _Filter(torch.autograd.Function):
    """s_1..s_T from s_0, transitions and symbols, step by step, with the gradient written out: a third of the time of
    letting autograd record the steps."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, flat: Tensor, p: Tensor) -> Tensor:
        """start (S,), flat (S, K * S): all symbols' rows side by side, p (B, T, K) -> (B, T, S)."""
        batch, steps, k = p.shape
        s = len(start)
        symbols = p.transpose(0, 1).contiguous()  # (T, B, K)
        states = p.new_empty(steps + 1, batch, s)
        states[0] = start
        moved = p.new_empty(steps, batch, k * s)
        for t in range(steps):
            torch.mm(states[t], flat, out=moved[t])
            torch.bmm(symbols[t].unsqueeze(1), moved[t].view(batch, k, s), out=states[t + 1].unsqueeze(1))
        ctx.save_for_backward(flat, symbols, states, moved)
        return states[1:].transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of start, flat and p."""
        flat, symbols, states, moved = ctx.saved_tensors
        steps, batch, k = symbols.shape
        s = states.shape[2]
        given = gradients[0].transpose(0, 1).contiguous()
        of_symbols, of_moved = torch.empty_like(symbols), torch.empty_like(moved)
        back, last = flat.t().contiguous(), given.new_zeros(batch, s)
        for t in range(steps - 1, -1, -1):
            last = last + given[t]
            torch.bmm(moved[t].view(batch, k, s), last.unsqueeze(2), out=of_symbols[t].unsqueeze(2))
            torch.mul(symbols[t].unsqueeze(2), last.unsqueeze(1), out=of_moved[t].view(batch, k, s))
            last = of_moved[t] @ back
        of_flat = states[:-1].reshape(steps * batch, s).t() @ of_moved.view(steps * batch, k * s)
        return last.sum(0), of_flat, of_symbols.transpose(0, 1)


class _KnownFilter(torch.autograd.Function):
    """As `_Filter`, where the symbols are known: rows with the same symbol are moved together by its one matrix."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, transitions: Tensor, symbols: Tensor) -> Tensor:
        """start (S,), transitions (K, S, S), symbols int64 (B, T) -> (B, T, S)."""
        batch, steps = symbols.shape
        states = start.new_empty(steps + 1, batch, len(start))
        states[0] = start
        groups = [_grouped(symbols[:, t]) for t in range(steps)]
        for t, group in enumerate(groups):
            states[t + 1] = _moved(states[t], group, transitions)
        ctx.save_for_backward(transitions, states, symbols)
        ctx.groups = groups
        return states[1:].transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients of start and transitions."""
        transitions, states, symbols = ctx.saved_tensors
        given = gradients[0].transpose(0, 1)
        back = transitions.transpose(1, 2)
        of_states = torch.empty_like(states[1:])
        last = torch.zeros_like(states[0])
        for t in range(len(given) - 1, -1, -1):
            of_states[t] = last + given[t]
            last = _moved(of_states[t], ctx.groups[t], back)
        order, kinds, sizes = _grouped(symbols.t().reshape(-1))
        before, after = (torch.split(x.flatten(0, 1)[order], sizes) for x in (states[:-1], of_states))
        of_transitions = torch.zeros_like(transitions)
        for k, a, b in zip(kinds, before, after, strict=True):
            of_transitions[k] = a.t() @ b
        return last.sum(0), of_transitions, None


_Group = tuple[Tensor, list[int], list[int]]  # order of the rows, symbols that occur, rows of each


def _grouped(symbols: Tensor) -> _Group:
    order = torch.argsort(symbols, stable=True)
    kinds, sizes = torch.unique_consecutive(symbols[order], return_counts=True)
    return order, kinds.tolist(), sizes.tolist()


def _moved(rows: Tensor, group: _Group, transitions: Tensor) -> Tensor:
    order, kinds, sizes = group
    out = torch.empty_like(rows)
    out[order] = torch.cat([x @ transitions[k] for k, x in zip(kinds, torch.split(rows[order], sizes), strict=True)])
    return out


class SoftFsm(nn.Module):
    """The machine alone: K symbols, S states.

    pull: float32 (K, S), 1 where a symbol prefers a state at the start; or (K, S, S), where it does so from each state.
    modes: int64 (S,), which symbols tend to leave as they are.
    """

    def __init__(self, pull: Tensor, modes: Tensor) -> None:
        super().__init__()
        n_symbols, n = len(pull), pull.shape[-1]
        towards = pull if pull.dim() == 3 else pull[:, None, :]  # (K, S, S) or (K, 1, S)
        stay = (modes[:, None] == modes[None, :]).float()  # (S, S)
        logits = torch.randn(n_symbols, n, n) * _SPREAD + _PULL * towards + _STAY * stay
        self.raw = nn.Parameter(logits / _GAIN)  # (K, S, S)
        self.theta = nn.Parameter(torch.randn(n))

    def start(self, tau: float) -> Tensor:
        """s_0, (S,)."""
        return F.softmax(self.theta / tau, dim=-1)

    def transitions(self, tau: float) -> Tensor:
        """Row-stochastic, (K, S, S)."""
        return F.softmax(self.raw * _GAIN / tau, dim=-1)

    def forward(self, p: Tensor, tau: float) -> Tensor:
        """Symbol probabilities (B, T, K) -> distribution over states after each step (B, T, S)."""
        flat = self.transitions(tau).transpose(0, 1).reshape(len(self.theta), -1)  # (S, K * S)
        states: Tensor = _Filter.apply(self.start(tau), flat, p)  # type: ignore[no-untyped-call]
        return states

    def walk(self, symbols: Tensor, tau: float) -> Tensor:
        """Symbols that are known, int64 (B, T) -> distribution over states after each step (B, T, S).

        The same as `forward` of their one-hot rows, in a third of the time.
        """
        states: Tensor = _KnownFilter.apply(self.start(tau), self.transitions(tau), symbols)  # type: ignore[no-untyped-call]
        return states

    def argmax(self) -> tuple[int, Tensor]:
        """The automaton that the machine sharpens to: start, and the state after each state and symbol (S, K)."""
        return int(self.theta.argmax()), self.raw.argmax(dim=-1).t()


class FsmNetwork(nn.Module):
    """The backend's network: symbols from text and context, the machine, a risk in every state."""

    def __init__(self, n_columns: int, scale: ContextScale, config: TrainConfig) -> None:
        super().__init__()
        width, k = config.abstraction_width, max(config.states // 2, 2)
        self.encoding = ContextEncoding(scale)
        self.columns = nn.Parameter(torch.randn(n_columns, width) * 0.1)
        self.bias = nn.Parameter(torch.zeros(width))
        self.context = nn.Linear(self.encoding.size, width, bias=False)
        self.plane = nn.Linear(width, _PLANE)
        with torch.no_grad():
            self.plane.weight.mul_(3.0)  # steps begin spread over the plane, so that many codes are in use
        self.codes = nn.Parameter(torch.randn(k, _PLANE) * _CODES)
        levels, modes = torch.arange(config.states) % k, torch.arange(config.states) // k
        self.machine = SoftFsm((levels[None, :] == torch.arange(k)[:, None]).float(), modes)
        # Levels begin with the risks of their codes: one axis of the plane is the imminent, one the outcome risk.
        codes = self.codes.detach()
        risk = torch.stack([-2.5 + 1.5 * codes[:, 0], -0.8 + codes[:, 1]], dim=1)  # (K, 2)
        self.risk = nn.Parameter((risk[levels] + 0.7 * (2.0 * modes[:, None] - 1.0)) / READOUT_GAIN)  # (S, 2)

    def symbol_logits(self, batch: Batch) -> Tensor:
        """(B, T, K)."""
        e = F.embedding_bag(
            batch.indices, self.columns, batch.offsets, mode="sum", per_sample_weights=batch.values
        ).view(*batch.context.shape[:2], -1)
        u = self.plane(F.gelu(e + self.bias + self.context(self.encoding(batch.context))))
        logits: Tensor = SHARPNESS * (u @ self.codes.t() - self.codes.square().sum(-1) / 2)
        return logits

    def forward(self, batch: Batch, tau: float) -> tuple[Tensor, Tensor]:
        """Logits (B, T, 2) and symbol probabilities (B, T, K). In training one symbol is drawn at each step."""
        logits = self.symbol_logits(batch)
        if not self.training:
            p = F.softmax(logits / tau, dim=-1)
            return self.read(self.machine(p, machine_tau(tau))), p
        noise = torch.rand_like(logits).clamp(1e-9, 1 - 1e-7)
        p = F.softmax((logits - torch.log(-torch.log(noise))) / tau, dim=-1)
        drawn = F.one_hot(p.argmax(-1), p.shape[-1]).to(p.dtype)
        return self.read(self.machine(p + (drawn - p).detach(), machine_tau(tau))), p

    def read(self, states: Tensor) -> Tensor:
        """Distribution over states (..., S) -> logits (..., 2)."""
        return states @ (self.risk * READOUT_GAIN)

    @torch.no_grad()
    def off_argmax(self, batch: Batch, tau: float) -> Tensor:
        """Share of the probability mass that is not in the state of the argmax automaton, (B, T)."""
        logits = self.symbol_logits(batch)
        soft = self.machine(F.softmax(logits / tau, dim=-1), machine_tau(tau))
        start, after = self.machine.argmax()
        state = torch.full((len(logits),), start, device=logits.device)
        off = []
        for t, symbol in enumerate(logits.argmax(-1).unbind(1)):
            state = after[state, symbol]
            off.append(1 - soft[:, t].gather(1, state[:, None])[:, 0])
        return torch.stack(off, dim=1)


def machine_tau(tau: float) -> float:
    """Temperature of the transitions at a temperature of the symbols: it falls faster, so that rows get sharp."""
    return tau * tau


@dataclass(frozen=True)
class FsmPart:
    """One step of an `FsmNetwork`. State: whether the run has begun, and the distribution over states."""

    network: FsmNetwork
    scale: ContextScale
    tau: float
    prefix: str = ""
    adds_in_order = False

    @property
    def table(self) -> Matrix:
        return array(self.network.columns)

    @property
    def state(self) -> int:
        return 1 + len(self.network.machine.theta)

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        machine, tau = self.network.machine, machine_tau(self.tau)
        k, n = machine.raw.shape[:2]
        with torch.no_grad():
            start, flat = array(machine.start(tau)), array(machine.transitions(tau).transpose(0, 1).reshape(n, -1))
        logits = symbol_logits(g, self.network, self.scale, text, context, self.prefix)
        scale = g.constant(f"{self.prefix}tau", np.float32(1 / self.tau))
        p = g.node("Softmax", g.node("Mul", logits, scale), axis=-1)  # (N, K)
        begun, before = g.split(state, [1, n])
        new = g.node("Sub", g.constant("one", np.float32(1)), begun)  # (1, 1)
        first = g.node("Mul", new, g.constant(f"{self.prefix}start", start[None]))
        before = g.node("Add", before, first)  # (1, S): all zeros before the first step
        moved = g.node("MatMul", before, g.constant(f"{self.prefix}transitions", np.ascontiguousarray(flat)))
        after = g.node("MatMul", p, g.node("Reshape", moved, g.integers(k, n)))  # (N, S)
        risk = array(self.network.risk) * np.float32(READOUT_GAIN)
        begun = g.constant("begun", np.ones((1, 1), dtype=np.float32))
        return g.node("MatMul", after, g.constant(f"{self.prefix}risk", risk)), g.concat([begun, after])


@dataclass(frozen=True)
class FsmSymbols:
    """The symbol of an `FsmNetwork`: the nearest code."""

    network: FsmNetwork
    scale: ContextScale

    @property
    def table(self) -> Matrix:
        return array(self.network.columns)

    def symbol(self, g: Graph, text: str, context: StepContext, logits: str) -> str:
        return g.node(
            "ArgMax", symbol_logits(g, self.network, self.scale, text, context, "symbol_"), axis=-1, keepdims=0
        )


def symbol_logits(
    g: Graph, network: FsmNetwork, scale: ContextScale, text: str, context: StepContext, prefix: str
) -> str:
    """text (N, width), context (N, d) -> (N, K), as `FsmNetwork.symbol_logits`."""
    of_context = np.ascontiguousarray(array(network.context.weight).T)
    to_hidden = context.layer(scale, f"{prefix}context", of_context, array(network.bias))
    hidden = g.node("Gelu", g.node("Add", text, to_hidden))
    codes = array(network.codes)
    # beta (u . code - |code|^2 / 2) with u = W h + b is one product from the hidden layer.
    weight = array(network.plane.weight).T @ codes.T * np.float32(SHARPNESS)
    bias = SHARPNESS * (array(network.plane.bias) @ codes.T - np.square(codes).sum(-1) / 2)
    return g.linear(hidden, f"{prefix}codes", np.ascontiguousarray(weight), bias.astype(np.float32))


@dataclass(frozen=True, slots=True)
class FsmHead(NetworkHead):
    """The soft automaton. One network: the mean of several would be no automaton.

    off_argmax: share of the probability mass that is not where the argmax automaton is, over training steps.
    """

    off_argmax: float

    def part(self, prefix: str) -> FsmPart:
        return FsmPart(self.members[0].network, self.scale, self.config.tau_end, prefix)

    def symbols(self, m: FitMaterial) -> FsmSymbols:
        """The machine's own."""
        return FsmSymbols(self.members[0].network, self.scale)

    def facts(self) -> Mapping[str, Any]:
        return {**NetworkHead.facts(self), "off_argmax": round(self.off_argmax, 6)}


def fit(m: FitMaterial) -> FsmHead:
    """Fit the head: one soft automaton, with a third more epochs, since it has to get sharp as well as right."""
    config = dataclasses.replace(m.config, epochs=math.ceil(m.config.epochs * 4 / 3))
    seed = config.seed * 1009
    torch.manual_seed(seed)
    network = FsmNetwork(m.rows.n_columns, m.scale, config)
    m.listener.on_stage("network", "fsm")
    fitted = fit_member(m, "fsm0", network, Target(m.soft, *m.slice(0)), config, seed)
    device, off, steps = choose_device(config.device), 0.0, 0
    for batch in epoch(m.corpus, m.rows, m.pool, 4 * config.batch_runs, None):
        batch = batch.to(device)
        off += float(network.off_argmax(batch, config.tau_end)[batch.mask].double().sum())
        steps += int(batch.mask.sum())
    return FsmHead((fitted,), m.scale, config, device, off / steps)
