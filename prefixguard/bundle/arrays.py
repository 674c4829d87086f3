"""Named numpy arrays as an .npz file: the same arrays give the same bytes, and reading trusts nothing.

numpy's own writer stamps the time of day into the file; its reader takes the size of an array from the array's own
header. Here members are stored, never compressed, with a fixed time; and a header that promises more than its member
holds is refused before anything is allocated. Never pickled.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from prefixguard.errors import BundleError, DataError

_KINDS = "biufU"  # bool, integers, floats, text; no objects, no structures
#: The head of a member: numpy's magic and version 1.0, length, and the one spelling that numpy writes.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<|][biufU][0-9]{1,6})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,15}, ?){0,32}[0-9]{0,15})\), \} *\n",
    re.DOTALL,
)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip can name


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The arrays as .npz, members in order of name. Raises DataError for an array that is not plain data."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            if array.dtype.kind not in _KINDS:
                raise DataError(f"array {name!r} has dtype {array.dtype}; a bundle holds numbers and text only.")
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            if array.dtype.kind == "U" and not _is_text(array.tobytes()):
                raise DataError(f"array {name!r} holds a text with half a character (a lone surrogate). Leave it out.")
            member = io.BytesIO()
            npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            info.create_system = 3  # unix, on every system
            archive.writestr(info, member.getvalue())
    return out.getvalue()


def arrays_from_bytes(data: bytes, where: str) -> dict[str, NDArray[Any]]:
    """Read what `arrays_to_bytes` wrote; arrays are read-only. Raises BundleError.

    Takes no more memory than the file has bytes: members that share bytes are counted as often as they are named.
    """
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(info.file_size for info in members) > len(data):
                raise ValueError("its members are larger than the file")
            for info in members:
                name = info.filename.removesuffix(".npy")
                if info.compress_type != zipfile.ZIP_STORED or not info.filename.endswith(".npy") or name in arrays:
                    raise ValueError(f"member {info.filename[:80]!r} is compressed, no array, or there twice")
                arrays[name] = _array(archive.read(info))
    except Exception as exc:  # zipfile's errors share no base: struct.error, KeyError, RuntimeError and more
        raise BundleError(
            f"{where}: not a file of arrays ({str(exc)[:200]}). Train or export the bundle again."
        ) from exc
    return arrays


def _array(data: bytes) -> NDArray[Any]:
    """One .npy member. Its header has one spelling, numpy's own; what it says is checked before it is believed."""
    found = _HEADER.match(data)
    if found is None or int.from_bytes(found[1], "little") != found.end() - 10:
        raise ValueError("a member is not an array of numbers or text of numpy's format 1.0")
    dtype = np.dtype(found[2].decode())
    shape = tuple(int(n) for n in found[3].replace(b" ", b"").split(b",") if n)
    held = len(data) - found.end()
    if math.prod(shape) * dtype.itemsize != held or dtype.itemsize == 0 or max(shape, default=0) > len(data):
        raise ValueError(f"an array of shape {shape} and type {dtype} does not fill {held} bytes")
    array = np.frombuffer(data, dtype, math.prod(shape), found.end()).reshape(shape)
    if dtype.kind == "U" and not _is_text(data[found.end() :]):
        raise ValueError("a text holds what is no character")
    return array


def _is_text(data: bytes) -> bool:
    """Whether four bytes each are characters; 0xD800 to 0xDFFF are halves of a pair."""
    points = np.frombuffer(data, "<u4")
    return not ((points > 0x10FFFF) | (points >> 11 == 0x1B)).any()
