"""Ablation: what is blanked is gone, what failures hang on is missed, and what they do not is not."""

import numpy as np
import pytest

from prefixguard.context import FEATURES, GROUPS
from prefixguard.errors import ConfigError
from prefixguard.evaluation.retraining import View, ablate, ablation_views, cross_validate, seen_through
from prefixguard.evaluation.retraining.views import RECORD_FIELDS, held_still, reads_the_same
from prefixguard.learn import TrainConfig, featurise
from prefixguard.stepview import FIELDS, StepRecord, load_adapter, read_runs
from prefixguard.store import Store
from prefixguard.trace import Outcome, Run

pytestmark = pytest.mark.usefixtures("few_trees")
TREES = TrainConfig(backend="gbdt", max_features=128)
STEPS = 8


@pytest.fixture(scope="module")
def lab_runs(short_runs_file):
    return list(read_runs(short_runs_file, load_adapter("openai_chat")))


@pytest.fixture(scope="module")
def known():
    """120 runs of 40 tasks, all of eight steps. A run fails when its results say 'denied' at every other step; what the
    agent says and which tool it takes is drawn by lot."""
    dice = np.random.default_rng(3)
    runs = []
    for i in range(120):
        fails = bool(dice.random() < 0.5)
        records = tuple(
            StepRecord(
                index=t,
                actor="agent",
                agent="",
                tool=str(dice.choice(["look", "send"])),
                arguments=f'{{"id": {dice.integers(9)}}}',
                observation="",
                action=str(dice.choice(["I go on", "I think", "well then"])),
                result=("request denied" if fails and t % 2 else "all is fine"),
                status="ok",
            )
            for t in range(1, STEPS + 1)
        )
        runs.append(Run(f"r{i}", f"t{i // 3}", Outcome.FAILURE if fails else Outcome.SUCCESS, records, "x"))
    return featurise(runs)


def test_a_corpus_read_back_from_its_documents_is_the_same(lab_runs):
    corpus = featurise(lab_runs[:30])
    view = View("without agent", "without", "field", fields=frozenset({"agent"}))
    again = seen_through(corpus, view)
    assert again is not corpus and again.context is not corpus.context
    assert reads_the_same(again, corpus), "the agent's name is read by nobody"
    assert again.digests == corpus.digests and again.task_ids == corpus.task_ids


@pytest.mark.parametrize("field", FIELDS)
def test_a_blanked_field_is_gone(lab_runs, field):
    """The corpus is that of runs whose field says anything else."""
    plain, planted = [], []
    for i, run in enumerate(lab_runs[:20]):
        plain.append(run)
        text = "error" if field == "status" else f"planted {i} " * (i + 1)
        records = tuple(
            StepRecord(**{name: getattr(r, name) for name in ("index", "agent", *FIELDS)} | {field: text})
            for r in run.records
        )
        planted.append(Run(run.run_id, run.task_id, run.outcome, records, "x"))
    one, other = featurise(plain), featurise(planted)
    assert not reads_the_same(one, other)
    for view in ablation_views():
        if view.part == "field" and field in view.fields:
            assert reads_the_same(seen_through(one, view), seen_through(other, view)), view.name
    kept = next(v for v in ablation_views() if v.part == "field" and v.kind == "only" and v.name == f"only {field}")
    assert not reads_the_same(seen_through(one, kept), seen_through(other, kept))


@pytest.mark.slow
def test_a_token_planted_in_a_blanked_field_moves_no_score(lab_runs, tmp_path):
    """It would tell every outcome, in training and at scoring."""
    leaky = []
    for run in lab_runs:
        word = "zzverdictbad" if run.outcome is Outcome.FAILURE else "zzverdictgood"
        records = tuple(
            StepRecord(**{name: getattr(r, name) for name in ("index", "agent", *FIELDS)} | {"arguments": word})
            for r in run.records
        )
        leaky.append(Run(run.run_id, run.task_id, run.outcome, records, "x"))
    without = View("without arguments", "without", "field", fields=frozenset({"arguments"}))
    results = {}
    for name, runs in (("clean", lab_runs), ("leaky", leaky)):
        results[name] = ablate(runs, TREES, views=[without], folds=2, out=tmp_path / name, resamples=20)
    clean, leaky_one = (results[name].rows[0] for name in ("clean", "leaky"))
    assert results["leaky"].full.outcome.auprc > 0.95, "the planted word is found"
    assert leaky_one.lost > 0.2
    kept = {n: {a["fold"]: k for a, k in Store(tmp_path / n).each("fold") if "view" in a} for n in results}
    for name, one in kept["clean"].items():
        assert np.array_equal(one.arrays["logits"], kept["leaky"][name].arrays["logits"]), "no score is moved"
    assert len(kept["clean"]) == len(kept["leaky"]) == 2
    assert repr(clean.imminent.auprc) == repr(leaky_one.imminent.auprc)


