"""Symbols of a monitor's model: the workshop's are what the compiled step says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from lab_export import material_of

from prefixguard.automata.alphabets.model_symbols import Intervals, ask_model, own_symbols
from prefixguard.automata.material import Material
from prefixguard.automata.strings import log_odds
from prefixguard.bundle import Beta, Bundle, Platt, apply_map, open_bundle
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError
from prefixguard.learn import TrainConfig, model_logits, steps_of, train
from prefixguard.runtime import load, open_model, score


@pytest.fixture(scope="module")
def material(lab_file: Path, lab_bundle: Path) -> Material:
    return material_of(lab_file, lab_bundle)


@pytest.fixture(scope="module")
def bundle(lab_bundle: Path) -> Bundle:
    return open_bundle(lab_bundle)


@pytest.fixture(scope="module")
def trees(lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = TrainConfig(backend="gbdt", max_features=256, budget=0.25)
    out = tmp_path_factory.mktemp("monitors") / "trees"
    return train(lab_file, out=out, adapter="openai_chat", config=config).path


def test_gumbel_symbols_are_what_a_session_reads(material: Material, bundle: Bundle, lab_file: Path) -> None:
    given = ask_model(bundle, material, ("gumbel", "typed"))
    assert set(given) == {"gumbel"}
    found = given["gumbel"]
    assert (found.map.n_symbols, set(found.glosses), found.model) == (16, {""}, bundle.model_bytes)
    at = 0
    for scored in score(load(bundle.path), lab_file):
        said = [reading.symbol for reading in scored.readings]
        assert said == found.symbols[at : at + len(said)].tolist()
        at += len(said)
    assert at == len(found.symbols)


def test_the_symbol_of_a_step_does_not_depend_on_what_comes_after(material: Material, bundle: Bundle) -> None:
    """The model walks on with its own state: asked for a prefix alone, it says the same."""
    model, corpus = open_model(bundle), material.corpus
    symbols = own_symbols(model, material)
    assert len(np.unique(symbols)) > 1
    run = int(np.argmax(corpus.lengths))
    first = int(corpus.first[run])
    state = model.initial
    for step in range(first, first + 4):
        a, b = material.matrix.indptr[step : step + 2]
        row = SparseRow(material.matrix.indices[a:b].astype(np.int64), material.matrix.data[a:b])
        said = model.step(material.tools[step], row, corpus.context[step], state)
        assert said.symbol == symbols[step]
        state = said.state


@pytest.fixture(scope="module", params=["network", "trees"])
def cut(request: pytest.FixtureRequest, lab_file: Path, lab_bundle: Path, trees: Path) -> tuple[Bundle, Material]:
    path = lab_bundle if request.param == "network" else trees
    return open_bundle(path), material_of(lab_file, path)


def test_the_edited_model_gives_the_intervals_of_its_own_logits(cut: tuple[Bundle, Material]) -> None:
    """Cut by what the model itself says, so that steps lie in all intervals."""
    bundle, material = cut
    calibration, plain = bundle.calibration, open_model(bundle)
    maps = (calibration.imminent, calibration.outcome)
    every = [model_logits(plain, material.corpus, material.rows, run) for run in range(len(material.corpus))]
    own = np.stack([apply_map(m, np.concatenate(every)[:, i]) for i, m in enumerate(maps)], axis=1)
    material = replace(material, teacher=own.astype(np.float32))
    given = ask_model(bundle, material, {"quantized"})["quantized"]
    intervals = Intervals(material, maps)
    edited = open_model(replace(bundle, model_bytes=given.model, reasons_bytes=None))
    symbols = own_symbols(edited, material)
    for run, logits in enumerate(every):
        first, last = material.corpus.first[run : run + 2]
        np.testing.assert_array_equal(intervals.of_logits(logits), symbols[first:last])
        np.testing.assert_array_equal(model_logits(edited, material.corpus, material.rows, run), logits)
    by_risk = intervals.of(log_odds(own.astype(np.float32)))
    assert (by_risk == symbols).mean() > 0.98  # but for the rounding of what lies on a cut
    assert len(np.unique(symbols)) > 20
    others = steps_of(material.corpus, np.concatenate((material.held_out, material.alarm, material.test)))
    np.testing.assert_array_equal(given.symbols[others], symbols[others])


def test_of_the_pool_the_teachers_risks_are_cut(cut: tuple[Bundle, Material]) -> None:
    bundle, material = cut
    given = ask_model(bundle, material, {"quantized"})["quantized"]
    intervals = Intervals(material)
    inside = steps_of(material.corpus, material.pool)
    np.testing.assert_array_equal(given.symbols[inside], intervals.of(log_odds(material.teacher[inside])))
    counts = np.bincount(given.symbols[inside] // 4, minlength=12)
    assert counts.min() > 0.5 * counts.mean()  # intervals share the pool's steps about alike
    assert given.map.n_symbols == 48 == len(given.glosses) == len(set(given.glosses))
    assert given.glosses[0] == "imminent risk level 1 of 12, outcome 1 of 4"
    assert given.glosses[-1] == "imminent risk level 12 of 12, outcome 4 of 4"


def test_logits_on_a_cut_and_on_either_side_of_it(bundle: Bundle, material: Material) -> None:
    """As float32, which is what the graph compares; an interval ends with its upper cut."""
    intervals = Intervals(material)
    (imminent, outcome) = intervals.cuts
    at = np.array([[float(imminent[0]), float(outcome[1])]])
    beyond = np.array(
        [[float(np.nextafter(imminent[0], np.float32(9))), float(np.nextafter(outcome[1], np.float32(9)))]]
    )
    assert intervals.of(at).tolist() == [0 * 4 + 1]
    assert intervals.of(beyond).tolist() == [1 * 4 + 2]
    assert intervals.of(np.array([[-99.0, -99.0], [99.0, 99.0]])).tolist() == [0, 47]


def test_a_teacher_with_few_risks_has_few_intervals(bundle: Bundle, material: Material) -> None:
    """Down to one, for which the graph has nothing to compare."""
    teacher = np.full_like(material.teacher, 0.3)
    teacher[::2, 0] = 0.6
    for said in (teacher, np.full_like(teacher, 0.5)):
        intervals = Intervals(replace(material, teacher=said))
        assert all(len(np.unique(cuts)) == len(cuts) for cuts in intervals.cuts)
        assert len(intervals.glosses()) == intervals.n_symbols
        assert bundle.model_bytes is not None
        edited = open_model(replace(bundle, model_bytes=intervals.model(bundle.model_bytes), reasons_bytes=None))
        run = int(material.test[0])
        first, last = material.corpus.first[run : run + 2]
        logits = model_logits(open_model(bundle), material.corpus, material.rows, run)
        np.testing.assert_array_equal(own_symbols(edited, material)[first:last], intervals.of(logits))


def test_the_graph_cuts_a_logit_on_a_cut_as_the_workshop_does(bundle: Bundle, material: Material) -> None:
    """Cuts that are logits of the model's own, to the last bit."""
    run = int(material.test[np.argmax(material.corpus.lengths[material.test])])
    first, last = material.corpus.first[run : run + 2]
    logits = model_logits(open_model(bundle), material.corpus, material.rows, run)
    intervals = Intervals(material)
    intervals.cuts = [np.unique(logits[:, i].astype(np.float32))[1:4] for i in range(2)]
    intervals.logit_cuts = intervals.cuts
    assert bundle.model_bytes is not None
    edited = open_model(replace(bundle, model_bytes=intervals.model(bundle.model_bytes), reasons_bytes=None))
    np.testing.assert_array_equal(own_symbols(edited, material)[first:last], intervals.of_logits(logits))


