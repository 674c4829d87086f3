"""What a spec may be: its schema, its size, and its regular expressions (RE2, so that no text makes one slow).

An adapter may come from anywhere, and opening one must take milliseconds: the bounds are three to twelve times what the
largest shipped adapter has. An adapter that an earlier release froze opens in every later one: its spec is lifted in
memory, one version at a time, before it is compiled. Its file, its bytes and its hash stay what they were, so a monitor
still knows the adapter it was trained through. A migration may only respell: the lifted spec must give the records that
the old one gave (kept files in `tests/golden/adapters_v*` hold it to that).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import re2

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
            texts = value if isinstance(value, dict) else (value,)
            longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
            if longest > MOST_TEXT:
                raise AdapterError(
                    f"{where}: a text or name of {longest:,} characters; at most {MOST_TEXT:,} are read. {_ADVICE}"
                )
            if isinstance(value, dict):
                below.extend(value.values())
                named = [value[name] for name in _NAMES_OF_PATTERNS if name in value]
                patterns += sum(len(one) if isinstance(one, list) else 1 for one in named)
            elif isinstance(value, list | tuple):
                below.extend(value)
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


_ADVICE = "Make the spec smaller: the shipped ones stay far below."


PREFIX = "prefixguard/adapter/v"
#: The schema that this release compiles, and writes.
NEWEST = 1

Migration = Callable[[dict[str, Any]], dict[str, Any]]
#: From version n to the spec of version n + 1; whatever it is given it leaves unchanged. None is needed so far.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})


def schema_of(version: int) -> str:
    """How a version of the schema is written in a spec.

    >>> schema_of(1)
    'prefixguard/adapter/v1'
    """
    return f"{PREFIX}{version}"


def lift(
    spec: Mapping[str, Any], where: str, *, newest: int = NEWEST, migrations: Mapping[int, Migration] = MIGRATIONS
) -> dict[str, Any]:
    """The spec in the newest schema. where: the file it is from, for messages.

    AdapterError for a schema that is newer, unknown, or older than the oldest that can be lifted.
    """
    schema = spec.get("schema")
    number = schema.removeprefix(PREFIX) if isinstance(schema, str) and schema.startswith(PREFIX) else ""
    good = number.isascii() and number.isdigit() and len(number) < 6 and str(int(number)) == number
    version = int(number) if good else None
    if version is None or version > newest:
        raise AdapterError(
            f"{where}: schema {schema!r}; this release reads {schema_of(newest)!r}. "
            "A newer schema needs a newer release of prefixguard; anything else is no adapter."
        )
    lifted = dict(spec)
    while version < newest:
        step = migrations.get(version)
        if step is None:
            oldest = next((n for n in range(version, newest) if n in migrations), newest)
            raise AdapterError(
                f"{where}: schema {schema!r} is older than the oldest that this release reads ({schema_of(oldest)!r}). "
                "Induce the adapter again from samples (prefixguard induce-adapter), or respell it by "
                "docs/adapter-spec.md."
            )
        version += 1
        lifted = {**step(lifted), "schema": schema_of(version)}
    return lifted


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class Pattern:
    """A compiled RE2 expression over text that may hold lone surrogates.

    >>> Pattern(r"score: (\\d)", "here").group("my score: 7", 1)
    '7'
    """

    __slots__ = ("_compiled", "_numbers", "groups", "names", "source")

    def __init__(self, source: Any, where: str) -> None:
        """source: the expression. where: place in the adapter, for the message. AdapterError if it is not RE2."""
        if not isinstance(source, str):
            raise AdapterError(f"{where}: a regular expression is a string, not {type(source).__name__}.")
        if len(source) > MOST_PATTERN:
            raise AdapterError(f"{where}: a regular expression of more than {MOST_PATTERN:,} characters. Shorten it.")
        try:
            self._compiled = re2.compile(source.encode("utf-8"), _OPTIONS)
        except (re2.error, UnicodeEncodeError) as exc:
            reason = exc.args[0] if exc.args else exc
            if isinstance(reason, bytes):
                reason = reason.decode("utf-8", "replace")
            raise AdapterError(
                f"{where}: {source!r} is not a regular expression of RE2 ({reason}). "
                "RE2 has no look-around and no back-references; everything else works as usual."
            ) from exc
        if self._compiled.programsize > MOST_PROGRAM:
            raise AdapterError(
                f"{where}: the regular expression {source[:80]!r} compiles to more than {MOST_PROGRAM:,} instructions. "
                "Repeat less often."
            )
        self.source = source
        self.groups: int = self._compiled.groups
        groups = self._compiled.groupindex.items()
        self._numbers: dict[str, int] = {name.decode() if isinstance(name, bytes) else name: n for name, n in groups}
        self.names: tuple[str, ...] = tuple(self._numbers)

    def found(self, text: str) -> bool:
        """Does it match anywhere in the text?"""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None

    def group(self, text: str, which: int | str) -> str | None:
        """Text of one group of the first match; None where there is no match or the group took no part."""
        match = self._compiled.search(text.encode("utf-8", "replace"))
        if match is None:
            return None
        found: bytes | None = match.group(self._numbers[which] if isinstance(which, str) else which)
        return None if found is None else found.decode("utf-8", "replace")

    def at_start(self, text: str) -> tuple[int, dict[str, str]] | None:
        """A match at the very start: its length in bytes of UTF-8 and the named groups that took part."""
        match = self._compiled.match(text.encode("utf-8", "replace"))
        return None if match is None else (match.end(), self._named(match))

    def without(self, text: str) -> str:
        """The text with everything that matches taken out."""
        data = text.encode("utf-8", "replace")
        pieces = []
        end = 0
        for match in self._compiled.finditer(data):
            pieces.append(data[end : match.start()])
            end = match.end()
        if not pieces:
            return text
        pieces.append(data[end:])
        return b"".join(pieces).decode("utf-8", "replace")

    def all_spans(self, data: bytes) -> list[tuple[int, int, dict[str, str]]]:
        """Every match in UTF-8 bytes: start, end, named groups."""
        return [(match.start(), match.end(), self._named(match)) for match in self._compiled.finditer(data)]

    def _named(self, match: Any) -> dict[str, str]:
        named = {name: match.group(number) for name, number in self._numbers.items()}
        return {name: text.decode("utf-8", "replace") for name, text in named.items() if text is not None}