def test_what_failures_hang_on_is_missed_and_noise_is_not(known):
    without = [v for v in ablation_views() if v.name in {"without result", "without action", "without tool"}]
    only = [v for v in ablation_views() if v.name in {"only result", "only action"}]
    found = ablate(known, TREES, views=without + only, folds=2, resamples=60)
    rows = {row.name: row for row in found.rows}
    loss, interval = rows["without result"].loss("outcome", "outcome_auroc_at_remaining")
    assert loss > 0.2 and interval[0] > 0.1
    for name in ("without action", "without tool", "only result"):
        loss, interval = rows[name].loss("outcome", "outcome_auroc_at_remaining")
        assert abs(loss) < 0.1, name
    assert rows["only action"].loss("outcome", "outcome_auroc_at_remaining")[0] > 0.2
    assert [row.lost for row in found.rows] == sorted((row.lost for row in found.rows), reverse=True)
    assert {found.rows[0].name, found.rows[1].name} == {"without result", "only action"}
    text = found.to_text()
    assert text.index("without result") < text.index("without tool")
    assert max(map(len, text.splitlines())) <= 118
    assert found.as_json()["rows"][0]["lost"] == found.rows[0].lost


def test_a_group_is_held_at_what_is_typical_of_the_training_runs(known):
    view = next(v for v in ablation_views() if v.name == "without repeats")
    train = np.arange(0, 120, 2)
    held = held_still(known, view, train)
    columns = [i for i, feature in enumerate(FEATURES) if feature.group == "repeats"]
    others = [i for i in range(len(FEATURES)) if i not in columns]
    assert view.columns.tolist() == columns
    steps = np.concatenate([np.arange(known.first[r], known.first[r + 1]) for r in train])
    assert np.array_equal(held.context[0, columns], np.median(known.context[steps][:, columns], axis=0))
    assert (held.context[:, columns] == held.context[0, columns]).all()
    assert np.array_equal(held.context[:, others], known.context[:, others])
    assert held.documents is known.documents


def test_only_a_group_leaves_no_text(known):
    view = next(v for v in ablation_views() if v.name == "only counts")
    seen = seen_through(known, view)
    assert {seen.documents.read(i, i + 1) for i in range(20)} == {b"\x01unknown\x02\x03\x04\x05\x06\x07unknown"}
    assert np.array_equal(seen.context, known.context)
    assert view.groups == set(GROUPS) - {"counts"}


def test_views_name_everything_once():
    views = ablation_views()
    assert len(views) == len({(v.kind, v.part, v.name) for v in views}) == 29
    assert {v.name for v in views if v.kind == "without"} == {
        f"without {name}" for name in (*RECORD_FIELDS, *GROUPS, "text", "context")
    }
    assert {v.name for v in views if v.kind == "only"} == {f"only {name}" for name in (*FIELDS, *GROUPS)}


def test_it_resumes_variant_by_variant_on_the_folds_of_the_full(known, tmp_path, fits):
    views = [v for v in ablation_views() if v.name in {"without agent", "without result", "only counts"}]
    told = []
    first = ablate(known, TREES, views=views[:2], folds=2, out=tmp_path, resamples=10)
    assert len(fits) == 4, "full and without result; nothing reads the agent"
    assert fits[:2] == fits[2:], "the very folds"
    row = next(row for row in first.rows if row.name == "without agent")
    assert row.same and row.lost == 0.0 and "without agent =" in first.to_text()
    found = ablate(
        known, TREES, views=views, folds=2, out=tmp_path, resamples=10, on_progress=lambda *n: told.append(n)
    )
    assert len(fits) == 6 and told[-1] == (8, 8)
    assert {repr(row) for row in first.rows} < {repr(row) for row in found.rows}
    assert repr(found.full) == repr(cross_validate(known, TREES, folds=2, resamples=10))
    with pytest.raises(ConfigError, match="same name"):
        ablate(known, TREES, views=[views[0], views[0]])
