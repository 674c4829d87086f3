"""Single tokens that tell the outcome: at the last record, at the first, at any before the last.

What ends a run naturally is no leak: a call that submits, a trace of an error, a harness that stops at the first
success. An error is a token that (1) tells nearly every run, or speaks like a verdict and tells far more than chance,
(2) stands in what the agent was given, (3) tells much more than at the record before, and (4) is no thing of earlier
records whose last ones are like them. What a tool confirms in its own result (`confirmation`) is none, unless it speaks
as who judges the run; nor is, before the end, anything else that a result or an observation says in the run's course.
What the agent wrote is seen live: an error there is only what nearly surely tells, speaks as who judges the run, and
was not shown before, so that somebody else must have put it there. The rest is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL, in_words
from prefixguard.evaluation.leaks.confirmation import own_results, repeated, says_harness
from prefixguard.evaluation.leaks.features import Sign, Signs, features, seen_at, signs
from prefixguard.evaluation.leaks.finding import LeakFinding, shown
from prefixguard.evaluation.leaks.judged import Judged
from prefixguard.stepview import FIELDS

#: A separation from which something is said, for a verdict's words at the end, and for others and earlier.
SEPARATES = 0.80
SEPARATES_VERDICT = 0.75
SEPARATES_EARLY = 0.90
#: How much more must be told than at the record before.
JUMP = 0.15
#: Earlier records of a run that are compared with its last, and features tried for it.
_EARLIER = 12
_TRIED = 40
_NAMED = 3
_PERFECT = 0.99  # what the agent was given before the end separates outcomes so well in no honest runs
_IN_COURSE = ("observation", "result")  # what a user or an environment says while the run goes on
_LOOK = " Look whether it says so live, too."
_STATUSES = frozenset(("= ok", "= error", "= unknown", "ok", "error", "unknown"))


#: Where tokens are looked at: a position in the run, or anywhere before its last record.
_PLACES: Mapping[str, int | None] = {"last": -1, "before": -2, "first": 0, "anywhere": None}


@dataclass(frozen=True, slots=True)
class TokenTables:
    """What the tokens of each field tell at each place, by place and field."""

    signs: Mapping[tuple[str, str], Signs]

    @classmethod
    def of(cls, judged: Judged) -> TokenTables:
        """Tables of all fields. The features of a field are dropped before the next is read."""
        return cls(
            {
                (place, field): signs(seen_at(judged.runs, field, position), judged)
                for place, position in _PLACES.items()
                for field in FIELDS
            }
        )

    @property
    def tried(self) -> int:
        """How many tokens were tried, in all places."""
        return sum(one.tried for one in self.signs.values())

    def corrected(self, one: Sign) -> float:
        """The p-value after Bonferroni's correction for every token tried in the audit."""
        return min(1.0, one.p * self.tried)

    def beyond_chance(self, place: str, field: str, least: float) -> list[Sign]:
        """Tokens that separate by so much, and not by chance."""
        return [one for one in self.signs[place, field].found if one.separates >= least and self.corrected(one) < LEVEL]

    def finding(self, field: str, one: Sign, is_error: bool, says: str, **figures: float) -> LeakFinding:
        """A finding about a token of a field. says: where it tells, and what to make of it."""
        text = (
            f"{shown(one.feature)} in {field} tells {'success' if one.won else 'failure'}: {one.covers:.0%} of the "
            f"runs that end so have it, {one.purity:.0%} of those that have it end so (separation "
            f"{one.separates:.2f}, 0.5 is nothing; {one.tasks} tasks, {in_words(self.corrected(one))} after "
            f"{self.tried} tokens tried) {says}"
        )
        known = {"separates": one.separates, "purity": one.purity, "covers": one.covers, "p": self.corrected(one)}
        figures = {**known, "tasks": float(one.tasks), "tried": float(self.tried), **figures}
        return LeakFinding("token", field, one.feature, "error" if is_error else "warning", figures, text)


