"""A model is read and bounded before onnxruntime sees it: honest exports pass, each hostile one has its sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import forged_bundle
import numpy as np
import onnx
import pytest
import tiny_monitor
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from processor_time import least_seconds

from prefixguard.bundle import write_bundle
from prefixguard.bundle.onnx_check import check_onnx
from prefixguard.bundle.onnx_file import read_onnx, run_of_floats, run_of_numbers
from prefixguard.bundle.onnx_operators import OPERATORS
from prefixguard.context import FEATURES
from prefixguard.errors import BundleError
from prefixguard.runtime import load

D = len(FEATURES)
TERMS = 4096
Change = Callable[[onnx.ModelProto], None]


def check(data: bytes, terms: int = TERMS) -> None:
    check_onnx(data, terms, D, "model.onnx")


def changed(change: Change, data: bytes | None = None) -> bytes:
    model = onnx.load_model_from_string(tiny_monitor.model() if data is None else data)
    change(model)
    return bytes(model.SerializeToString())


def add(*nodes: onnx.NodeProto, **constants: np.ndarray) -> Change:
    """A change that appends nodes and constants."""

    def change(model: onnx.ModelProto) -> None:
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())

    return change


def op(name: str, *inputs: str, outputs: tuple[str, ...] = ("made",), **attributes: object) -> onnx.NodeProto:
    return helper.make_node(name, list(inputs), list(outputs), **attributes)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def outside(tensor: onnx.TensorProto) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "secret.txt"), ("offset", "0"), ("length", "20")):
        tensor.external_data.add(key=key, value=value)


def sub_graph() -> onnx.GraphProto:
    return helper.make_graph([op("Identity", "one", outputs=("inner",))], "inner", [], [])


def external_initializer(model: onnx.ModelProto) -> None:
    outside(model.graph.initializer[0])


def external_attribute(model: onnx.ModelProto) -> None:
    tensor = numpy_helper.from_array(np.zeros(5, np.float32), "t")
    outside(tensor)
    model.graph.node.append(op("Constant", value=tensor))


def external_sparse(model: onnx.ModelProto) -> None:
    values, indices = (numpy_helper.from_array(np.zeros(1, t), "v") for t in (np.float32, np.int64))
    outside(values)
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1000]))


def endless_loop(model: onnx.ModelProto) -> None:
    add(op("Loop", "most", "", body=sub_graph()), most=np.array(2**60))(model)


def with_function(model: onnx.ModelProto) -> None:
    model.functions.append(helper.make_function("x", "F", ["a"], ["b"], [op("Identity", "a")], []))


def with_training(model: onnx.ModelProto) -> None:
    model.training_info.add()


def with_domain(model: onnx.ModelProto) -> None:
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def with_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 99


def wrong_bytes(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].raw_data += b"\0\0\0\0"


def huge_dimension(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = 2**31


def many_nodes(model: onnx.ModelProto) -> None:
    model.graph.node.extend(op("Identity", "one", outputs=(f"n{i}",)) for i in range(5000))


def no_order(model: onnx.ModelProto) -> None:
    model.graph.node.insert(0, model.graph.node.pop())


def named_twice(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def over_an_input(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(D, np.float32), "context"))


def free_state(model: onnx.ModelProto) -> None:
    model.graph.input[3].type.tensor_type.shape.dim[0].dim_param = "S"


HUGE = np.zeros((1, 1), np.float32)
HOSTILE: dict[str, tuple[Change, str]] = {
    "external data": (external_initializer, "has external data"),
    "external data in an attribute": (external_attribute, "an attribute has field 5"),
    "external data of a sparse tensor": (external_sparse, "the graph has field 15"),
    "a loop": (endless_loop, "Loop: an attribute has field 6"),
    "a function": (with_function, "the file has field 25"),
    "training information": (with_training, "the file has field 20"),
    "another domain": (with_domain, "opset 1 of domain 'com.microsoft'; known: ai.onnx 17 to 20, ai.onnx.ml 3 to 3"),
    "a newer opset": (with_opset, "opset 99 of domain 'ai.onnx'"),
    "too many bytes": (wrong_bytes, r"tensor 'terms' of shape \[\d+, 2\] has \d+ bytes"),
    "a huge dimension": (huge_dimension, "tensor 'terms' of shape"),
    "many nodes": (many_nodes, "more than 4,096 of node"),
    "no order": (no_order, "which nothing before it gives"),
    "a name twice": (named_twice, "two tensors are called 'terms'"),
    "a default of an input": (over_an_input, "two tensors are called 'context'"),
    "a free state": (free_state, r"input 'state' of shape \['S'\]"),
    "no operator of ours": (add(op("Tile", "bias", "n"), n=ints(2**31)), "has the operator Tile, which no step needs"),
    "a constant of shape": (add(op("ConstantOfShape", "n"), n=ints(2**31)), "the operator ConstantOfShape"),
    "a range": (add(op("Range", "a", "a", "a"), a=np.array(1)), "the operator Range"),
    "Expand": (add(op("Expand", "x", "n"), x=HUGE, n=ints(40_000, 40_000)), "would hold 6,400,0.. bytes"),
    "Expand by what a run says": (
        add(op("Cast", "context", outputs=("far",), to=7), op("Expand", "x", "far"), x=HUGE),
        "says a shape, and what it holds is not known before a run",
    ),
    "Expand by a reckoned length": (
        add(op("Shape", "indices", outputs=("n",)), op("Mul", "n", "n", outputs=("nn",)), op("Expand", "x", "nn"),
            x=np.zeros(1, np.float32)),
        "says a shape",
    ),
    "a product by broadcasting": (
        add(op("MatMul", "a", "b"), a=np.zeros((999, 1, 60, 60), np.float32), b=np.zeros((1, 999, 60, 60), np.float32)),
        "at most 536,870,912 and",
    ),
    "work without memory": (
        add(op("MatMul", "a", "b"), a=np.zeros((1500, 1500), np.float32), b=np.zeros((1500, 1500), np.float32)),
        "operations so far",
    ),
    "a row against itself": (
        add(op("Unsqueeze", "values", "one", outputs=("column",)), op("Mul", "column", "values", outputs=("square",)),
            op("Unsqueeze", "square", "zero", outputs=("cube",)), op("Unsqueeze", "square", "one", outputs=("other",)),
            op("Mul", "cube", "other")),
        "with a row of 4,096 terms one step would hold",
    ),
    "a slice that grows as the row shrinks": (
        add(op("Slice", "values", "s", "e", "zero"), s=ints(-2000), e=ints(2000)), "count from the end"),
    "a reshape that grows as the row shrinks": (
        add(op("Shape", "indices", outputs=("n",)), op("Concat", "n", "m", outputs=("to",), axis=0),
            op("Reshape", "x", "to"), m=ints(-1), x=np.zeros(TERMS, np.float32)),
        "is not a short constant of int64",
    ),
    "whole numbers divided": (add(op("Div", "one", "zero")), "types that do not go together"),
    "the best of too many": (add(op("TopK", "bias", "k", outputs=("a", "b")), k=ints(3)), "the best 3 of"),
    "an attribute nobody has": (add(op("Gather", "terms", "one", axis=0, x=1)), "has attribute 'x'"),
}  # fmt: skip


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_graph_is_refused_before_a_session_is_made(name: str) -> None:
    change, said = HOSTILE[name]
    data = changed(change if name != "a row against itself" else _fresh_names(change))

    def refused() -> None:
        with pytest.raises(BundleError, match=said.replace("6,400,0..", "6,400,[0-9,]+")) as caught:
            check(data)
        assert str(caught.value).startswith("model.onnx: not a model of a step (")
        assert "Nothing of it was run" in str(caught.value)

    assert least_seconds(refused)[0] < 0.5


def _fresh_names(change: Change) -> Change:
    """Without the step's own node of the same output."""

    def both(model: onnx.ModelProto) -> None:
        del model.graph.node[:]
        change(model)

    return both


