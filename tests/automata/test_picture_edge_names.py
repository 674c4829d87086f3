"""Names on edges: the condition at their end is whole, whatever stands before it, and no two symbols have the same."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_summary import HOSTILE, KINDS

from prefixguard.automata.alphabets.tree_words import SplitTest as Asked
from prefixguard.automata.alphabets.tree_words import say
from prefixguard.automata.picture.edge_names import LINE_LETTERS, LINES, edge_names
from prefixguard.context import N_FEATURES

SCORES = (np.linspace(0, 1, 101), np.linspace(0, 1, 101))
BOUNDS = [
    (-math.inf, 3.5),
    (4.5, math.inf),
    (0.0123, 2.5),
    (-math.inf, 0.61803),
    (0.000753, math.inf),
    (-math.inf, 0.004),
]


@pytest.mark.parametrize("feature", range(N_FEATURES + 2))
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_the_condition_on_every_feature_survives(feature: int, low: float, high: float) -> None:
    gloss = say(Asked(feature, low, high), (), SCORES, short=True)
    (name,) = edge_names([gloss])
    assert len(name) <= LINES and max(map(len, name)) <= LINE_LETTERS
    shown = " ".join(name)
    assert re.findall(r"\d[\d.e+-]*", shown) == re.findall(r"\d[\d.e+-]*", gloss)


def test_two_sides_of_a_test_stay_apart() -> None:
    asked = [Asked(f, *ends) for f in range(N_FEATURES + 2) for ends in ((-math.inf, 0.5), (0.5, math.inf))]
    glosses = [say(test, (), SCORES, short=True) for test in asked]
    names = edge_names(glosses)
    assert len(set(names)) == len(asked)
    without = [name for name in names if re.match(r"\d+: ", name[0])]
    assert len(without) < len(names) / 3  # most need no number


def test_symbols_of_one_name_have_their_numbers_in_front() -> None:
    names = edge_names([kind[0] for kind in KINDS] + ["books"])
    assert names[5] == ("5: books",) and names[16] == ("16: books",) and names[8] == ("apologises",)


@pytest.mark.parametrize(
    ("gloss", "name"),
    [
        ("books", ("books",)),
        ("", ("symbol 0",)),
        ("7: tool calls so far >= 11", ("7: tool calls so far", "\u2265 11")),
        (
            "a long name of something that a person counted <= 2",
            ("\u2026of something that a", "person counted \u2264 2"),
        ),
        ("quite a long name of something without a number", ("quite a long name of", "something without a\u2026")),
        ("finds the web page of the company", ("finds the web page", "of the company")),
        ("asks for the opening hours of the whole company", ("asks for the opening", "hours of the whole\u2026")),
        ("step number >= 16, this step failed", ("step number \u2265 16,", "this step failed")),
        ("step number >= 16, failed steps so far = 0", ("step number \u2265 16",)),
        ("tool calls so far >= 16 (12)", ("tool calls so far", "\u2265 16 (12)")),
    ],
)
def test_names(gloss: str, name: tuple[str, ...]) -> None:
    assert edge_names([gloss]) == (name,)


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=80)), max_size=6))
def test_any_text_takes_two_lines(glosses: list[str]) -> None:
    for name in edge_names(glosses):
        assert 1 <= len(name) <= LINES and max(map(len, name)) <= LINE_LETTERS and "".join(name).isprintable()
