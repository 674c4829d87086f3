"""Task-grouped cross-validation: who stands where, what is resumed, and what the figures are."""

import numpy as np
import pytest

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.retraining import Fold, ablate, cross_validate, fitting, leave_one_agent_out, partition
from prefixguard.learn import TrainConfig, featurise, fit_monitor
from prefixguard.metrics import average_precision
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.store import Store
from prefixguard.trace import Outcome, Run

pytestmark = pytest.mark.usefixtures("few_trees")
TREES = TrainConfig(backend="gbdt", max_features=128)
PARTS = ("train", "validation", "calibration", "test")


@pytest.fixture(scope="module")
def corpus(short_runs_file):
    return featurise(read_runs(short_runs_file, load_adapter("openai_chat")))


def test_no_task_is_on_two_sides_and_every_run_is_tested_once(corpus):
    plan = partition(corpus, folds=4, repeats=2, seeds=(13, 5))
    assert len(plan) == 16 and len({fold.name for fold in plan}) == 16
    for fold in plan:
        tasks = {part: {corpus.task_ids[r] for r in getattr(fold, part).tolist()} for part in PARTS}
        assert sum(map(len, tasks.values())) == 40, "all tasks, each in one part"
        assert len(set.union(*tasks.values())) == 40
        assert len(tasks["test"]) == 10 and len(tasks["train"]) == 22
    for repeat in (0, 1):
        for seed in (13, 5):
            own = [fold.test.tolist() for fold in plan if (fold.repeat, fold.seed) == (repeat, seed)]
            assert sorted(r for test in own for r in test) == list(range(160))
    first, again = (next(f for f in plan if f.repeat == repeat) for repeat in (0, 1))
    assert first.test.tolist() != again.test.tolist(), "another repetition deals anew"
    assert partition(corpus, folds=4)[0].test.tolist() == first.test.tolist()


def test_repeats_of_a_run_hold_their_tasks_together(corpus):
    runs = [
        Run(f"r{i}", f"t{i // 2}", Outcome.FAILURE if i % 2 else Outcome.SUCCESS, (_said(f"{i} words"),), "x")
        for i in range(40)
    ]
    runs += [Run(f"again{i}", f"t{i + 3}", Outcome.SUCCESS, (_said("the very same"),), "x") for i in range(5)]
    for fold in partition(featurise(runs), folds=3):
        linked = {f"t{i + 3}" for i in range(5)}
        where = [part for part in PARTS if linked & {_task(runs, r) for r in getattr(fold, part).tolist()}]
        assert len(where) == 1


def _said(text):
    return StepRecord(1, "agent", "", "look", "{}", "", text, "ok", "ok")


def _task(runs, r):
    return runs[r].task_id


def test_what_cannot_be_split_is_refused(corpus):
    with pytest.raises(DataError, match=r"40 tasks .* are too few for 41 folds"):
        partition(corpus, folds=41)
    with pytest.raises(ConfigError, match="folds: 1 given; at least 2"):
        partition(corpus, folds=1)
    with pytest.raises(ConfigError, match="give each once"):
        partition(corpus, seeds=(3, 3))
    good = [Run(f"r{i}", f"t{i}", Outcome.SUCCESS, (_said(f"{i}"),), "x") for i in range(30)]
    with pytest.raises(DataError, match="do not hold both outcomes"):
        partition(featurise(good), folds=3)


def test_a_fit_is_given_the_training_runs_of_its_fold(corpus, fits):
    found = cross_validate(corpus, TREES, folds=3, resamples=10)
    plan = partition(corpus, folds=3)
    assert [pool for pool, _, _ in fits] == [fold.train.tolist() for fold in plan]
    assert (found.folds, found.repeats, found.seeds, found.runs) == (3, 1, (13,), 160)


def test_figures_are_means_over_folds_and_seeds(corpus, tmp_path):
    found = cross_validate(corpus, TREES, folds=2, seeds=(13, 4), out=tmp_path, resamples=30)
    each = []
    for fold in partition(corpus, folds=2, seeds=(13, 4)):
        (logits,) = (
            kept.arrays["logits"][:, 0] for asked, kept in Store(tmp_path).each("fold") if asked["fold"] == fold.name
        )
        lengths = corpus.lengths[fold.test]
        left = np.concatenate([np.arange(n)[::-1] for n in lengths.tolist()])
        labels = np.repeat(corpus.failed[fold.test], lengths) & (left <= 3)
        each.append(average_precision(labels, logits))
        assert found.by_fold[fold.name]["imminent"]["auprc"] == pytest.approx(each[-1])
    assert found.imminent.auprc == pytest.approx(np.mean(each))
    assert found.by_seed["imminent"][13]["auprc"] == pytest.approx(np.mean(each[:2]))
    low, high = found.imminent.intervals["auprc"]
    assert low < found.imminent.auprc < high
    ends = found.spread_over_seeds("imminent", "auprc")
    assert ends == pytest.approx((min(np.mean(each[:2]), np.mean(each[2:])), max(np.mean(each[:2]), np.mean(each[2:]))))
    assert found.baselines["end oracle"].oracle and "auprc" in found.baselines["step index"].imminent.differences
    assert found.baselines["constant"].outcome.outcome_auroc_at_remaining == 0.5
    assert found.grouped_by == "agent"
    text = found.to_text()
    assert "seeds 13, 4" in text and "from seed to seed" in text and max(map(len, text.splitlines())) <= 118


