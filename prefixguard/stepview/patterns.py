"""Regular expressions of an adapter: RE2, so that no text can make one slow."""

from __future__ import annotations

from typing import Any

import re2

from prefixguard.errors import AdapterError
from prefixguard.stepview.spec_bounds import MOST_PATTERN, MOST_PROGRAM

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
        self._numbers: dict[str, int] = {
            name.decode("utf-8") if isinstance(name, bytes) else name: number
            for name, number in self._compiled.groupindex.items()
        }
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
        named = {}
        for name, number in self._numbers.items():
            value = match.group(number)
            if value is not None:
                named[name] = value.decode("utf-8", "replace")
        return named
