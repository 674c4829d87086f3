"""The soft automaton: symbols differ from the first step, rows sharpen, and its parts agree with each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F

from prefixguard.context import N_FEATURES
from prefixguard.learn.config import LearnListener, TrainConfig
from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.corpus import labels
from prefixguard.learn.graph import Graph
from prefixguard.learn.soft_fsm import FsmNetwork, FsmPart, FsmSymbols, SoftFsm, machine_tau
from prefixguard.learn.trainer import Batch, Target, collate, fit_network, loss_of

CPU = torch.device("cpu")


def machine(n_symbols: int = 5, n_states: int = 8, seed: int = 0) -> SoftFsm:
    torch.manual_seed(seed)
    states = torch.arange(n_states)
    return SoftFsm((states[None] % n_symbols == torch.arange(n_symbols)[:, None]).float(), states // n_symbols)


@pytest.fixture
def network(tiny_monitor) -> FsmNetwork:
    torch.manual_seed(1)
    config = dataclasses.replace(tiny_monitor.fitted.config, states=12)
    return FsmNetwork(tiny_monitor.rows.n_columns, tiny_monitor.fitted.scale, config)


def of_runs(tiny_monitor, runs) -> Batch:
    return collate(tiny_monitor.corpus, tiny_monitor.rows, np.asarray(runs))


def equal_start(fsm: SoftFsm) -> None:
    """As the public reference begins: the same transitions for every symbol, and nearly all mass in one state."""
    with torch.no_grad():
        fsm.raw.zero_()
        fsm.theta.zero_()
        fsm.theta[0] = 8.0


def of_symbols(fsm: SoftFsm) -> tuple[float, float]:
    """How far apart two symbols lead in their first step, and the gradient of the symbols of a step."""
    k = fsm.raw.shape[0]
    first = fsm(torch.eye(k)[:, None, :], 1.0)[:, 0].detach()  # (K, S)
    p = torch.full((4, 6, k), 1 / k, requires_grad=True)
    readout = torch.linspace(-2, 2, fsm.raw.shape[1])
    F.binary_cross_entropy_with_logits(fsm(p, 1.0) @ readout, torch.ones(4, 6)).backward()
    # Probabilities only move against each other: what all symbols have in common is no gradient to tell them apart by.
    gradient = p.grad - p.grad.mean(-1, keepdim=True)
    return float((first[0] - first[1]).abs().sum()), float(gradient.abs().max())


def test_symbols_differ_from_the_first_step_and_are_reached_by_the_gradient() -> None:
    apart, gradient = of_symbols(machine())
    assert apart > 0.5 and gradient > 1e-3


def test_an_equal_start_makes_symbols_alike_and_leaves_them_without_gradient() -> None:
    fsm = machine()
    equal_start(fsm)
    apart, gradient = of_symbols(fsm)
    assert apart == 0.0 and gradient < 1e-7


def test_an_equal_start_leaves_the_network_s_symbols_without_gradient(tiny_monitor, network) -> None:
    batch = of_runs(tiny_monitor, range(8))

    def gradient() -> float:
        network.zero_grad()
        torch.manual_seed(0)
        logits, _ = network.train()(batch, 1.0)
        loss_of(logits, None, torch.ones_like(logits), batch.mask, 0.0).backward()
        return float(network.codes.grad.abs().max())

    ours = gradient()
    equal_start(network.machine)
    assert ours > 1e-2 and gradient() < 1e-5 * ours  # float32: what is left is rounding


def test_rows_sharpen_as_the_temperature_falls() -> None:
    fsm = machine(seed=3)
    largest = [fsm.transitions(machine_tau(tau)).detach().amax(-1).min().item() for tau in (1.0, 0.5, 0.25, 0.1)]
    assert largest == sorted(largest) and largest[0] < 0.7 and largest[-1] > 0.99
    np.testing.assert_allclose(fsm.transitions(1.0).sum(-1).detach(), 1.0, atol=1e-6)


def test_the_sharp_machine_is_its_argmax() -> None:
    fsm = machine(seed=2)
    symbols = torch.randint(0, 5, (6, 9))
    soft = fsm.walk(symbols, 1e-3)
    state, after = torch.full((6,), fsm.argmax()[0]), fsm.argmax()[1]
    for t in range(9):
        state = after[state, symbols[:, t]]
        np.testing.assert_allclose(soft[torch.arange(6), t, state].detach(), 1.0, atol=1e-4)


def plainly(fsm: SoftFsm, p: torch.Tensor, tau: float) -> torch.Tensor:
    """The recursion as it stands in the book, by autograd."""
    state, states = fsm.start(tau).expand(len(p), -1), []
    for t in range(p.shape[1]):
        state = torch.einsum("bs,bk,kst->bt", state, p[:, t], fsm.transitions(tau))
        states.append(state)
    return torch.stack(states, dim=1)


@pytest.mark.parametrize("known", [False, True])
def test_states_and_gradients_are_those_of_the_plain_recursion(known: bool) -> None:
    torch.manual_seed(4)
    fsm = machine().double()
    symbols = torch.randint(0, 5, (3, 7))
    p = F.one_hot(symbols, 5).double() if known else torch.rand(3, 7, 5, dtype=torch.float64).softmax(-1)
    p.requires_grad_()
    given = torch.randn(3, 7, 8, dtype=torch.float64)
    found = []
    for states in (plainly(fsm, p, 0.7), fsm.walk(symbols, 0.7) if known else fsm(p, 0.7)):
        fsm.zero_grad()
        p.grad = None
        (states * given).sum().backward()
        gradients = [fsm.raw.grad.clone(), fsm.theta.grad.clone()]
        found.append([states.detach(), *gradients, *([] if known else [p.grad.clone()])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_padding_and_batch_order_do_not_matter(tiny_monitor, network) -> None:
    lengths = tiny_monitor.corpus.lengths
    short, long = int(lengths.argmin()), int(lengths.argmax())
    network.eval()
    with torch.no_grad():
        together, alone, turned = (
            network(of_runs(tiny_monitor, runs), 0.25)[0] for runs in ([short, long], [short], [long, short])
        )
    np.testing.assert_allclose(alone[0], together[0, : lengths[short]], atol=1e-5)
    np.testing.assert_allclose(turned[0], together[1], atol=1e-5)


def test_nothing_goes_around_the_symbols(tiny_monitor, network) -> None:
    """With one symbol for all steps, every run has the same risks."""
    network.eval()
    with torch.no_grad():
        network.plane.weight.zero_()
        logits, _ = network(of_runs(tiny_monitor, range(6)), 0.25)
    np.testing.assert_allclose(logits[0], logits[5], atol=1e-6)


def session_of(tiny_monitor, network: FsmNetwork) -> tuple[ort.InferenceSession, int]:
    """The part alone as a graph: row of text in, already added up."""
    g, scale = Graph(), tiny_monitor.fitted.scale
    part, symbols = FsmPart(network, scale, 0.25, "fsm."), FsmSymbols(network, scale)
    first = g.integers(0)
    text, state = (g.node("Unsqueeze", name, first) for name in ("text", "state"))
    context = StepContext(g, "context")
    logits, after = part.step(g, text, context, state)
    model = g.build(
        [("text", "float32", [part.table.shape[1]]), ("context", "float32", [N_FEATURES]),
         ("state", "float32", [part.state])],
        [("logits", g.node("Squeeze", logits, first), "float32", [2]),
         ("symbol", g.node("Squeeze", symbols.symbol(g, text, context, logits), first), "int64", []),
         ("after", g.node("Squeeze", after, first), "float32", [part.state])],
    )  # fmt: skip
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model, options), part.state


def test_the_compiled_step_is_the_batch(tiny_monitor, network) -> None:
    """Risks, symbols and the distribution over states; within 1e-4: 24 times a float32 logit is exponentiated."""
    network.eval()
    session, size = session_of(tiny_monitor, network)
    table, corpus = network.columns.detach().numpy(), tiny_monitor.corpus
    for run in range(12):
        batch = of_runs(tiny_monitor, [run])
        with torch.no_grad():
            logits, p = network(batch, 0.25)
            states = network.machine(p, machine_tau(0.25))
        indices, values, counts = tiny_monitor.rows.run(run)
        ends = np.cumsum(counts)
        state = np.zeros(size, np.float32)
        for t, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
            text = (table[indices[start:end]] * values[start:end, None]).sum(0)
            context = corpus.context[corpus.first[run] + t]
            found, symbol, state = session.run(None, {"text": text, "context": context, "state": state})
            np.testing.assert_allclose(found, logits[0, t], atol=1e-4)
            np.testing.assert_allclose(state[-states.shape[2] :], states[0, t], atol=1e-4)
            assert int(symbol) == int(p[0, t].argmax())


def fitted(tiny_monitor, epochs: int = 10) -> FsmNetwork:
    config = TrainConfig(
        epochs=epochs, max_features=300, abstraction_width=10, bins=4, states=16, batch_runs=8, learning_rate=1e-2
    )
    torch.manual_seed(7)
    network = FsmNetwork(tiny_monitor.rows.n_columns, tiny_monitor.fitted.scale, config)
    target = Target(labels(tiny_monitor.corpus, 3), np.arange(80), np.empty(0, np.int64))
    fit_network(
        "fsm", network, tiny_monitor.corpus, tiny_monitor.rows, target, config,
        seed=7, device=CPU, listener=LearnListener(),
    )  # fmt: skip
    return network


def test_fitting_lowers_the_loss_keeps_symbols_apart_and_ends_near_its_argmax(tiny_monitor) -> None:
    ours, batch = fitted(tiny_monitor, 12), of_runs(tiny_monitor, range(80))
    target = torch.zeros(*batch.mask.shape, 2)
    target[batch.mask] = torch.from_numpy(labels(tiny_monitor.corpus, 3)[: int(tiny_monitor.corpus.first[80])])
    with torch.no_grad():
        logits, p = ours(batch, 0.25)
        constant = torch.logit(target[batch.mask].mean(0)).expand_as(logits)
        losses = [float(loss_of(x, None, target, batch.mask, 0.0)) for x in (logits, constant)]
        used = torch.bincount(p[batch.mask].argmax(-1), minlength=p.shape[-1]).double()
        warm, off = (float(ours.off_argmax(batch, tau)[batch.mask].mean()) for tau in (1.0, 0.25))
    assert losses[0] < 0.9 * losses[1]
    used = used[used > 0] / used.sum()
    assert float(torch.exp(-(used * used.log()).sum())) > 3.0  # perplexity of the symbols, of 8
    assert 0 <= off < 0.3 and off < warm / 2


def test_fitting_twice_gives_the_same_weights(tiny_monitor) -> None:
    one, two = fitted(tiny_monitor, 2), fitted(tiny_monitor, 2)
    for name, value in one.state_dict().items():
        assert value.numpy().tobytes() == two.state_dict()[name].numpy().tobytes(), name
