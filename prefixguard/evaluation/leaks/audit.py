"""The leak audit of a labelled corpus, through whatever adapter it was read.

It judges records and outcomes alone, for `check-data`, `evaluate --leaks` and `check-adapter`. While an adapter is made
or checked, the places that it reads are searched too (`leaks.raw`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from prefixguard.errors import ConfigError
from prefixguard.evaluation.leaks.finding import LeakFinding
from prefixguard.evaluation.leaks.judged import FEWEST, GIVEN, Judged, sample
from prefixguard.evaluation.leaks.last_step import find_last_step
from prefixguard.evaluation.leaks.later_text import find_later_text
from prefixguard.evaluation.leaks.lengths import find_groups, find_lengths
from prefixguard.evaluation.leaks.names import find_hidden_text, find_identifiers, find_model_names
from prefixguard.evaluation.leaks.numbers import find_numbers, find_run_lengths
from prefixguard.evaluation.leaks.signals import find_signals
from prefixguard.evaluation.leaks.tokens import TokenTables, find_tokens
from prefixguard.results import Block, Result, Text
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Runs that are audited by default: enough for every probe, and all that is held in memory.
MOST_RUNS = 3000


@dataclass(frozen=True, slots=True)
class LeakAudit(Result):
    """What the leak audit found.

    runs : number of runs with at least one record.
    looked_at : number of runs that were audited; fewer than `runs` where a sample was taken.
    judged : number of audited runs with two or more records and a known outcome.
    failed, tasks : number of failed runs, and of tasks, among the judged runs.
    findings : errors first, then warnings, then notes.
    notes : sentences on what could not be audited, and why.
    """

    runs: int
    looked_at: int
    judged: int
    failed: int
    tasks: int
    findings: tuple[LeakFinding, ...]
    notes: tuple[str, ...]

    @property
    def errors(self) -> tuple[LeakFinding, ...]:
        return tuple(one for one in self.findings if one.severity == "error")

    @property
    def warnings(self) -> tuple[LeakFinding, ...]:
        return tuple(one for one in self.findings if one.severity == "warning")

    def blocks(self) -> tuple[Block, ...]:
        """A line of counts, the findings, the notes."""
        judged = f"{self.judged} judged ({self.failed} failed) of {self.tasks} tasks"
        waived = sum(one.waived != "" for one in self.findings)
        found = f"{len(self.errors)} error(s), {len(self.warnings)} warning(s)" + (
            f", {waived} waived" if waived else ""
        )
        if not self.findings:
            found = "no leak found"
        head = f"Leak audit: {self.looked_at:,} of {self.runs:,} runs, {judged}: {found}."
        return (Text(head), *(block for one in self.findings for block in one.blocks()), *map(Text, self.notes))


def audit_leaks(
    runs: Iterable[Run[StepRecord]],
    *,
    seed: int = 13,
    on_stage: Callable[[str], None] | None = None,
    most_runs: int = MOST_RUNS,
    waive: Mapping[str, str] = MappingProxyType({}),
) -> LeakAudit:
    """Search the records for outcomes, and for text of later steps, that a live run would not show.

    runs : the parsed runs; they are read once.
    seed : of the sample, of the one run per task on which the tests are done, of the folds and of the permutations.
    on_stage : called with the name of each stage before it begins.
    most_runs : 1 or more; of more runs than that, a sample is drawn by hash.
    waive : field to reason; a finding in that field is harmless and becomes a note with the reason. A field without
        a finding is named in the notes, since it may be misspelled.
    The time is linear in the text; at most 20,000 characters of a field are read.
    Raises ConfigError where `most_runs` is below 1.
    """
    if most_runs < 1:
        raise ConfigError(f"most_runs is {most_runs}; it must be 1 or more.")
    tell = on_stage or (lambda stage: None)
    tell("runs")
    chosen, met = sample(runs, most=most_runs, seed=seed)
    judged = Judged.of(chosen, seed, GIVEN)
    found = [_settled(one, waive) for one in _search(chosen, judged, seed, tell)]
    notes = []
    if not judged.enough:
        notes.append(
            f"Nothing was tested against outcomes: that takes {FEWEST} tasks of each outcome, with runs of two records "
            "and more."
        )
    if met > len(chosen):
        notes.append(f"A sample of {len(chosen)} of {met} runs was audited.")
    fields = {one.field for one in found}
    notes += [f"{field!r} waived nothing: nothing was found there." for field in waive if field not in fields]
    found.sort(key=lambda one: ("error", "warning", "note").index(one.severity))  # stable: stages keep their order
    counts = len(judged), int(judged.failed.sum()), int(judged.single.sum())
    return LeakAudit(met, len(chosen), *counts, tuple(found), tuple(notes))


def _settled(one: LeakFinding, waive: Mapping[str, str]) -> LeakFinding:
    """In a waived field a note with the reason; else with the option that would waive it."""
    reason = waive.get(one.field)
    if reason is None:
        return replace(one, text=f"{one.text} Harmless, because a live run shows it too? Say so: {one.option}")
    return replace(one, severity="note", waived=reason, text=f"waived ({reason}): {one.text}")


def find_leaks(runs: Iterable[Run[StepRecord]], *, seed: int = 13, given: Collection[str] = GIVEN) -> list[LeakFinding]:
    """What `audit_leaks` finds in all of these runs, in the order of its stages and without waivers.

    given : the fields that hold what the agent was given. In the raw view, which has all text in one field, name that
        field too.
    """
    chosen, _ = sample(runs, most=sys.maxsize, seed=seed)
    return list(_search(chosen, Judged.of(chosen, seed, given), seed, lambda _: None))


def _search(
    runs: Sequence[Run[StepRecord]], judged: Judged, seed: int, tell: Callable[[str], None]
) -> Iterator[LeakFinding]:
    tell("later text")
    yield from find_later_text(runs)
    tell("hidden text")
    yield from find_hidden_text(runs)
    tell("identifiers")
    named = list(find_identifiers(runs, seed))
    yield from named
    said = {one.field for one in named if one.severity == "error"}
    yield from (one for one in find_model_names(runs) if one.field not in said)
    tell("run lengths in text")
    yield from find_run_lengths(runs)
    if not judged.enough:
        return
    tell("tokens")
    tables = TokenTables.of(judged)
    tokens = list(find_tokens(judged, tables))
    tell("last step")
    yield from find_last_step(judged, tables, tokens, seed)
    yield from tokens
    tell("numbers")
    yield from find_numbers(judged)
    tell("signals")
    yield from find_signals(judged)
    tell("lengths")
    yield from find_lengths(judged, seed)
    tell("groups")
    yield from find_groups(judged)
