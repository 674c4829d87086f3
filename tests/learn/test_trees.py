"""Trees in a compiled step decide as LightGBM decides, to the last bit: batch = step by step, also at thresholds."""

from __future__ import annotations

from types import SimpleNamespace

import lightgbm
import numpy as np
import onnxruntime as ort
import pytest

from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import TrainConfig, trees
from prefixguard.learn.corpus import labels
from prefixguard.learn.graph import ML_DOMAIN, Graph
from prefixguard.learn.head import FitMaterial
from prefixguard.learn.teacher import fit_boosters, run_weights, steps_of
from prefixguard.learn.trees import at_most, ensemble_attributes, fit_trees

TRAIN = np.arange(80)
ROUNDS = 15


def _session(model):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _compiled(part, *, is_step=True):
    """The part alone, as a step whose text is summed as in a bundle's, or for any number of variants of the context."""
    g = Graph()
    rows = g.node("Gather", g.constant("table", part.table), "indices", axis=0)
    terms = g.node("Mul", rows, g.node("Unsqueeze", "values", g.integers(1)))
    text = g.node("ReduceSum", terms, g.integers(0), keepdims=1)
    n = g.node("Shape", "context", start=0, end=1)
    text = g.node("Expand", text, g.concat([n, g.integers(1)], axis=0))
    logits, after = part.step(g, text, SimpleNamespace(rows="context"), "state")
    inputs = [
        ("indices", "int64", ["nnz"]),
        ("values", "float32", ["nnz"]),
        ("context", "float32", ["n", 46]),
        ("state", "float32", [1, part.state]),
    ]
    outputs = [("logits", logits, "float32", ["n", 2]), ("after", after, "float32", ["n", part.state])]
    return g.build(inputs, outputs if is_step else outputs[:1])


@pytest.fixture(scope="module")
def material(lab_corpus):
    vocabulary, _ = fit_vocabulary(lab_corpus.texts(TRAIN.tolist()), max_features=300, min_tasks=3)
    return lab_corpus, lab_corpus.encode(vocabulary), labels(lab_corpus, 3)


@pytest.fixture(scope="module")
def head(material):
    return fit_trees(*material[:2], TRAIN, material[2], 13, rounds=ROUNDS)


@pytest.fixture(scope="module")
def step(head):
    return _session(_compiled(head.part()))


def _steps(corpus, rows, run):
    indices, values, counts = rows.run(run)
    ends = np.cumsum(counts)
    for t, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
        yield indices[start:end], values[start:end], corpus.context[corpus.first[run] + t][None]


def test_streamed_steps_are_the_batch_to_the_last_bit(material, head, step):
    """Every prefix of runs that were trained on, whose features lie closest to thresholds, and of others."""
    corpus, rows, _ = material
    runs = np.arange(len(corpus))
    expected = head.logits(corpus, rows, runs)
    d, n = corpus.context.shape[1], head.part().table.shape[1]
    for run in runs.tolist():
        features = head.projection.features(corpus, rows, np.array([run]))
        state = np.zeros((1, head.part().state), np.float32)
        for t, (i, v, c) in enumerate(_steps(corpus, rows, run)):
            logits, state = step.run(None, {"indices": i, "values": v, "context": c, "state": state})
            assert state[0, 0] == t + 1
            np.testing.assert_array_equal(state[0, 1 : 1 + n], features[t, d + n : d + 2 * n])
            np.testing.assert_array_equal(state[0, 1 + n :] / np.float32(t + 1), features[t, d + 2 * n :])
            np.testing.assert_array_equal(logits[0], expected[run][t])


def test_logits_are_the_mean_of_the_boosters_as_they_were_fitted(material, head):
    """Moving leaves to where float32 holds their sums costs less than 2e-5, of so few trees that go so far."""
    corpus, rows, targets = material
    features, weight = head.projection.features(corpus, rows, TRAIN), run_weights(corpus, TRAIN)
    logits = np.concatenate(head.logits(corpus, rows, TRAIN))
    for risk in range(2):
        plain = fit_boosters(features, targets[steps_of(corpus, TRAIN), risk], weight, 13, rounds=ROUNDS)
        mean = np.mean([booster.predict(features, raw_score=True) for booster in plain], axis=0)
        np.testing.assert_allclose(logits[:, risk], mean, atol=2e-5)
        assert len(np.unique(logits[:, risk])) > 20


def test_features_are_text_and_its_memory(material, head):
    """Against plain double precision."""
    corpus, rows, _ = material
    z, average, total = [], np.zeros(len(head.projection.components)), 0.0
    features = head.projection.features(corpus, rows, np.array([5]))
    for t, (i, v, c) in enumerate(_steps(corpus, rows, 5)):
        z = head.projection.components[:, i].astype(np.float64) @ v
        average, total = (average + z) / 2, total + z
        np.testing.assert_allclose(features[t], np.concatenate((c[0], z, average, total / (t + 1))), atol=1e-6)


def test_an_empty_row_adds_nothing(material, head, step):
    corpus = material[0]
    state = np.ones((1, head.part().state), np.float32)
    feed = {"indices": np.empty(0, np.int64), "values": np.empty(0, np.float32), "context": corpus.context[:1]}
    logits, after = step.run(None, {**feed, "state": state})
    n = head.part().table.shape[1]
    assert np.isfinite(logits).all()
    np.testing.assert_array_equal(after[0], np.concatenate(([2.0], np.full(n, 0.5), np.ones(n))))


