"""An ONNX file as plain records, read by a strict reader of our own that knows only what the model of a step may have.

Every other field is refused by its number, so that there is no data outside the file, no graph inside a node, no
function, no sparse tensor and no training information. A lax reader of protobuf merges repeated messages, lets the last
of two values win and skips what it does not know, so that two readers may see two different files in the same bytes:
here whatever could be read in two ways is refused. Weights are not copied: a tensor is a view into the file.
Source: protobuf.dev, "Encoding"; onnx-ml.proto of ONNX 1.23, whose field numbers are those of version 1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FLOAT, INT64, BOOL = 1, 7, 9
#: Bytes of one element; tensors in the file are of the first two types.
SIZES: Mapping[int, int] = {FLOAT: 4, INT64: 8, BOOL: 1}
MOST_NODES, MOST_TENSORS, MOST_NAMES, MOST_ATTRIBUTES, MOST_RANK = 4096, 4096, 512, 16, 8
_EDGE = 1 << 31
_LONGEST_TEXT = 200

Attribute = int | float | NDArray[Any]

#: What a field holds; `floats`, `ints` and `modes` stand many times in a row and are read as one array.
_Kind = Literal["number", "text", "bytes", "float", "floats", "ints", "modes"]
_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_WIRE: Mapping[_Kind, int] = {
    "number": _VARINT, "ints": _VARINT, "text": _BYTES, "bytes": _BYTES, "modes": _BYTES, "float": _FIXED32,
    "floats": _FIXED32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. most: how often it may stand there. needed: whether it must."""

    name: str
    kind: _Kind
    most: int = 1
    needed: bool = False


_MODEL = {
    1: Field("ir_version", "number", needed=True),
    2: Field("producer_name", "bytes"),
    3: Field("producer_version", "bytes"),
    7: Field("graph", "bytes", needed=True),
    8: Field("opset_import", "bytes", 4),
}
_OPSET = {1: Field("domain", "text"), 2: Field("version", "number", needed=True)}
_GRAPH = {
    1: Field("node", "bytes", MOST_NODES),
    2: Field("name", "bytes"),
    5: Field("initializer", "bytes", MOST_TENSORS),
    11: Field("input", "bytes", 16),
    12: Field("output", "bytes", 16),
}
_NODE = {
    1: Field("input", "text", MOST_NAMES),
    2: Field("output", "text", MOST_NAMES),
    3: Field("name", "bytes"),
    4: Field("op_type", "text", needed=True),
    5: Field("attribute", "bytes", MOST_ATTRIBUTES),
    7: Field("domain", "text"),
}
_ATTRIBUTE = {
    1: Field("name", "text", needed=True),
    2: Field("f", "float"),
    3: Field("i", "number"),
    7: Field("floats", "floats"),
    8: Field("ints", "ints"),
    9: Field("strings", "modes"),
    20: Field("type", "number", needed=True),
}
_KIND_OF = {"f": 1, "i": 2, "floats": 6, "ints": 7, "strings": 8}  # AttributeProto.AttributeType
_TENSOR = {
    1: Field("dims", "ints"),
    2: Field("data_type", "number", needed=True),
    8: Field("name", "text"),
    9: Field("raw_data", "bytes"),
    13: Field("external_data", "bytes", 16),
    14: Field("data_location", "number"),
}
_PORT = {1: Field("name", "text", needed=True), 2: Field("type", "bytes", needed=True)}
_TYPE = {1: Field("tensor_type", "bytes", needed=True)}
_TENSOR_TYPE = {1: Field("elem_type", "number", needed=True), 2: Field("shape", "bytes", needed=True)}
_SHAPE = {1: Field("dim", "bytes", MOST_RANK)}
_DIMENSION = {1: Field("dim_value", "number"), 2: Field("dim_param", "text")}


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
    model = _message(memoryview(data), _MODEL, "the file")
    opsets: dict[str, int] = {}
    for view in model["opset_import"]:
        opset = _message(view, _OPSET, "an opset")
        domain = opset["domain"] or ""
        if domain in opsets:
            raise ValueError(f"domain {domain!r} has two opsets")
        opsets[domain] = opset["version"]
    graph = _message(model["graph"], _GRAPH, "the graph")
    return OnnxFile(
        ir_version=model["ir_version"],
        opsets=opsets,
        nodes=tuple(map(_node, graph["node"])),
        tensors=tuple(map(_tensor, graph["initializer"])),
        inputs=tuple(map(_port, graph["input"])),
        outputs=tuple(map(_port, graph["output"])),
    )


