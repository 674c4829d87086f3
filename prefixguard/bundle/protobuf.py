"""A small strict reader of protobuf's wire format: every field is known, of its own wire type and not there twice.

A lax reader merges repeated messages, lets the last of two values win and skips what it does not know, so that two
readers may see two different files in the same bytes. Here whatever could be read in two ways is refused.
Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARINT, BYTES, FIXED32 = 0, 2, 5
_KINDS = {VARINT: "a number", BYTES: "bytes", FIXED32: "a float"}
_LONGEST = 10  # bytes of a varint of 64 bits
_RUN = 1 << 16  # bytes of a run that are looked at at once


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. wire: its wire type. most: how often it may stand there."""

    name: str
    wire: int
    most: int = 1


def fields(data: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Every field: number, wire type, and start and end of its content. Raises ValueError for what is no message."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            _, stop = varint(data, at, end)
        elif wire == BYTES:
            size, at = varint(data, at, end)
            stop = at + size
        elif wire == FIXED32:
            stop = at + 4
        else:
            raise ValueError(f"field {number} is of wire type {wire}, which nothing here has")
        if number == 0 or number > 999 or stop > end:
            raise ValueError("a field does not fit into the message that holds it")
        yield number, wire, at, stop
        at = stop


def message(data: memoryview, known: Mapping[int, Field], what: str) -> dict[str, list[Any]]:
    """The fields of a message by name, a list each: signed 64-bit numbers, bytes as views. Raises ValueError."""
    found: dict[str, list[Any]] = {field.name: [] for field in known.values()}
    for number, wire, at, stop in fields(data):
        field = known.get(number)
        if field is None:
            raise ValueError(f"{what} has field {number}, which the model of a step does not have")
        values = found[field.name]
        if wire != field.wire:
            raise ValueError(f"{what}: {field.name} is not {_KINDS[field.wire]}")
        if len(values) == field.most:
            raise ValueError(f"{what} has more than {field.most:,} of {field.name}")
        values.append(signed(varint(data, at, stop)[0]) if wire == VARINT else data[at:stop])
    return found


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """An unsigned number of 64 bits in its shortest spelling, and where it ends."""
    if at < end and data[at] < 0x80:  # nearly every one
        return data[at], at + 1
    value = shift = 0
    for i in range(at, min(at + _LONGEST, end)):
        byte = data[i]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and i > at) or value >> 64:
                break
            return value, i + 1
        shift += 7
    raise ValueError("a number is cut off, longer than 64 bits or not spelled in the shortest way")


def signed(value: int) -> int:
    """The number of two's complement."""
    return value - (1 << 64) if value >> 63 else value


def text(data: memoryview, what: str, most: int = 200) -> str:
    """A short text of UTF-8. Raises ValueError (UnicodeDecodeError is one)."""
    if len(data) > most:
        raise ValueError(f"{what} has {len(data):,} bytes, at most {most} are read")
    return bytes(data).decode("utf-8")


def packed(data: memoryview, most: int) -> list[int]:
    """Signed numbers one after another, as a packed field holds them."""
    values: list[int] = []
    at = 0
    while at < len(data):
        if len(values) == most:
            raise ValueError(f"a list has more than {most:,} numbers")
        value, at = varint(data, at, len(data))
        values.append(signed(value))
    return values


def run_of_numbers(data: memoryview, tag: int) -> tuple[NDArray[np.int64], int]:
    """The numbers of a field that stands many times in a row, each with its tag (one byte), and where they end."""
    parts: list[NDArray[np.int64]] = []
    at = 0
    while at < len(data):
        piece = np.frombuffer(data[at : at + _RUN], np.uint8)
        half = len(piece) // 2 * 2
        if (piece[:half:2] == tag).all() and (piece[1:half:2] < 0x80).all():  # one byte each, as nearly always
            parts.append(piece[1:half:2].astype(np.int64))
            at += half
            if half < 2:
                break
            continue
        ends = np.flatnonzero(piece < 0x80)
        ends = ends[: len(ends) // 2 * 2]  # of tag, number, tag, number, ...
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        is_mine = (piece[starts[::2]] == tag) & (starts[::2] == ends[::2])
        n = len(is_mine) if is_mine.all() else int(is_mine.argmin())
        first, last = starts[1 : 2 * n : 2], ends[1 : 2 * n : 2]
        if ((last - first >= _LONGEST) | ((piece[last] == 0) & (last > first))).any():
            raise ValueError("a number is longer than 64 bits or not spelled in the shortest way")
        values = (piece[first] & 0x7F).astype(np.uint64)
        longer = np.flatnonzero(last > first)
        for k in range(1, _LONGEST):
            byte = piece[first[longer] + k]
            if k == _LONGEST - 1 and (byte > 1).any():
                raise ValueError("a number is longer than 64 bits")
            values[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * k)
            longer = longer[last[longer] > first[longer] + k]
            if not len(longer):
                break
        parts.append(values.view(np.int64))
        if n == 0 or n < len(is_mine):
            at += int(last[-1]) + 1 if n else 0
            break
        at += int(last[-1]) + 1
    return np.concatenate(parts) if parts else np.empty(0, np.int64), at


def run_of_floats(data: memoryview, tag: int) -> tuple[NDArray[np.float32], int]:
    """As `run_of_numbers`, of floats."""
    parts: list[NDArray[np.float32]] = []
    at = 0
    while at < len(data):
        n = min(_RUN, len(data) - at) // 5
        piece = np.frombuffer(data[at : at + 5 * n], np.uint8).reshape(n, 5)
        is_mine = piece[:, 0] == tag
        mine = n if is_mine.all() else int(is_mine.argmin())
        parts.append(np.ascontiguousarray(piece[:mine, 1:]).view("<f4").ravel())
        at += 5 * mine
        if mine < n or n == 0:
            break
    return np.concatenate(parts) if parts else np.empty(0, np.float32), at
