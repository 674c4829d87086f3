import numpy as np
import pytest
import torch

from prefixguard.learn.network import ContextEncoding
from prefixguard.learn.scaling import fit_scale


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