@pytest.mark.slow
def test_an_interrupted_one_goes_on_and_ends_the_same(corpus, tmp_path, fits, monkeypatch):
    whole = cross_validate(corpus, TREES, folds=3, resamples=10)
    fits.clear()
    put = Store.put

    def stop_after_two(self, kept, what, **asked):
        put(self, kept, what, **asked)
        if asked["fold"].endswith("fold-1"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Store, "put", stop_after_two)
        cross_validate(corpus, TREES, folds=3, out=tmp_path, resamples=10)
    assert len(fits) == 2
    told = []
    resumed = cross_validate(
        corpus, TREES, folds=3, out=tmp_path, resamples=10, on_progress=lambda n, of: told.append((n, of))
    )
    assert len(fits) == 3, "only the third was left"
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert repr(resumed) == repr(whole)
    cross_validate(corpus, TREES, folds=3, out=tmp_path, seeds=(13, 14), resamples=0)
    assert len(fits) == 6, "another seed is three more fits"


def test_a_damaged_fold_is_fitted_again(corpus, tmp_path, fits):
    whole = cross_validate(corpus, TREES, folds=2, out=tmp_path, resamples=0)
    path = min(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-40])
    assert repr(cross_validate(corpus, TREES, folds=2, out=tmp_path, resamples=0)) == repr(whole)
    assert len(fits) == 3


def test_what_was_asked_otherwise_is_fitted_anew_and_lies_beside_it(corpus, tmp_path, short_runs_file, fits):
    """Other options, another number of folds, other runs: never taken for each other, and none is lost."""
    other = TrainConfig(backend="gbdt", max_features=64)
    runs = list(read_runs(short_runs_file, load_adapter("openai_chat")))
    asked = [(corpus, TREES, 2), (corpus, other, 2), (corpus, TREES, 3), (featurise(runs[4:]), TREES, 2)]
    first = [repr(cross_validate(runs, config, folds=n, out=tmp_path, resamples=0)) for runs, config, n in asked]
    assert len(fits) == 9 and len(set(first)) == 4
    again = [repr(cross_validate(runs, config, folds=n, out=tmp_path, resamples=0)) for runs, config, n in asked]
    assert len(fits) == 9 and again == first
    free = TrainConfig(backend="gbdt", max_features=128, budget=0.3, threads=1, seed=99)
    cross_validate(corpus, free, folds=2, out=tmp_path, resamples=0)
    assert len(fits) == 9, "what does not change a fit is not asked"


def test_evaluations_that_make_the_same_fit_share_it(corpus, tmp_path, fits):
    cross_validate(corpus, TREES, folds=3, out=tmp_path, resamples=0)
    full = ablate(corpus, TREES, views=[], folds=3, out=tmp_path, resamples=0).full
    leave_one_agent_out(corpus, TREES, folds=3, most=1, out=tmp_path, resamples=0)
    assert len(fits) == 3 + 3, "all runs once; then the one agent that is left out"
    assert repr(full) == repr(cross_validate(corpus, TREES, folds=3, resamples=0))


def test_a_source_needs_its_adapter(short_runs_file, corpus):
    with pytest.raises(DataError, match="no adapter given"):
        cross_validate(short_runs_file, TREES)
    stages = []
    found = cross_validate(
        short_runs_file,
        TREES,
        adapter="openai_chat",
        folds=2,
        resamples=0,
        on_stage=lambda name, detail: stages.append((name, detail)),
    )
    assert stages[0] == ("reading", str(short_runs_file))
    assert ("trees", "gbdt, repeat-0-seed-13-fold-1: boosted trees") in stages
    assert repr(found) == repr(cross_validate(corpus, TREES, folds=2, resamples=0))
    with pytest.raises(DataError, match="no run to learn from"):
        cross_validate([], TREES)


def test_a_network_is_fitted_with_its_validation_part(corpus, monkeypatch):
    given = []

    def watched(corpus, pool, config, *, validation, **more):
        given.append((validation.tolist(), config.seed))
        return fit_monitor(corpus, pool, config, validation=validation, **more)

    monkeypatch.setattr(fitting, "fit_monitor", watched)
    config = TrainConfig(epochs=1, symbol_epochs=1, members=1, max_features=64, teacher=0.0, width=8, bypass=4)
    found = cross_validate(corpus, config, folds=2, seeds=(7,), resamples=0)
    assert found.backend == "gru" and 0.0 < found.imminent.auprc <= 1.0
    assert given == [(fold.validation.tolist(), 7) for fold in partition(corpus, folds=2, seeds=(7,))]


def test_a_fold_is_called_after_its_place():
    none = np.empty(0, np.int64)
    assert Fold(1, 5, 2, none, none, none, none).name == "repeat-1-seed-5-fold-2"
