"""Recent counts against a dictionary that forgets, also where entries read like one another."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_context import FirstIn

from prefixguard.context.recent import MOST, RecentCounts

#: Few bytes, so that keys stand at wrong places in the table: across two entries, or over the counts.
keys = st.lists(st.sampled_from([0, 1, 256]), min_size=8, max_size=8).map(
    lambda parts: int.from_bytes(bytes(part % 256 for part in parts), "little")
) | st.integers(0, 2**64 - 1)


@given(st.lists(keys, max_size=80), st.integers(1, 6))
def test_equal_to_a_dictionary_that_forgets(asked: Sequence[int], size: int) -> None:
    fast, plain = RecentCounts(size), FirstIn(size)
    for key in asked:
        assert fast.get(key) == plain.seen(key)
        assert fast.bump(key) == plain.seen(key)
        plain.add(key)


@pytest.mark.parametrize("offset", range(1, 10))
def test_bytes_across_two_entries_are_no_entry(offset: int) -> None:
    """A key made of the end of one entry and the beginning of the next."""
    counts = RecentCounts(8)
    first, second = 0x1122334455667788, 0x99AABBCCDDEEFF01
    counts.bump(first)
    counts.bump(second)
    table = first.to_bytes(8, "little") + b"\x01\x00" + second.to_bytes(8, "little") + b"\x01\x00"
    between = int.from_bytes(table[offset : offset + 8], "little")
    assert counts.get(between) == 0
    assert counts.bump(between) == 0
    assert (counts.get(between), counts.get(first), counts.get(second)) == (1, 1, 1)


def test_counts_stop() -> None:
    counts = RecentCounts(2)
    assert [counts.bump(7) for _ in range(MOST + 50)] == [*range(MOST), *[MOST] * 50]
    assert counts.get(7) == MOST


def test_what_takes_the_place_of_a_high_count_begins_at_one() -> None:
    counts = RecentCounts(1)
    for _ in range(300):
        counts.bump(7)
    assert [counts.get(7), counts.bump(8), counts.get(8), counts.get(7)] == [300, 0, 1, 0]
