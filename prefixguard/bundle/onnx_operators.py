"""The operators that a step's model may have: of each, the shapes that come out, and what it costs.

One table, `OPERATORS`. Shapes are computed at the longest row that a vocabulary can give. They hold for every shorter
row because nothing here shrinks where the row grows: numbers that say a shape come from the file, or from lengths by
`Min` and `Concat`; a `Reshape` or `Slice` takes them from the file alone. Source: ONNX operators 17-20, ai.onnx.ml 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.bundle.onnx_file import BOOL, FLOAT, INT64, OnnxNode
from prefixguard.bundle.tree_ensemble import LEAF_COLUMNS, NODE_COLUMNS, ensemble_work

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a tensor before anything runs. numbers: what it holds, of short integer tensors that say a
    shape. is_fixed: whether they come from the file alone."""

    dtype: int
    shape: Shape
    numbers: tuple[int, ...] | None = None
    is_fixed: bool = False

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node with what goes into it."""

    node: OnnxNode
    inputs: tuple[Value, ...]

    def shape(self, i: int = 0) -> Shape:
        return self.inputs[i].shape

    def whole(self, name: str, default: int) -> int:
        """A whole number among the attributes."""
        value = self.node.attributes.get(name, default)
        if type(value) is not int:
            raise ValueError(f"attribute {name} is not a whole number")
        return value

    def axis(self, default: int, rank: int | None = None) -> int:
        """The attribute `axis`, from 0."""
        return _axis(self.whole("axis", default), len(self.shape()) if rank is None else rank)

    def fixed(self, i: int) -> tuple[int, ...]:
        """The numbers of an input that only the file may say."""
        value = self.inputs[i]
        if value.numbers is None or not value.is_fixed:
            raise ValueError(f"input {i} is not a short constant of int64")
        return value.numbers

    def length(self, i: int) -> tuple[int, ...]:
        """The numbers of an input that says a shape: from the file or from lengths, never negative."""
        numbers = self.inputs[i].numbers
        if numbers is None or any(n < 0 for n in numbers):
            raise ValueError(f"input {i} says a shape, and what it holds is not known before a run")
        return numbers


#: What comes out, and the operations beyond one for every element that goes in or out.
Result = tuple[Sequence[Value], int]
Infer = Callable[[NodeCall], Result]


@dataclass(frozen=True, slots=True)
class Operator:
    """inputs: fewest and most. attributes: names that it may have. outputs: how many; None: as its sizes say."""

    infer: Infer
    inputs: tuple[int, int]
    attributes: frozenset[str]
    outputs: int | None


#: Every operator by domain and name: those that the backends' graphs are built from, and no other.
OPERATORS: dict[tuple[str, str], Operator] = {}
_MANY = 512


def _operator(
    *names: str, inputs: tuple[int, int] = (1, 1), attributes: str = "", outputs: int | None = 1, domain: str = ""
) -> Callable[[Infer], Infer]:
    """Registers what these operators give. attributes: their names, separated by spaces."""

    def register(infer: Infer) -> Infer:
        operator = Operator(infer, inputs, frozenset(attributes.split()), outputs)
        OPERATORS.update({(domain, name): operator for name in names})
        return infer

    return register


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of {rank}")
    return axis % rank


def broadcast(*shapes: Shape) -> Shape:
    """The shape of an elementwise operation. Raises ValueError where there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"shapes {' and '.join(map(str, shapes))} do not go together") from None


@_operator("Gelu", "Identity", "Sigmoid", "Sqrt", "Tanh")
@_operator("Clip", inputs=(3, 3))
@_operator("LayerNormalization", inputs=(2, 3), attributes="axis epsilon")
@_operator("Softmax", attributes="axis")
def _same(call: NodeCall) -> Result:
    """One tensor in, one like it out; further inputs must not widen it."""
    x = call.inputs[0]
    if broadcast(*(value.shape for value in call.inputs)) != x.shape:
        raise ValueError("a bound or scale is wider than what it is applied to")
    if "axis" in call.node.attributes:
        call.axis(-1)
    numbers = x.numbers if call.node.op == "Identity" else None
    return [Value(x.dtype, x.shape, numbers, x.is_fixed and numbers is not None)], 0


