"""The tokenizer against a plain loop over bytes, and the n-grams against their names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import plain_encoder
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prefixguard.encoder import Tokens, ngram_names, ngrams, tokenize
from prefixguard.encoder.tokens import _TABLE
from prefixguard.stepview import FIELDS, StepRecord, serialize

PINNED_TOKENS = [
    0x122BAA21BDE978FB,
    0x7D2F38FCB2FF978,
    0x87CE446EE48A3C4C,
    0xA0A96E220302F8F0,
    0x7D2F38FCB2FF978,
]
PINNED_NGRAMS = [
    0x8012348976CDD831,
    0xBDEB90EA16403B0,
    0x4B1A6AA1C81989C9,
    0x318C56F2CCA9FD41,
    0x8499D73389A48593,
    0x65A81C9CE2432C14,
    0x5318A902090D5F31,
]

#: Documents with their seven tags and any bytes between them, also bytes that are not UTF-8.
documents = st.lists(
    st.binary(max_size=40).map(lambda raw: bytes(b for b in raw if not 1 <= b <= 7)), min_size=7, max_size=7
).map(lambda fields: b"".join(bytes([tag]) + field for tag, field in enumerate(fields, 1)))


def fields_of(tokens: Tokens) -> list[list[str]]:
    return [[tokens.text(i) for i in range(tokens.bounds[f], tokens.bounds[f + 1])] for f in range(len(FIELDS))]


def plain_fields(document: bytes) -> list[list[str]]:
    return [[word.decode("utf-8", "replace") for word in field] for field in plain_encoder.cut(document)]


@given(documents)
@example(b"\x01\x02\x03\x04\x05\x06\x07")
@example(b"\x01a\x02b\x03c\x04d\x05e\x06f\x07g")
@example(b"\x01a\x00b\x02\xff\x80\x03 \x7f \x04Z[z\x05@A\x06/0:9\x07_`")
def test_tokens_are_those_of_a_plain_loop(document: bytes) -> None:
    tokens = tokenize(document)
    assert fields_of(tokens) == plain_fields(document)
    assert tokens.bounds[0] == 0 and tokens.bounds[-1] == len(tokens.hashes) == len(tokens.starts)


@given(st.lists(documents, min_size=1, max_size=4))
def test_same_word_same_hash_and_only_then(several: Sequence[bytes]) -> None:
    """A token's hash depends on its lower-cased bytes alone: not on where it stands, nor in which field."""
    hash_of: dict[bytes, int] = {}
    for document in several:
        plain = [word for field in plain_encoder.cut(document) for word in field]
        for word, h in zip(plain, tokenize(document).hashes.tolist(), strict=True):
            assert hash_of.setdefault(word, h) == h
    assert len(set(hash_of.values())) == len(hash_of)


@pytest.mark.parametrize("length", [_TABLE - 1, _TABLE, _TABLE + 1, _TABLE + 8, 1_100_000])
def test_long_documents_hash_as_short_ones(length: int) -> None:
    """The tables of powers end somewhere; a document past their end is cut and hashed no differently."""
    word = b"Order_42"
    document = b"\x01\x02\x03\x04\x05\x06" + b" " * (length - 7 - 2 * len(word)) + word + b"\x07" + word
    assert len(document) == length
    tokens = tokenize(document)
    assert tokens.bounds == (0, 0, 0, 0, 0, 0, 1, 2)
    assert set(tokens.hashes.tolist()) == set(tokenize(b"\x01" + word + b"\x02\x03\x04\x05\x06\x07").hashes.tolist())


def test_one_token_of_a_megabyte() -> None:
    long = tokenize(b"\x01\x02\x03\x04\x05\x06" + b"xY" * 500_000 + b"\x07ok")
    assert long.bounds == (0, 0, 0, 0, 0, 0, 1, 2)
    assert long.text(0) == "xy" * 500_000


def test_a_document_has_all_its_tags() -> None:
    with pytest.raises(ValueError, match="not found"):
        tokenize(b"\x01agent\x02ls\x03{}")


def test_hashes_of_version_1_stay() -> None:
    """Vocabularies on disk hold these numbers: another hash needs another tokenizer version."""
    tokens = tokenize(serialize(plain_encoder.record(tool="get_user", result="Error: Größe 日本", status="error")))
    assert tokens.hashes.tolist() == PINNED_TOKENS
    assert ngrams(tokens).tolist() == PINNED_NGRAMS


@pytest.mark.parametrize("field", [name for name in FIELDS if name != "status"])
@given(record=plain_encoder.records, text=st.text() | plain_encoder.texts)
@example(record=plain_encoder.record(result="ok"), text="\x07error \x01agent \x06result:error\n result:error")
def test_no_text_makes_a_feature_of_another_field(field: str, record: StepRecord, text: str) -> None:
    """Whatever one field says, the features of the other fields stay as they are."""

    def of_others(r: StepRecord) -> list[str]:
        return [name for name in ngram_names(tokenize(serialize(r))) if not name.startswith(f"{field}:")]

    changed = replace(record, **{field: text})  # type: ignore[arg-type]
    assert of_others(changed) == of_others(record)
    assert len(tokenize(serialize(changed)).bounds) == len(FIELDS) + 1


@given(plain_encoder.records)
@example(plain_encoder.record())
@example(plain_encoder.record(status=""))
@example(plain_encoder.record(actor="a", tool="a", arguments="a", observation="a", action="a", result="a", status="a"))
def test_ngrams_stay_within_their_field(record: StepRecord) -> None:
    document = serialize(record)
    tokens = tokenize(document)
    assert ngram_names(tokens) == plain_encoder.names(document)
    assert len(ngrams(tokens)) == len(plain_encoder.names(document))


@given(st.lists(plain_encoder.records, min_size=1, max_size=4))
def test_same_name_same_hash_and_only_then(records: Sequence[StepRecord]) -> None:
    """So no n-gram over a border, of another field or of two words in one can pass for one of the vocabulary."""
    hash_of: dict[str, int] = {}
    for record in records:
        tokens = tokenize(serialize(record))
        for name, h in zip(ngram_names(tokens), ngrams(tokens).tolist(), strict=True):
            assert hash_of.setdefault(name, h) == h
    assert len(set(hash_of.values())) == len(hash_of)


@given(plain_encoder.records)
def test_tokenizing_changes_nothing_it_is_given(record: StepRecord) -> None:
    """And neither do the n-grams change the tokens."""
    document = serialize(record)
    tokens = tokenize(document)
    before = tokens.hashes.copy()
    first = ngrams(tokens)
    second = ngrams(tokens)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(tokens.hashes, before)
    assert tokens.document == document