def test_an_honest_model_passes_and_grows_with_the_vocabulary() -> None:
    """The bound is of the longest row that the vocabulary can give, so a larger one can be too large."""
    for data in (tiny_monitor.model(), tiny_monitor.reasons(), tiny_monitor.variants()):
        check(data)
        check(data, 0)
        check(data, 1)
    with pytest.raises(BundleError, match="with a row of 100,000,000 terms"):
        check(tiny_monitor.model(), 100_000_000)


@pytest.mark.parametrize(("at", "shape"), [(4, [128, D + 1]), (4, ["n", D]), (4, ["n"]), (5, [3]), (6, ["n", 2])])
def test_what_asks_for_variants_has_their_shapes(at: int, shape: list[int | str]) -> None:
    def change(model: onnx.ModelProto) -> None:
        old = model.graph.input[at]
        old.CopyFrom(helper.make_tensor_value_info(old.name, old.type.tensor_type.elem_type, shape))

    name = ("varied", "tried", "without")[at - 4]
    with pytest.raises(BundleError, match=f"input '{name}' of shape .* is none of a step"):
        check(changed(change, tiny_monitor.variants()))


@pytest.mark.parametrize("folder", ["monitors/lab", "tests/golden/bundle_v1", "tests/golden/bundle_v3"])
def test_the_shipped_and_the_oldest_models_pass(folder: str) -> None:
    root = Path(__file__).parent.parent.parent / folder
    for name in ("model.onnx", "reasons.onnx"):
        check((root / name).read_bytes())


