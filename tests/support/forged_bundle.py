"""Bundles that were changed and hashed again: what anybody can make who can write files."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tiny_monitor
from onnx import helper, numpy_helper

from prefixguard.bundle.manifest import bundle_id, canonical, render
from prefixguard.cli.information import info
from prefixguard.errors import BundleError, DataError
from prefixguard.runtime import load

#: What a field may be replaced by; each has broken some reader of JSON.
HOSTILE: tuple[Any, ...] = (
    10**400, -(10**400), 2**63, -(2**63) - 1, 2**31, 1 << 60, -1, 0, 1, True, None, "", "\ud800", "../../etc/passwd",
    "\x1b[2J\u202e", "x" * 5000, 1e308, 5e-324, -0.0, float("nan"), float("inf"), [], {}, [[]], [{}], {"": {}},
    [None] * 50, ["\ud800"] * 3, {"a": [1e400]},
)  # fmt: skip


def reseal(folder: Path, **changes: Any) -> None:
    """Hashes, sizes, id and seal made to fit the files that are there. changes: of the manifest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes()) | changes
    for name in manifest["files"] if isinstance(manifest.get("files"), dict) else ():
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    if "adapter" not in changes and isinstance(manifest.get("adapter"), dict):
        manifest["adapter"]["sha256"] = _sha_of_adapter((folder / "adapter.json").read_bytes())
    for name in ("id", "seal"):
        manifest.pop(name, None)
    try:
        manifest["id"] = bundle_id(manifest)
        manifest["seal"] = hashlib.sha256(canonical(manifest)).hexdigest()
        path.write_bytes(render(manifest))
    except DataError:  # NaN: no seal can be made, so the file is simply what it is
        path.write_text(json.dumps(manifest, sort_keys=True, indent=2) + "\n")


def _sha_of_adapter(data: bytes) -> str:
    """The hash that an adapter of these bytes has; of one that is none, some hash."""
    try:
        spec = json.loads(data)
        text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()
    except (ValueError, RecursionError):
        return hashlib.sha256(data).hexdigest()


def forge(folder: Path, name: str, data: bytes) -> None:
    """One file replaced, and everything hashed again (but the manifest itself, which is written as it is)."""
    (folder / name).write_bytes(data)
    if name != "manifest.json":
        reseal(folder)


def damaged(name: str, good: bytes, seed: int) -> bytes:
    """One of many damages of a file, drawn by the seed: of its bytes, or of its meaning where we know that."""
    draw = random.Random(f"{name} {seed}")
    ways: list[Callable[[bytes, random.Random], bytes]] = [_flip, _truncate, _repeat, _extreme, _join]
    if name.endswith(".json"):
        ways += [_hostile_value] * 8 + [_nested, _renamed_key]
    if name.endswith(".onnx"):
        ways += [_hostile_graph] * 8
    return draw.choice(ways)(good, draw)


def _flip(data: bytes, draw: random.Random) -> bytes:
    bad = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
    return bytes(bad)


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    at, end = sorted(draw.randrange(len(data)) for _ in range(2))
    return data[:end] + data[at:end] * draw.choice((1, 3)) + data[end:]


