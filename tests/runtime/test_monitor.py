"""A monitor is refused when it is opened, not when a run depends on it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import tiny_monitor
from onnx import TensorProto, helper

import prefixguard
from prefixguard.bundle import write_bundle
from prefixguard.errors import BundleError, OtherAdapterError
from prefixguard.runtime import Monitor, load, watch
from prefixguard.stepview import Adapter


def broken(tmp_path: Path, **changes: object) -> Path:
    write_bundle(tmp_path / "b", tiny_monitor.parts(**changes))
    return tmp_path / "b"


def test_bytes_that_are_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"model\.onnx: not a model of a step .* export the bundle again"):
        load(broken(tmp_path, model=b"not a model"))


def test_a_model_that_gives_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="numbers that are not finite"):
        load(broken(tmp_path, model=tiny_monitor.model(scale=float("nan"))))


def test_a_vocabulary_larger_than_the_model_is_refused(tmp_path: Path) -> None:
    """Its last column must have a row in the model."""
    small = tiny_monitor.vocabulary()
    terms = [*small.terms, "tool:zzz"]
    hashes = np.arange(1, len(terms) + 1, dtype=np.uint64) << np.uint64(50)
    big = type(small)(terms, hashes, np.ones(len(terms), np.float32))
    with pytest.raises(BundleError, match="the model does not run on a row with 1 terms"):
        load(broken(tmp_path, vocabulary=big.to_bytes()))


def test_swapped_graphs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"model\.onnx: outputs are not \['logits', 'state_out', 'symbol'\]"):
        load(broken(tmp_path, model=tiny_monitor.reasons()))


def test_a_model_of_another_width_is_refused(tmp_path: Path) -> None:
    model = onnx.load_from_string(tiny_monitor.model())
    wide = model.graph.input[2].type.tensor_type.shape.dim[0]
    wide.dim_value += 1
    weights = next(i for i in model.graph.initializer if i.name == "weights")
    array = onnx.numpy_helper.to_array(weights)
    weights.CopyFrom(onnx.numpy_helper.from_array(np.vstack([array, array[:1]]), "weights"))
    with pytest.raises(BundleError, match=r"input 'context' of shape \[\d+\] is none of a step with \d+ features"):
        load(broken(tmp_path, model=model.SerializeToString()))


def test_other_inputs_are_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with pytest.raises(BundleError, match="input 'x' of shape"):
        load(broken(tmp_path, model=model))


def test_a_model_that_points_outside_is_refused(tmp_path: Path) -> None:
    """Weights in another file would lie outside what was verified."""
    (tmp_path / "weights").write_bytes(b"\0" * 4096)
    model = onnx.load_from_string(tiny_monitor.model())
    weights = next(i for i in model.graph.initializer if i.name == "weights")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="../weights")
    with pytest.raises(BundleError, match="tensor 'weights' has external data"):
        load(broken(tmp_path, model=model.SerializeToString()))


def test_a_monitor_prints_what_it_is(monitor: Monitor) -> None:
    assert repr(monitor).startswith("<Monitor 'tiny' ")
    assert "tiny_chat" in repr(monitor)


def test_a_running_monitor_survives_the_replacement_of_its_bundle(tmp_path: Path) -> None:
    monitor = load(broken(tmp_path))
    before = [r.to_json() for r in _failing(monitor)]
    write_bundle(tmp_path / "b", tiny_monitor.parts(model=tiny_monitor.model(scale=3.0)), overwrite=True)
    assert [r.to_json() for r in _failing(monitor)] == before
    assert [r.to_json() for r in _failing(load(tmp_path / "b"))] != before


def _failing(monitor: Monitor) -> list[object]:
    session = monitor.start()
    return [reading for event in tiny_monitor.failing_run() for reading in session.observe(event)]


def test_another_process_reads_the_same(bundle_path: Path, monitor: Monitor) -> None:
    """Under another hash seed, from a fresh interpreter: the same lines."""
    program = """
import json, sys
import prefixguard
session = prefixguard.load(sys.argv[1]).start()
print(json.dumps([r.to_json() for e in json.load(sys.stdin) for r in session.observe(e)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(bundle_path)],
        input=json.dumps(tiny_monitor.failing_run()),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7", "PATH": ""},
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == [r.to_json() for r in _failing(monitor)]  # type: ignore[attr-defined]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Runs; the monitor's own adapter, spelled otherwise; one that differs in a version only."""
    (tmp_path / "runs.json").write_text(json.dumps([{"run_id": "a", "messages": tiny_monitor.calm_run(3)}]))
    (tmp_path / "same.json").write_text(json.dumps(dict(reversed(tiny_monitor.CHAT.items())), indent=3))
    (tmp_path / "other.json").write_text(json.dumps({**tiny_monitor.CHAT, "version": "1.0.1"}))
    return tmp_path


def test_the_same_adapter_by_any_spelling_is_its_own(bundle_path: Path, files: Path) -> None:
    load(bundle_path, adapter=files / "same.json")
    (one,) = prefixguard.score(bundle_path, files / "runs.json", adapter=files / "same.json")
    assert len(one.readings) == 3


def test_another_is_refused_with_both_hashes_and_the_ways_on(bundle_path: Path, files: Path, monitor: Monitor) -> None:
    own, other = monitor.bundle.adapter, Adapter({**tiny_monitor.CHAT, "version": "1.0.1"})
    path = str(files / "other.json")
    for attempt in (
        lambda: load(bundle_path, adapter=path),
        lambda: list(prefixguard.score(bundle_path, files / "runs.json", adapter=path)),
        lambda: prefixguard.evaluate(monitor, files / "runs.json", adapter=path),
        lambda: list(watch(monitor, io.BytesIO(b""), adapter=path)),
        lambda: monitor.refuse_other("raw:" + str(files / "same.json")),
    ):
        with pytest.raises(OtherAdapterError) as caught:
            attempt()
        said = str(caught.value)
        assert f"trained through adapter tiny_chat 1.0.0 (sha256 {own.sha256[:12]})" in said
        for way in ("Name no adapter", "the same hash", "prefixguard train RUNS --adapter"):
            assert way in said
    with pytest.raises(OtherAdapterError, match=f"sha256 {other.sha256[:12]}"):
        monitor.refuse_other(other)


def test_no_adapter_is_no_question(monitor: Monitor) -> None:
    monitor.refuse_other(None)
