"""Named numpy arrays as an .npz file: the same arrays give the same bytes, and reading trusts nothing.

numpy's own writer stamps the time of day into the file; its reader takes the size of an array from the array's own
header. Here members are stored, never compressed, with a fixed time; and a header that promises more than its member
holds is refused before anything is allocated. Never pickled.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from prefixguard.errors import BundleError, DataError

_KINDS = "biufU"  # bool, integers, floats, text; no objects, no structures
#: What zipfile and numpy raise for bytes that are not theirs.
_DAMAGE = (zipfile.BadZipFile, ValueError, TypeError, EOFError, OverflowError, NotImplementedError, RuntimeError)
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
            member = io.BytesIO()
            npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=_EPOCH)
            info.create_system = 3  # unix, on every system
            archive.writestr(info, member.getvalue())
    return out.getvalue()


def arrays_from_bytes(data: bytes, where: str) -> dict[str, NDArray[Any]]:
    """Read what `arrays_to_bytes` wrote; arrays are read-only. Raises BundleError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {}
            for info in archive.infolist():
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > len(data):
                    raise ValueError(f"member {info.filename!r} is compressed")
                if not info.filename.endswith(".npy"):
                    raise ValueError(f"member {info.filename!r} is not an array")
                arrays[info.filename.removesuffix(".npy")] = _array(archive.read(info))
            return arrays
    except _DAMAGE as exc:
        raise BundleError(f"{where}: not a file of arrays ({exc}). Train or export the bundle again.") from exc


def _array(data: bytes) -> NDArray[Any]:
    """One .npy member, its size checked against what its header says."""
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"array format {version}")
    shape, fortran, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in _KINDS or fortran:
        raise ValueError(f"array of dtype {dtype}")
    count = 1
    for n in shape:
        count *= n
    start = stream.tell()
    if count * dtype.itemsize != len(data) - start:
        raise ValueError(f"an array of shape {shape} does not fill {len(data) - start} bytes")
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(data, dtype, count, start).reshape(shape)
