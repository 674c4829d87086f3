from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.simulation.rng import Rng


def test_a_name_is_a_stream_for_ever() -> None:
    """Written once: other releases of Python must give the same."""
    rng = Rng("prefixguard")
    assert (rng.digits(6), rng.below(100), rng.pick("abcdef"), rng.some("abcdef", 3)) == (
        "536012",
        51,
        "e",
        ["a", "c", "e"],
    )


@given(name=st.text(), low=st.integers(-50, 50), width=st.integers(0, 50))
def test_numbers_stay_in_range(name: str, low: int, width: int) -> None:
    rng = Rng(name)
    assert 0 <= rng.below(7) < 7
    assert low <= rng.between(low, low + width) <= low + width
    assert len(rng.digits(8)) == 8
    assert sorted(rng.some("abcd", 9)) == list("abcd")


def test_weights_are_shares() -> None:
    rng = Rng("weights")
    drawn = [rng.weighted("abc", (1.0, 0.0, 3.0)) for _ in range(4000)]
    assert drawn.count("b") == 0
    assert 0.22 < drawn.count("a") / 4000 < 0.28
