"""Identifiers in few bytes: what a live run keeps of them, to know them again."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from prefixguard.stepview.scope import MISSING
from prefixguard.stepview.values import as_id

#: An identifier of plain ASCII is kept as it is up to this length; of all others a digest is kept.
LONGEST_KEPT = 40
_LARGEST = 1 << 53

#: What tells turns apart: a plain value, equal to another as JSON values are.
Turn = str | int | float | bool | None


def fingerprint(text: str) -> int:
    """64 bits of a hash of the text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def shortened(name: str) -> str:
    """The identifier itself, or a digest of 128 bits where it is long or not ASCII.

    >>> shortened("call_7"), len(shortened("x" * 1000))
    ('call_7', 33)
    """
    if len(name) <= LONGEST_KEPT and name.isascii():
        return name
    return "#" + hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()


def short_id(value: Any) -> str | None:
    """A value as an identifier of bounded length; None where it is none."""
    name = as_id(value)
    return None if name is None else shortened(name)


def short_turn(value: Any) -> Turn:
    """A value that tells turns apart, in bounded size; None where it is none (absent, null, a list, an object)."""
    if value is MISSING or value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and -_LARGEST < value < _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return shortened(value) if isinstance(value, str) else short_id(value)