def _node(view: memoryview) -> OnnxNode:
    found = _message(view, _NODE, "a node")
    op = found["op_type"]
    attributes: dict[str, Attribute] = {}
    for one in found["attribute"]:
        values = _message(one, _ATTRIBUTE, f"{op}: an attribute")
        name, kind = values["name"], values["type"]
        given = [field for field in _KIND_OF if values[field] is not None]
        if len(given) != 1 or _KIND_OF[given[0]] != kind or not name:
            raise ValueError(f"{op}: attribute {name!r} has not one value of the type that it names")
        if name in attributes:
            raise ValueError(f"{op} has attribute {name!r} twice")
        attributes[name] = values[given[0]]
    return OnnxNode(op, found["domain"] or "", tuple(found["input"]), tuple(found["output"]), attributes)


def _tensor(view: memoryview) -> Tensor:
    found = _message(view, _TENSOR, "a tensor")
    name, dtype = found["name"] or "", found["data_type"]
    shape = () if found["dims"] is None else tuple(found["dims"][: MOST_RANK + 1].tolist())
    data = memoryview(b"") if found["raw_data"] is None else found["raw_data"]
    if found["external_data"] or found["data_location"] is not None:
        raise ValueError(f"tensor {name!r} has external data")
    if len(shape) > MOST_RANK:
        raise ValueError(f"tensor {name!r} has more than {MOST_RANK} dimensions")
    if dtype not in (FLOAT, INT64):
        raise ValueError(f"tensor {name!r} is of type {dtype}; float (1) and int64 (7) are read")
    if any(not 0 <= n < _EDGE for n in shape) or math.prod(shape) * SIZES[dtype] != len(data):
        raise ValueError(f"tensor {name!r} of shape {list(shape)} has {len(data):,} bytes")
    return Tensor(name, dtype, shape, data)


def _port(view: memoryview) -> Port:
    found = _message(view, _PORT, "an input or output")
    name = found["name"]
    tensor = _message(_message(found["type"], _TYPE, name)["tensor_type"], _TENSOR_TYPE, name)
    shape: list[int | str] = []
    for one in _message(tensor["shape"], _SHAPE, name)["dim"]:
        given = [value for value in _message(one, _DIMENSION, name).values() if value is not None]
        if len(given) != 1:
            raise ValueError(f"a dimension of {name} is not one number or one name")
        shape += given
    return Port(name, tensor["elem_type"], tuple(shape))


def _message(data: memoryview, known: Mapping[int, Field], what: str) -> dict[str, Any]:
    """The fields of a message by name: a list where several may stand, else the value, None where it is not there.

    Raises ValueError for a field that is not known, of another type, too often there or missing.
    """
    found: dict[str, Any] = {field.name: [] if field.most > 1 else None for field in known.values()}
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        number, wire, field = tag >> 3, tag & 7, known.get(tag >> 3)
        if field is None:
            raise ValueError(f"{what} has field {number}, which the model of a step does not have")
        if wire != _WIRE[field.kind]:
            raise ValueError(f"{what}: {field.name} is not of the type {field.kind}")
        if field.kind in _RUNS:
            value, at = _RUNS[field.kind](data[begin:], tag)
            at += begin
        else:
            value, at = _value(data, at, field.kind, f"{field.name} of {what}")
        if field.most == 1:
            if found[field.name] is not None:
                raise ValueError(f"{what} has more than 1 of {field.name}")
            found[field.name] = value
        elif len(found[field.name]) == field.most:
            raise ValueError(f"{what} has more than {field.most:,} of {field.name}")
        else:
            found[field.name].append(value)
    for field in known.values():
        if field.needed and found[field.name] is None:
            raise ValueError(f"{what} has no {field.name}")
    return found


