"""Later steps inside earlier ones: pages that nest in each other, whole dumps in every event, rests that shrink."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from prefixguard.induce.checks.coverage import words
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.stepview import StepRecord

#: Words that follow each other and are compared; agent texts shorter than this say nothing.
GRAM = 4
#: Different later texts of the agent that there must be, and the share of them that one earlier field must hold.
FEWEST_TEXTS = 3
SHARE = 0.8
#: Grams of a text that are looked up.
_LOOKED_UP = 16
#: Share of runs that must show it.
RUNS = 0.2
#: Steps that a length must fall without a break to be a count-down.
FALLS = 4

_GIVEN = ("observation", "result")


def find_future(evidence: Evidence) -> Iterator[Suspicion]:
    """What the agent says later in what it was given before; lengths that shrink until the end."""
    for field in _GIVEN:
        told = [one for one in (_holds_later(seen, field) for seen in evidence.seen) if one is not None]
        if told and sum(told) >= max(RUNS * len(told), 1):
            n = sum(told)
            what = f"in {n} of {len(told)} runs the {field} of a step holds what the agent says in the steps after it."
            remedy = "Read only what belongs to the step: the first block of a page, the last entry of a history."
            yield Suspicion(Finding("leaks.future", "error", what, field, {"runs": n, "share": n / len(told)}, remedy))
        falls = [one for one in (_falls(seen.wide, field) for seen in evidence.seen) if one is not None]
        if len(falls) > 1 and sum(falls) > 0.6 * len(falls):
            n = sum(falls)
            what = f"in {n} of {len(falls)} runs the {field} gets shorter with every step: its length counts down."
            remedy = "It probably holds what is still to come; read only what belongs to the step."
            yield Suspicion(
                Finding("leaks.countdown", "error", what, field, {"runs": n, "share": n / len(falls)}, remedy)
            )


def _holds_later(seen: SeenRun, field: str) -> bool | None:
    """Is there a step whose field holds most of what the agent says later? None for runs too short to tell.

    Every gram knows the steps in which it stands as bits of a number, so that a run costs no more than its text.
    """
    where: dict[tuple[str, ...], int] = defaultdict(int)
    said: list[tuple[int, list[tuple[str, ...]]]] = []
    known: set[tuple[tuple[str, ...], ...]] = set()
    for at, record in enumerate(seen.wide):
        own = _grams(" ".join((record.action, record.arguments)))
        if own and not record.action:  # a call may copy what it passes on; its name then stands not beside it
            own = [*((word,) for word in words(record.tool)[:1]), *own]
        key = tuple(own)
        if own and key not in known:
            known.add(key)
            said.append((at, own))
        text = getattr(record, field)
        for gram in {*_grams(text), *((word,) for word in words(text))}:
            where[gram] |= 1 << at
    if len(said) <= FEWEST_TEXTS:
        return None
    later_texts: dict[int, int] = defaultdict(int)
    for at, own in said:
        step = max(1, len(own) // _LOOKED_UP)
        held = (1 << at) - 1  # steps before it
        for gram in own[::step][:_LOOKED_UP]:  # the first of a call is its tool's name
            held &= where.get(gram, 0)
            if not held:
                break
        while held:
            lowest = held & -held
            later_texts[lowest.bit_length() - 1] += 1
            held ^= lowest
    for at, held_texts in later_texts.items():
        later = sum(place > at for place, _ in said)
        if later >= FEWEST_TEXTS and held_texts >= SHARE * later:
            return True
    return False


def _grams(text: str) -> list[tuple[str, ...]]:
    found = words(text)
    pairs = list(pairwise(found))
    return [(*a, *b) for a, b in zip(pairs, pairs[2:], strict=False)]


def _falls(records: tuple[StepRecord, ...], field: str) -> bool | None:
    """Does the length fall at every step, down to the end? None for runs too short to tell."""
    lengths = [len(getattr(record, field)) for record in records]
    while lengths and lengths[-1] == 0:  # the last step may have nothing after it
        lengths.pop()
    if len(lengths) <= FALLS:
        return None
    return all(b < a for a, b in pairwise(lengths))