def test_variants_meet_one_state_as_if_each_were_alone(material, head):
    corpus, rows, _ = material
    step = _session(_compiled(head.part(), is_step=False))
    i, v, _ = next(_steps(corpus, rows, 3))
    state = np.random.default_rng(0).random((1, step.get_inputs()[3].shape[1]), dtype=np.float32)
    many = step.run(None, {"indices": i, "values": v, "context": corpus.context[:60], "state": state})[0]
    assert len(np.unique(many[:, 1])) > 5
    for j in range(60):
        alone = step.run(None, {"indices": i, "values": v, "context": corpus.context[j : j + 1], "state": state})[0]
        np.testing.assert_array_equal(alone[0], many[j])


def test_a_feature_on_a_threshold_goes_left_and_the_next_one_right():
    """Each threshold's own float32 neighbours: the nearest float32 of a double would send some to the other side."""
    rng = np.random.default_rng(1)
    x = (rng.integers(0, 900, (3000, 3)) / 37.3).astype(np.float32)
    y = x[:, 0] + x[:, 1] * np.sin(x[:, 2]) > 12
    settings = {"objective": "binary", "num_leaves": 15, "num_threads": 1, "verbose": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(x, y), 30).model_to_string()
    attributes = ensemble_attributes((booster,))
    thresholds = [[] for _ in range(3)]
    for tree in lightgbm.Booster(model_str=booster).dump_model()["tree_info"]:
        waiting = [tree["tree_structure"]]
        for node in waiting:
            if "threshold" in node:
                thresholds[node["split_feature"]].append(node["threshold"])
                waiting += [node["left_child"], node["right_child"]]
    assert any(float(np.float32(t)) > t for each in thresholds for t in each)
    at = np.stack([rng.choice(np.array(t), 4000) for t in thresholds], axis=1).astype(np.float32)
    z = np.nextafter(at, rng.choice([-np.inf, np.inf], at.shape).astype(np.float32))
    z = np.where(rng.random(at.shape) < 0.5, at, z)
    g = Graph()
    both = g.concat(["x", g.node("Sub", g.constant("zero", np.float32(0)), "x")])
    logits = g.node("TreeEnsembleRegressor", both, domain=ML_DOMAIN, **attributes)
    assert {feature < 3 for feature in attributes["nodes_featureids"]} == {True, False}
    onnx = _session(g.build([("x", "float32", ["n", 3])], [("y", logits, "float32", ["n", 1])]))
    expected = lightgbm.Booster(model_str=booster).predict(z, raw_score=True)
    np.testing.assert_allclose(onnx.run(None, {"x": z})[0][:, 0], expected, atol=1e-5)  # a decision moves far more


@pytest.mark.parametrize("t", [0.1, 1 / 3, -0.1, 16777217.0, 1.0000000180025095e-35, 1e300, -1e300, 0.0, -1e-46])
def test_at_most_is_the_last_float32_that_a_double_lets_through(t):
    last = np.float32(at_most(t))
    with np.errstate(over="ignore"):
        assert float(last) <= t < float(np.nextafter(last, np.float32(np.inf)))


def test_a_risk_that_never_happens_is_a_constant(material):
    corpus, rows, targets = material
    none = targets.copy()
    none[:, 0] = 0
    head = fit_trees(corpus, rows, TRAIN, none, 13, rounds=3)
    expected = np.concatenate(head.logits(corpus, rows, np.arange(3)))
    assert set(expected[:, 0]) == {expected[0, 0]} and -10 < expected[0, 0] < -9
    step = _session(_compiled(head.part()))
    state = np.zeros((1, head.part().state), np.float32)
    for t, (i, v, c) in enumerate(_steps(corpus, rows, 0)):
        logits, state = step.run(None, {"indices": i, "values": v, "context": c, "state": state})
        np.testing.assert_array_equal(logits[0], expected[t])


def test_the_same_runs_and_seed_give_the_same_bytes(material, head):
    corpus, rows, targets = material
    again = fit_trees(corpus, rows, TRAIN, targets, 13, rounds=ROUNDS)
    assert again.boosters == head.boosters
    assert _compiled(again.part()) == _compiled(head.part())
    other = fit_trees(corpus, rows, TRAIN, targets, 14, rounds=ROUNDS)
    assert other.boosters != head.boosters


def test_in_a_blend_trees_are_half_as_many(material, monkeypatch):
    fitted = {}
    monkeypatch.setattr(trees, "fit_trees", lambda *given, rounds, rises: fitted.update({given[-1]: rounds}))
    for seed, backend in enumerate(("gbdt", "blend")):
        config = TrainConfig(backend=backend, seed=seed)
        listener = SimpleNamespace(on_stage=lambda *said: None)
        corpus, rows, targets = material
        trees.fit(FitMaterial(corpus, rows, (), None, targets, targets, TRAIN, None, config, listener, None))
    assert fitted == {0: 150, 1: 75}


def test_names_of_two_parts_stay_apart(head):
    """Both in one graph: the mean of two equal parts is the part."""
    g = Graph()
    one, two = head.part("a."), head.part("b.")
    n = one.table.shape[1]
    each = [p.step(g, "text", SimpleNamespace(rows="context"), "state")[0] for p in (one, two)]
    mean = g.node("Mean", *each)
    inputs = [("text", "float32", ["n", n]), ("context", "float32", ["n", 46]), ("state", "float32", [1, one.state])]
    model = g.build(inputs, [("mean_logits", mean, "float32", ["n", 2]), ("logits", each[0], "float32", ["n", 2])])
    rng = np.random.default_rng(2)
    feed = {
        "text": rng.random((4, n), dtype=np.float32),
        "context": rng.random((4, 46), dtype=np.float32),
        "state": rng.random((1, one.state), dtype=np.float32),
    }
    np.testing.assert_array_equal(*_session(model).run(None, feed))
