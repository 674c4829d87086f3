"""The saved state of a parser, checked: what comes from outside has the expected shape before any of it is used."""

from __future__ import annotations

from typing import Any

from prefixguard.errors import TraceError

_LONGEST_TEXT = 1 << 17
_LONGEST_LIST = 4096
_MOST = 1 << 64

#: A type (`int`: not negative, below 2**64; `str`: valid text), a tuple of alternatives (values or shapes), a list with
#: the shape of its elements, or an object with the shape of each field.
Shape = Any


def checked(state: Any, shape: Shape, where: str = "state") -> Any:
    """The state itself, if it has the shape. TraceError that names the part which has not."""
    if not _fits(state, shape):
        if isinstance(shape, dict) and isinstance(state, dict) and state.keys() == shape.keys():
            for name, inner in shape.items():
                checked(state[name], inner, f"{where}.{name}")
        raise TraceError(
            f"{where} is not what a parser of this adapter saves. Restore the run with the adapter and the release "
            "that saved it."
        )
    return state


def _fits(value: Any, shape: Shape) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and len(value) <= _LONGEST_LIST and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        same = isinstance(value, dict) and value.keys() == shape.keys()
        return same and all(_fits(value[name], inner) for name, inner in shape.items())
    if shape is int:
        return type(value) is int and 0 <= value < _MOST
    if shape is str:
        return isinstance(value, str) and len(value) <= _LONGEST_TEXT and _is_valid(value)
    if isinstance(shape, type):
        return type(value) is shape
    return type(value) is type(shape) and bool(value == shape)


def _is_valid(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def checked_counts(state: Any, most: int, where: str) -> dict[str, int]:
    """Counts by name. TraceError where they are none, or more than `most`."""
    is_object = isinstance(state, dict) and len(state) <= most
    if not is_object or not all(_fits(name, str) and len(name) <= 100 and _fits(n, int) for name, n in state.items()):
        raise TraceError(f"{where} is not a list of counts. Restore the run from the state that was saved.")
    return dict(state)
