"""What a path of an adapter can see at one moment."""

from __future__ import annotations

from typing import Any, Final, Protocol


class _Missing:
    """The value of a path that leads nowhere. Not null: null is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def is_present(value: Any) -> bool:
    """Is there something: not absent, not null, not an empty text, list or object?"""
    return not (value is MISSING or value is None or value == "" or value == [] or value == {})


def describe(value: Any) -> str:
    """What kind of thing a value is, for messages."""
    if value is MISSING:
        return "absent"
    if value is None:
        return "null"
    kinds = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), type(value).__name__)


class Companions(Protocol):
    """Files that stand beside the one being read, seen through the folder of runs and never outside it."""

    def read(self, beside: str, relative: str, as_text: bool) -> Any:
        """The decoded file at `relative` to the file `beside`; MISSING where there is none."""

    def raw(self, beside: str, relative: str) -> bytes | None:
        """Its bytes; None where there is none."""


class Scope:
    """The roots of paths: `%` document, `$` run, `@` event or element, `^` and `^^` what it stands in.

    One object a parser, changed in place: a path is a closure over nothing but its own steps.
    """

    __slots__ = (
        "companion_missing",
        "companions",
        "document",
        "element",
        "event",
        "fields",
        "file",
        "grandparent",
        "index",
        "key",
        "open_calls",
        "parent",
        "position",
        "run",
        "turn",
        "values",
    )

    def __init__(self) -> None:
        self.document: Any = MISSING
        self.run: Any = MISSING
        self.event: Any = MISSING
        self.parent: Any = MISSING
        self.grandparent: Any = MISSING
        self.element = 0  # position of the element that `each` looks at
        self.index: int = -1  # position of the event in its run, from 0
        self.key: Any = MISSING  # name under which the run stands in an object of runs
        self.position: int = 0  # position of the run in its document, from 1
        self.file: str | None = None  # path of the document inside the folder of runs, with forward slashes
        self.companions: Companions | None = None
        self.companion_missing = False  # a companion file was asked for and is not there
        self.values: dict[str, str] | None = None  # id, task: run values that a companion's name may hold
        self.fields: dict[str, str] | None = None  # fields of the record that a status rule judges
        self.turn: Any = None  # what tells the agent's turns apart, where the spec says so
        self.open_calls = 0  # calls that wait for a result
