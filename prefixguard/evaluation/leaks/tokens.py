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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.leaks.chance import LEVEL
from prefixguard.evaluation.leaks.confirmation import own_results, repeated, says_harness
from prefixguard.evaluation.leaks.features import features
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, chance, shown
from prefixguard.evaluation.leaks.material import Judged
from prefixguard.evaluation.leaks.telling import Telling, Told, at, before_the_end, tell
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


@dataclass(frozen=True, slots=True)
class TokenTables:
    """What the tokens of each field tell at each place, and how many were tried in all."""

    last: dict[str, Telling]
    before: dict[str, Telling]
    first: dict[str, Telling]
    anywhere: dict[str, Telling]

    @property
    def tried(self) -> int:
        places = (self.last, self.before, self.first, self.anywhere)
        return sum(table.tried for place in places for table in place.values())

    def corrected(self, one: Told) -> float:
        """The p-value after Bonferroni's correction for every token tried in the audit."""
        return min(1.0, one.p * self.tried)


def token_tables(judged: Judged) -> TokenTables:
    """Tables of all fields. Each field's features are dropped before the next is read."""

    def table(field: str, position: int) -> Telling:
        look = at(field, position)
        return tell([look(run) for run in judged.runs], judged)

    return TokenTables(
        {field: table(field, -1) for field in FIELDS},
        {field: table(field, -2) for field in FIELDS},
        {field: table(field, 0) for field in FIELDS},
        {field: tell([before_the_end(field)(run) for run in judged.runs], judged) for field in FIELDS},
    )


