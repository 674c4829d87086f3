"""A result says itself once; plain values have no NaN."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest

from prefixguard.results import Block, Result, TableBlock, Text, plain_value


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner(Result):
    value: float

    def blocks(self) -> tuple[Block, ...]:
        return (Text("inner"),)

    def as_json(self) -> dict[str, object]:
        return {"own": plain_value(self.value)}


@dataclass(frozen=True, slots=True)
class Outer(Result):
    inner: Inner
    at: dict[float, float]
    found: tuple[np.floating, ...]
    colour: Colour
    place: Path
    behind: object = field(default=None, repr=False)

    def blocks(self) -> tuple[Block, ...]:
        return (Text("outer"), TableBlock.of("Caption", ["", "x"], [["row", "1"]]))


def outer() -> Outer:
    return Outer(
        Inner(float("inf")), {0.1: float("nan"), 5.0: 1.0}, (np.float64(2.5),), Colour.RED, Path("a"), object()
    )


def test_fields_are_the_json_and_what_is_no_part_of_the_repr_is_left_out() -> None:
    assert outer().as_json() == {
        "inner": {"own": None}, "at": {"0.1": None, "5": 1.0}, "found": [2.5], "colour": "red", "place": "a",
    }  # fmt: skip
    assert json.loads(outer().to_json()) == outer().as_json()


def test_one_set_of_blocks_for_all_writers() -> None:
    assert outer().to_text() == "outer\n\nCaption\n     x\nrow  1"
    assert outer().to_markdown() == "outer\n\n**Caption**\n\n|  | x |\n| --- | ---: |\n| row | 1 |\n"


def test_an_object_without_a_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no plain form: give its numbers and texts instead"):
        plain_value({"a": [object()]})
    assert plain_value([{2, 1}, np.arange(2), True, None, 7]) == [[1, 2], [0, 1], True, None, 7]
