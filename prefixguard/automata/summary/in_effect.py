"""What the alarm does in effect, in a few sentences that stand before all else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.state_alarms import StateAlarms
from prefixguard.automata.summary.wording import count_text, share_text
from prefixguard.bundle import AlarmPerformance

#: So few of the first alarms may come before the step that the automaton is said to count to.
_BEFORE = 0.1
_STATES = 2
_BY_LATE_SYMBOL = " {} came by a symbol that no training run had before a late step."


def in_effect(performance: AlarmPerformance, ranked: Sequence[StateAlarms], strings: Strings) -> str:
    """At which steps first alarms come and in which states, and whether a count of steps does the same. strings: the
    test runs."""
    at = sorted(step for one in ranked for step in one.at)
    if not at:
        return "In effect this automaton raises no alarm: on no test run did it sound." if len(strings) else ""
    said = (_counts_to(performance, at, strings), _where(ranked, at))
    return " ".join(filter(None, said))


def _counts_to(found: AlarmPerformance, at: Sequence[int], strings: Strings) -> str:
    """Where the rule to alarm at a step, whatever happens, does as much within the budget: that it counts to this step.

    The step is the one before which hardly any first alarm comes, so every run that alarms then reaches it.
    """
    step, ours = at[math.floor(_BEFORE * len(at))], found.rows[0]
    reached = strings.lengths >= step
    caught, false = (int(np.count_nonzero(reached & of)) for of in (strings.failed, ~strings.failed))
    if step < 2 or caught < ours.caught or false > max(ours.false_alarms, found.budget * found.successful):
        return ""
    return (
        f"In effect this automaton counts to step {step}: its alarms are not fit as evidence of behaviour. An alarm on "
        f"every test run that reaches step {step} would catch {count_text(caught, 'failure')} at "
        f"{count_text(false, 'false alarm')}, this one catches {ours.caught:,} at {ours.false_alarms:,}."
    )


def _where(ranked: Sequence[StateAlarms], at: Sequence[int]) -> str:
    raising = sorted((one for one in ranked if one.at), key=lambda one: (-len(one.at), one.state))
    most = 1 if 2 * len(raising[0].at) > len(at) else _STATES
    states = " and ".join(
        f"state {one.state} ({share_text(len(one.at) / len(at))}{_since(one)}; "
        f"{one.read_at_alarms.removeprefix('First alarms come ').removesuffix('.')})"
        for one in raising[:most]
    )
    late = sum(one.by_late_symbol for one in ranked)
    clocked = sum(one.clocked for one in ranked) - late
    both = sum(one.by_both for one in ranked)
    if len(at) == 1:
        by = " It came because of the number of the step." if clocked else _BY_LATE_SYMBOL.format("It") if late else ""
        return f"The only first alarm comes at step {at[0]}, in {states}.{by}"
    steps = f"step {at[0]}" if at[0] == at[-1] else f"steps {at[0]} to {at[-1]}"
    half = f", half of them by step {at[(len(at) - 1) // 2]}" if at[0] < at[-1] else ""
    number = "All" if clocked == len(at) else f"{clocked:,} of the {len(at):,}"
    by = f" {number} came because of the number of the step." if clocked else ""
    by += f" {both:,} came at a fault, but would not have earlier in the run." if both else ""
    by += _BY_LATE_SYMBOL.format(f"{late:,} of the {len(at):,}") if late else ""
    return f"First alarms come at {steps}{half}, most often in {states}.{by}"


def _since(one: StateAlarms) -> str:
    """Where most of its first alarms came because of the number of the step, from which step on."""
    return f", none before step {one.at[0]}" if 2 * (one.clocked + one.by_both) > len(one.at) else ""