def find_tokens(judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    """At most one finding a field and place: the token that tells most."""
    for field in FIELDS:
        early = _early(field, judged, tables)
        yield from early
        yield from _last(field, judged, tables)
        if not any(one.severity == "error" for one in early):
            yield from _anywhere(field, judged, tables)


def _beyond_chance(table: Telling, tables: TokenTables, least: float) -> list[Told]:
    return [one for one in table.told if one.separates >= least and tables.corrected(one) < LEVEL]


def _last(field: str, judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    found = _beyond_chance(tables.last[field], tables, SEPARATES_VERDICT)
    found = [
        one
        for one in found
        if (one.separates >= SEPARATES or one.is_verdict_like or one.is_near_certain)
        and one.separates - tables.before[field].separation(one.feature) >= JUMP
    ][:_TRIED]
    if not found:
        return
    history = _History(field, [one.feature for one in found], judged)
    own = _own(field, found, judged)
    errors = [one for one in found if one.feature not in own and _is_leak(one, field, judged, history, tables)]
    severity: Severity = "error" if errors else "warning"
    best, *more = errors or found
    ordinary = history.is_ordinary(best.feature)
    figures = {
        **_figures(best, tables),
        "before": tables.before[field].separation(best.feature),
        "earlier_share": history.earlier(best.feature),
        "last_share": history.last(best.feature),
    }
    text = (
        f"{_says(best, field, tables)} in the last record; in the record before, {figures['before']:.2f}. "
        f"{figures['last_share']:.0%} of last records have it, {figures['earlier_share']:.1%} of those before."
    )
    if more:
        text += f" So do {', '.join(shown(one.feature) for one in more[:_NAMED])}."
    if errors:
        text += " A live run has no such record: see what writes it."
    elif field not in judged.given:
        text += " The agent wrote it: a live monitor sees it too, but no sooner than the end."
    elif best.feature in own and not ordinary:
        text += f" It is the own result of the tool that is called, as a live monitor sees it.{_LOOK}"
    elif ordinary:
        text += " Earlier records are like it: the harness may end a run at its first success or failure."
    yield LeakFinding("token", field, best.feature, severity, figures, text)


def _is_leak(one: Told, field: str, judged: Judged, history: _History, tables: TokenTables) -> bool:
    if field == "status" and one.feature in _STATUSES:
        # A step's status may be judged from its result; then it tells no more than that.
        by_result = max((other.separates for other in tables.last["result"].told), default=0.5)
        if one.separates <= by_result + 0.05 or not one.is_near_certain:
            return False
        return one.separates >= 0.95 or not history.is_ordinary(one.feature)
    if history.is_ordinary(one.feature) or not history.holds_within_tool(one):
        return False
    if field in judged.given:
        return one.is_near_certain or one.is_verdict_like
    return history.earlier(one.feature) < 0.01 and _is_edited(one, field, judged)


def _is_edited(one: Told, field: str, judged: Judged) -> bool:
    """Is it a judge's word in what the agent wrote, and nothing that it repeats?

    Of whole values their words and pairs are judged: an agent puts what it repeats into a frame of its own.
    """
    if not one.is_near_certain or one.feature.startswith("= ") or not says_harness(one.feature):
        return False
    return not repeated((run.records for run in judged.runs), one.feature, field, features)


def _own(field: str, found: Sequence[Told], judged: Judged) -> frozenset[str]:
    """Features of results that are one tool's own, and do not speak as who judges a run."""
    if field != "result":
        return frozenset()
    wanted = [one.feature for one in found[:_TRIED] if not says_harness(one.feature)]
    return own_results((run.records for run in judged.runs), wanted, features) if wanted else frozenset()


def _early(field: str, judged: Judged, tables: TokenTables) -> list[LeakFinding]:
    found = _beyond_chance(tables.first[field], tables, SEPARATES_EARLY - 0.05)
    if not found:
        return []
    sure = [one for one in found if one.separates >= SEPARATES_EARLY or one.is_near_certain]
    if field == "result":  # the first call's, as a live monitor sees it
        sure = [one for one in sure if says_harness(one.feature)]
    if field not in judged.given:
        sure = [one for one in sure if _is_edited(one, field, judged)]
    severity: Severity = "error" if sure else "warning"
    best = sure[0] if sure else found[0]
    text = f"{_says(best, field, tables)} in the first record: nothing that is known at the start tells so much."
    text += _LOOK if field == "result" and not sure else ""
    return [LeakFinding("token", field, best.feature, severity, {**_figures(best, tables), "first": 1.0}, text)]


def _anywhere(field: str, judged: Judged, tables: TokenTables) -> Iterator[LeakFinding]:
    found = _beyond_chance(tables.anywhere[field], tables, SEPARATES_EARLY)
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
    severity: Severity = "error" if verdicts else "warning"
    best = (verdicts or found)[0]
    text = f"{_says(best, field, tables)} anywhere before the last record."
    if not verdicts:
        text += " It may be what such runs do, or what only long runs reach; see what writes it."
        text += _LOOK if field in _IN_COURSE else ""
    yield LeakFinding("token", field, best.feature, severity, _figures(best, tables), text)


def _says(one: Told, field: str, tables: TokenTables) -> str:
    return (
        f"{shown(one.feature)} in {field} tells {one.side}: {one.covers:.0%} of the runs that end so have it, "
        f"{one.purity:.0%} of those that have it end so (separation {one.separates:.2f}, 0.5 is nothing; "
        f"{one.tasks} tasks, {chance(tables.corrected(one))} after {tables.tried} tokens tried)"
    )


def _figures(one: Told, tables: TokenTables) -> dict[str, float]:
    return {
        "separates": one.separates,
        "purity": one.purity,
        "covers": one.covers,
        "p": tables.corrected(one),
        "tasks": float(one.tasks),
        "tried": float(tables.tried),
    }


class _History:
    """Where some features of a field stand in the last records and in up to _EARLIER of those before."""

    def __init__(self, field: str, names: list[str], judged: Judged) -> None:
        self._column = {name: i for i, name in enumerate(names)}
        self._judged = judged
        wanted = set(names)
        self._has_last = np.zeros((len(judged), len(names)), dtype=np.bool_)
        self._earlier = np.zeros((len(judged), len(names)))
        self._n = np.zeros(len(judged))
        for i, run in enumerate(judged.runs):
            for feature in wanted & features(getattr(run.records[-1], field)):
                self._has_last[i, self._column[feature]] = True
            for record in run.records[:-1][-_EARLIER:]:
                self._n[i] += 1
                for feature in wanted & features(getattr(record, field)):
                    self._earlier[i, self._column[feature]] += 1

    def last(self, feature: str) -> float:
        return float(self._has_last[:, self._column[feature]].mean())

    def earlier(self, feature: str) -> float:
        return float(self._earlier[:, self._column[feature]].sum() / self._n.sum())

    def is_ordinary(self, feature: str) -> bool:
        """Do records before the last have it too, and are the last records of one side like those before them?

        A harness that ends a run at its first success makes honest fields tell at the end: what came back is good or
        bad as it was all along. A verdict is a thing of the last record.
        """
        if self.earlier(feature) < 0.02:
            return False
        column, lost = self._column[feature], self._judged.failed
        changes = [
            abs(self._has_last[side, column].mean() - self._earlier[side, column].sum() / self._n[side].sum())
            for side in (lost, ~lost)
        ]
        return bool(min(changes) <= JUMP)

    def holds_within_tool(self, one: Told) -> bool:
        """Does it also separate runs whose last tool is the same? True where too few such pairs are there.

        Where one outcome stops by itself and the other is cut off, the last act differs, and all that comes with it.
        """
        tools = [run.records[-1].tool for run in self._judged.runs]
        has, lost = self._has_last[:, self._column[one.feature]], self._judged.failed
        pairs = separated = 0.0
        for tool in sorted(set(tools)):
            same = np.array([other == tool for other in tools])
            n_lost, n_won = int((same & lost).sum()), int((same & ~lost).sum())
            if min(n_lost, n_won) >= 3:
                gap = float(has[same & ~lost].mean() - has[same & lost].mean())
                pairs += n_lost * n_won
                separated += n_lost * n_won * gap
        if pairs < 0.02 * float(lost.sum()) * float((~lost).sum()):
            return True
        return (1 + abs(separated / pairs)) / 2 >= SEPARATES_VERDICT - 0.05
