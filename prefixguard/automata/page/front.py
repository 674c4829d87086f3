"""What an auditor asks first, as blocks: what the alarms are worth, what raises them, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prefixguard.automata.page.state_table import states_table
from prefixguard.automata.picture.risk_levels import SAME
from prefixguard.automata.picture.scene import figures_of
from prefixguard.automata.summary import AutomatonSummary
from prefixguard.automata.summary.advice import (
    changes,
    changes_of_failing,
    changes_of_missed,
    changes_of_parts,
    what_helps,
)
from prefixguard.automata.summary.alarms import PLAIN_RULE
from prefixguard.automata.summary.missed import MissedFailures
from prefixguard.automata.summary.parts import joined_parts
from prefixguard.automata.summary.state_figures import StateFigures
from prefixguard.automata.summary.wording import count_text, level_said, one_line, risk_text, share_text
from prefixguard.bundle import AlarmCount, AlarmPerformance
from prefixguard.results import Block, Bullets, Column, Facts, Folded, TableBlock, Text, percents

#: Code points kept of a sentence.
_LETTERS = 900


def effect_blocks(summary: AutomatonSummary) -> Iterator[Block]:
    """What the alarms do in effect, before all else."""
    if summary.effect:
        yield Text(one_line(summary.effect, _LETTERS), "care")


def alarm_blocks(summary: AutomatonSummary) -> Iterator[Block]:
    """First alarms of every row on the test runs; agreement, coverage and levels; what to know before reading them."""
    found = summary.performance
    known = (summary.effect, *summary.fidelity.care)
    yield from (Text(one_line(note, _LETTERS), "care") for note in found.notes if note not in known)
    runs = f"{count_text(found.failed, 'failed run')} and {count_text(found.successful, 'successful run')}"
    yield Text(
        f"First alarms on {runs}, the test runs. Every row has a threshold of its own, at the same budget of "
        f"false alarms, {share_text(found.budget)} (`prefixguard calibrate` sets another, with --budget); in brackets "
        "the 95 % interval, over tasks: runs of one may alarm together."
        + (
            " The plain rule needs no model: it alarms as soon as it holds, whatever the budget."
            if any(row.by == PLAIN_RULE for row in found.rows)
            else ""
        )
    )
    left = f"with more than {count_text(found.horizon, 'step')} left"
    names = ("Failures caught", "False alarms", left, "Median steps left")
    rows = [_row(one, found) for one in found.rows]
    head = [Column("Alarm by", "words"), *(Column(name, "number") for name in names)]
    yield TableBlock.of("", head, rows, marked=[0])
    yield from _parts(summary)
    yield Facts(tuple(_facts(found)))


def _parts(summary: AutomatonSummary) -> Iterator[Block]:
    """First alarms by kind of task and by each group."""
    if not summary.parts:
        return
    names = ("Failures caught", "False alarms")
    head = [Column("Runs of", "words"), *(Column(name, "number") for name in names), Column("Most misses end", "words")]
    rows: list[list[str | tuple[str, str]]] = [
        [
            f"{one.by}: {one.value}",
            _share(one.caught, one.failed, one.intervals[0]),
            _share(one.false_alarms, one.successful, one.intervals[1]),
            one_line(one.ends, _LETTERS),
        ]
        for one in joined_parts(summary.parts)
    ]
    yield Text("The automaton's first alarms by what the runs name; fewer than ten runs have no interval.")
    yield TableBlock.of("", head, rows)


def _share(count: int, total: int, ends: tuple[float, float] | None) -> tuple[str, str]:
    share = f"{share_text(count / total)} {percents(ends)}".strip() if total else ""
    return f"{count:,} of {total:,}", share


def _row(one: AlarmCount, found: AlarmPerformance) -> list[str | tuple[str, str]]:
    if one.threshold is None:
        return [one.by, "holds on no test run: not measured" if one.by == PLAIN_RULE else "no threshold"]
    return [
        one.by,
        _caught(one, found),
        _share(one.false_alarms, found.successful, one.false_alarm_interval),
        _share(one.early, found.failed, one.early_interval),
        "–" if one.lead is None else f"{one.lead:g}",
    ]


def _caught(one: AlarmCount, found: AlarmPerformance) -> tuple[str, str]:
    count, share = _share(one.caught, found.failed, one.caught_interval)
    return count, share if one.in_time is None else f"{share}; {one.in_time:,} with a step left"


def _facts(found: AlarmPerformance) -> Iterator[tuple[str, str, str]]:
    """Name, value and what it means; figures that do not exist are left out."""
    if found.said:
        rest = ", ".join(
            f"{level_said(level)} {share_text(part)}" for level, part in found.said.items() if level != "ALARM"
        )
        yield "Says ALARM", share_text(found.said.get("ALARM", 0.0)), f"of test steps; {rest}"
    if found.kappa is not None:
        sign = "−" if found.kappa < 0 else ""
        meaning = "Cohen's kappa of its alarms with its teacher's, step by step: 1 is the same, 0 is chance"
        yield "Same alarms", sign + risk_text(abs(found.kappa)), meaning
    if found.kept is not None and found.coverage_expected is not None:
        meaning = (
            "90 % intervals that ten test runs or more came to hold the share of them that failed; if the intervals "
            f"are right, {found.coverage_expected * found.cells:.1f} would on average, as shares of few runs scatter"
        )
        yield "Intervals kept", f"{found.kept:,} of {found.cells:,}", meaning


def state_blocks(summary: AutomatonSummary) -> Iterator[Block]:
    """What to change, then every state with the first alarms that it raised, those that raise most first."""
    said = "alarms" if summary.alarm is not None else "times that it says WATCH (there is no alarm threshold)"
    figures = figures_of(summary)
    yield from (Text(said, "care") for said in (_earliest(summary, figures), _watch_ties(summary)) if said)
    yield from (Text(one_line(one.on_threshold, _LETTERS), "care") for one in summary.ranked if one.on_threshold)
    failing = changes_of_failing(summary.failing, sum(one.entered for one in figures))
    missed = (*changes_of_missed(summary.missed), *changes_of_parts(joined_parts(summary.parts)))
    items = (*changes(summary.ranked), *failing, *missed, *what_helps(summary.looks))
    todo = tuple(tuple(one_line(line, 4_000) for line in item) for item in items)
    nothing = ("No failed test run raised an alarm. What states and symbols advise is in their panels.",)
    yield Bullets(todo or nothing, "What to change")
    yield Text(
        f"States by first {said} on test runs; a run has one at most. Step: the median, and from the tenth to the "
        "ninetieth percentile. The interval of a usual risk is of the held-out runs alone. Thin: fewer than ten "
        "held-out runs. A flag says where test runs failed more or less often than the risks say; one in ten of such "
        "flags may be chance.",
        "faint",
    )
    if summary.expressions:
        meanings = tuple(one_line(sentence, 4_000) for sentence in summary.expressions)
        yield Folded("What the expressions in these names mean", (Bullets(meanings),))
    raising = [one for one in summary.ranked if one.failed or one.successful]
    if raising:
        yield states_table(summary, raising, figures)
    if thin := _thin(summary, figures):
        yield Text(thin, "care")
    rest = [one for one in summary.ranked if one not in raising]
    if rest:
        title = f"{count_text(len(rest), 'state')} that raised no first alarm"
        yield Folded(title, (states_table(summary, rest, figures),))


def _earliest(summary: AutomatonSummary, figures: Sequence[StateFigures]) -> str:
    """From which step on it can sound at all; "" where that is the first, and it says WATCH too. A state in which no
    training or test run was before a step sounds no earlier."""
    clock, threshold = (1, *summary.automaton.clock), summary.sounds_above
    reached = {one.state: one.earliest for one in summary.ranked}
    spans = [
        (clock[at], max(clock[at], reached[one.state]))
        for one in figures
        if one.entered
        for at, risk in enumerate(one.by_clock)
        if risk > threshold and (at == len(clock) - 1 or reached[one.state] < clock[at + 1])
    ]
    by_risk, possible = (min((span[which] for span in spans), default=1) for which in (0, 1))
    why = "no state has" if by_risk == possible else "no training or test run came to a state with"
    short = sum(length < possible for length in summary.missed.lengths)
    failed = count_text(summary.missed.failed, "failed test run")
    ended = f" {short:,} of {failed} end before, and cannot be caught." * (short > 0)
    said = [f"No alarm before step {possible}: {why} a risk above the threshold earlier.{ended}"] * (possible > 1)
    if summary.alarm is not None and summary.watch >= summary.alarm:
        said.append(
            f"It never says WATCH: it says ALARM above {summary.risks.risk(summary.alarm)}, the lowest threshold that "
            "keeps the budget of false alarms. Up to there it raises no alarm, however high the risk is."
        )
    return " ".join(said)


def _watch_ties(summary: AutomatonSummary) -> str:
    """Where steps stand on the threshold of WATCH itself, which they do not pass, how many; "" where none do."""
    watch, n = summary.watch, len(summary.said)
    tied = sum(abs(risk - watch) <= SAME for _, risk in summary.said)
    if not tied or summary.alarm is None or watch >= summary.alarm:
        return ""
    states = [s for s, risks in enumerate(summary.automaton.risk[..., 1]) if (abs(risks - watch) <= SAME).any()]
    which = f"state{'s' * (len(states) > 1)} {', '.join(map(str, states))}"
    above = sum(watch < risk - SAME and risk <= summary.alarm for _, risk in summary.said)
    return (
        f"A risk of {which} is the threshold of WATCH itself, {summary.risks.risk(watch)}, and WATCH needs more: "
        f"{share_text(tied / n)} of test steps stand on it and read no alarm, {share_text(above / n)} stand above it "
        "and below that of ALARM."
        + " So it is said of fewer steps than of a tenth." * (above < 0.1 * n)
    )


def _thin(summary: AutomatonSummary, figures: Sequence[StateFigures]) -> str:
    """How many first alarms rest on little, and how many states have a risk that nothing could contradict."""
    total = sum(one.failed + one.successful for one in summary.ranked)
    of_thin = sum(one.failed + one.successful for one in summary.ranked if figures[one.state].thin)
    unknown = sum(one.entered and one.low <= 0 and one.high >= 1 for one in figures)
    said = [f"{of_thin:,} of {count_text(total, 'first alarm')} came in states of thin evidence."] * (of_thin > 0)
    if unknown:
        have = "1 state has" if unknown == 1 else f"{unknown:,} states have"
        said.append(
            f"{have} the interval .00–1.0: no held-out run was there at the usual steps, and no outcome could "
            "contradict the risk."
        )
    return " ".join(said)


def missed_blocks(found: MissedFailures) -> Iterator[Block]:
    """Failures without an alarm: how many look like a success to the automaton, two such runs, and how they end."""
    if not found.missed:
        none = "There was no failed test run." if not found.failed else "Every failed test run raises an alarm."
        yield Text(none)
        return
    yield Text(
        f"{found.missed:,} of {count_text(found.failed, 'failed test run')} raise no alarm. {found.alike:,} of these "
        f"{found.missed:,} go through the same states, from the first step to the last, as some run that succeeded: "
        "nothing in this automaton tells them apart."
    )
    if found.ends:
        ends = "; ".join(
            f"{one_line(what, _LETTERS)} ({n:,} of {found.missed:,}; of successes {of_good:,} of {found.successful:,})"
            for what, n, of_good in found.ends
        )
        yield Text(f"What the last step of a failure without an alarm is: {ends}.")
    if (twins := found.twins) is not None:
        task = "of one task" if twins.same_task else "of two tasks"
        names = (f"Failed: {one_line(twins.failed, 80)}", f"Succeeded: {one_line(twins.succeeded, 80)}")
        head = [Column("Step", "number"), Column("State", "number"), *(Column(name, "words") for name in names)]
        rows = [
            [str(at), str(state), one_line(failed, _LETTERS), one_line(succeeded, _LETTERS)]
            for at, (state, failed, succeeded) in enumerate(twins.steps, 1)
        ]
        yield Folded(f"Two such runs, {task}, step by step", (TableBlock.of("", head, rows),))
