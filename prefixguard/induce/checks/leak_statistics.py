"""Leaks that only many runs show: a field of a single step that tells the outcome far better than fields do elsewhere.

Features are words, pairs of words, whole short values and emptiness of every field (as a monitor reads them, cut to
their budgets), at the first record, the last and the one before. A feature separates by (1 + |a - b|) / 2, where a and
b are the shares of successes and of failures that have it: the area under the ROC curve of a yes-or-no feature.

A finding needs FEWEST runs of each outcome, a separation of SEPARATES, a chance below LEVEL after Bonferroni's
correction for all features tried (Fisher's exact test), and, at the last record, a jump
of JUMP over the record before. There it is an error for a feature of last records alone (see `is_ordinary`), and for a
status that tells more than the result it should be judged from; otherwise a warning. Where the agent's last act differs
between the outcomes (one that stops by itself, one that is cut off), the separation must hold among runs with the same
last tool. What the agent itself wrote can be known live: that too is a warning. Runs count as independent; repeats of a
task are not, which the high bars are for.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.evaluation.leaks import own_results, says_harness
from prefixguard.induce.checks.evidence import Evidence, SeenRun
from prefixguard.induce.checks.finding import Finding, Severity
from prefixguard.induce.checks.waivers import Suspicion
from prefixguard.stepview import FIELDS, StepRecord

FEWEST = 12
SEPARATES = 0.80
SEPARATES_FIRST = 0.90
JUMP = 0.15
LEVEL = 0.01
#: Words of a field that are looked at, half from each end.
MOST_WORDS = 600
_NAMED = 4
#: Features whose earlier records are looked at, and records of a run that are.
_TRIED = 50
_EARLIER = 12
_WORDS = re.compile(r"\w+|[^\w\s]")

#: Who wrote a field: what the agent was given can be tampered with by the harness.
GIVEN = ("observation", "result", "status")
OWN = ("tool", "action", "arguments")
#: What a user or an environment says while the run goes on.
IN_COURSE = ("observation", "result")


@dataclass(frozen=True, slots=True)
class Told:
    """A feature and what it tells. chance: p value, corrected. won: is it a sign of success?"""

    feature: str
    separates: float
    chance: float
    won: bool


def find_by_statistics(evidence: Evidence) -> Iterator[Suspicion]:
    """Findings over sampled runs with a known outcome; none below FEWEST of each."""
    runs = [seen for seen in evidence.seen if seen.won is not None and seen.run.records]
    if not _enough(runs):
        return
    several = _Ends([seen for seen in runs if len(seen.run.records) > 1])
    if not _enough(several.runs):
        return
    given = FIELDS if evidence.spec.get("view") == "raw" else GIVEN  # the control has all text in one field
    rest = max([0.5, *(told[0].separates for told in (several.before(field) for field in (*GIVEN, *OWN)) if told)])
    evidence.figures["separates_before_last"] = round(rest, 4)
    for field in (*GIVEN, *OWN):
        yield from _jumps(several, field, rest, field in given)
        yield from _from_start(field, [seen.run.records[0] for seen in several.runs], several.outcomes, field in given)


def _enough(runs: Sequence[SeenRun]) -> bool:
    won = sum(bool(seen.won) for seen in runs)
    return min(won, len(runs) - won) >= FEWEST


class _Ends:
    """Runs of two records and more, and what fields tell at their last record and at the one before."""

    def __init__(self, runs: list[SeenRun]) -> None:
        self.runs = runs
        self.outcomes = [bool(seen.won) for seen in runs]
        self._told: dict[tuple[str, int], list[Told]] = {}

    def last(self, field: str) -> list[Told]:
        return self._at(field, -1)

    def before(self, field: str) -> list[Told]:
        return self._at(field, -2)

    def at(self, position: int) -> list[StepRecord]:
        return [seen.run.records[position] for seen in self.runs]

    def _at(self, field: str, position: int) -> list[Told]:
        if (field, position) not in self._told:
            self._told[field, position] = _tell(self.at(position), field, self.outcomes)
        return self._told[field, position]

    def separation(self, feature: str, field: str, position: int) -> float:
        """What a feature tells at this record, chance or not."""
        has, n = [0, 0], [0, 0]
        for record, won in zip(self.at(position), self.outcomes, strict=True):
            n[won] += 1
            has[won] += feature in features(getattr(record, field))
        return (1 + abs(has[True] / n[True] - has[False] / n[False])) / 2

    def own(self, told: Sequence[Told]) -> frozenset[str]:
        """Features of results that are one tool's own (see `evaluate.leaks.own_results`)."""
        return own_results((seen.run.records for seen in self.runs), [one.feature for one in told], features)

    def is_ordinary(self, feature: str, field: str) -> bool:
        """Do records before the last have it too, and are the last records of one side like those before them?

        A harness that ends a run at its first success makes honest fields tell at the end: what came back is good or
        bad as it was all along. A verdict is a thing of the last record.
        """
        last, earlier = [[0, 0], [0, 0]], [[0, 0], [0, 0]]  # [won][how many, how many have it]
        for seen, won in zip(self.runs, self.outcomes, strict=True):
            for record in (*seen.run.records[:-1][-_EARLIER:], seen.run.records[-1]):
                tally = last if record is seen.run.records[-1] else earlier
                tally[won][0] += 1
                tally[won][1] += feature in features(getattr(record, field))
        if sum(has for _, has in earlier) < 0.02 * sum(n for n, _ in earlier):
            return False
        changes = [abs(last[won][1] / last[won][0] - earlier[won][1] / earlier[won][0]) for won in (0, 1)]
        return min(changes) <= JUMP