def find_tokens(judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    """At most one finding a field and place: the token that tells most."""
    for field in FIELDS:
        early = _early(field, judged, tables)
        yield from early
        yield from _last(field, judged, tables)
        if not any(one.severity == "error" for one in early):
            yield from _anywhere(field, judged, tables)


def _last(field: str, judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    before = tables.signs["before", field].separation
    found = [
        one
        for one in tables.beyond_chance("last", field, SEPARATES_VERDICT)
        if (one.separates >= SEPARATES or one.is_verdict_like or one.is_near_certain)
        and one.separates - before(one.feature) >= JUMP
    ][:_TRIED]
    if not found:
        return
    history = _History(field, [one.feature for one in found], judged)
    own = _own(field, found, judged)
    errors = [one for one in found if one.feature not in own and _is_leak(one, field, judged, history, tables)]
    best, *more = errors or found
    was, earlier, last = before(best.feature), history.earlier(best.feature), history.last(best.feature)
    ordinary = history.is_ordinary(best.feature)
    says = (
        f"in the last record; in the record before, {was:.2f}. {last:.0%} of last records have it, {earlier:.1%} of "
        "those before."
    )
    if more:
        says += f" So do {', '.join(shown(one.feature) for one in more[:_NAMED])}."
    if errors:
        says += " A live run has no such record: see what writes it."
    elif field not in judged.given:
        says += " The agent wrote it: a live monitor sees it too, but no sooner than the end."
    elif best.feature in own and not ordinary:
        says += f" It is the own result of the tool that is called, as a live monitor sees it.{_LOOK}"
    elif ordinary:
        says += " Earlier records are like it: the harness may end a run at its first success or failure."
    yield tables.finding(field, best, bool(errors), says, before=was, earlier_share=earlier, last_share=last)


def _is_leak(one: Sign, field: str, judged: Judged, history: _History, tables: TokenTables) -> bool:
    if field == "status" and one.feature in _STATUSES:
        # A step's status may be judged from its result; then it tells no more than that.
        by_result = max((other.separates for other in tables.signs["last", "result"].found), default=0.5)
        if one.separates <= by_result + 0.05 or not one.is_near_certain:
            return False
        return one.separates >= 0.95 or not history.is_ordinary(one.feature)
    if history.is_ordinary(one.feature) or not history.holds_within_tool(one.feature):
        return False
    if field in judged.given:
        return one.is_near_certain or one.is_verdict_like
    return history.earlier(one.feature) < 0.01 and _is_edited(one, field, judged)


def _is_edited(one: Sign, field: str, judged: Judged) -> bool:
    """Is it a judge's word in what the agent wrote, and nothing that it repeats?

    Of whole values their words and pairs are judged: an agent puts what it repeats into a frame of its own.
    """
    if not one.is_near_certain or one.feature.startswith("= ") or not says_harness(one.feature):
        return False
    return not repeated((run.records for run in judged.runs), one.feature, field, features)


def _own(field: str, found: Sequence[Sign], judged: Judged) -> frozenset[str]:
    """Features of results that are one tool's own, and do not speak as who judges a run."""
    wanted = [one.feature for one in found[:_TRIED] if not says_harness(one.feature)]
    if field != "result" or not wanted:
        return frozenset()
    return own_results((run.records for run in judged.runs), wanted, features)


def _early(field: str, judged: Judged, tables: TokenTables) -> list[LeakFinding]:
    found = tables.beyond_chance("first", field, SEPARATES_EARLY - 0.05)
    if not found:
        return []
    sure = [one for one in found if one.separates >= SEPARATES_EARLY or one.is_near_certain]
    if field == "result":  # the first call's, as a live monitor sees it
        sure = [one for one in sure if says_harness(one.feature)]
    if field not in judged.given:
        sure = [one for one in sure if _is_edited(one, field, judged)]
    says = "in the first record: nothing that is known at the start tells so much."
    says += _LOOK if field == "result" and not sure else ""
    return [tables.finding(field, (sure or found)[0], bool(sure), says, first=1.0)]


def _anywhere(field: str, judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    found = tables.beyond_chance("anywhere", field, SEPARATES_EARLY)
    if not found:
        return
    sure = [one for one in found if one.is_near_certain]
    own = _own(field, sure, judged)
    if field not in judged.given:
        verdicts = [one for one in sure if _is_edited(one, field, judged)]
    else:
        verdicts = [
            one
            for one in sure
            if says_harness(one.feature)
            or (field not in _IN_COURSE and one.is_verdict_like)
            or (one.separates >= _PERFECT and one.feature not in own)
        ]
    says = "anywhere before the last record."
    if not verdicts:
        says += " It may be what such runs do, or what only long runs reach; see what writes it."
        says += _LOOK if field in _IN_COURSE else ""
    yield tables.finding(field, (verdicts or found)[0], bool(verdicts), says)


class _History:
    """Where some features of a field stand in the last records and in up to _EARLIER of those before."""

    def __init__(self, field: str, names: Sequence[str], judged: Judged) -> None:
        self._column = {name: i for i, name in enumerate(names)}
        self._judged = judged
        self._has_last = np.zeros((len(judged), len(names)), dtype=np.bool_)
        self._has_earlier = np.zeros((len(judged), len(names)))
        self._n = np.array([len(run.records[:-1][-_EARLIER:]) for run in judged.runs])
        for i, run in enumerate(judged.runs):
            *earlier, last = (self._columns(getattr(record, field)) for record in run.records[-_EARLIER - 1 :])
            self._has_last[i, last] = True
            for columns in earlier:
                self._has_earlier[i, columns] += 1

    def _columns(self, text: str) -> list[int]:
        return [self._column[one] for one in self._column.keys() & features(text)]

    def last(self, feature: str) -> float:
        """Share of last records that have it."""
        return float(self._has_last[:, self._column[feature]].mean())

    def earlier(self, feature: str) -> float:
        """Share of earlier records that have it."""
        return float(self._has_earlier[:, self._column[feature]].sum() / self._n.sum())

    def is_ordinary(self, feature: str) -> bool:
        """Do records before the last have it too, and are the last records of one side like those before them?

        A harness that ends a run at its first success makes honest fields tell at the end: what came back is good or
        bad as it was all along. A verdict is a thing of the last record.
        """
        if self.earlier(feature) < 0.02:
            return False
        last, earlier = self._has_last[:, self._column[feature]], self._has_earlier[:, self._column[feature]]
        sides = self._judged.failed, ~self._judged.failed
        return bool(min(abs(last[side].mean() - earlier[side].sum() / self._n[side].sum()) for side in sides) <= JUMP)

    def holds_within_tool(self, feature: str) -> bool:
        """Does it also separate runs whose last tool is the same? True where too few such pairs are there.

        Where one outcome stops by itself and the other is cut off, the last act differs, and all that comes with it.
        """
        tools = np.array([run.records[-1].tool for run in self._judged.runs], dtype=object)
        has, lost = self._has_last[:, self._column[feature]], self._judged.failed
        pairs = separated = 0.0
        for tool in sorted(set(tools)):
            same = tools == tool
            n_pairs = int((same & lost).sum()) * int((same & ~lost).sum())
            if min((same & lost).sum(), (same & ~lost).sum()) >= 3:
                pairs += n_pairs
                separated += n_pairs * float(has[same & ~lost].mean() - has[same & lost].mean())
        if pairs < 0.02 * float(lost.sum()) * float((~lost).sum()):
            return True
        return (1 + abs(separated / pairs)) / 2 >= SEPARATES_VERDICT - 0.05
