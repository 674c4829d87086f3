"""The Bloom filter: never forgets, and errs as seldom as it says."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from plain_encoder import record

from prefixguard.context import bloom
from prefixguard.encoder import tokenize
from prefixguard.stepview import serialize


def hashes(words: Sequence[str]) -> NDArray[np.uint64]:
    return tokenize(serialize(record(result=" ".join(words), status=""))).hashes


def empty() -> NDArray[np.uint8]:
    return np.zeros(bloom.N_BYTES, np.uint8)


def held(bits: NDArray[np.uint8], h: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return ~bloom.missing(bits, bloom.places(h))


def test_at_capacity_one_word_in_a_hundred_is_mistaken() -> None:
    """11,900 words in, measured on 200,000 others, numbers and ordinary words, as the tokenizer hashes them."""
    bits = empty()
    known = hashes([f"word{i}" for i in range(bloom.CAPACITY // 2)] + [str(i) for i in range(bloom.CAPACITY // 2)])
    for h in np.array_split(known, 100):
        bloom.insert(bits, bloom.places(h))
    assert held(bits, known).all()
    others = hashes([f"other{i}" for i in range(100_000)] + [str(i) for i in range(500_000, 600_000)])
    mistaken = held(bits, others).mean()
    # (1 - exp(-6 * 11,900 / 114,688))^6 = 0.0099 in theory; one hash fewer, or 100 words more, would be above 0.01.
    assert 0.009 < mistaken <= 0.0105, f"{mistaken:.4f} of unknown words are taken for known ones"


words = st.lists(st.text("abc7_", min_size=1, max_size=3), max_size=60)


@given(words, words)
def test_equal_to_a_set_of_words(known: list[str], asked: list[str]) -> None:
    """With so few words a mistake is as good as impossible."""
    bits = empty()
    bloom.insert(bits, bloom.places(hashes(known)))
    assert held(bits, hashes(known)).all()
    assert held(bits, hashes(asked)).tolist() == [word in known for word in asked]


@given(words)
def test_twice_in_is_once_in(known: list[str]) -> None:
    """Whatever the order and the batches, the bits are the same."""
    h = hashes(known)
    once, twice = empty(), empty()
    bloom.insert(once, bloom.places(h))
    for part in (h[::2], h[1::2], h[::-1]):
        bloom.insert(twice, bloom.places(part))
    np.testing.assert_array_equal(once, twice)
    assert int(np.unpackbits(once).sum()) <= bloom.N_HASHES * len(set(known))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60))
def test_positions_are_those_of_double_hashing(known: list[int]) -> None:
    """In Python's own integers: bit = ((low + i * (high | 1)) mod 2^32) * bits / 2^32."""
    expected = [
        [((h + i * (h >> 32 | 1)) % 2**32 * 8 * bloom.N_BYTES) >> 32 for h in known] for i in range(bloom.N_HASHES)
    ]
    at, bit = bloom.places(np.array(known, np.uint64))
    assert (8 * at + np.log2(bit).astype(np.int64)).tolist() == expected
