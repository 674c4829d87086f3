"""The table of the states: the first alarms that each raised, its risks, and at which steps it alarms."""

from __future__ import annotations

from collections.abc import Sequence

from prefixguard.automata.page.words import set_apart
from prefixguard.automata.picture.risk_levels import range_said, risk_said, why_so_many_digits
from prefixguard.automata.summary import AutomatonSummary, StateAlarms
from prefixguard.automata.summary.state_figures import StateFigures
from prefixguard.automata.summary.wording import RiskWords, count_text, one_line, share_text
from prefixguard.results import Cell, Column, TableBlock

#: Columns of the states that are left out where they are empty.
_OPTIONAL = ("Whose steps", "Flags")


def states_table(
    summary: AutomatonSummary, ranked: Sequence[StateAlarms], figures: Sequence[StateFigures]
) -> TableBlock:
    """States in this order, those that raise most first alarms first. figures: of all states, in order."""
    risks = summary.risks
    names = ("First alarms, failed runs", "successful runs", "Mean risk", "Usual, 90 % interval", "Evidence", "Step")
    head = [Column("State", "text"), *(Column(name, "number") for name in names)]
    words = [
        Column(name, "words")
        for name in ("What the agent does", "Alarms at", "What leads there", "Whose steps", "Flags")
    ]
    rows: list[list[str | tuple[str, str] | Cell]] = []
    for one in ranked:
        state = figures[one.state]
        clock = state.least < state.peak
        whose = "; ".join(
            f"{name}: " + ", ".join(f"{set_apart(value or 'not named')} {share_text(part)}" for value, part in mix)
            for name, mix in one.mix
            if mix
        )
        borrowed = state.stand_in is not None and state.entered
        rows.append(
            [
                f"{one.state}" if state.entered else f"{one.state} (start)",
                (f"{one.failed:,}", f"{share_text(one.share)} of them" if one.failed else ""),
                f"{one.successful:,}",
                Cell(
                    risk_said(state.outcome, risks),
                    state.usually + range_said(state.least, state.peak, risks) if clock else "",
                    why=why_so_many_digits((state.outcome, state.least, state.peak), risks),
                )
                if state.entered
                else ("none", f"{share_text(summary.base)} of training runs fail"),
                _usual(state, risks),
                (
                    count_text(state.runs, "run"),
                    f"risk of state {state.stand_in}" if borrowed else "thin" if state.thin else "",
                ),
                "–" if one.steps is None else (f"{one.steps[1]}", f"{one.steps[0]}–{one.steps[2]}"),
                one_line(summary.does[0][one.state], 300),
                alarms_at(summary, state, one.earliest),
                f"{one.sentence} {one.read_at_alarms}".strip(),
                whose,
                " ".join(filter(None, (*one.flags, one.doubt, one.on_threshold))),
            ]
        )
    told = [at for at, name in enumerate((*head, *words)) if name.name not in _OPTIONAL or any(row[at] for row in rows)]
    return TableBlock.of("", [[*head, *words][at] for at in told], [[row[at] for at in told] for row in rows])


def _usual(state: StateFigures, risks: RiskWords) -> Cell:
    """The usual risk and its interval."""
    interval = RiskWords().range(state.low, state.high) if state.entered else ""
    said, why = risk_said(state.usual, risks), why_so_many_digits((state.usual,), risks)
    return Cell(said, interval, why=why)


def alarms_at(summary: AutomatonSummary, state: StateFigures, earliest: int) -> str:
    """In which spans of the clock the risk is above the threshold, known or not: live it is read all the same. No step
    before the earliest at which any run was there is named."""
    said, sounded = [], None
    clock = summary.automaton.clock
    for first, risk in enumerate(state.by_clock):
        if risk > summary.sounds_above and state.entered and state.pools[first] == first:
            last = max(at for at, pool in enumerate(state.pools) if pool == first)
            if last < len(clock) and clock[last] <= earliest:
                continue
            guess = "" if any(state.known[first : last + 1]) else ", where no held-out run was"
            if sounded is not None and sounded + 1 < first:
                between = sorted(state.by_clock[sounded + 1 : first])
                low, high = (risk_said(end, summary.risks) for end in (between[0], between[-1]))
                said.append(f"in between {low if low == high else f'{low}–{high}'}, for there runs fail less often")
            said.append(f"{_steps(clock, first, last, earliest)}, {risk_said(risk, summary.risks)}{guess}")
            sounded = last
    return "; ".join(said)


def _steps(clock: Sequence[int], first: int, last: int, earliest: int) -> str:
    """Spans of the clock, from one to another, in words; they begin at the earliest step or later."""
    begin = max(clock[first - 1] if first else 1, earliest)
    if last == len(clock):
        return f"step {begin} and later" if begin > 1 else "all steps"
    return f"step {begin}" if clock[last] - 1 == begin else f"steps {begin}–{clock[last] - 1}"
