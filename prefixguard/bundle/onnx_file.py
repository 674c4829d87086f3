"""An ONNX file as plain records, read by a reader of our own that knows only what the model of a step may have.

Every other field is refused by its number, so that there is no data outside the file, no graph inside a node, no
function, no sparse tensor and no training information. Weights are not copied: a tensor is a view into the file.
Source: onnx-ml.proto of ONNX 1.23; the field numbers have been the same since version 1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle.protobuf import (
    BYTES,
    FIXED32,
    VARINT,
    Field,
    fields,
    message,
    packed,
    run_of_floats,
    run_of_numbers,
    signed,
    text,
    varint,
)

FLOAT, INT64, BOOL = 1, 7, 9
#: Bytes of one element; tensors in the file are of the first two types.
SIZES: Mapping[int, int] = {FLOAT: 4, INT64: 8, BOOL: 1}
MOST_NODES, MOST_TENSORS, MOST_NAMES, MOST_ATTRIBUTES, MOST_RANK = 4096, 4096, 512, 16, 8
_EDGE = 1 << 31

Attribute = int | float | NDArray[Any]

_MODEL = {
    1: Field("ir_version", VARINT),
    2: Field("producer_name", BYTES),
    3: Field("producer_version", BYTES),
    7: Field("graph", BYTES),
    8: Field("opset_import", BYTES, 4),
}
_OPSET = {1: Field("domain", BYTES), 2: Field("version", VARINT)}
_GRAPH = {
    1: Field("node", BYTES, MOST_NODES),
    2: Field("name", BYTES),
    5: Field("initializer", BYTES, MOST_TENSORS),
    11: Field("input", BYTES, 16),
    12: Field("output", BYTES, 16),
}
_NODE = {
    1: Field("input", BYTES, MOST_NAMES),
    2: Field("output", BYTES, MOST_NAMES),
    3: Field("name", BYTES),
    4: Field("op_type", BYTES),
    5: Field("attribute", BYTES, MOST_ATTRIBUTES),
    7: Field("domain", BYTES),
}
_VALUE = {1: Field("name", BYTES), 2: Field("type", BYTES)}
_TYPE = {1: Field("tensor_type", BYTES)}
_TENSOR_TYPE = {1: Field("elem_type", VARINT), 2: Field("shape", BYTES)}
_SHAPE = {1: Field("dim", BYTES, MOST_RANK)}
_DIMENSION = {1: Field("dim_value", VARINT), 2: Field("dim_param", BYTES)}
_OUTSIDE = {13: "external data", 14: "external data"}  # of a tensor: the one thing that gets a sentence of its own
_FLOAT_TAG, _INT_TAG = 7 << 3 | FIXED32, 8 << 3 | VARINT
_STRING_FIELD = 9
#: The only texts of an attribute: what kind of node each one of a tree is.
_MODES = re.compile(rb"(?:J\nBRANCH_LEQ|J\x04LEAF)*")
_KIND_OF = {"f": 1, "i": 2, "floats": 6, "ints": 7, "strings": 8}  # AttributeProto.AttributeType


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the file. data: exactly the bytes that its type and shape take."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    data: memoryview


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of the graph. shape: a text is a dimension that only a run gives."""

    name: str
    dtype: int
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One operation. attributes: numbers and arrays; `nodes_modes` of trees as bool, True where a node branches."""

    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """All that a file holds. opsets: version by domain."""

    ir_version: int
    opsets: Mapping[str, int]
    nodes: tuple[OnnxNode, ...]
    tensors: tuple[Tensor, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def read_onnx(data: bytes) -> OnnxFile:
    """The file's content, in time linear in its length. Raises ValueError that says what is wrong."""
    model = message(memoryview(data), _MODEL, "the file")
    opsets: dict[str, int] = {}
    for view in model["opset_import"]:
        opset = message(view, _OPSET, "an opset")
        domain = _name(opset, "domain", "an opset") if opset["domain"] else ""
        if domain in opsets:
            raise ValueError(f"domain {domain!r} has two opsets")
        opsets[domain] = _one(opset, "version", "an opset")
    graph = message(_one(model, "graph", "the file"), _GRAPH, "the graph")
    return OnnxFile(
        ir_version=_one(model, "ir_version", "the file"),
        opsets=opsets,
        nodes=tuple(_node(view) for view in graph["node"]),
        tensors=tuple(_tensor(view) for view in graph["initializer"]),
        inputs=tuple(_port(view) for view in graph["input"]),
        outputs=tuple(_port(view) for view in graph["output"]),
    )


def _one(found: Mapping[str, list[Any]], name: str, what: str) -> Any:
    if not found[name]:
        raise ValueError(f"{what} has no {name}")
    return found[name][0]


def _name(found: Mapping[str, list[Any]], name: str, what: str) -> str:
    return text(_one(found, name, what), f"{name} of {what}")


