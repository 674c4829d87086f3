import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from prefixguard.errors import DataError
from prefixguard.metrics import Prefixes, at_index, at_remaining, end_oracle, step_index


def corpus(seed, n_runs=60, longest=15):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_runs)
    failed = rng.random(n_runs) < 0.4
    tasks = [f"t{i % 17}" for i in range(n_runs)]
    groups = [f"agent {i % 3}" for i in range(n_runs)]
    scores = np.round(rng.random(lengths.sum()) + 0.3 * np.repeat(failed, lengths), 1)
    return lengths, failed, tasks, groups, scores


def plain(lengths, failed, scores, place_of, places, inside=None):
    """The definition in a loop: AUROC at each place over the runs that reach it, mean weighted by runs."""
    starts = np.cumsum(lengths) - lengths
    above = total = 0.0
    for place in places:
        y, s = [], []
        for i, n in enumerate(lengths):
            t = place_of(n, place)
            if 1 <= t <= n and (inside is None or inside[i]):
                y.append(failed[i])
                s.append(scores[starts[i] + t - 1])
        if 0 < sum(y) < len(y):
            above += len(y) * roc_auc_score(y, s)
            total += len(y)
    return above, total


@pytest.mark.parametrize("seed", range(5))
def test_matched_figures_are_those_of_the_definition(seed):
    lengths, failed, tasks, _, scores = corpus(seed)
    prefixes = Prefixes.of(lengths, failed, tasks)
    above, total = plain(lengths, failed, scores, lambda n, left: n - left, range(11))
    assert float(at_remaining(prefixes, scores).auroc()) == pytest.approx(above / total, abs=1e-12)
    above, total = plain(lengths, failed, scores, lambda n, t: t, range(1, 31))
    assert float(at_index(prefixes, scores).auroc()) == pytest.approx(above / total, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_within_groups_compares_runs_of_one_group_only(seed):
    lengths, failed, tasks, groups, scores = corpus(seed)
    prefixes = Prefixes.of(lengths, failed, tasks)
    parts = [
        plain(lengths, failed, scores, lambda n, left: n - left, range(11), [g == name for g in groups])
        for name in sorted(set(groups))
    ]
    expected = sum(above for above, _ in parts) / sum(total for _, total in parts)
    assert float(at_remaining(prefixes, scores, groups=groups).auroc()) == pytest.approx(expected, abs=1e-12)


def test_a_score_that_only_knows_the_group_knows_nothing_within_groups():
    lengths, failed, tasks, _, _ = corpus(0)
    groups = ["weak" if fail else "strong" for fail in failed]
    groups[0], groups[1] = "weak", "strong"
    prefixes = Prefixes.of(lengths, failed, tasks)
    scores = np.array([float(groups[run] == "weak") for run in prefixes.run])
    assert float(at_remaining(prefixes, scores).auroc()) > 0.9
    within = float(at_remaining(prefixes, scores, groups=groups).auroc())
    assert np.isnan(within) or within == 0.5


def test_clocks_know_nothing_where_the_clock_is_matched():
    lengths, failed, tasks, _, _ = corpus(1)
    prefixes = Prefixes.of(lengths, failed, tasks)
    assert float(at_remaining(prefixes, end_oracle(prefixes)).auroc()) == 0.5
    assert float(at_index(prefixes, step_index(prefixes)).auroc()) == 0.5


def test_only_the_stated_places_count():
    prefixes = Prefixes.of([40, 40], [True, False], ["a", "b"])
    assert at_remaining(prefixes, np.zeros(80)).strata.tolist() == list(range(11))
    assert at_index(prefixes, np.zeros(80)).strata.tolist() == list(range(1, 31))


def test_no_runs_give_no_figure():
    prefixes = Prefixes.of([], [], [])
    assert np.isnan(at_remaining(prefixes, []).auroc())
    assert np.isnan(at_index(prefixes, [], groups=[]).auroc())


def test_groups_are_one_a_run():
    with pytest.raises(DataError, match="1 groups for 2 runs"):
        at_remaining(Prefixes.of([1, 1], [True, False], ["a", "b"]), [0.1, 0.2], groups=["x"])
