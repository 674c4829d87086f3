"""The Transformer: what it sees, what it forgets, and that its step with a cache gives what whole runs give."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError
from prefixguard.learn import TrainConfig, fit_monitor
from prefixguard.learn.compile import compile_monitor
from prefixguard.learn.graph import Graph
from prefixguard.learn.trainer import Batch, collate, loss_of
from prefixguard.learn.transformer import TransformerNetwork
from prefixguard.runtime.reasons_graph import ReasonsGraph

WINDOW, LAYERS, WIDTH = 4, 2, 12
SEEN_BEFORE = LAYERS * (WINDOW - 1)  # the oldest step that anything can rest on is so many back
CONFIG = TrainConfig(
    backend="transformer", window=WINDOW, layers=LAYERS, attention_heads=3, width=WIDTH, members=2, epochs=3,
    symbol_epochs=1, max_features=300, bypass=6, abstraction_width=10, symbols=6, bins=4, teacher=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def monitor(lab_corpus):
    """Fitted on runs of the simulation; the longest are more than three windows long."""
    fitted = fit_monitor(lab_corpus, np.arange(80), CONFIG, validation=np.arange(80, 110))
    assert lab_corpus.lengths.max() > 3 * WINDOW
    return fitted


@pytest.fixture(scope="module")
def networks(monitor):
    return [member.network.eval() for member in monitor.heads[0].members]


@pytest.fixture(scope="module")
def rows(monitor, lab_corpus):
    return lab_corpus.encode(monitor.vocabulary)


def _network(monitor, rows, seed=3, **options):
    torch.manual_seed(seed)
    config = dataclasses.replace(CONFIG, **options)
    return TransformerNetwork(rows.n_columns, monitor.scale, config, width=WIDTH).eval()


def _graph(networks, variants=1):
    g = Graph()
    state = sum(n.state_width for n in networks)
    width = sum(n.width for n in networks)
    members = g.node("Reshape", "z", g.integers(0, len(networks), -1))
    members = g.node("Transpose", members, perm=[1, 0, 2])  # (M, N, q)
    given, after = TransformerNetwork.step_in_graph(g, "t.", networks, members, "state")
    given = g.node("Reshape", g.node("Transpose", given, perm=[1, 0, 2]), g.integers(0, -1))
    return g.build(
        [("z", "float32", [variants, width]), ("state", "float32", [1, state])],
        [("given", given, "float32", [variants, width]), ("after", after, "float32", [variants, state])],
    )


def _session(model):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options)


def _steps(steps, networks, seed=0):
    """Something to read: (steps, M * q)."""
    return np.random.default_rng(seed).normal(size=(steps, sum(n.width for n in networks))).astype(np.float32)


def _stream(networks, z):
    """What is given after each step, and each state: the ONNX step, one step at a time from zeros."""
    session = _session(_graph(networks))
    state = np.zeros(session.get_inputs()[1].shape, np.float32)
    given, states = [], []
    for row in z:
        h, state = session.run(None, {"z": row[None], "state": state})
        given.append(h[0])
        states.append(state[0])
    return np.stack(given), np.stack(states)


def _whole(networks, z):
    """The same by the batched networks, each of which reads its own columns."""
    with torch.no_grad():
        own = np.split(z, len(networks), axis=1)
        parts = [n.sequence(torch.from_numpy(x)[None])[0].numpy() for n, x in zip(networks, own, strict=True)]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("steps", [1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 2, 101])
def test_stream_equals_batch_however_long_the_run(networks, steps):
    z = _steps(steps, networks)
    np.testing.assert_allclose(_stream(networks, z)[0], _whole(networks, z), atol=1e-5)


@pytest.mark.parametrize("options", [{"window": 2, "layers": 1}, {"window": 32, "layers": 3}, {"attention_heads": 1}])
def test_stream_equals_batch_for_other_shapes(monitor, rows, options):
    networks = [_network(monitor, rows, **options)]
    z = _steps(70, networks)
    np.testing.assert_allclose(_stream(networks, z)[0], _whole(networks, z), atol=1e-5)


def test_compiled_monitor_equals_batched_networks_on_every_prefix(monitor, rows, lab_corpus):
    expected = monitor.logits(lab_corpus, rows, np.arange(len(lab_corpus)))
    step = _session(compile_monitor(monitor)[0])
    worst = 0.0
    for run in range(len(lab_corpus)):
        state = np.zeros(step.get_inputs()[3].shape, np.float32)
        indices, values, counts = rows.run(run)
        ends = np.cumsum(counts)
        for t, (a, b) in enumerate(zip(ends - counts, ends, strict=True)):
            context = lab_corpus.context[lab_corpus.first[run] + t]
            feed = {"indices": indices[a:b], "values": values[a:b], "context": context, "state": state}
            logits, _, state = step.run(None, feed)
            worst = max(worst, float(np.abs(logits - expected[run][t]).max()))
    assert worst < 1e-5


def test_reasons_of_a_run_under_way_are_what_the_change_alone_does(monitor, rows, lab_corpus):
    step, reasons = (_session(model) for model in compile_monitor(monitor))
    reasons = ReasonsGraph(reasons)
    run = int(lab_corpus.lengths.argmax())
    indices, values, counts = rows.run(run)
    ends = np.cumsum(counts)
    state = np.zeros(step.get_inputs()[3].shape, np.float32)
    for t in range(2 * WINDOW):
        a, b = ends[t] - counts[t], ends[t]
        context = lab_corpus.context[lab_corpus.first[run] + t]
        feed = {"indices": indices[a:b], "values": values[a:b], "context": context, "state": state}
        logits, _, after = step.run(None, feed)
        of_context, of_terms = reasons.contributions(SparseRow(indices[a:b], values[a:b]), context, state)
        strongest = int(values[a:b].argmax())
        without = feed | {"indices": np.delete(indices[a:b], strongest), "values": np.delete(values[a:b], strongest)}
        assert logits[1] - step.run(None, without)[0][1] == pytest.approx(of_terms[strongest], abs=1e-5)
        changed = context.copy()
        changed[0] = monitor.scale.typical[0]
        assert logits[1] - step.run(None, feed | {"context": changed})[0][1] == pytest.approx(of_context[0], abs=1e-5)
        state = after


def test_the_future_does_not_matter(networks, rows, lab_corpus):
    """Logits of a prefix stay when every later step is replaced."""
    run = int(lab_corpus.lengths.argmax())
    batch = collate(lab_corpus, rows, np.array([run]))
    cut = int(lab_corpus.lengths[run]) // 2
    context, values = batch.context.clone(), batch.values.clone()
    context[:, cut:] = 7.0
    values[batch.offsets[cut] :] = -1.0
    changed = Batch(batch.runs, batch.indices, values, batch.offsets, context, batch.mask)
    for network in networks:
        with torch.no_grad():
            before, after = network(batch, 0.25)[0], network(changed, 0.25)[0]
        np.testing.assert_allclose(before[:, :cut], after[:, :cut], atol=1e-6)
        assert not torch.allclose(before[:, cut:], after[:, cut:], atol=1e-3)


def test_a_step_past_the_window_has_no_influence_and_the_last_one_inside_has(networks):
    z, other = _steps(5 * WINDOW, networks), _steps(5 * WINDOW, networks, seed=1)
    for t in (SEEN_BEFORE + 1, 4 * WINDOW):
        for age in range(t + 1):
            changed = z.copy()
            changed[t - age] = other[t - age]
            stays = np.array_equal(_whole(networks, changed)[t], _whole(networks, z)[t])
            assert stays == (age > SEEN_BEFORE), f"a step {age} before"


def test_the_state_forgets_what_is_past_the_window(networks):
    """To the last bit: two runs that differ in their first steps only are one run, a receptive field later."""
    z = _steps(4 * WINDOW, networks)
    changed = z.copy()
    changed[:3] *= -2.0
    (_, one), (_, other) = _stream(networks, z), _stream(networks, changed)
    same = [np.array_equal(a, b) for a, b in zip(one, other, strict=True)]
    assert same.index(True) == 3 + SEEN_BEFORE - 1 and all(same[3 + SEEN_BEFORE - 1 :])


def test_blank_steps_before_the_first_are_not_steps_that_read_nothing(networks):
    """A run that begins is not a run that has long read zeros: how many steps there have been is seen."""
    z = np.concatenate((np.zeros((WINDOW, sum(n.width for n in networks)), np.float32), _steps(1, networks)))
    assert np.abs(_whole(networks, z)[-1] - _whole(networks, z[-1:])[0]).max() > 1e-4


def test_the_state_keeps_its_size(monitor, networks):
    assert [n.state_width for n in networks] == [LAYERS * (WINDOW - 1) * 32] * 2
    step = _session(compile_monitor(monitor)[0])
    assert step.get_inputs()[3].shape == [2 * LAYERS * (WINDOW - 1) * 32] == step.get_outputs()[2].shape
    _, states = _stream(networks, _steps(3 * WINDOW, networks))
    assert np.isfinite(states).all() and states.shape[1] == 2 * LAYERS * (WINDOW - 1) * 32
    assert (states[-1] != 0).all()  # no slot is left unused once the window is full


def test_variants_of_a_step_are_what_each_alone_gives(networks):
    """As the graph of reasons asks: many variants of one step, one state."""
    state = _stream(networks, _steps(9, networks))[1][-1:]
    z = _steps(5, networks, seed=1)
    given, after = _session(_graph(networks, 5)).run(None, {"z": z, "state": state})
    one = _session(_graph(networks))
    for i in range(5):
        alone = one.run(None, {"z": z[i : i + 1], "state": state})
        np.testing.assert_allclose(given[i], alone[0][0], atol=1e-6)
        np.testing.assert_allclose(after[i], alone[1][0], atol=1e-6)


def test_padding_and_batch_order_do_not_matter(networks, rows, lab_corpus):
    short, long = int(lab_corpus.lengths.argmin()), int(lab_corpus.lengths.argmax())

    def logits(*runs):
        with torch.no_grad():
            return networks[0](collate(lab_corpus, rows, np.array(runs)), 0.25)[0].numpy()

    together = logits(short, long)
    np.testing.assert_allclose(logits(short)[0], together[0, : lab_corpus.lengths[short]], atol=1e-6)
    np.testing.assert_allclose(logits(long, short)[0], together[1], atol=1e-6)


def test_dropout_is_of_training_only(networks):
    z = torch.from_numpy(_steps(6, networks[:1]))[None]
    with torch.no_grad():
        still = [networks[0].sequence(z) for _ in range(2)]
        networks[0].train()
        moving = [networks[0].sequence(z) for _ in range(2)]
        networks[0].eval()
    assert torch.equal(*still) and not torch.equal(*moving)


def test_gradient_reaches_the_symbols(monitor, rows, lab_corpus):
    torch.manual_seed(0)
    network = TransformerNetwork(rows.n_columns, monitor.scale, CONFIG, width=WIDTH, symbols_only=True)
    batch = collate(lab_corpus, rows, np.arange(8))
    logits, p = network(batch, 1.0)
    loss_of(logits, p, torch.ones_like(logits), batch.mask, 0.1).backward()
    assert network.symbols.weight.grad.abs().sum() > 1e-6
    assert network.columns.grad.abs().sum() > 1e-6
    assert all(layer.bias.grad.abs().sum() > 0 for layer in network.layers)


def test_the_same_weights_give_the_same_bytes_and_members_no_further_node(networks, monitor):
    assert _graph(networks) == _graph(networks)
    assert compile_monitor(monitor) == compile_monitor(monitor)
    counts = {len(onnx.load_from_string(_graph(networks * n)).graph.node) for n in (1, 2)}
    assert len(counts) == 1


def test_training_twice_gives_the_same_weights(monitor, networks, lab_corpus):
    again = fit_monitor(lab_corpus, np.arange(80), CONFIG, validation=np.arange(80, 110))
    for one, other in zip(networks, again.heads[0].members, strict=True):
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.network.state_dict()[name]), name


def test_a_window_of_the_present_alone_is_refused():
    with pytest.raises(ConfigError, match=r"window = 1: a whole number of at least 2 is needed\."):
        TrainConfig(window=1)
