"""What the developers of an agent can change: by what holds at first alarms, by calls that fail often, by what holds on
failures that raise no alarm, and by what agents look at in runs that succeed. Each goes with an outcome; none is
shown to be its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prefixguard.automata.summary.calls_in_runs import FailingCall, LookInRuns
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.parts import PartAlarms
from prefixguard.automata.summary.state_alarms import StateAlarms
from prefixguard.automata.summary.wording import count_text, share_text
from prefixguard.behaviours import BY_NAME

#: States, and behaviours of missed failures, of which it is said what to change.
_SHOWN, _MISSED = 5, 3
#: Failures without an alarm of one group that are told of.
_MANY = 10


def changes(ranked: Sequence[StateAlarms]) -> Iterator[str]:
    """A few sentences each: the states that raise most first alarms on failed runs, the behaviours that hold at them,
    and what the catalogue advises; last, how many states are left out."""
    total = sum(one.failed for one in ranked)
    raising = [one for one in ranked if one.failed]
    for one in raising[:_SHOWN]:
        of_all = f"{one.failed:,} of the {total:,} first alarms" if total > 1 else "the only first alarm"
        said = f"State {one.state} raises {of_all} on failed runs"
        said += f" and {one.successful:,} on successful ones. In training: {one.sentence[:1].lower()}{one.sentence[1:]}"
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


def changes_of_failing(failing: Sequence[FailingCall], entered: int) -> Iterator[str]:
    """Of calls that fail often, with their error, a sentence each. entered: how many states steps end in."""
    for one in failing:
        of = f'"{one.error}"' if one.error else "errors that begin in many ways"
        states = ", ".join(map(str, one.states))
        where = f"; most steps of state{'s' * (len(one.states) > 1)} {states}" if 0 < len(one.states) < entered else ""
        yield (
            f"Calls of {one.what} fail with {of}: {share_text(one.share)} of training steps{where}. "
            "To change: let what comes back say what would be accepted there, or offer nothing else."
        )


def changes_of_parts(parts: Sequence[PartAlarms]) -> Iterator[str]:
    """Of kinds of task and groups most of whose failures raise no alarm, a sentence or two each; most such failures
    first."""
    blind = [one for one in parts if one.missed >= _MANY and 2 * one.missed >= one.failed]
    for one in sorted(blind, key=lambda one: (-one.missed, one.by, one.value))[:_MISSED]:
        who = f"{one.by[:1].upper()}{one.by[1:]} {one.value}"
        said = f"{who}: {one.missed:,} of {one.failed:,} failures raise no alarm. "
        for more in one.behaviours[:1]:
            of = BY_NAME[more.name]
            said += (
                f"Of these {more.missed:,}, and of its successes {more.successful:,} of {one.successful:,}: "
                f"{of.sentence} To change: {of.advice}"
            )
        if not one.behaviours:
            said += "No behaviour of the catalogue is more frequent in these than in its successes: read them. "
            said += f"Most end so: {one.ends}." if one.ends else ""
        yield said.rstrip()


def what_helps(looks: Sequence[LookInRuns]) -> Iterator[str]:
    """What agents look at in runs that fail less often, a sentence."""
    parts = (
        f"{one.what} ({share_text(one.failed / one.runs)} of {one.runs:,} training runs that begin so failed, "
        f"{share_text(one.others_failed / one.others)} of the {one.others:,} others)"
        for one in looks
    )
    if said := "; ".join(parts):
        yield (
            f"Runs that begin by looking fail less, the strongest first: {said}. Where yours can and does not, try "
            "telling it to. This goes with success and is not shown to cause it: other agents may do it."
        )