def _node(view: memoryview) -> OnnxNode:
    found = message(view, _NODE, "a node")
    op = _name(found, "op_type", "a node")
    attributes: dict[str, Attribute] = {}
    for one in found["attribute"]:
        name, value = _attribute(one, op)
        if name in attributes:
            raise ValueError(f"{op} has attribute {name!r} twice")
        attributes[name] = value
    return OnnxNode(
        op=op,
        domain=_name(found, "domain", op) if found["domain"] else "",
        inputs=tuple(text(name, f"an input of {op}") for name in found["input"]),
        outputs=tuple(text(name, f"an output of {op}") for name in found["output"]),
        attributes=attributes,
    )


def _attribute(view: memoryview, op: str) -> tuple[str, Attribute]:
    """Name and value; lists are read as runs, since those of a tree have tens of thousands of entries."""
    name, kind = "", 0
    values: dict[str, Attribute] = {}
    value: Attribute = 0
    at = 0
    while at < len(view):
        number, wire, start, stop = next(fields(view[at:]))
        content = view[at + start : at + stop]
        took, field = stop, ""
        if (number, wire) == (1, BYTES) and not name:
            name = text(content, f"the name of an attribute of {op}")
        elif (number, wire) == (20, VARINT) and not kind:
            kind = varint(content, 0, len(content))[0]
        elif (number, wire) == (2, FIXED32):
            field, value = "f", float(np.frombuffer(content, "<f4")[0])
        elif (number, wire) == (3, VARINT):
            field, value = "i", signed(varint(content, 0, len(content))[0])
        elif (number, wire) == (7, FIXED32):
            field, (value, took) = "floats", run_of_floats(view[at:], _FLOAT_TAG)
        elif (number, wire) == (8, VARINT):
            field, (value, took) = "ints", run_of_numbers(view[at:], _INT_TAG)
        elif (number, wire) == (_STRING_FIELD, BYTES):
            field, (value, took) = "strings", _modes(view[at:], op)
        else:
            raise ValueError(f"{op}: an attribute has field {number}, which the model of a step does not have")
        if field:
            if values:
                raise ValueError(f"{op}: attribute {name!r} has two values")
            values[field] = value
        at += took
    if len(values) != 1 or not name or _KIND_OF[next(iter(values))] != kind:
        raise ValueError(f"{op}: attribute {name!r} has not one value of the type that it names")
    return name, next(iter(values.values()))


def _modes(view: memoryview, op: str) -> tuple[NDArray[np.bool_], int]:
    found = _MODES.match(view)
    if found is None or not found.end():
        raise ValueError(f"{op}: an attribute has texts other than BRANCH_LEQ and LEAF")
    letters = np.frombuffer(view[: found.end()], np.uint8)
    begins = np.flatnonzero(letters == ord("J"))  # in neither word; what comes next is the length of the word
    return letters[begins + 1] == len("BRANCH_LEQ"), found.end()


def _tensor(view: memoryview) -> Tensor:
    name, dtype, shape, data = "", 0, [], None
    for number, wire, at, stop in fields(view):
        content = view[at:stop]
        if (number, wire) == (1, VARINT):
            shape.append(signed(varint(content, 0, len(content))[0]))
        elif (number, wire) == (1, BYTES):
            shape += packed(content, MOST_RANK)
        elif (number, wire) == (2, VARINT) and not dtype:
            dtype = varint(content, 0, len(content))[0]
        elif (number, wire) == (8, BYTES) and not name:
            name = text(content, "the name of a tensor")
        elif (number, wire) == (9, BYTES) and data is None:
            data = content
        else:
            why = _OUTSIDE.get(number, f"field {number}, which the model of a step does not have, or a field twice")
            raise ValueError(f"tensor {name!r} has {why}")
        if len(shape) > MOST_RANK:
            raise ValueError(f"tensor {name!r} has more than {MOST_RANK} dimensions")
    data = memoryview(b"") if data is None else data
    if dtype not in (FLOAT, INT64):
        raise ValueError(f"tensor {name!r} is of type {dtype}; float (1) and int64 (7) are read")
    if any(not 0 <= n < _EDGE for n in shape) or math.prod(shape) * SIZES[dtype] != len(data):
        raise ValueError(f"tensor {name!r} of shape {shape} has {len(data):,} bytes")
    return Tensor(name, dtype, tuple(shape), data)


def _port(view: memoryview) -> Port:
    found = message(view, _VALUE, "an input or output")
    name = _name(found, "name", "an input or output")
    kind = message(_one(found, "type", name), _TYPE, name)
    tensor = message(_one(kind, "tensor_type", name), _TENSOR_TYPE, name)
    shape: list[int | str] = []
    for one in message(_one(tensor, "shape", name), _SHAPE, name)["dim"]:
        dimension = message(one, _DIMENSION, name)
        if len(dimension["dim_value"]) + len(dimension["dim_param"]) != 1:
            raise ValueError(f"a dimension of {name} is not one number or one name")
        shape.append(dimension["dim_value"][0] if dimension["dim_value"] else _name(dimension, "dim_param", name))
    return Port(name, _one(tensor, "elem_type", name), tuple(shape))