def _jumps(ends: _Ends, field: str, rest: float, is_given: bool) -> Iterator[Suspicion]:
    told = [one for one in ends.last(field) if one.separates >= SEPARATES]
    if not told:
        return
    every_step = [one for one in ends.before(field) if one.separates >= SEPARATES_FIRST]
    if every_step and is_given:
        best = every_step[0]
        in_course = field in IN_COURSE and not any(says_harness(one.feature) for one in every_step)
        what = f"the {field} of the last record but one tells the outcome: {_named(every_step)} (0.5 is nothing)."
        numbers = {"separates": best.separates, "p": best.chance, "runs": len(ends.runs)}
        remedy = "No step should tell so much by itself: see what writes it, and whether a live run has it."
        level: Severity = "warning" if in_course else "error"
        yield Suspicion(Finding("leaks.every_step", level, what, field, numbers, remedy))
        return
    if is_given:
        told = [one for one in told if _holds_within(one, ends.at(-1), field, ends.outcomes)]
    jumping = [one for one in told if one.separates - ends.separation(one.feature, field, -2) >= JUMP]
    if not jumping:
        return
    severity: Severity = "warning"
    own: frozenset[str] = frozenset()
    if is_given and jumping[0].separates >= rest + JUMP / 2:
        if field == "status":  # judged from what came back, it tells what that tells; set by a verifier, more
            by_result = [one.separates for one in ends.last("result")[:1]]
            told_more = jumping if jumping[0].separates > max([0.5, *by_result]) + 0.02 else []
        else:
            told_more = [one for one in jumping[:_TRIED] if not ends.is_ordinary(one.feature, field)]
            if field == "result" and not any(says_harness(one.feature) for one in told_more):
                own = ends.own(told_more)
                told_more = [one for one in told_more if one.feature not in own]
        if told_more:
            severity, jumping = "error", told_more
    best = jumping[0]
    was = ends.separation(best.feature, field, -2)
    what = (
        f"the {field} of the last record tells the outcome: {_named(jumping)}; before it, {was:.2f} (0.5 is nothing)."
    )
    if not is_given:
        what += " The agent wrote it, so a live monitor sees it too, but no sooner than the end."
    elif severity == "warning":
        what += (
            " It is the own result of the tool that is called, as a live monitor sees it."
            if best.feature in own
            else " Earlier records are like it: the harness may end a run at its first success or failure."
        )
    numbers = {"separates": best.separates, "before": was, "elsewhere": rest, "p": best.chance, "runs": len(ends.runs)}
    remedy = (
        "See what writes it: cut a verdict, set a step's status from that step's own result, skip the harness's entry."
    )
    yield Suspicion(Finding("leaks.last_step", severity, what, field, numbers, remedy))