def _value(data: memoryview, at: int, kind: _Kind, what: str) -> tuple[Any, int]:
    """A single value, and where it ends: numbers are signed, of 64 bits; bytes are a view."""
    if kind == "number":
        value, stop = _varint(data, at)
        return (value - (1 << 64) if value >> 63 else value), stop
    size, at = (4, at) if kind == "float" else _varint(data, at)
    stop = at + size
    if stop > len(data):
        raise ValueError("a field does not fit into the message that holds it")
    if kind == "float":
        return float(np.frombuffer(data[at:stop], "<f4")[0]), stop
    if kind == "text":
        if size > _LONGEST_TEXT:
            raise ValueError(f"{what} has {size:,} bytes, at most {_LONGEST_TEXT} are read")
        return bytes(data[at:stop]).decode("utf-8"), stop
    return data[at:stop], stop


#: An unsigned number of 64 bits in its shortest spelling.
_NUMBER = rb"(?:[\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f]|[\x80-\xff]{9}\x01)"
_ONE = re.compile(_NUMBER)
#: The only texts of an attribute: what kind of node each one of a tree is.
_MODES = re.compile(rb"(?:J\nBRANCH_LEQ|J\x04LEAF){1,65536}+")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    if at < len(data) and data[at] < 0x80:  # nearly every one
        return data[at], at + 1
    found = _ONE.match(data, at)
    if found is None:
        raise ValueError("a number is cut off, longer than 64 bits or not spelled in the shortest way")
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(found[0]))
    return value, found.end()


def _pieces(pattern: re.Pattern[bytes], data: memoryview) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """What the pattern takes of the beginning, piece by piece, and where each piece ends."""
    at = 0
    while found := pattern.match(data, at):
        yield np.frombuffer(found[0], np.uint8), found.end()
        at = found.end()


def run_of_numbers(data: memoryview, tag: int) -> tuple[NDArray[np.int64], int]:
    """The signed numbers of a field that stands many times in a row, int64 (n,), and where they end."""
    parts, stop = [], 0
    row = re.compile(b"(?:%b%b){1,65536}+" % (re.escape(bytes([tag])), _NUMBER))  # as many as are decoded at once
    for letters, end in _pieces(row, data):
        ends = np.flatnonzero(letters < 0x80)  # of tag, number, tag, number, ...
        first, last = ends[::2] + 1, ends[1::2]
        values, k = np.zeros(len(first), np.uint64), 0
        while len(longer := np.flatnonzero(first + k <= last)):
            values[longer] |= (letters[first[longer] + k] & 0x7F).astype(np.uint64) << np.uint64(7 * k)
            k += 1
        parts.append(values.view(np.int64))
        stop = end
    if not parts:
        raise ValueError("a number is cut off, longer than 64 bits or not spelled in the shortest way")
    return np.concatenate(parts), stop


def run_of_floats(data: memoryview, tag: int) -> tuple[NDArray[np.float32], int]:
    """As `run_of_numbers`, of float32."""
    all_of_it = np.frombuffer(data, np.dtype([("tag", "u1"), ("value", "<f4")]), len(data) // 5)
    others = np.flatnonzero(all_of_it["tag"] != tag)
    n = int(others[0]) if len(others) else len(all_of_it)
    if not n:
        raise ValueError("a field does not fit into the message that holds it")
    return all_of_it["value"][:n].copy(), 5 * n


def _run_of_modes(data: memoryview, tag: int) -> tuple[NDArray[np.bool_], int]:
    """Whether each node of the trees branches."""
    parts, stop = [], 0
    for letters, end in _pieces(_MODES, data):
        begins = np.flatnonzero(letters == tag)  # in neither word; what comes next is the length of the word
        parts.append(letters[begins + 1] == len("BRANCH_LEQ"))
        stop = end
    if not parts:
        raise ValueError("an attribute has texts other than BRANCH_LEQ and LEAF")
    return np.concatenate(parts), stop


_RUNS: Mapping[str, Any] = {"ints": run_of_numbers, "floats": run_of_floats, "modes": _run_of_modes}
