"""A thin builder of ONNX graphs: names are given, constants shared, the result checked and always the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_OPSET = 20  # the first with Gelu
#: Domain of the operators for trees, and its version.
ML_DOMAIN = "ai.onnx.ml"
_ML_OPSET = 3
_IR = 9
_TYPES = {"int64": TensorProto.INT64, "float32": TensorProto.FLOAT}


Matrix = NDArray[np.float32]
#: (name, dtype, shape); a string in a shape is a free dimension.
Input = tuple[str, str, list[int | str]]
#: (name, what it is in the graph, dtype, shape).
Output = tuple[str, str, str, list[int | str]]


class Graph:
    """Nodes in the order in which they are added; every method returns the name of what it made."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._count = 0

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """One node with one output."""
        return self.nodes(op, 1, *inputs, **attributes)[0]

    def nodes(self, op: str, n_outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """One node with several outputs."""
        self._count += 1
        outputs = [f"{op.lower()}_{self._count}_{i}" for i in range(n_outputs)]
        self._nodes.append(helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """A weight or table, stored once under its name."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        """A short vector of int64, for shapes and axes."""
        return self.constant("i_" + "_".join(str(v) for v in values), np.array(values, dtype=np.int64))

    def split(self, x: str, sizes: Sequence[int]) -> list[str]:
        """Cut the last axis."""
        return self.nodes("Split", len(sizes), x, self.integers(*sizes), axis=-1)

    def concat(self, parts: Sequence[str], axis: int = -1) -> str:
        """Join along an axis."""
        return self.node("Concat", *parts, axis=axis)

    def linear(self, x: str, name: str, weight: NDArray[np.float32], bias: NDArray[np.float32] | None = None) -> str:
        """x (N, in) times weight (in, out), plus bias (out,)."""
        inputs = [x, self.constant(f"{name}.weight", weight)]
        if bias is not None:
            inputs.append(self.constant(f"{name}.bias", bias))
        return self.node("Gemm", *inputs)

    def build(self, inputs: Sequence[Input], outputs: Sequence[Output]) -> bytes:
        """The model as bytes: of nodes and constants those that an output rests on."""
        named = [helper.make_node("Identity", [source], [name]) for name, source, _, _ in outputs]
        needed, nodes = {source for _, source, _, _ in outputs}, list[onnx.NodeProto]()
        for node in reversed(self._nodes):
            if not needed.isdisjoint(node.output):
                needed.update(node.input)
                nodes.append(node)
        graph = helper.make_graph(
            [*nodes[::-1], *named],
            "step",
            [helper.make_tensor_value_info(n, _TYPES[t], s) for n, t, s in inputs],
            [helper.make_tensor_value_info(n, _TYPES[t], s) for n, _, t, s in outputs],
            [self._constants[name] for name in sorted(needed & self._constants.keys())],
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        if any(node.domain == ML_DOMAIN for node in nodes):
            opsets.append(helper.make_opsetid(ML_DOMAIN, _ML_OPSET))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR)
        model.producer_name, model.producer_version = "prefixguard", ""
        onnx.checker.check_model(model, full_check=True)
        data: bytes = model.SerializeToString(deterministic=True)
        return data


def blocks(parts: list[Matrix]) -> Matrix:
    """Matrices along a diagonal, zeros elsewhere."""
    out = np.zeros((sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)), dtype=np.float32)
    row = column = 0
    for p in parts:
        out[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return out
