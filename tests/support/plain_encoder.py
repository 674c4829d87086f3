"""The tokenizer and the features of a step, written as plainly as possible: what the fast code must equal."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from hypothesis import strategies as st

from prefixguard.stepview import FIELDS, StepRecord

_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")


def cut(document: bytes) -> list[list[bytes]]:
    """Tokens of each field of a serialised record, lower-cased, byte by byte."""
    fields: list[list[bytes]] = []
    word = b""
    for byte in document:
        if 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122 or byte == 95 or byte >= 128:
            word += bytes([byte + 32 if 65 <= byte <= 90 else byte])
            continue
        if word:
            fields[-1].append(word)
            word = b""
        if 1 <= byte <= len(FIELDS):
            fields.append([])
    if word:
        fields[-1].append(word)
    return fields


def words(text: str) -> list[bytes]:
    """Tokens of one field's text."""
    return [found.lower() for found in _TOKEN.findall(text.encode("utf-8", "replace"))]


def names(document: bytes) -> list[str]:
    """Unigrams, then bigrams, of each field, named as the vocabulary names them. This is the analyser."""
    fields = [[word.decode("utf-8", "replace") for word in field] for field in cut(document)]
    unigrams = [f"{name}:{word}" for name, field in zip(FIELDS, fields, strict=True) for word in field]
    bigrams = [
        f"{name}:{first} {second}"
        for name, field in zip(FIELDS, fields, strict=True)
        for first, second in itertools.pairwise(field)
    ]
    return unigrams + bigrams


def record(index: int = 1, **fields: str) -> StepRecord:
    """A record of which only some fields are filled."""
    blank = dict.fromkeys(("actor", "agent", "tool", "arguments", "observation", "action", "result"), "")
    return StepRecord(index=index, **{**blank, "status": "ok", **fields})  # type: ignore[arg-type]


#: Words that come again, differ in case only, hold digits, tags, controls, or bytes above ASCII.
_WORDS = ["a", "b", "A", "ab", "id7", "ID7", "x_1", "42", "order", "ß", "日本", "e", "E9", "{", '"q":']
_WORDS += ["\x01", "\x05a", "\x00", "b\x02", "\x7f", "\ud800", "\u0085", "\u00a0"]

#: Short text out of few words, so that words, calls and results repeat.
texts = st.lists(st.sampled_from(_WORDS), max_size=6).map(" ".join) | st.text(max_size=8)

tools = st.sampled_from(["", "respond", "search", "Search", "get_user", "a b", "??"]) | st.text(max_size=3)

records: st.SearchStrategy[StepRecord] = st.builds(
    StepRecord,
    index=st.just(1),
    actor=st.sampled_from(["agent", "user", ""]),
    agent=texts,
    tool=tools,
    arguments=texts,
    observation=texts,
    action=texts,
    result=texts,
    status=st.sampled_from(["ok", "error", "unknown"]),
)


def runs(max_size: int = 12) -> st.SearchStrategy[Sequence[StepRecord]]:
    """Runs of short records."""
    return st.lists(records, max_size=max_size)
