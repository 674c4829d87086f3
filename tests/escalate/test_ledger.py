"""The ledger's law holds in every snapshot."""

from __future__ import annotations

import threading
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate.judged import Judged
from prefixguard.escalate.ledger import Counts, Ledger
from prefixguard.escalate.verdict import Verdict, VerdictOutcome

SAFE = Judged(Verdict(VerdictOutcome.SAFE), "k", False, 100, 10, True, 0.25, 2.0, 1, "raw")
ENDS = ("answer", "cache", "drop", "fail", "none")


@given(st.lists(st.sampled_from(ENDS), max_size=60))
def test_offered_is_the_sum_of_its_ends(ends: list[str]) -> None:
    ledger = Ledger()
    for end in ends:
        ledger.offer()
        if end == "answer":
            ledger.answer(SAFE)
        elif end == "cache":
            ledger.cache(SAFE)
        elif end == "drop":
            ledger.drop("queue full")
        elif end == "fail":
            ledger.fail("timeout", SAFE)
    ledger.refuse("calls a run")
    told = ledger.snapshot()
    assert told.offered == len(ends) + 1
    assert (told.answered, told.cached, told.n_failed) == tuple(ends.count(e) for e in ("answer", "cache", "fail"))
    assert told.n_dropped == ends.count("drop") + 1
    assert told.pending == ends.count("none")
    spent = ends.count("answer") + ends.count("fail")
    assert (told.tokens_in, told.tokens_out, told.estimated, told.attempts) == (100 * spent, 10 * spent, spent, spent)
    assert (told.cost, told.seconds) == (0.25 * spent, 2.0 * spent)


def test_reasons_are_counted_apart_and_written_in_order() -> None:
    ledger = Ledger()
    for reason in ("queue full", "closed", "queue full"):
        ledger.refuse(reason)
    ledger.offer()
    ledger.fail("timeout")
    told = ledger.snapshot().as_json()
    assert told["dropped_by_reason"] == {"closed": 1, "queue full": 2}
    assert (told["dropped"], told["failed_by_reason"], told["pending"]) == (3, {"timeout": 1}, 0)


def test_a_cost_that_is_not_known_is_said() -> None:
    ledger = Ledger()
    for cost in (None, 0.5):
        ledger.offer()
        ledger.answer(replace(SAFE, cost=cost))
    told = ledger.snapshot()
    assert (told.cost, told.cost_unknown) == (0.5, 1)
    for sent in (True, False):  # sent, and nobody knows what it took; and one that waited for the very same one
        ledger.offer()
        ledger.fail("late", sent=sent)
    assert ledger.snapshot().cost_unknown == 2


def test_a_snapshot_is_of_one_moment() -> None:
    """While others count, no snapshot has ends without offers, and pending never passes the number of threads."""
    ledger = Ledger()
    over = threading.Event()

    def work() -> None:
        for _ in range(3000):
            ledger.offer()
            ledger.answer(SAFE)
            ledger.refuse("x")

    seen: list[Counts] = []

    def look() -> None:
        while not over.is_set():
            seen.append(ledger.snapshot())

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
    last = ledger.snapshot()
    assert (last.offered, last.answered, last.n_dropped, last.pending) == (24000, 12000, 12000, 0)