def _extreme(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(max(len(data) - 8, 1))
    what = draw.choice((b"\xff" * 8, b"\0" * 8, b"\xff\xff\xff\x7f", b"\0\0\xc0\x7f", b"9" * 8, b"'" * 3, b"(" * 4))
    return data[:at] + what + data[at + len(what) :]


def _join(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((data + data, data + b"\0", b"\xef\xbb\xbf" + data, b"\n" + data, data + b"PK\x05\x06" * 4))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with every key of it."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def _dump(document: Any, draw: random.Random) -> bytes:
    indent = draw.choice((None, 2))
    return json.dumps(document, indent=indent).encode() + b"\n"


def _hostile_value(data: bytes, draw: random.Random) -> bytes:
    document = json.loads(data)
    for _ in range(draw.choice((1, 1, 2))):
        holder, key = draw.choice(list(_places(document)) or [([None], 0)])
        if isinstance(holder, dict) and draw.random() < 0.15:
            del holder[key]
        elif draw.random() < 0.2:
            holder[key] = copy.deepcopy(draw.choice(list(_places(document)))[0])
        else:
            holder[key] = copy.deepcopy(draw.choice(HOSTILE))
    return _dump(document, draw)


def _nested(data: bytes, draw: random.Random) -> bytes:
    document = json.loads(data)
    holder, key = draw.choice(list(_places(document)))
    levels = draw.choice((40, 400, 100_000))
    holder[key] = "@here@"
    opened, closed = draw.choice((("[", "]"), ('{"a":', "}"), ('{"join":["@.a",', "]}")))
    inner = opened * levels + "0" + closed * levels
    return json.dumps(document).replace('"@here@"', inner, 1).encode()


def _renamed_key(data: bytes, draw: random.Random) -> bytes:
    document = json.loads(data)
    holder, key = draw.choice([(h, k) for h, k in _places(document) if isinstance(h, dict)])
    holder[draw.choice(("\ud800", "", "__class__", "x" * 300, key + " "))] = holder.pop(key)
    return _dump(document, draw)


def _hostile_graph(data: bytes, draw: random.Random) -> bytes:
    """The model with one thing of it changed, written as ONNX's own package writes it."""
    model = onnx.load_model_from_string(data)
    graph = model.graph
    node = draw.choice(graph.node)
    tensor = draw.choice(graph.initializer)
    way = draw.randrange(12)
    if way == 0:
        node.op_type = draw.choice(("Expand", "Tile", "Loop", "Range", "MatMul", "Concat", "Gather", "TopK", "Reshape"))
    elif way == 1 and node.input:
        names = (
            [t.name for t in graph.initializer]
            + [i.name for i in graph.input]
            + [o for n in graph.node for o in n.output]
        )
        node.input[draw.randrange(len(node.input))] = draw.choice(names)
    elif way == 2:
        node.attribute.append(helper.make_attribute("axis", draw.choice((0, -1, 7, -(2**63), 2**63 - 1))))
    elif way == 3:
        tensor.dims.append(draw.choice((1, 2, 0, -1, 2**31 - 1, 2**62)))
    elif way == 4 and tensor.dims:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice((0, 1, -1, 2**31 - 1, 2**62))
    elif way == 5:
        array = numpy_helper.to_array(tensor).copy().ravel()
        if len(array):
            choices = (
                (0, -1, 2**31, 2**62, -(2**63), 7) if array.dtype == np.int64 else (np.nan, np.inf, 1e38, 0, -1e38)
            )
            array[draw.randrange(len(array))] = draw.choice(choices)
        tensor.raw_data = array.tobytes()
    elif way == 6:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=draw.choice(("/etc/hostname", "manifest.json", "../x")))
    elif way == 7:
        del graph.node[draw.randrange(len(graph.node))]
    elif way == 8:
        graph.node.append(node)
    elif way == 9:
        port = draw.choice([*graph.input, *graph.output])
        port.type.tensor_type.shape.dim.add().dim_value = draw.choice((0, 1, -1, 2**31, 2**62))
    elif way == 10:
        model.opset_import[0].version = draw.choice((0, 1, 13, 18, 19, 20, 21, 2**31, -1))
    else:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.INTS and attribute.ints:
                attribute.ints[draw.randrange(len(attribute.ints))] = draw.choice(
                    (-1, 0, 1, 40, 2**31, 2**62, -(2**63))
                )
            elif attribute.type == onnx.AttributeProto.INT:
                attribute.i = draw.choice((-1, 0, 1, 5, 2**31, 2**62))
    return bytes(model.SerializeToString())


def judge(folder: Path) -> tuple[str, float]:
    """What becomes of a bundle: `runs` where it gives readings, else the BundleError's text; and CPU seconds.

    Any other exception goes through to the caller: that is the fault which is looked for.
    """
    began = time.process_time()
    said = "runs"
    try:
        monitor = load(folder)
        session = monitor.start()
        readings = [r for event in tiny_monitor.failing_run() for r in session.observe(event)]
        said = "runs" if readings else "runs, but reads no step"
    except BundleError as exc:
        said = f"refused: {exc}"
    if said.startswith("runs"):
        info(folder)
        try:
            monitor.drift_signal()
        except BundleError as exc:
            said = f"runs; {exc}"
    return said, time.process_time() - began
