"""Whether a step's model may be handed to onnxruntime: what it is made of, and how much it could compute and hold.

onnxruntime reads files beside a model, folds constants while it opens one and runs loops; none of that is asked of a
step. So the file is read here first, and the size of every tensor of a step is known before a session is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prefixguard.bundle.onnx_file import FLOAT, INT64, SIZES, OnnxFile, OnnxNode, Port, read_onnx
from prefixguard.bundle.onnx_operators import OPERATORS, NodeCall, Value
from prefixguard.errors import BundleError

#: Versions of each domain's operators: first and last.
OPSETS = {"": (17, 20), "ai.onnx.ml": (3, 3)}
IR_VERSIONS = (8, 9)
#: Of one step at the longest row that the vocabulary can give: bytes of all that is computed on the way, operations,
#: and numbers of the state, which every session holds.
MOST_BYTES, MOST_WORK, MOST_STATE = 1 << 29, 1 << 31, 1 << 18
#: Variants of a step that reasons may ask for at once, and terms that they may leave out one by one.
MOST_VARIANTS, MOST_TRIED = 128, 32
_INPUTS = {"indices": INT64, "values": FLOAT, "context": FLOAT, "state": FLOAT}
#: Of a graph that gives the risk of variants of a step.
_OF_VARIANTS = {"varied": FLOAT, "tried": INT64, "without": FLOAT}
_MOST_NUMBERS = 64  # of a constant that may say a shape


def check_onnx(data: bytes, n_terms: int, n_context: int, where: str) -> None:
    """BundleError with the reason unless this is a step's model within bounds. Linear in the file; nothing is run.

    n_terms: columns of the vocabulary; a row has at most as many entries. n_context: features of the context.
    """
    try:
        file = read_onnx(data)
        _check_versions(file)
        _check_step(file, n_terms, n_context)
    except (ValueError, OverflowError) as exc:
        raise BundleError(
            f"{where}: not a model of a step ({str(exc)[:300]}). Nothing of it was run. Train or export the bundle "
            "again, with the release that is to read it."
        ) from exc


def is_of_variants(data: bytes | None) -> bool:
    """Whether a reasons.onnx gives the risk of variants of a step; so of none that is no ONNX file."""
    try:
        return data is not None and len(read_onnx(data).inputs) > len(_INPUTS)
    except (ValueError, OverflowError):
        return False


def _check_versions(file: OnnxFile) -> None:
    first, last = IR_VERSIONS
    if not first <= file.ir_version <= last or "" not in file.opsets:
        raise ValueError(f"it is of ONNX IR {file.ir_version}; {first} to {last} are read")
    for domain, version in file.opsets.items():
        if domain not in OPSETS or not OPSETS[domain][0] <= version <= OPSETS[domain][1]:
            known = ", ".join(f"{name or 'ai.onnx'} {a} to {b}" for name, (a, b) in OPSETS.items())
            raise ValueError(f"it asks for opset {version} of domain {domain or 'ai.onnx'!r}; known: {known}")


def _check_step(file: OnnxFile, n_terms: int, n_context: int) -> None:
    values = {port.name: _input(port, n_terms, n_context) for port in file.inputs}
    if sorted(port.name for port in file.inputs) not in (sorted(_INPUTS), sorted(_INPUTS | _OF_VARIANTS)):
        raise ValueError(f"its inputs are not {', '.join(_INPUTS)}")
    for tensor in file.tensors:
        if tensor.name in values or not tensor.name:
            raise ValueError(f"two tensors are called {tensor.name!r}")
        numbers = None
        if tensor.dtype == INT64 and len(tensor.shape) <= 1 and len(tensor.data) <= 8 * _MOST_NUMBERS:
            numbers = tuple(np.frombuffer(tensor.data, "<i8").tolist())
        values[tensor.name] = Value(tensor.dtype, tensor.shape, numbers, numbers is not None)
    held = work = 0
    for node in file.nodes:
        inputs = tuple(_known(values, name, node) for name in node.inputs)
        outputs, operations = _infer(NodeCall(node, inputs), file)
        for name, value in zip(node.outputs, outputs, strict=True):
            if name in values or not name:
                raise ValueError(f"two tensors are called {name!r}")
            values[name] = value
        held += sum(value.size * SIZES[value.dtype] for value in outputs)
        work += operations + sum(value.size for value in (*inputs, *outputs))
        if held > MOST_BYTES or work > MOST_WORK:
            raise ValueError(
                f"{node.op} {node.outputs[0]!r}: with a row of {n_terms:,} terms one step would hold {held:,} bytes "
                f"and take {work:,} operations so far; at most {MOST_BYTES:,} and {MOST_WORK:,} are allowed"
            )
    missing = [port.name for port in file.outputs if port.name not in values]
    if missing:
        raise ValueError(f"output {missing[0]!r} is computed nowhere")


def _input(port: Port, n_terms: int, n_context: int) -> Value:
    """What an input is at the longest row."""
    free = [isinstance(size, str) for size in port.shape]
    if port.dtype == _OF_VARIANTS.get(port.name):
        if port.name == "varied" and free == [True, False] and port.shape[1] == n_context + 1:
            return Value(port.dtype, (MOST_VARIANTS, n_context + 1))
        if port.name != "varied" and free == [True] * (1 if port.name == "tried" else 2):
            return Value(port.dtype, (MOST_VARIANTS, MOST_TRIED)[-len(free) :])
    elif len(port.shape) == 1 and port.dtype == _INPUTS.get(port.name):
        size = port.shape[0]
        if port.name in ("indices", "values"):
            if isinstance(size, str):
                return Value(port.dtype, (n_terms,))
        elif isinstance(size, int) and (size == n_context if port.name == "context" else 0 <= size <= MOST_STATE):
            return Value(port.dtype, (size,))
    raise ValueError(f"input {port.name!r} of shape {list(port.shape)} is none of a step with {n_context} features")


def _known(values: dict[str, Value], name: str, node: OnnxNode) -> Value:
    if name not in values:
        raise ValueError(f"{node.op} reads {name!r}, which nothing before it gives")
    return values[name]


def _infer(call: NodeCall, file: OnnxFile) -> tuple[Sequence[Value], int]:
    node = call.node
    operator = OPERATORS.get((node.domain, node.op))
    if operator is None or node.domain not in file.opsets:
        name = f"{node.domain}.{node.op}" if node.domain else node.op
        raise ValueError(f"it has the operator {name}, which no step needs")
    fewest, most = operator.inputs
    odd = sorted(node.attributes.keys() - operator.attributes)
    if odd or not fewest <= len(call.inputs) <= most or len(node.outputs) != (operator.outputs or len(node.outputs)):
        odd_one = f"attribute {odd[0]!r}" if odd else f"{len(call.inputs)} inputs and {len(node.outputs)} outputs"
        raise ValueError(f"{node.op} has {odd_one}, which no step needs")
    try:
        outputs, operations = operator.infer(call)
    except ValueError as exc:
        raise ValueError(f"{node.op} {', '.join(node.outputs)[:80]!r}: {exc}") from exc
    return outputs, operations
