"""The statistics's law holds in every snapshot."""

from __future__ import annotations

import threading
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate.request_statistics import RequestCounts, RequestStatistics
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictOutcome

SAFE = AuditResult(Verdict(VerdictOutcome.SAFE), "k", False, 100, 10, True, 0.25, 2.0, 1, "raw")
ENDS = ("answer", "cache", "drop", "fail", "none")


@given(st.lists(st.sampled_from(ENDS), max_size=60))
def test_offered_is_the_sum_of_its_ends(ends: list[str]) -> None:
    statistics = RequestStatistics()
    for end in ends:
        statistics.offer()
        if end == "answer":
            statistics.answer(SAFE)
        elif end == "cache":
            statistics.cache(SAFE)
        elif end == "drop":
            statistics.drop("queue full")
        elif end == "fail":
            statistics.fail("timeout", SAFE)
    statistics.refuse("calls a run")
    told = statistics.snapshot()
    assert told.offered == len(ends) + 1
    assert (told.answered, told.cached, told.n_failed) == tuple(ends.count(e) for e in ("answer", "cache", "fail"))
    assert told.n_dropped == ends.count("drop") + 1
    assert told.pending == ends.count("none")
    spent = ends.count("answer") + ends.count("fail")
    assert (told.tokens_in, told.tokens_out, told.estimated, told.attempts) == (100 * spent, 10 * spent, spent, spent)
    assert (told.cost, told.seconds) == (0.25 * spent, 2.0 * spent)


def test_reasons_are_counted_apart_and_written_in_order() -> None:
    statistics = RequestStatistics()
    for reason in ("queue full", "closed", "queue full"):
        statistics.refuse(reason)
    statistics.offer()
    statistics.fail("timeout")
    told = statistics.snapshot().as_json()
    assert told["dropped_by_reason"] == {"closed": 1, "queue full": 2}
    assert (told["dropped"], told["failed_by_reason"], told["pending"]) == (3, {"timeout": 1}, 0)


def test_a_cost_that_is_not_known_is_said() -> None:
    statistics = RequestStatistics()
    for cost in (None, 0.5):
        statistics.offer()
        statistics.answer(replace(SAFE, cost=cost))
    told = statistics.snapshot()
    assert (told.cost, told.cost_unknown) == (0.5, 1)
    for sent in (True, False):  # sent, and nobody knows what it took; and one that waited for the very same one
        statistics.offer()
        statistics.fail("late", sent=sent)
    assert statistics.snapshot().cost_unknown == 2


def test_a_snapshot_is_of_one_moment() -> None:
    """While others count, no snapshot has ends without offers, and pending never passes the number of threads."""
    statistics = RequestStatistics()
    over = threading.Event()

    def work() -> None:
        for _ in range(3000):
            statistics.offer()
            statistics.answer(SAFE)
            statistics.refuse("x")

    seen: list[RequestCounts] = []

    def look() -> None:
        while not over.is_set():
            seen.append(statistics.snapshot())

    looker = threading.Thread(target=look)
    looker.start()
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    over.set()
    looker.join()
    assert seen and all(0 <= told.pending <= 4 for told in seen)
    last = statistics.snapshot()
    assert (last.offered, last.answered, last.n_dropped, last.pending) == (24000, 12000, 12000, 0)