@_operator("Add", "Div", "Greater", "Mul", "Sub", inputs=(2, 2))
@_operator("Mean", "Min", inputs=(1, _MANY))
def _elementwise(call: NodeCall) -> Result:
    kinds = {value.dtype for value in call.inputs}
    op = call.node.op
    if len(kinds) > 1 or BOOL in kinds or (op == "Div" and kinds != {FLOAT}):  # a whole number by 0 ends the process
        raise ValueError("its inputs are of types that do not go together")
    shape = broadcast(*(value.shape for value in call.inputs))
    numbers = None
    known = [value.numbers for value in call.inputs if value.numbers is not None and len(value.numbers) == 1]
    if op == "Min" and len(known) == len(call.inputs):
        numbers = (min(n for one in known for n in one),)
    return [Value(BOOL if op == "Greater" else kinds.pop(), shape, numbers)], 0


@_operator("Cast", attributes="to")
def _cast(call: NodeCall) -> Result:
    to = call.whole("to", 0)
    if to not in (FLOAT, INT64):
        raise ValueError(f"type {to}; float (1) and int64 (7) are known")
    return [Value(to, call.shape())], 0


@_operator("Gather", inputs=(2, 2), attributes="axis")
def _gather(call: NodeCall) -> Result:
    data, at = call.inputs
    axis = call.axis(0)
    if at.dtype != INT64:
        raise ValueError("its indices are not whole numbers")
    return [Value(data.dtype, data.shape[:axis] + at.shape + data.shape[axis + 1 :])], 0


def _reduced(shape: Shape, axes: set[int], keep: bool) -> Shape:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)


@_operator("ArgMax", attributes="axis keepdims")
def _arg_max(call: NodeCall) -> Result:
    shape = _reduced(call.shape(), {call.axis(0)}, bool(call.whole("keepdims", 1)))
    return [Value(INT64, shape)], 0


@_operator("ReduceMax", "ReduceSum", inputs=(1, 2), attributes="keepdims")
def _reduce(call: NodeCall) -> Result:
    rank = len(call.shape())
    axes = {_axis(axis, rank) for axis in call.fixed(1)} if len(call.inputs) > 1 else set(range(rank))
    shape = _reduced(call.shape(), axes or set(range(rank)), bool(call.whole("keepdims", 1)))
    return [Value(call.inputs[0].dtype, shape)], 0


@_operator("Concat", inputs=(1, _MANY), attributes="axis")
def _concat(call: NodeCall) -> Result:
    axis = call.axis(0)
    rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in (value.shape for value in call.inputs)}
    kinds = {value.dtype for value in call.inputs}
    if len(rest) > 1 or len(kinds) > 1 or len({len(value.shape) for value in call.inputs}) > 1:
        raise ValueError("its parts do not go together")
    shape = list(call.shape())
    shape[axis] = sum(value.shape[axis] for value in call.inputs)
    known = [value.numbers for value in call.inputs if value.numbers is not None]
    is_known = len(known) == len(call.inputs) and len(shape) == 1
    numbers = tuple(n for one in known for n in one) if is_known else None
    return [Value(kinds.pop(), tuple(shape), numbers, all(value.is_fixed for value in call.inputs))], 0


