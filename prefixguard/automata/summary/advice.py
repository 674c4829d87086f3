"""What the developers of an agent can change: by what holds at first alarms, by calls that fail often, by what holds on
failures that raise no alarm, and by what agents look at in runs that succeed. Each goes with an outcome; none is
shown to be its cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from prefixguard.automata.summary.calls_in_runs import FailingCall, LookInRuns
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.parts import PartAlarms
from prefixguard.automata.summary.state_alarms import StateAlarms
from prefixguard.automata.summary.wording import count_text, share_text
from prefixguard.behaviours import BY_NAME

#: States, and behaviours of missed failures, of which it is said what to change.
_SHOWN, _MISSED = 5, 3
#: Share of the missed failures from which on it is said that they end as successes do.
_MANY_ENDS = 1 / 3
#: Failures without an alarm of one group that are told of.
_MANY = 10
#: A quoted step: its run and number, then the step.
_STEP = re.compile(r"(run .*?, step \d+): (.+)", re.DOTALL)

#: What it is of, and under it what is said of it, one or a few sentences each.
Item: TypeAlias = tuple[str, ...]


def changes(ranked: Sequence[StateAlarms]) -> Iterator[Item]:
    """The states that raise most first alarms on failed runs, the behaviours that hold at them, and what the catalogue
    advises; last, how many states are left out."""
    total = sum(one.failed for one in ranked)
    raising = [one for one in ranked if one.failed]
    for one in raising[:_SHOWN]:
        of_all = f"{one.failed:,} of the {total:,} first alarms" if total > 1 else "the only first alarm"
        yield (
            f"State {one.state} raises {of_all} on failed runs and {one.successful:,} on successful ones.",
            one.read_at_alarms,
            *_of_state(one),
        )
    if rest := raising[_SHOWN:]:
        alarms = count_text(sum(one.failed for one in rest), "first alarm")
        yield (f"{alarms} on failed runs came in {count_text(len(rest), 'more state')}: see the table.",)


def _of_state(one: StateAlarms) -> Iterator[str]:
    """What holds at its alarms with what to change, and what speaks against that."""
    for at, (name, n) in enumerate(one.advised):
        part = f"{n:,} of these {one.failed:,} alarms" if n < one.failed else "all of these" if n > 1 else "this one"
        yield f"At {part}: {BY_NAME[name].sentence}"
        yield f"To change: {BY_NAME[name].advice}"
        if at < len(one.examples):
            shown = one.examples[at]
            if shown not in one.examples[:at]:
                yield f"As in {_quoted(shown)}"
    if one.one_by_clock:
        yield "Nothing can be advised from one alarm, and this one came because of the number of the step."
    elif not one.advised:
        few = f"a third of these {count_text(one.failed, 'alarm')}" if one.faults else "any of these alarms"
        yield f"No fault of the catalogue holds at {few}: the automaton has nothing to advise."
    for flag in one.flags:
        yield f"Against that: {flag}"
    if one.flags and not one.advised:
        yield "This may be no behaviour to change."


def _quoted(example: str) -> str:
    found = _STEP.fullmatch(example)
    return f"{found[1]}: “{found[2]}”" if found else f"“{example}”"


def changes_of_missed(missed: MissedFailures) -> Iterator[Item]:
    """Of behaviours that missed failures have more often than successes; before these, where many missed failures end
    as successes do."""
    for what, n, good in missed.ends[:1]:
        if good and n >= _MANY_ENDS * missed.missed:
            yield (
                f"Of the failures that raise no alarm {n:,} of {missed.missed:,} end with {what}, as do {good:,} of "
                f"{missed.successful:,} successes: nothing that it reads tells them.",
                "To change: check what comes out at the end itself, by rules or a large model (prefixguard audit).",
            )
    for one in missed.behaviours[:_MISSED]:
        of = BY_NAME[one.name]
        yield (
            f"Of the failures that raise no alarm {one.missed:,} of {missed.missed:,}, and of successes "
            f"{one.successful:,} of {missed.successful:,}: {of.sentence}",
            f"To change: {of.advice}",
        )


def changes_of_failing(failing: Sequence[FailingCall], entered: int) -> Iterator[Item]:
    """Of calls that fail often, with their error. entered: how many states steps end in."""
    for one in failing:
        of = f"“{one.error}”" if one.error else "errors that begin in many ways"
        states = ", ".join(map(str, one.states))
        where = f"; most steps of state{'s' * (len(one.states) > 1)} {states}" if 0 < len(one.states) < entered else ""
        yield (
            f"Calls of {one.what} fail with {of}: {share_text(one.share)} of training steps{where}.",
            "To change: let what comes back say what would be accepted there, or offer nothing else.",
        )


def changes_of_parts(parts: Sequence[PartAlarms]) -> Iterator[Item]:
    """Of kinds of task and groups most of whose failures raise no alarm; most such failures first."""
    blind = [one for one in parts if one.missed >= _MANY and 2 * one.missed >= one.failed]
    for one in sorted(blind, key=lambda one: (-one.missed, one.by, one.value))[:_MISSED]:
        who = f"{one.by[:1].upper()}{one.by[1:]} {one.value}"
        said = [f"{who}: {one.missed:,} of {one.failed:,} failures raise no alarm."]
        for more in one.behaviours[:1]:
            of = BY_NAME[more.name]
            among = f"Of these {more.missed:,}, and of its successes {more.successful:,} of {one.successful:,}"
            said += [f"{among}: {of.sentence}", f"To change: {of.advice}"]
        if not one.behaviours:
            said.append("No behaviour of the catalogue is more frequent in these than in its successes: read them.")
            said += [f"Most end so: {one.ends}."] * bool(one.ends)
        yield tuple(said)


def what_helps(looks: Sequence[LookInRuns]) -> Iterator[Item]:
    """What agents look at in runs that fail less often."""
    parts = [
        f"{one.what} ({share_text(one.failed / one.runs)} of {one.runs:,} training runs that begin so failed, "
        f"{share_text(one.others_failed / one.others)} of the {one.others:,} others)."
        for one in looks
    ]
    if parts:
        yield (
            "Runs that begin by looking fail less, the strongest first.",
            *parts,
            "Where yours can and does not, try telling it to. This goes with success and is not shown to cause it: "
            "other agents may do it.",
        )
