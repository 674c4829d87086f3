"""Sparse rows against scikit-learn's, look-ups in crowded buckets, and the file."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import plain_encoder
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from prefixguard.encoder import Vocabulary, fit_vocabulary, ngram_names, ngrams, tokenize
from prefixguard.errors import BundleError, BundleVersionError
from prefixguard.stepview import FIELDS, StepRecord, serialize


def analyser(text: str) -> list[str]:
    """scikit-learn decodes documents before it hands them over."""
    return plain_encoder.names(text.encode())


def fitted(documents: Sequence[bytes], max_features: int = 10_000) -> Vocabulary:
    return fit_vocabulary(lambda: enumerate(documents), max_features=max_features, min_tasks=1)[0]


@settings(deadline=None)
@given(st.lists(plain_encoder.records, min_size=1, max_size=8), plain_encoder.records)
@example([plain_encoder.record(result="a a a b", status="")], plain_encoder.record(result="a b unheard"))
@example([plain_encoder.record(result="a", status="")], plain_encoder.record(status=""))
def test_rows_equal_those_of_scikit_learn(records: Sequence[StepRecord], unseen: StepRecord) -> None:
    """Given the same analyser: same columns, same idf, same rows, to float32 (scikit-learn computes in float64)."""
    documents = [serialize(record) for record in records]
    if not any(plain_encoder.names(document) for document in documents):
        return  # scikit-learn refuses an empty vocabulary
    theirs = TfidfVectorizer(analyzer=analyser, smooth_idf=True, norm="l2", dtype=np.float64)
    theirs.fit(documents)
    ours = fitted(documents)
    assert list(ours.terms) == theirs.get_feature_names_out().tolist()
    np.testing.assert_array_equal(ours.idf, theirs.idf_.astype(np.float32))
    for document in [*documents, serialize(unseen)]:
        row = ours.encode(tokenize(document))
        dense = np.zeros(len(ours))
        dense[row.indices] = row.values
        assert (np.diff(row.indices) > 0).all() and (row.values > 0).all()
        assert row.indices.dtype == np.int64 and row.values.dtype == np.float32
        # idf is kept in float32: a relative error of 2^-24 in each factor, and in the value itself
        np.testing.assert_allclose(dense, theirs.transform([document]).toarray()[0], rtol=2.5e-7, atol=1e-12)


@given(st.lists(plain_encoder.records, min_size=1, max_size=8), st.integers(1, 30))
@settings(deadline=None)
def test_the_terms_are_the_most_frequent(records: Sequence[StepRecord], max_features: int) -> None:
    """The counts are those of the plain analyser; among equally frequent terms the alphabet decides."""
    documents = [serialize(record) for record in records]
    counts = Counter(name for document in documents for name in plain_encoder.names(document))
    expected = sorted(counts, key=lambda name: (-counts[name], name))[:max_features]
    assert fitted(documents, max_features).terms == tuple(sorted(expected))


def test_the_counts_of_the_chosen_are_those_of_scikit_learn() -> None:
    """scikit-learn breaks ties by no stated order, so the counts are compared, not the names."""
    rng = np.random.default_rng(3)
    documents = [
        serialize(plain_encoder.record(result=" ".join(f"w{i}" for i in rng.zipf(1.4, 30) % 300))) for _ in range(60)
    ]
    counts = Counter(name for document in documents for name in plain_encoder.names(document))
    theirs = TfidfVectorizer(analyzer=analyser, max_features=200).fit(documents)
    ours = fitted(documents, 200)
    assert sorted(counts[t] for t in ours.terms) == sorted(counts[t] for t in theirs.get_feature_names_out())


@pytest.mark.parametrize("field", range(len(FIELDS)))
def test_a_pair_over_a_border_is_not_the_bigram_it_looks_like(field: int) -> None:
    """The vocabulary knows `a b` within each field; a record that says `a` in one and `b` in the next has no bigram."""
    both = [b"".join(bytes([tag]) + b"a b" for tag in range(1, len(FIELDS) + 1))]
    vocabulary = fitted(both)
    texts = [b""] * len(FIELDS)
    texts[field], texts[(field + 1) % len(FIELDS)] = b"a", b"b"
    document = b"".join(bytes([tag]) + text for tag, text in enumerate(texts, 1))
    found = {vocabulary.terms[i] for i in vocabulary.encode(tokenize(document)).indices}
    assert found == {f"{FIELDS[field]}:a", f"{FIELDS[(field + 1) % len(FIELDS)]}:b"}


def crowded() -> tuple[Vocabulary, list[str], np.ndarray]:
    """A vocabulary of so many terms that hundreds of buckets hold several; names and hashes of all its n-grams."""
    tokens = tokenize(serialize(plain_encoder.record(result=" ".join(f"w{i}" for i in range(12_000)))))
    names, hashes = ngram_names(tokens), ngrams(tokens)
    kept = sorted(range(0, len(names), 2), key=lambda i: names[i])
    return Vocabulary([names[i] for i in kept], hashes[kept], np.ones(len(kept), np.float32)), names, hashes


def test_terms_that_share_a_bucket_are_told_apart() -> None:
    vocabulary, _, hashes = crowded()
    in_bucket = Counter((hashes >> np.uint64(48)).tolist())
    assert max(in_bucket.values()) >= 4  # else this test shows nothing
    column = {name: i for i, name in enumerate(vocabulary.terms)}
    for low in range(0, 12_000, 40):
        document = serialize(plain_encoder.record(status="", result=" ".join(f"w{i}" for i in range(low, low + 40))))
        expected = sorted(column[name] for name in plain_encoder.names(document) if name in column)
        row = vocabulary.encode(tokenize(document))
        assert row.indices.tolist() == expected
        np.testing.assert_allclose(row.values, 1 / np.sqrt(len(expected)), rtol=1e-6)


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), unique=True, max_size=40),
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40) | st.integers(2**64 - 5, 2**64 - 1), max_size=40),
)
@example([], [0])
@example([0], [0, 0])
@example([1], [0])
@example([2**64 - 1], [2**64 - 1, 2**64 - 2, 0])
@example(list(range(20)), list(range(25)))
def test_look_ups_find_what_a_dictionary_finds(known: list[int], asked: list[int]) -> None:
    """Small hashes share one bucket, 0 is the value of an empty entry, the highest is in the last bucket."""
    terms = [f"t{i:03}" for i in range(len(known))]
    vocabulary = Vocabulary(terms, np.array(known, np.uint64), np.ones(len(known), np.float32))
    column = {h: i for i, h in enumerate(known)}
    found = vocabulary._look_up(np.array(asked, np.uint64))
    assert sorted(found.tolist()) == sorted(column[h] for h in asked if h in column)


@pytest.mark.parametrize("n", [65_534, 65_535, 65_536, 70_000])
def test_large_vocabularies(n: int) -> None:
    """As many terms as 16 bits hold, one fewer and more."""
    rng = np.random.default_rng(n)
    known = rng.permutation(np.unique(rng.integers(0, 2**64 - 1, n + 9, dtype=np.uint64)))[:n]
    vocabulary = Vocabulary([str(i) for i in range(n)], known, np.ones(n, np.float32))
    asked = np.concatenate((known[::7], rng.integers(0, 2**64 - 1, 5_000, dtype=np.uint64)))
    assert sorted(vocabulary._look_up(asked).tolist()) == list(range(0, n, 7))


@pytest.mark.parametrize("vocabulary", [Vocabulary([], np.empty(0, np.uint64), np.empty(0, np.float32)), crowded()[0]])
def test_an_empty_row_is_normal(vocabulary: Vocabulary) -> None:
    for nothing in (plain_encoder.record(status=""), plain_encoder.record(tool="unheard", status="")):
        row = vocabulary.encode(tokenize(serialize(nothing)))
        assert (row.indices.shape, row.values.shape) == ((0,), (0,))
        assert (row.indices.dtype, row.values.dtype) == (np.int64, np.float32)


@given(st.lists(plain_encoder.records, max_size=5))
def test_what_is_written_comes_back(records: Sequence[StepRecord]) -> None:
    documents = [serialize(record) for record in records]
    vocabulary = fitted(documents)
    data = vocabulary.to_bytes()
    back = Vocabulary.from_bytes(data)
    assert back.to_bytes() == data == fitted(documents).to_bytes()
    assert back.terms == vocabulary.terms
    for document in documents:
        here, there = vocabulary.encode(tokenize(document)), back.encode(tokenize(document))
        np.testing.assert_array_equal(here.indices, there.indices)
        np.testing.assert_array_equal(here.values, there.values)


DATA = fitted(
    [serialize(plain_encoder.record(result="error: not found", tool="get")), b"\x01a\x02\x03\x04\x05\x06\x07"]
)
N = 8
SIZE = len(DATA.to_bytes())
HEADER = 24


def patched(at: int, new: bytes) -> bytes:
    data = DATA.to_bytes()
    return data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "v.bin: not a vocabulary file. Train or export the bundle again."),
        (b"PGVOCAB\x02" + b"\x00" * 16, "v.bin: not a vocabulary file. Train or export the bundle again."),
        (DATA.to_bytes()[:-1], f"v.bin: {SIZE - 1} bytes do not hold 8 terms. Train or export the bundle again."),
        (DATA.to_bytes() + b"x", f"v.bin: {SIZE + 1} bytes do not hold 8 terms. Train or export the bundle again."),
        (patched(12, b"\x09"), f"v.bin: {SIZE} bytes do not hold 9 terms. Train or export the bundle again."),
        (patched(8, b"\x00"), "v.bin: damaged header. Train or export the bundle again."),
        (patched(HEADER + 8 * N, b"\x63"), "v.bin: damaged term table. Train or export the bundle again."),
        (patched(HEADER + 8, DATA.to_bytes()[HEADER : HEADER + 8]), "v.bin: damaged term table. "),
        (patched(HEADER + 12 * N, b"\x00\x00\xc0\x7f"), "v.bin: damaged weights. Train or export the bundle again."),
        (patched(HEADER + 12 * N, b"\x00\x00\x00\x00"), "v.bin: damaged weights. Train or export the bundle again."),
        (patched(SIZE - 1, b"\xff"), "v.bin: damaged term text. Train or export the bundle again."),
        (patched(SIZE - 1, b"\n"), "v.bin: damaged term table. Train or export the bundle again."),
        (patched(HEADER + 16 * N, b"z"), "v.bin: damaged term table. Train or export the bundle again."),
    ],
)
def test_damage_is_named(data: bytes, sentence: str) -> None:
    assert len(DATA) == N
    with pytest.raises(BundleError) as caught:
        Vocabulary.from_bytes(data, "v.bin")
    assert str(caught.value).startswith(sentence)


def test_a_newer_tokenizer_is_refused() -> None:
    with pytest.raises(BundleVersionError) as caught:
        Vocabulary.from_bytes(patched(8, b"\x02"), "v.bin")
    assert str(caught.value) == "v.bin: tokenizer version 2, this release reads up to 1. Upgrade prefixguard."


@given(st.integers(0, SIZE - 1), st.integers(0, 255), st.integers(0, SIZE))
@settings(max_examples=300)
def test_no_damage_raises_anything_else(at: int, byte: int, length: int) -> None:
    try:
        Vocabulary.from_bytes(patched(at, bytes([byte]))[:length])
    except BundleError as exc:
        assert str(exc).startswith("vocabulary.bin: ")
