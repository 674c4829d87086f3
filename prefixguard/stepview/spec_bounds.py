"""How large a spec may be: an adapter may come from anywhere, and opening one must take milliseconds, not minutes.

The bounds are three to twelve times what the largest shipped adapter has.
"""

from __future__ import annotations

from typing import Any

from prefixguard.errors import AdapterError

#: Of the file in bytes; of lists and objects inside one another; of all values; of one text in code points.
MOST_BYTES, MOST_DEPTH, MOST_VALUES, MOST_TEXT = 1 << 18, 48, 5000, 10_000
#: Regular expressions of a spec: how many, code points of one, and instructions of its compiled program.
MOST_PATTERNS, MOST_PATTERN, MOST_PROGRAM = 64, 2500, 20_000
#: Places that a spec reads; and comparisons of these with what is hidden, waived or the outcome's.
MOST_READINGS, MOST_COMPARISONS = 10_000, 500_000
_NAMES_OF_PATTERNS = ("re", "cut", "head", "section", "tail")


def check_bytes(n: int, where: str) -> None:
    """AdapterError for a file that is too large to be parsed."""
    if n > MOST_BYTES:
        raise AdapterError(f"{where}: an adapter of {n:,} bytes; at most {MOST_BYTES:,} are read. {_ADVICE}")


def check_bounds(spec: Any, where: str) -> None:
    """AdapterError for a spec that is nested too deep, has too many parts, or texts that are too long."""
    waiting, depth, values, patterns = [spec], 0, 0, 0
    while waiting:  # level by level, so that no nesting is too deep for this check itself
        below: list[Any] = []
        for value in waiting:
            if isinstance(value, dict):
                _check_texts(value, where)
                below.extend(value.values())
                named = [value[name] for name in _NAMES_OF_PATTERNS if name in value]
                patterns += sum(len(one) if isinstance(one, list) else 1 for one in named)
            elif isinstance(value, list | tuple):
                below.extend(value)
            elif isinstance(value, str):
                _check_texts((value,), where)
        values += len(waiting)
        depth += 1
        for what, n, most in (
            ("values", values + len(below), MOST_VALUES),
            ("regular expressions", patterns, MOST_PATTERNS),
            ("levels", depth, MOST_DEPTH),
        ):
            if n > most:
                raise AdapterError(f"{where}: an adapter of more than {most:,} {what}. {_ADVICE}")
        waiting = below


def _check_texts(texts: Any, where: str) -> None:
    for text in texts:
        if isinstance(text, str) and len(text) > MOST_TEXT:
            raise AdapterError(
                f"{where}: a text or name of {len(text):,} characters; at most {MOST_TEXT:,} are read. {_ADVICE}"
            )


_ADVICE = "Make the spec smaller: the shipped ones stay far below."