@pytest.mark.parametrize("risk_map", [Platt(0.4, -1.5), Platt(1e-3, -2.0), Beta(0.7, 1.8, -0.5)])
def test_logits_are_cut_where_their_risk_is(risk_map: Platt | Beta, material: Material) -> None:
    intervals = Intervals(material, (risk_map, Platt(1.0, 0.0)))
    logits = np.stack((np.linspace(-12, 12, 4001), np.full(4001, 0.1)), axis=1)
    risks = np.stack((apply_map(risk_map, logits[:, 0]), apply_map(Platt(1.0, 0.0), logits[:, 1])), axis=1)
    by_risk = intervals.of(np.log(risks / (1 - risks)))
    differ = np.flatnonzero(by_risk != intervals.of_logits(logits))
    assert len(differ) <= 12
    assert len(np.unique(by_risk)) > 8 or risk_map == Platt(1e-3, -2.0)
    np.testing.assert_array_equal(intervals.logit_cuts[1], intervals.cuts[1])


def test_intervals_are_of_the_named_steps_alone(material: Material) -> None:
    inside = steps_of(material.corpus, material.pool)
    teacher = np.random.default_rng(0).random(material.teacher.shape, dtype=np.float32)
    teacher[inside] = material.teacher[inside]
    one, other = (Intervals(m) for m in (material, replace(material, teacher=teacher)))
    for a, b in zip(one.cuts, other.cuts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_trees_learn_no_symbols(trees: Path, lab_file: Path) -> None:
    with pytest.raises(ConfigError) as told:
        ask_model(open_bundle(trees), material_of(lab_file, trees), {"gumbel", "typed"})
    assert str(told.value) == (
        f"alphabet 'gumbel': {trees} is of boosted trees, which learn no symbols. Choose another alphabet; intervals "
        "of its risks are 'quantized'."
    )


def test_what_needs_no_model_asks_none(bundle: Bundle, material: Material) -> None:
    assert ask_model(bundle, material, {"typed", "tree-context"}) == {}


def test_a_manifest_without_the_size_leaves_the_symbols_that_were_met(bundle: Bundle, material: Material) -> None:
    bare = {name: value for name, value in bundle.manifest.items() if name != "config"}
    given = ask_model(replace(bundle, manifest=MappingProxyType(bare)), material, {"gumbel"})["gumbel"]
    assert given.map.n_symbols == given.symbols.max() + 1


def test_log_odds_of_sure_risks_are_finite() -> None:
    assert np.abs(log_odds(np.array([0.0, 0.5, 1.0], dtype=np.float32))) == pytest.approx([9.2102, 0, 9.2102], abs=1e-3)