@_operator("Split", inputs=(2, 2), attributes="axis", outputs=None)
def _split(call: NodeCall) -> Result:
    axis, sizes = call.axis(0), call.fixed(1)
    x = call.inputs[0]
    if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis] or len(sizes) != len(call.node.outputs):
        raise ValueError(f"parts of {sizes} do not make {x.shape[axis]}")
    return [Value(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes], 0


@_operator("Squeeze", inputs=(2, 2))
def _squeeze(call: NodeCall) -> Result:
    x = call.inputs[0]
    axes = {_axis(axis, len(x.shape)) for axis in call.fixed(1)}
    if any(x.shape[axis] != 1 for axis in axes):
        raise ValueError("an axis that is taken away is not 1 long")
    return [Value(x.dtype, tuple(n for i, n in enumerate(x.shape) if i not in axes))], 0


@_operator("Unsqueeze", inputs=(2, 2))
def _unsqueeze(call: NodeCall) -> Result:
    x, wanted = call.inputs[0], call.fixed(1)
    rank = len(x.shape) + len(wanted)
    axes = {_axis(axis, rank) for axis in wanted}
    if len(axes) != len(wanted):
        raise ValueError("an axis is made twice")
    rest = iter(x.shape)
    return [Value(x.dtype, tuple(1 if i in axes else next(rest) for i in range(rank)))], 0


@_operator("Transpose", attributes="perm")
def _transpose(call: NodeCall) -> Result:
    x, order = call.inputs[0], call.node.attributes.get("perm")
    ways = order.tolist() if isinstance(order, np.ndarray) else []
    if sorted(ways) != list(range(len(x.shape))):
        raise ValueError("perm does not name every axis once")
    return [Value(x.dtype, tuple(x.shape[i] for i in ways))], 0


@_operator("Reshape", inputs=(2, 2))
def _reshape(call: NodeCall) -> Result:
    x, wanted = call.inputs[0], list(call.fixed(1))
    for i, n in enumerate(wanted):
        if n == 0 and i < len(x.shape):
            wanted[i] = x.shape[i]
    if any(n < -1 for n in wanted) or wanted.count(-1) > 1:
        raise ValueError(f"{wanted} is no shape")
    known = math.prod(n for n in wanted if n != -1)
    if -1 in wanted:
        wanted[wanted.index(-1)] = x.size // known if known else 0
    if math.prod(wanted) != x.size:
        raise ValueError(f"shape {x.shape} does not become {tuple(wanted)}")
    return [Value(x.dtype, tuple(wanted))], 0


@_operator("Slice", inputs=(3, 4))
def _slice(call: NodeCall) -> Result:
    x, starts, ends = call.inputs[0], call.fixed(1), call.fixed(2)
    axes = call.fixed(3) if len(call.inputs) > 3 else tuple(range(len(starts)))
    if not len(starts) == len(ends) == len(axes) or min((*starts, *ends), default=0) < 0:
        raise ValueError("starts, ends and axes are not as many, or count from the end")
    shape = list(x.shape)
    for start, end, axis in zip(starts, ends, axes, strict=True):
        at = _axis(axis, len(shape))
        shape[at] = max(min(end, shape[at]) - min(start, shape[at]), 0)
    return [Value(x.dtype, tuple(shape))], 0


@_operator("Shape", attributes="start end")
def _shape(call: NodeCall) -> Result:
    shape = call.shape()
    start, end = call.whole("start", 0), call.whole("end", len(shape))
    if not 0 <= start <= end <= len(shape):
        raise ValueError("start and end are not places of the shape, from its beginning")
    return [Value(INT64, (end - start,), shape[start:end])], 0


@_operator("Expand", inputs=(2, 2))
def _expand(call: NodeCall) -> Result:
    return [Value(call.inputs[0].dtype, broadcast(call.shape(), call.length(1)))], 0


@_operator("TopK", inputs=(2, 2), outputs=2)
def _top_k(call: NodeCall) -> Result:
    x, (k,) = call.inputs[0], call.length(1)
    if not x.shape or k > x.shape[-1]:
        raise ValueError(f"the best {k} of shape {x.shape}")
    shape = (*x.shape[:-1], k)
    return [Value(x.dtype, shape), Value(INT64, shape)], 8 * x.size


@_operator("ScatterElements", inputs=(3, 3), attributes="axis")
def _scatter(call: NodeCall) -> Result:
    data, at, updates = call.inputs
    call.axis(0)
    fits = len(at.shape) == len(data.shape) and all(n <= m for n, m in zip(at.shape, data.shape, strict=True))
    if at.dtype != INT64 or at.shape != updates.shape or not fits or updates.dtype != data.dtype:
        raise ValueError("indices and updates do not fit the data")
    return [Value(data.dtype, data.shape)], 0


@_operator("MatMul", inputs=(2, 2))
@_operator("Gemm", inputs=(2, 3))
def _product(call: NodeCall) -> Result:
    """MatMul, and Gemm as a product of two matrices with a bias."""
    a, b = call.shape(0), call.shape(1)
    is_gemm = call.node.op == "Gemm"
    if any(value.dtype != FLOAT for value in call.inputs) or not a or not b or (is_gemm and (len(a), len(b)) != (2, 2)):
        raise ValueError("its inputs are not matrices of floats")
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2]:
        raise ValueError(f"shapes {a} and {b} do not multiply")
    batch = broadcast(left[:-2], right[:-2])
    rows, columns = left[-2:-1] if len(a) > 1 else (), right[-1:] if len(b) > 1 else ()
    shape = (*batch, *rows, *columns)
    if is_gemm and len(call.inputs) > 2 and broadcast(shape, call.shape(2)) != shape:
        raise ValueError("its bias is wider than the product")
    return [Value(FLOAT, shape)], math.prod(shape) * left[-1]


@_operator(
    "TreeEnsembleRegressor",
    domain="ai.onnx.ml",
    attributes=" ".join(("n_targets", *NODE_COLUMNS, *LEAF_COLUMNS)),
)
def _trees(call: NodeCall) -> Result:
    shape = call.shape()
    if len(shape) != 2 or call.inputs[0].dtype != FLOAT:
        raise ValueError("it takes a matrix of floats")
    targets, work = ensemble_work(call.node.attributes, shape[1])
    return [Value(FLOAT, (shape[0], targets))], shape[0] * work
