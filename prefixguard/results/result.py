"""The base of all results: blocks for people, from which the writers make text, and plain values for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from enum import Enum
from pathlib import Path
from typing import Any

from prefixguard.results.blocks import Block
from prefixguard.results.markdown import to_markdown
from prefixguard.results.text import to_text


class Result(ABC):
    """Base of the frozen dataclasses that functions of the workshop return.

    A result writes `blocks` once; the terminal, Markdown and the report are made of them. `as_json` gives its fields,
    and is overridden only where the keys are to differ from the fields.
    """

    __slots__ = ()

    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """What is shown to people, in order."""

    def as_json(self) -> dict[str, Any]:
        """Its fields as plain values: no NaN, no objects."""
        return fields_of(self)

    def to_json(self) -> str:
        """`as_json` as one line of JSON."""
        return json.dumps(self.as_json(), allow_nan=False, ensure_ascii=False)

    def to_text(self) -> str:
        """Plain text for a terminal, at most 118 columns wide, ending without a newline."""
        return to_text(self.blocks())

    def to_markdown(self) -> str:
        """The same as Markdown, ending in a newline; text from runs forms no markup."""
        return to_markdown(self.blocks())


def plain_value(value: Any) -> Any:
    """A value as JSON has it, at any depth: NaN and infinities as None, dataclasses as their fields.

    What has an `as_json` of its own is what that says. Keys become text, sets are sorted, paths and enumerations are
    their text.

    >>> plain_value({0.05: (float("nan"), 3), "at": Path("a/b")})
    {'0.05': [None, 3], 'at': 'a/b'}
    """
    match value:
        case Enum():
            return plain_value(value.value)
        case None | bool() | str() | int():
            return value
        case float():
            return float(value) if math.isfinite(value) else None
        case Mapping():
            return {f"{key:g}" if isinstance(key, float) else str(key): plain_value(one) for key, one in value.items()}
        case Set():
            return [plain_value(one) for one in sorted(value)]
        case list() | tuple():
            return [plain_value(one) for one in value]
        case Path():
            return value.as_posix()
        case _ if hasattr(value, "as_json"):
            return plain_value(value.as_json())
        case _ if hasattr(value, "tolist"):  # numpy's numbers and arrays
            return plain_value(value.tolist())
        case _ if dataclasses.is_dataclass(value):
            return fields_of(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form: give its numbers and texts instead")


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as plain values; those that are no part of its repr are left out."""
    return {one.name: plain_value(getattr(value, one.name)) for one in dataclasses.fields(value) if one.repr}
