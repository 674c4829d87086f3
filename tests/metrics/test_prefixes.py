import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import DataError
from prefixguard.metrics import Prefixes, end_oracle, step_index
from prefixguard.trace import imminent_labels, remaining_steps

run_lists = st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.sampled_from("abcd")), max_size=12)


@given(run_lists, st.integers(0, 5))
def test_flat_labels_are_those_of_every_run(runs, horizon):
    lengths, failed, tasks = ([run[i] for run in runs] for i in range(3))
    prefixes = Prefixes.of(lengths, failed, tasks)
    assert prefixes.imminent_labels(horizon).tolist() == [
        label for n, fail, _ in runs for label in imminent_labels(n, fail, horizon)
    ]
    assert prefixes.remaining.tolist() == [left for n in lengths for left in remaining_steps(n)]
    assert prefixes.step.tolist() == [t for n in lengths for t in range(1, n + 1)]
    assert prefixes.outcome_labels.tolist() == [int(fail) for n, fail, _ in runs for _ in range(n)]
    names = list(dict.fromkeys(tasks))
    assert [names[unit] for unit in prefixes.units] == [task for n, _, task in runs for _ in range(n)]
    assert step_index(prefixes).tolist() == prefixes.step.tolist()
    assert end_oracle(prefixes).tolist() == (-prefixes.remaining).tolist()


def test_kept_prefixes_still_know_how_long_their_run_is():
    prefixes = Prefixes.of([3, 2], [True, False], ["a", "b"])
    kept = prefixes.keep(np.array([True, False, False, False, True]))
    assert len(kept) == 2
    assert kept.remaining.tolist() == [2, 0]
    assert kept.units.tolist() == [0, 1]


def test_counts_must_agree():
    with pytest.raises(DataError, match="2 runs with 1 outcomes and 2 tasks"):
        Prefixes.of([1, 2], [True], ["a", "b"])
