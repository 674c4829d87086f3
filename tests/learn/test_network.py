"""Laws of the network and its training."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch

from prefixguard.learn.config import LearnListener
from prefixguard.learn.corpus import labels
from prefixguard.learn.gru import GruNetwork
from prefixguard.learn.network import ContextEncoding
from prefixguard.learn.scaling import fit_scale
from prefixguard.learn.trainer import Batch, Target, collate, fit_network, learning_rate, loss_of, predict
from prefixguard.store import Store

CPU = torch.device("cpu")


def _logits(tiny_monitor, runs):
    network = tiny_monitor.fitted.heads[0].members[0].network.eval()
    with torch.no_grad():
        return network(collate(tiny_monitor.corpus, tiny_monitor.rows, np.asarray(runs)), 0.25)[0].numpy()


def test_padding_and_batch_order_do_not_matter(tiny_monitor):
    lengths = tiny_monitor.corpus.lengths
    short, long = int(lengths.argmin()), int(lengths.argmax())
    together = _logits(tiny_monitor, [short, long])
    np.testing.assert_allclose(_logits(tiny_monitor, [short])[0], together[0, : lengths[short]], atol=1e-6)
    np.testing.assert_allclose(_logits(tiny_monitor, [long, short])[0], together[1], atol=1e-6)


def test_the_future_does_not_matter(tiny_monitor):
    """Logits of a prefix stay when every later step is replaced."""
    run = int(tiny_monitor.corpus.lengths.argmax())
    batch = collate(tiny_monitor.corpus, tiny_monitor.rows, np.array([run]))
    cut = int(tiny_monitor.corpus.lengths[run]) // 2
    context = batch.context.clone()
    context[:, cut:] = 7.0
    values = batch.values.clone()
    values[batch.offsets[cut] :] = -1.0
    changed = Batch(batch.runs, batch.indices, values, batch.offsets, context, batch.mask)
    network = tiny_monitor.fitted.heads[0].members[0].network.eval()
    with torch.no_grad():
        before, after = network(batch, 0.25)[0], network(changed, 0.25)[0]
    np.testing.assert_allclose(before[:, :cut], after[:, :cut], atol=1e-6)
    assert not torch.allclose(before[:, cut:], after[:, cut:])


def test_gradient_reaches_the_symbols(tiny_monitor):
    scale, config = tiny_monitor.fitted.scale, tiny_monitor.fitted.config
    torch.manual_seed(0)
    network = GruNetwork(tiny_monitor.rows.n_columns, scale, config, width=8, symbols_only=True)
    batch = collate(tiny_monitor.corpus, tiny_monitor.rows, np.arange(8))
    logits, p = network(batch, 1.0)
    loss_of(logits, p, torch.ones_like(logits), batch.mask, 0.1).backward()
    assert network.symbols.weight.grad.abs().sum() > 1e-6
    assert network.columns.grad.abs().sum() > 1e-6


def test_symbols_do_not_collapse(tiny_monitor):
    network = tiny_monitor.fitted.symbol.network.eval()
    batch = collate(tiny_monitor.corpus, tiny_monitor.rows, np.arange(60))
    with torch.no_grad():
        _, p = network(batch, 0.25)
    used = p[batch.mask].argmax(-1).unique()
    assert len(used) >= 2


def test_symbols_only_has_no_way_around_the_symbols(tiny_monitor):
    """With all symbols made equal, nothing of the step reaches the risk."""
    scale, config = tiny_monitor.fitted.scale, tiny_monitor.fitted.config
    network = GruNetwork(tiny_monitor.rows.n_columns, scale, config, width=8, symbols_only=True).eval()
    with torch.no_grad():
        network.symbols.weight.zero_()
        logits, _ = network(collate(tiny_monitor.corpus, tiny_monitor.rows, np.arange(6)), 0.25)
    np.testing.assert_allclose(logits[0], logits[5], atol=1e-6)


def _fit(tiny_monitor, listener, checkpoints=None, epochs=4, validation=None):
    config = dataclasses.replace(tiny_monitor.fitted.config, epochs=epochs)
    torch.manual_seed(5)
    network = GruNetwork(tiny_monitor.rows.n_columns, tiny_monitor.fitted.scale, config, width=8)
    chosen = np.arange(60, 90) if validation is None else validation
    target = Target(labels(tiny_monitor.corpus, 3), np.arange(60), chosen)
    return fit_network(
        "net", network, tiny_monitor.corpus, tiny_monitor.rows, target, config,
        seed=5, device=CPU, listener=listener, checkpoints=checkpoints,
    )  # fmt: skip


class _StopAfter(LearnListener):
    def __init__(self, epoch: int) -> None:
        self.epoch, self.seen = epoch, []

    def on_epoch(self, network, number, epochs, loss, score):
        self.seen.append(number)
        if number == self.epoch:
            raise KeyboardInterrupt


def test_an_interrupted_training_ends_with_the_weights_of_one_that_was_not(tiny_monitor, tmp_path):
    whole = _fit(tiny_monitor, LearnListener())
    checkpoints = Store(tmp_path / "c")
    with pytest.raises(KeyboardInterrupt):
        _fit(tiny_monitor, _StopAfter(3), checkpoints)
    listener = _StopAfter(99)
    resumed = _fit(tiny_monitor, listener, checkpoints)
    assert listener.seen == [4]  # what was announced was kept
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name
    assert resumed.epoch == whole.epoch and resumed.score == whole.score


def test_training_twice_gives_the_same_weights(tiny_monitor):
    one, two = _fit(tiny_monitor, LearnListener(), epochs=2), _fit(tiny_monitor, LearnListener(), epochs=2)
    for name, value in one.network.state_dict().items():
        assert torch.equal(value, two.network.state_dict()[name]), name


def test_a_validation_side_of_one_outcome_keeps_the_last_epoch(tiny_monitor):
    """It measures nothing; what must not be kept is the network as it was before the first epoch."""
    succeeded = np.arange(60, 120)[~tiny_monitor.corpus.failed[60:120]][:8]
    fitted = _fit(tiny_monitor, LearnListener(), validation=succeeded)
    last = _fit(tiny_monitor, LearnListener(), validation=np.empty(0, np.int64))
    assert fitted.epoch == 4 and np.isnan(fitted.score)
    for name, value in last.network.state_dict().items():
        assert torch.equal(value, fitted.network.state_dict()[name]), name


def test_predictions_come_in_the_order_asked_for(tiny_monitor):
    network, config = tiny_monitor.fitted.heads[0].members[0].network, tiny_monitor.fitted.config
    runs = np.array([5, 2, 9])
    out = predict(network, tiny_monitor.corpus, tiny_monitor.rows, runs, config, CPU)
    assert [len(x) for x in out] == tiny_monitor.corpus.lengths[runs].tolist()
    np.testing.assert_allclose(out[1], _logits(tiny_monitor, [2])[0], atol=1e-6)


def test_every_run_counts_alike_however_long():
    """Doubling a run by repeating its steps leaves the loss as it is."""
    logits = torch.tensor([[[0.3, -0.2], [1.0, 0.5]]])
    target = torch.tensor([[[0.0, 1.0], [1.0, 1.0]]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    once = loss_of(logits, None, target, mask, 0.0)
    twice = loss_of(logits.repeat(1, 2, 1), None, target.repeat(1, 2, 1), mask.repeat(1, 2), 0.0)
    assert once.item() == pytest.approx(twice.item())


def test_learning_rate_rises_and_falls_once():
    rates = [learning_rate(s, 100, 1e-2) for s in range(100)]
    peak = int(np.argmax(rates))
    assert rates[peak] == pytest.approx(1e-2, rel=0.01) and 15 <= peak <= 25
    assert all(a < b for a, b in pairwise(rates[: peak + 1]))
    assert all(a > b for a, b in pairwise(rates[peak:]))
    assert rates[-1] < 1e-4


def _scale(bins=4, d=3, n=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 12, n)
    steps = np.concatenate([np.arange(1, k + 1) for k in lengths])
    context = np.stack([steps, rng.normal(size=len(steps)), np.zeros(len(steps))], 1).astype(np.float32)[:, :d]
    failed = rng.random(n) < 0.4
    return fit_scale(context, lengths, failed, horizon=3, bins=bins), context, lengths, failed


def test_bins_cover_each_feature_and_constant_features_have_none():
    scale, context, _, _ = _scale()
    assert set(scale.feature.tolist()) == {0, 1}
    for j in (0, 1):
        mine = scale.feature == j
        assert scale.low[mine][0] == pytest.approx(context[:, j].min())
        assert (scale.low[mine] + scale.width[mine])[-1] == pytest.approx(context[:, j].max(), rel=1e-5)
        np.testing.assert_allclose(scale.low[mine][1:], (scale.low[mine] + scale.width[mine])[:-1], rtol=1e-5)


def test_hazards_rise_where_a_cap_ends_failed_runs():
    lengths = np.full(100, 20)
    failed = np.arange(100) % 2 == 0
    context = np.tile(np.arange(1, 21, dtype=np.float32), 100)[:, None]
    scale = fit_scale(context, lengths, failed, horizon=3, bins=4)
    imminent = 1 / (1 + np.exp(-scale.hazards[:, 0]))
    assert imminent[4] < 0.05 and 0.4 < imminent[18] < 0.55
    ends = 1 / (1 + np.exp(-scale.hazards[:, 1]))
    assert ends[4] < 0.05 and ends[18] > 0.8


def test_encoding_is_standardised_clipped_binned_and_looks_hazards_up_by_step():
    scale, context, _, _ = _scale()
    out = ContextEncoding(scale)(torch.from_numpy(context)).numpy()
    assert out.shape == (len(context), scale.size)
    d, n_bins = context.shape[1], len(scale.low)
    assert np.abs(out[:, :d]).max() <= 4
    assert out[:, d : d + n_bins].min() >= 0 and out[:, d : d + n_bins].max() <= 1
    np.testing.assert_allclose(out[:, d + n_bins :], scale.hazards[context[:, 0].astype(int) - 1])


def test_a_step_past_the_table_takes_its_last_row():
    scale, context, _, _ = _scale()
    far = context[:1].copy()
    far[0, 0] = 10_000
    out = ContextEncoding(scale)(torch.from_numpy(far)).numpy()
    np.testing.assert_allclose(out[0, -3:], scale.hazards[-1])
