"""What an automaton is good for and what not, in a few sentences that stand above all else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prefixguard.automata.summary.alarms import PLAIN_RULE, RULES
from prefixguard.automata.summary.fidelity import Fidelity, rivals
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.parts import PartAlarms, joined_parts
from prefixguard.automata.summary.state_alarms import ADVISED_SHARE, StateAlarms
from prefixguard.automata.summary.wording import count_text, risk_text
from prefixguard.behaviours import BY_NAME
from prefixguard.bundle import AlarmCount, AlarmPerformance

#: Failures that a group needs to be named where none of them is caught, and how many groups are named.
_MANY, _NAMED = 5, 2
#: So large a share of what is missed is most of it.
_MOST = 0.5


def verdict_of(
    performance: AlarmPerformance,
    fidelity: Fidelity,
    ranked: Sequence[StateAlarms],
    missed: MissedFailures,
    parts: Sequence[PartAlarms],
) -> str:
    """What its alarms catch and by which behaviours, what they do not, what a simpler score catches, and whether the
    risks know more than simpler ones; all on test runs."""
    if not performance.failed and not performance.successful:
        return "What it is worth is not known: there was no test run."
    if not any(one.at for one in ranked):
        return "As an alarm it is of no use: it sounded on no test run."
    said = (_use(performance, ranked), *_not(missed, parts), *_simpler(performance), *_knows(fidelity))
    return " ".join(said)


def _use(found: AlarmPerformance, ranked: Sequence[StateAlarms]) -> str:
    ours, faults = found.rows[0], Counter[str]()
    for one in ranked:
        faults.update({name: n for name, n in one.faults if BY_NAME[name].kind == "fault"})
    n = sum(one.failed for one in ranked)
    often = [(name, k) for name, k in faults.most_common(_NAMED) if k >= ADVISED_SHARE * n]
    false = f"{count_text(ours.false_alarms, 'false alarm')} on {count_text(found.successful, 'successful run')}"
    caught = f"catches {ours.caught:,} of {count_text(found.failed, 'failed run')}{_in_time(ours)}, at {false}"
    if not often:
        return f"It {caught}; no fault of the catalogue holds at a third of these alarms."
    what = " and ".join(f"“{BY_NAME[name].title}”" for name, _ in often)
    counts = " and ".join(f"{k:,}" for _, k in often)
    alarms = count_text(n, "alarm")
    read = f"Such a step is read at {counts} of its {alarms} on failed runs."
    return f"Use it to stop runs with {what}: it {caught}. {read}"


def _in_time(row: AlarmCount) -> str:
    return "" if row.in_time is None else f", {row.in_time:,} with a step left"


def _not(missed: MissedFailures, parts: Sequence[PartAlarms]) -> Iterator[str]:
    if missed.missed:
        said = f"It does not foresee the other {missed.missed:,}"
        if missed.alike >= _MOST * missed.missed:
            said += f": {missed.alike:,} of them went through the states of a run that succeeded"
        for what, n, good in missed.ends[:1]:
            also = f", as do {good:,} of {missed.successful:,} successes" if good else ""
            said += f"{'; ' if ':' in said else ': '}{n:,} end with {what}{also}"
        yield f"{said}."
    blind = [one for one in joined_parts(parts) if one.failed >= _MANY and not one.caught]
    if blind:
        names = " and ".join(f"{one.by} {one.value} ({one.failed:,})" for one in blind[:_NAMED])
        more = f" and of {count_text(len(blind) - _NAMED, 'other')}" if len(blind) > _NAMED else ""
        yield f"It catches no failure of {names}{more}."


def _simpler(found: AlarmPerformance) -> Iterator[str]:
    """The row that catches most of those that know less and keep the budget, or have no more false alarms than it."""
    allowed = max(found.rows[0].false_alarms, found.budget * found.successful)
    rows = [row for row in found.rows[2:] if row.threshold is not None and row.false_alarms <= allowed]
    best = max(rows, key=lambda row: (row.caught, row.early), default=None)
    if best is not None:
        alarms = count_text(best.false_alarms, "false alarm")
        ours = found.rows[0]
        no_worse = best.caught >= ours.caught and best.false_alarms <= ours.false_alarms
        said = f"Of what is simpler, the best is {short_row(best.by)}: {best.caught:,}{_in_time(best)}, at {alarms}"
        yield f"{said}{': it does no worse, so prefer it' if no_worse else ''}."


def short_row(by: str) -> str:
    """What a row of the table is called in a sentence."""
    return {PLAIN_RULE: "the plain rule", RULES: "the rules without a model"}.get(by, f"the {by}")


def _knows(fidelity: Fidelity) -> Iterator[str]:
    better, as_well = rivals(fidelity)
    if fidelity.rem is None or not (better or as_well):
        return
    named = " and ".join(f"the {what} alone ({risk_text(alone)})" for what, alone in better or as_well)
    not_more = f"{named} {'tells' if len(better or as_well) == 1 else 'tell'} the runs apart"
    how = "better than" if better else "about as well as"
    yield f"At equally many steps left {not_more} {how} its risk ({risk_text(fidelity.rem)})."