def _from_start(field: str, first: list[StepRecord], outcomes: list[bool], is_given: bool) -> Iterator[Suspicion]:
    told = [one for one in _tell(first, field, outcomes) if one.separates >= SEPARATES_FIRST - 0.05]
    if not told:
        return
    best = told[0]
    severity: Severity = "error" if is_given and best.separates >= SEPARATES_FIRST else "warning"
    if field == "result" and not any(says_harness(one.feature) for one in told):
        severity = "warning"  # what the first call brought, as a live monitor sees it
    what = f"the {field} of the first record tells how the run will end: {_named(told)} (0.5 is nothing)."
    remedy = "Nothing that is known at the start tells so much, but a verdict or a name: read less there."
    numbers = {"separates": best.separates, "p": best.chance, "runs": len(outcomes)}
    yield Suspicion(Finding("leaks.first_step", severity, what, field, numbers, remedy))


def _named(told: list[Told]) -> str:
    sides = ("failure", "success")
    return ", ".join(f"{one.feature} ({sides[one.won]}, {one.separates:.2f})" for one in told[:_NAMED])


def features(text: str) -> set[str]:
    """Words, pairs of neighbouring words, the whole value if it is short, emptiness."""
    if not text:
        return {"(empty)"}
    found = _WORDS.findall(text[:8000].lower())
    if len(found) > MOST_WORDS:
        found = found[: MOST_WORDS // 2] + found[-MOST_WORDS // 2 :]
    seen = {repr(word) for word in found}
    seen.update(f"'{a} {b}'" for a, b in pairwise(found))
    if len(text) <= 40:
        seen.add(f"is {text!r}")
    return seen


def _tell(records: Sequence[StepRecord], field: str, outcomes: list[bool], least: float = 0.65) -> list[Told]:
    """What each feature of a field tells, the most telling first; only beyond chance and `least`."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    n = [0, 0]
    for record, success in zip(records, outcomes, strict=True):
        n[success] += 1
        for feature in features(getattr(record, field)):
            counts[feature][success] += 1
    if min(n) < FEWEST:
        return []
    frequent = {feature: pair for feature, pair in counts.items() if sum(pair) >= FEWEST // 2}
    told = []
    for feature, (lost, won) in frequent.items():
        gap = won / n[True] - lost / n[False]
        separates = (1 + abs(gap)) / 2
        if separates < least:
            continue
        chance = min(1.0, len(frequent) * fisher(won, n[True], lost, n[False]))
        if chance < LEVEL:
            told.append(Told(feature, separates, chance, gap > 0))
    return sorted(told, key=lambda one: (-one.separates, len(one.feature), one.feature))


def _holds_within(one: Told, last: list[StepRecord], field: str, outcomes: list[bool]) -> bool:
    """Does the feature also separate runs whose last tool is the same? True where there are too few such."""
    strata: dict[str, list[list[int]]] = defaultdict(lambda: [[0, 0], [0, 0]])  # [won][has]
    for record, won in zip(last, outcomes, strict=True):
        strata[record.tool][won][one.feature in features(getattr(record, field))] += 1
    pairs = separated = 0.0
    for lost_counts, won_counts in strata.values():
        n_lost, n_won = sum(lost_counts), sum(won_counts)
        if min(n_lost, n_won) >= 3:
            gap = won_counts[1] / n_won - lost_counts[1] / n_lost
            pairs += n_lost * n_won
            separated += n_lost * n_won * gap
    every = sum(outcomes) * (len(outcomes) - sum(outcomes))
    if pairs < 0.02 * every:
        return True
    return (1 + abs(separated / pairs)) / 2 >= SEPARATES - 0.05


def fisher(a: int, n: int, b: int, m: int) -> float:
    """Two-sided chance that a of n and b of m differ so much: twice the smaller tail, at most 1.

    >>> round(fisher(3, 3, 0, 3), 3), fisher(1, 2, 1, 2)
    (0.1, 1.0)
    """
    have = a + b

    def log_ways(k: int) -> float:
        return _choose(n, k) + _choose(m, have - k) - _choose(n + m, have)

    low, high = max(0, have - m), min(n, have)
    up = math.fsum(math.exp(log_ways(k)) for k in range(a, high + 1))
    down = math.fsum(math.exp(log_ways(k)) for k in range(low, a + 1))
    return min(1.0, 2 * min(up, down))


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
