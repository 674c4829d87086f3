from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.lab.dice import Dice


def test_a_name_is_a_stream_for_ever() -> None:
    """Written once: other releases of Python must give the same."""
    dice = Dice("prefixguard")
    assert (dice.digits(6), dice.below(100), dice.pick("abcdef"), dice.some("abcdef", 3)) == (
        "536012",
        51,
        "e",
        ["a", "c", "e"],
    )


@given(name=st.text(), low=st.integers(-50, 50), width=st.integers(0, 50))
def test_numbers_stay_in_range(name: str, low: int, width: int) -> None:
    dice = Dice(name)
    assert 0 <= dice.below(7) < 7
    assert low <= dice.between(low, low + width) <= low + width
    assert len(dice.digits(8)) == 8
    assert sorted(dice.some("abcd", 9)) == list("abcd")


def test_weights_are_shares() -> None:
    dice = Dice("weights")
    drawn = [dice.weighted("abc", (1.0, 0.0, 3.0)) for _ in range(4000)]
    assert drawn.count("b") == 0
    assert 0.22 < drawn.count("a") / 4000 < 0.28
