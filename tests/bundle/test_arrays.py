"""Arrays come back equal, with the same bytes every time, and nothing hostile gets in."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from prefixguard.bundle.arrays import arrays_from_bytes, arrays_to_bytes
from prefixguard.errors import BundleError, DataError

DTYPES = st.sampled_from(["<f4", "<f8", "<i8", "<u8", "|b1", "|u1", "<U5"])
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


@given(st.dictionaries(st.text("abc_", min_size=1, max_size=5), ARRAYS, max_size=4))
def test_arrays_round_trip(arrays: dict[str, np.ndarray]) -> None:
    if any("\ud800" <= letter <= "\udfff" for array in arrays.values() for letter in "".join(map(str, array.ravel()))):
        with pytest.raises(DataError, match="half a character"):
            arrays_to_bytes(arrays)
        return
    data = arrays_to_bytes(arrays)
    back = arrays_from_bytes(data, "context.npz")
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
    assert arrays_to_bytes(dict(reversed(arrays.items()))) == data


def test_numpy_reads_what_we_write() -> None:
    data = arrays_to_bytes({"a": np.arange(6.0).reshape(2, 3)})
    with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
        np.testing.assert_array_equal(loaded["a"], np.arange(6.0).reshape(2, 3))


def test_big_endian_and_transposed_arrays_are_the_same_arrays() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert arrays_to_bytes({"a": array.astype(">f8")}) == arrays_to_bytes({"a": array})
    assert arrays_to_bytes({"a": np.asfortranarray(array)}) == arrays_to_bytes({"a": array})


def test_objects_are_refused() -> None:
    with pytest.raises(DataError, match="numbers and text only"):
        arrays_to_bytes({"a": np.array([{}], dtype=object)})


def archive(member: bytes, name: str = "a.npy", method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        z.writestr(name, member)
    return out.getvalue()


def npy(array: np.ndarray, **options: bool) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


GOOD = npy(np.zeros(3, np.float32))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        archive(GOOD, "a.txt"),
        archive(GOOD, method=zipfile.ZIP_DEFLATED),
        archive(b"\x93NUMPY"),
        archive(GOOD[:-1]),
        archive(GOOD.replace(b"(3,)", b"(9,)")),
        archive(npy(np.array([None, {}], dtype=object), allow_pickle=True)),
        archive(npy(np.zeros(2, np.dtype([("x", "f4")])))),
        archive(GOOD.replace(b"'<f4'", b"'''f'")),  # no Python literal
        archive(GOOD.replace(b"(3,)", b"((((")),
        archive(npy(np.zeros((0, 10**12), np.float32))),
        archive(GOOD.replace(b"<f4", b"<U0")),
        archive(npy(np.array(["ab"])).replace(b"a\0\0\0", b"\0\xd8\0\0")),  # half a character
        archive(npy(np.array(["ab"])).replace(b"a\0\0\0", b"\xff\xff\xff\xff")),
    ],
)
def test_hostile_archives_are_refused(data: bytes) -> None:
    with pytest.raises(BundleError, match=r"context\.npz: not a file of arrays"):
        arrays_from_bytes(data, "context.npz")


def test_members_that_share_their_bytes_are_counted_each_time() -> None:
    """A file of entries that all name one member would otherwise be read once an entry."""
    data = archive(npy(np.zeros(10_000, np.float32)))
    start = int.from_bytes(data[-6:-2], "little")
    entry, end = data[start:-22], bytearray(data[-22:])
    entries = b"".join(entry.replace(b"a.npy", f"{chr(97 + i)}.npy".encode()) for i in range(20))
    end[8:10] = end[10:12] = (20).to_bytes(2, "little")
    end[12:16] = len(entries).to_bytes(4, "little")
    with pytest.raises(BundleError, match="its members are larger than the file"):
        arrays_from_bytes(data[:start] + entries + bytes(end), "context.npz")


def test_an_array_that_promises_terabytes_is_refused_at_once() -> None:
    header = b"(3,), }".ljust(25)
    assert header in GOOD
    huge = GOOD.replace(header, b"(999999999999,), }".ljust(25))
    with pytest.raises(BundleError, match="does not fill"):
        arrays_from_bytes(archive(huge), "context.npz")


@given(st.binary(max_size=300))
def test_any_bytes_give_our_error(data: bytes) -> None:
    with pytest.raises(BundleError):
        arrays_from_bytes(data, "context.npz")


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flipped_bit_gives_arrays_or_our_error(at: int, bit: int) -> None:
    """Below the hash check there is still nothing that could raise anything else."""
    data = bytearray(arrays_to_bytes({"a": np.arange(20.0), "names": np.array(["x", "yy"])}))
    data[at % len(data)] ^= 1 << bit
    try:
        arrays_from_bytes(bytes(data), "context.npz")
    except BundleError as exc:
        assert "context.npz" in str(exc)
