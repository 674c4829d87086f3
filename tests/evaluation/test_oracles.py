import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation import evaluate_scores
from prefixguard.evaluation.tables.rows import oracle_rows
from prefixguard.metrics import Prefixes, average_precision

#: (steps, failed, task) of a run.
corpora = st.lists(st.tuples(st.integers(1, 8), st.booleans(), st.sampled_from("abcdef")), min_size=1, max_size=25)


def laid_flat(runs):
    lengths, failed, tasks = ([run[i] for run in runs] for i in range(3))
    return Prefixes.of(lengths, failed, tasks), lengths, tasks


@settings(deadline=None)
@given(corpora, st.integers(0, 4), st.integers(0, 9))
def test_laws_of_oracles(runs, horizon, seed):
    prefixes, lengths, _ = laid_flat(runs)
    rows = {row.name: row for row in oracle_rows(prefixes, lengths, horizon, seed)}
    assert list(rows) == ["outcome oracle", "half oracle", "blurred oracle"]
    positive, failed = prefixes.imminent_labels(horizon) == 1, prefixes.outcome_labels == 1
    for row in rows.values():
        assert row.oracle and row.note and not row.thresholds
        for scores in row.flat(lengths):
            assert np.isfinite(scores).all()
    for name in ("outcome oracle", "blurred oracle"):
        assert np.array_equal(rows[name].flat(lengths)[1], failed), "the outcome is known"
    imminent = rows["blurred oracle"].flat(lengths)[0]
    if failed.any() and not failed.all():
        assert imminent[failed].min() > imminent[~failed].max()
    for scores, truth in zip(rows["half oracle"].flat(lengths), (positive, failed), strict=True):
        known = scores != 0.5
        assert np.array_equal(scores[known], truth[known])


@settings(deadline=None)
@given(corpora, st.integers(0, 9))
def test_half_of_the_tasks_is_known_and_all_their_runs(runs, seed):
    prefixes, lengths, tasks = laid_flat(runs)
    half = oracle_rows(prefixes, lengths, 3, seed)[1].outcome
    known = {task for task, scores in zip(tasks, half, strict=True) if (scores != 0.5).all()}
    unknown = {task for task, scores in zip(tasks, half, strict=True) if (scores == 0.5).all()}
    assert not known & unknown
    assert len(known) == (len(set(tasks)) + 1) // 2
    assert len(known) + len(unknown) == len(set(tasks))


@settings(deadline=None)
@given(corpora, st.integers(0, 4), st.integers(0, 9))
def test_the_blurred_end_is_off_by_at_most_the_horizon(runs, horizon, seed):
    prefixes, lengths, _ = laid_flat(runs)
    for scores, (length, failed, _) in zip(
        oracle_rows(prefixes, lengths, horizon, seed)[2].imminent, runs, strict=True
    ):
        left = length - np.arange(1, length + 1)
        if failed:
            assert (-scores <= left + horizon).all() and (-scores >= np.maximum(0, left - horizon)).all()
            assert set(np.diff(-scores)) <= {-1.0, 0.0}, "one shift a run, and it counts down"


def test_without_a_horizon_the_blurred_oracle_is_perfect():
    runs = [(5, True, "a"), (3, False, "b"), (4, True, "c"), (9, False, "d")]
    prefixes, lengths, _ = laid_flat(runs)
    scores = oracle_rows(prefixes, lengths, 0)[2].flat(lengths)[0]
    assert average_precision(prefixes.imminent_labels(0), scores) == 1.0


def test_the_seed_decides():
    runs = [(6, True, str(i)) for i in range(40)]
    prefixes, lengths, _ = laid_flat(runs)
    one, same, other = (oracle_rows(prefixes, lengths, 3, seed) for seed in (1, 1, 2))
    for a, b, c in zip(one[1:], same[1:], other[1:], strict=True):
        assert np.array_equal(a.flat(lengths)[0], b.flat(lengths)[0])
        assert not np.array_equal(a.flat(lengths)[0], c.flat(lengths)[0])


def test_in_a_table_more_knowledge_is_a_better_figure():
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 20, 200).tolist()
    failed = (rng.random(200) < 0.4).tolist()
    tasks = [f"t{i // 4}" for i in range(200)]
    rows = oracle_rows(Prefixes.of(lengths, failed, tasks), lengths, 3)
    flat = [np.full(n, 0.5) for n in lengths]
    table = evaluate_scores(flat, flat, failed, tasks, baselines=rows, resamples=20)
    auprc = {name: row.imminent.auprc for name, row in table.baselines.items()}
    assert auprc["constant"] < auprc["outcome oracle"] < auprc["blurred oracle"] < 1.0
    assert auprc["constant"] < auprc["half oracle"] < 1.0
    assert auprc["end oracle"] < auprc["blurred oracle"], "the outcome is worth something too"
    assert all(table.baselines[row.name].oracle for row in rows)
    assert table.baselines["outcome oracle"].outcome.auprc == 1.0


def test_no_runs_and_wrong_numbers():
    nothing = Prefixes.of([], [], [])
    assert [len(row.imminent) for row in oracle_rows(nothing, [], 3)] == [0, 0, 0]
    one = Prefixes.of([3], [True], ["a"])
    with pytest.raises(ConfigError, match="horizon -1 and seed 0: use 0 or more of each"):
        oracle_rows(one, [3], -1, 0)
    with pytest.raises(DataError, match=r"1 runs of 2 steps for 1 runs of 3 prefixes. Give all prefixes"):
        oracle_rows(one, [2], 3)