def test_what_is_read_is_what_the_package_of_onnx_reads() -> None:
    root = Path(__file__).parent.parent.parent / "monitors/lab"
    for name in ("model.onnx", "reasons.onnx"):
        data = (root / name).read_bytes()
        ours, theirs = read_onnx(data), onnx.load_model_from_string(data).graph
        assert [(n.op, n.domain, n.inputs, n.outputs) for n in ours.nodes] == [
            (n.op_type, n.domain, tuple(n.input), tuple(n.output)) for n in theirs.node
        ]
        for mine, node in zip(ours.nodes, theirs.node, strict=True):
            for attribute in node.attribute:
                value, found = helper.get_attribute_value(attribute), mine.attributes[attribute.name]
                if attribute.type == onnx.AttributeProto.STRINGS:
                    value = [text == b"BRANCH_LEQ" for text in value]
                assert np.array_equal(np.asarray(found), np.asarray(value, dtype=np.asarray(found).dtype))
        for tensor, other in zip(ours.tensors, theirs.initializer, strict=True):
            assert bytes(tensor.data) == other.raw_data and tensor.shape == tuple(other.dims)


def test_every_operator_of_the_table_is_one_of_onnx() -> None:
    for domain, name in OPERATORS:
        assert onnx.defs.get_schema(name, max_inclusive_version=20 if not domain else 3, domain=domain)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_the_bytes_is_read_or_refused(data: st.DataObject) -> None:
    good = tiny_monitor.reasons()
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        check(bytes(bad[: data.draw(st.integers(0, len(bad)))]))
    except BundleError as exc:
        assert "not a model of a step" in str(exc)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200), st.binary(max_size=3))
def test_a_run_of_numbers_is_what_protobuf_wrote(values: list[int], after: bytes) -> None:
    attribute = helper.make_attribute("x", values or [1])
    attribute.ClearField("name")
    attribute.ClearField("type")
    data = attribute.SerializeToString()
    numbers, end = run_of_numbers(memoryview(data + b"\xa0\x01" + after), 0x40)
    assert numbers.tolist() == (values or [1]) and end == len(data)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=200))
def test_a_run_of_floats_is_what_protobuf_wrote(values: list[float]) -> None:
    attribute = helper.make_attribute("x", values)
    attribute.ClearField("name")
    attribute.ClearField("type")
    data = attribute.SerializeToString()
    numbers, end = run_of_floats(memoryview(data + b"\x40\x01"), 0x3D)
    assert numbers.tolist() == values and end == len(data)


def two_of_a_message() -> bytes:
    """Two graphs in one file: protobuf merges them, so what a lax reader checked would not be what is run."""
    extra = onnx.ModelProto()
    extra.graph.node.append(op("Identity", "one"))
    return tiny_monitor.model() + extra.SerializeToString()


def test_a_model_reads_no_file_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a file of that name where the program runs, and all hashes right."""
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    (tmp_path / "secret.txt").write_bytes(b"twenty bytes, or so, of a secret")
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "reasons.onnx"):
        good = (tmp_path / "b" / name).read_bytes()
        forged_bundle.forge(tmp_path / "b", name, changed(external_initializer, good))
        with pytest.raises(BundleError, match=rf"{name}: not a model of a step \(tensor 'terms' has external data\)"):
            load(tmp_path / "b")
        forged_bundle.forge(tmp_path / "b", name, good)


def test_a_field_that_stands_twice_is_refused() -> None:
    with pytest.raises(BundleError, match="the file has more than 1 of graph"):
        check(two_of_a_message())


def test_reading_is_linear_in_the_file() -> None:
    """Four times the numbers take about four times as long: 8 allows for a busy machine."""

    def refused(n: int) -> Callable[[], object]:
        data = changed(add(op("Gather", "terms", "one", axis=list(range(n)))))

        def work() -> None:
            with pytest.raises(BundleError):
                check(data)

        return work

    long, short = least_seconds(refused(800_000), refused(200_000))
    assert long < 8 * short
