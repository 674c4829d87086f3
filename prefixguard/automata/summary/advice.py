"""What the developers of an agent can change: by what holds at first alarms, by what holds on failures that raise none,
and by what lowers the risk. Each goes with an outcome; none is shown to be its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prefixguard.automata.summary.entries import Entry
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.state_alarms import StateAlarms
from prefixguard.automata.summary.wording import count_text, share_text, signed_text
from prefixguard.behaviours import BY_NAME

#: States, behaviours of missed failures, and symbols that lower the risk, of which it is said what to change.
_SHOWN, _MISSED, _LOWERING = 5, 3, 3
#: A symbol lowers the risk much by so much or more, if so large a share of training steps have it.
_MUCH, _SHARE = 0.1, 0.01
#: What nobody can be asked to do: it is success already.
_SUCCESSES = tuple(BY_NAME[name].title for name in ("recovered", "tests_pass"))


def changes(ranked: Sequence[StateAlarms]) -> Iterator[str]:
    """A few sentences each: the states that raise most first alarms on failed runs, the behaviours that hold at them,
    and what the catalogue advises; last, how many states are left out."""
    total = sum(one.failed for one in ranked)
    raising = [one for one in ranked if one.failed]
    for one in raising[:_SHOWN]:
        of_all = f"{one.failed:,} of the {total:,} first alarms" if total > 1 else "the only first alarm"
        said = f"State {one.state} raises {of_all} on failed runs"
        said += f" and {one.successful:,} on successful ones. {one.sentence}"
        for at, (name, n) in enumerate(one.advised):
            of = BY_NAME[name]
            part = (
                f"{n:,} of these {one.failed:,} alarms" if n < one.failed else "all of these" if n > 1 else "this one"
            )
            said += f" At {part}: {of.sentence} To change: {of.advice}"
            if at < len(one.examples):
                shown = one.examples[at]
                said += " As in the same step." if shown in one.examples[:at] else f" As in {shown}"
        if one.one_by_clock:
            said += " Nothing can be advised from one alarm, and this one came because of the number of the step."
        elif not one.advised:
            few = f"a third of these {count_text(one.failed, 'alarm')}" if one.faults else "any of these alarms"
            said += f" No fault of the catalogue holds at {few}: the automaton has nothing to advise."
        if one.flags:
            said += f" Against that: {' '.join(one.flags)}"
            said += "" if one.advised else " This may be no behaviour to change."
        yield said
    if rest := raising[_SHOWN:]:
        alarms = count_text(sum(one.failed for one in rest), "first alarm")
        yield f"{alarms} on failed runs came in {count_text(len(rest), 'more state')}: see the table."


def changes_of_missed(missed: MissedFailures) -> Iterator[str]:
    """Of behaviours that missed failures have more often than successes, a sentence each."""
    for one in missed.behaviours[:_MISSED]:
        of = BY_NAME[one.name]
        yield (
            f"Of the failures that raise no alarm {one.missed:,} of {missed.missed:,}, and of successes "
            f"{one.successful:,} of {missed.successful:,}: {of.sentence} To change: {of.advice}"
        )


def what_helps(entries: Sequence[Entry]) -> Iterator[str]:
    """Of symbols after which the risk is much lower, a sentence each, those that lower it most first."""
    lowering = [
        entry
        for entry in entries
        if entry.risk_change <= -_MUCH and entry.share >= _SHARE and not any(of in entry.gloss for of in _SUCCESSES)
    ]
    for entry in sorted(lowering, key=lambda entry: (entry.risk_change, entry.symbol))[:_LOWERING]:
        shown = f" As in {entry.examples[0]}" if entry.examples else ""
        yield (
            f'Where the agent could do so and does not, ask for it: runs fail less after "{entry.gloss}", the risk '
            f"changes by {signed_text(entry.risk_change)} on average there ({share_text(entry.share)} of training "
            f"steps).{shown}"
        )
