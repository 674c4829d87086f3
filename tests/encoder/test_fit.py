"""Which n-grams become terms: counts, tasks, order of the documents, and counting within a bound."""

import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import plain_encoder
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefixguard.encoder import FitReport, Vocabulary, fit, fit_vocabulary
from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord, serialize


def result(text: str) -> bytes:
    return serialize(plain_encoder.record(result=text, status=""))


def test_a_term_must_occur_in_enough_tasks() -> None:
    """`anna` is frequent, but all of it in two tasks; `rare` is in three. A task that goes on counts once."""
    tasks = ["anna anna paid", "anna paid", "anna paid rare", "paid rare", "rare"]
    of_task = [0, 0, 1, 2, 3]
    documents = [(task, result(text)) for task, text in zip(of_task, tasks, strict=True)]
    assert fit_vocabulary(lambda: documents, min_tasks=3)[0].terms == ("result:paid", "result:rare")
    assert "result:anna" in fit_vocabulary(lambda: documents, min_tasks=2)[0].terms
    assert "result:anna anna" in fit_vocabulary(lambda: documents, min_tasks=1)[0].terms


@given(st.lists(st.tuples(st.integers(0, 3), plain_encoder.records), max_size=10), st.integers(1, 4))
@settings(deadline=None)
def test_tasks_are_counted_as_sets_of_them(labelled: list[tuple[int, StepRecord]], min_tasks: int) -> None:
    documents = [(task, serialize(record)) for task, record in sorted(labelled, key=lambda pair: pair[0])]
    tasks_of: dict[str, set[int]] = {}
    for task, document in documents:
        for name in plain_encoder.names(document):
            tasks_of.setdefault(name, set()).add(task)
    expected = sorted(name for name, tasks in tasks_of.items() if len(tasks) >= min_tasks)
    assert list(fit_vocabulary(lambda: documents, min_tasks=min_tasks)[0].terms) == expected


@pytest.mark.parametrize("flush", [1, 7, 1 << 21])
@given(st.lists(st.lists(plain_encoder.records, max_size=3), max_size=5), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_neither_order_nor_batches_matter(flush: int, tasks: list[list[StepRecord]], shuffle: random.Random) -> None:
    """Any order of the tasks, and of the documents within one, with counts merged early or late."""

    def fitted(order: Sequence[int]) -> tuple[bytes, FitReport]:
        documents = [(number, document) for number, i in enumerate(order) for document in in_order[i]]
        vocabulary, report = fit_vocabulary(lambda: documents, max_features=12, min_tasks=2)
        return vocabulary.to_bytes(), report

    in_order = [[serialize(record) for record in records] for records in tasks]
    once = fitted(range(len(tasks)))
    for records in in_order:
        shuffle.shuffle(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_FLUSH", flush)
        assert fitted(shuffle.sample(range(len(tasks)), len(tasks))) == once


def zipf_documents(n: int, seed: int = 1) -> list[bytes]:
    """Documents with a few frequent words and a long tail of words that occur once."""
    rng = np.random.default_rng(seed)
    return [result(" ".join(f"w{i}" for i in rng.zipf(1.3, 40))) for _ in range(n)]


def counts_of(documents: Sequence[bytes]) -> Counter[str]:
    return Counter(name for document in documents for name in plain_encoder.names(document))


def test_pruning_keeps_the_frequent_and_says_what_it_may_have_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 1,500 of some 15,000 n-grams the top 50 are the same."""
    monkeypatch.setattr(fit, "_FLUSH", 400)
    documents = zipf_documents(400)
    exact, report = fit_vocabulary(lambda: enumerate(documents), max_features=50, min_tasks=1)
    counts = counts_of(documents)
    assert report == FitReport(documents=400, distinct=len(counts), dropped_below=0)
    pruned, report = fit_vocabulary(lambda: enumerate(documents), max_features=50, min_tasks=1, max_distinct=1_500)
    assert report.distinct <= 1_500 and report.documents == 400
    assert 0 < report.dropped_below < sorted(counts.values())[-50]
    assert set(pruned.terms) == set(exact.terms)


@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 5))
@example(1, 5, 0)
@settings(deadline=None, max_examples=40)
def test_only_what_occurred_at_most_that_often_is_dropped(max_distinct: int, flush: int, seed: int) -> None:
    """The promise of the report, also for a word that comes back again and again, once between two prunings."""
    documents = zipf_documents(20, seed)
    documents = [document + b" again" for document in documents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_FLUSH", flush)
        vocabulary, report = fit_vocabulary(
            lambda: enumerate(documents), max_features=10_000, min_tasks=1, max_distinct=max_distinct
        )
    assert report.distinct <= max_distinct
    frequent = {name for name, n in counts_of(documents).items() if n > report.dropped_below}
    assert frequent <= set(vocabulary.terms)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the text in ten times the distinct n-grams needs no more memory than a bounded table."""

    def documents(n: int) -> Iterator[tuple[int, bytes]]:
        for i in range(n):
            yield i, result(" ".join(f"d{i}w{j}" for j in range(50)))

    def peak(n: int) -> int:
        tracemalloc.start()
        try:
            _, report = fit_vocabulary(lambda: documents(n), max_features=10, min_tasks=2, max_distinct=5_000)
            assert report.distinct <= 5_000 and report.dropped_below > 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    monkeypatch.setattr(fit, "_FLUSH", 5_000)
    peak(200)
    assert peak(2_000) < 1.1 * peak(200)


def test_no_documents_and_no_terms() -> None:
    vocabulary, report = fit_vocabulary(list, min_tasks=1)
    assert (len(vocabulary), report) == (0, FitReport(0, 0, 0))
    assert Vocabulary.from_bytes(vocabulary.to_bytes()).terms == ()
    vocabulary, report = fit_vocabulary(lambda: [(0, result("a b"))], min_tasks=2)
    assert (len(vocabulary), report) == (0, FitReport(1, 3, 0))


@pytest.mark.parametrize("option", ["max_features", "min_tasks", "max_distinct"])
def test_options_out_of_range(option: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fit_vocabulary(list, **{option: 0})  # type: ignore[arg-type]
    assert str(caught.value) == f"{option} is 0; it must be at least 1."
