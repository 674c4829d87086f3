"""Invented automata with all that explains them, of any size: a ladder of risks that a booking agent goes up and down.

Nothing is learned here. Each symbol pushes the risk up or down; seeded runs walk the ladder, and everything that a
summary counts is counted on those walks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.automata.strings import fallback_of
from prefixguard.automata.summary import AutomatonSummary, Entry, Fidelity, Origin, Replay, StateAlarms
from prefixguard.automata.summary.calls_in_runs import FailingCall, LookInRuns
from prefixguard.automata.summary.missed import MissedFailures, MoreOften, TwinRuns
from prefixguard.automata.summary.parts import PartAlarms
from prefixguard.automata.summary.replays import ReplayStep
from prefixguard.bundle import UNSEEN, AlarmCount, AlarmPerformance, Automaton, state_names

#: Gloss, tool, status, push of the outcome risk in log-odds, whether it reads history.
KINDS = (
    ("looks up a customer", "get_user_details", "ok", -0.2, False),
    ("searches for flights", "search_direct_flight", "ok", -0.1, False),
    ("search finds nothing", "search_direct_flight", "error", 0.5, False),
    ("reads a reservation", "get_reservation_details", "ok", -0.3, False),
    ("same call again", "get_reservation_details", "ok", 0.7, True),
    ("books", "book_reservation", "ok", -0.8, False),
    ("booking is refused", "book_reservation", "error", 0.9, False),
    ("asks the user to confirm", "", "unknown", -0.4, False),
    ("apologises", "", "unknown", 0.4, False),
    ("third error in a row", "update_reservation_flights", "error", 1.3, True),
    ("hands over to a person", "transfer_to_human_agents", "ok", 0.2, False),
    ("computes a price", "calculate", "ok", 0.0, False),
    ("no tool for 3 steps", "", "unknown", 0.6, True),
    ("cancels", "cancel_reservation", "ok", -0.2, False),
    ("cancelling is refused", "cancel_reservation", "error", 0.8, False),
    ("made-up identifier", "get_user_details", "error", 1.0, True),
)

#: Text that tries to break out of wherever it is put.
HOSTILE = (
    '</script><script>document.title="broken out"</script>',
    '<img src="https://example.org/x.png" onerror="document.title=1">',
    'graph{a->b} "]; digraph { x [label="y"] } //',
    "two\nlines\r\nand a | pipe, `ticks`, *stars*, [link](https://example.org), \\N \\G \\l &amp; &lt;",
    "\u202etxet desrever\u202c \u0000\u0007\u001b[31m\u007f\u0085\u2028\u2029\ufffe\ud800 --> ]]> <!--",
    "שלום עולם مرحبا " + "very long " * 300,
    "'; alert(1); '\" onmouseover=\"alert(2)",
    "![x](https://example.org/y.png) <https://example.org> www.example.org $x$ ~~no~~ # heading",
)


#: Figures of nobody's alarms.
PERFORMANCE = AlarmPerformance(
    budget=0.1,
    horizon=3,
    failed=82,
    successful=158,
    rows=(
        AlarmCount("automaton", 0.62, 41, 20, 4.0, 5, (0.4, 0.6), (0.16, 0.34), (0.01, 0.06)),
        AlarmCount("teacher", 0.58, 59, 30, 4.5, 14, (0.6, 0.82), (0.26, 0.48), (0.04, 0.14)),
        AlarmCount("step number alone", 24.0, 21, 3, 1.0, 12, (0.16, 0.36), (0.01, 0.1), (0.04, 0.12)),
        AlarmCount("agent alone", None, 0, 0, None, 0, None, None, None),
    ),
    kappa=0.34,
    coverage=0.69,
    coverage_expected=0.85,
    cells=52,
    said={"OK": 0.72, "WATCH": 0.2, "ALARM": 0.08},
    notes=(),
)


_Say = Callable[[str, int], str]  # plain text and a number: the text to use


def invented_summary(
    n_states: int = 12,
    n_symbols: int = 12,
    *,
    clock: tuple[int, ...] = (),
    alarm: float | None = 0.62,
    care: tuple[str, ...] = (),
    hostile: bool = False,
    seed: int = 7,
    n_runs: int = 400,
) -> AutomatonSummary:
    """A summary whose bytes depend on the arguments alone.

    care: sentences that ask to audit with care. hostile: every text is one of `HOSTILE`.
    """
    dice = np.random.default_rng(seed)
    rungs = np.sort(np.linspace(-3.2, 2.4, n_states) + dice.normal(0, 0.05, n_states)) if n_states > 1 else np.zeros(1)
    order = dice.permutation(n_states)  # so that numbers do not give the risk away
    base_risk = np.empty(n_states)
    base_risk[order] = rungs
    push = np.array([KINDS[k % len(KINDS)][3] + 0.15 * (k // len(KINDS)) for k in range(n_symbols)])
    aimed = base_risk[:, None] * 0.9 + push[None, :] + dice.normal(0, 0.2, (n_states, n_symbols))
    where = np.abs(base_risk[None, None, :] - aimed[:, :, None]).argmin(axis=2).astype(np.int32)
    start = int(order[np.searchsorted(rungs, -1.2).clip(0, n_states - 1)])

    runs = [_run(dice, base_risk, where, push, start) for _ in range(n_runs)]
    edges = np.zeros((n_states, n_symbols), dtype=np.int64)
    for symbols, before, _ in runs:
        np.add.at(edges, (before, symbols), 1)
    transitions = np.where(edges > 0, where, UNSEEN).astype(np.int32)
    automaton = _automaton(start, transitions, edges, clock, base_risk, runs)

    def text(plain: str, number: int) -> str:
        return HOSTILE[number % len(HOSTILE)] if hostile else plain

    total = max(int(edges.sum()), 1)
    entries = tuple(_entry(k, int(edges[:, k].sum()), total, float(push[k]), text) for k in range(n_symbols))
    examples = tuple(
        tuple(text(f"{KINDS[(s + i) % 16][1] or 'message'} in state {s}, example {i + 1}", s + i) for i in range(3))
        for s in range(n_states)
    )
    replays = tuple(_replay(number, automaton, alarm, text, dice) for number in range(8))
    return AutomatonSummary(
        name=text("airline-guard", 0),
        origin=Origin(
            source=text("airline.jsonl", 1),
            adapter="events 1.0.0",
            runs=900,
            tasks=300,
            failed=306,
            failed_means="By the adapter a run succeeded if $.reward is at least 1.0.",
            sides=(400, 130, 130, 240),
            failed_of=(0.34, 0.33, 0.35, 0.36),
            groups=(("agent", 7, ((text("alpha", 1), 0.6), (text("beta", 2), 0.3))),),
            kinds=((text("airline", 3), 1.0),),
            tools=(9, ((text("get_user_details", 4), 0.4),)),
            teacher="9e" * 32,
            backend="gru",
            automaton="a7" * 32,
            tried=2,
            best=((False, ("steps, grid", *"12345678", "9")), (True, ("typed, ladder", *"23456789", "1"))),
            muted=False,
        ),
        learner="ladder",
        alphabet="typed",
        automaton=automaton,
        entries=entries,
        state_examples=examples,
        replays=tuple(sorted(replays, key=lambda replay: (not replay.failed, replay.run_id))),
        chosen="8 of 240 test runs are shown, chosen by kind in turn.",
        fidelity=Fidelity(0.87, 0.52, 0.60, 0.66, 0.70, 0.012, 240, 3720, care),
        performance=PERFORMANCE,
        ranked=_ranked(automaton, entries, text),
        cells=_cells(automaton, replays),
        said=tuple((Level(step.level), step.outcome) for replay in replays for step in replay.steps),
        watch=0.31,
        alarm=alarm,
        release=None,
        base=0.34,
        expressions=("Lately: " + text("over the last few steps.", 3),),
        does=(
            tuple(text(f"Calls tool_{state} (80 %) or asks (20 %).", state) for state in range(n_states)),
            tuple(text(f"Calls {KINDS[k % 16][1] or 'nothing'}.", k) for k in range(n_symbols)),
        ),
        failing=(FailingCall(text("get_user_details", 6), text("no such user", 3), 90, 0.05, (1,)),),
        looks=(LookInRuns(text("get_user_details", 5), 60, 20, 90, 60, 0.3),),
        verdict="Use it for what is invented, and for nothing else.",
        effect="In effect first alarms come at steps 8 to 19.",
        missed=MissedFailures(
            failed=82,
            successful=158,
            missed=41,
            alike=30,
            twins=TwinRuns(
                text("airline-01", 0), text("airline-09", 1), False, ((0, text("books", 2), text("cancels", 4)),)
            ),
            ends=((text("writes: book_reservation", 5), 33, 120), ("speaks", 8, 38)),
            behaviours=(MoreOften("call_as_text", 12, 3),),
            lengths=(1, 2, *range(8, 88)),
        ),
        parts=(
            PartAlarms(
                "kind of task", text("airline", 2), 60, 20, 100, 4, ((0.2, 0.5), (0.01, 0.1)), text("speaks", 4), ()
            ),
            PartAlarms("agent", text("alpha", 1), 5, 5, 8, 0, (None, None), "", ()),
        ),
    )


def started_elsewhere(summary: AutomatonSummary) -> AutomatonSummary:
    """The same with a start that no step ends in, whose risk another state lends."""
    automaton, start = summary.automaton, summary.automaton.start
    other = np.int32((start + 1) % automaton.n_states)
    mine = np.arange(automaton.n_states) == start
    left = replace(
        automaton,
        transitions=np.where(automaton.transitions == start, other, automaton.transitions),
        fallback=np.where(automaton.fallback == start, other, automaton.fallback),
        evidence=np.where(mine[:, None], 0, automaton.evidence),
        evidence_runs=np.where(mine[:, None], 0, automaton.evidence_runs),
        visits=np.where(mine, 0, automaton.visits),
        stand_in=np.where(mine, other, automaton.stand_in),
    )
    cells = np.where(mine[:, None], 0, summary.cells)
    return replace(summary, automaton=left, cells=cells, replays=())


def _cells(automaton: Automaton, replays: tuple[Replay, ...]) -> NDArray[np.int64]:
    """Evidence, and the steps of the replays."""
    cells = automaton.evidence.copy()
    for replay in replays:
        for at, step in enumerate(replay.steps, 1):
            cells[step.state, automaton.column(at)] += 1
    return cells


def _ranked(automaton: Automaton, entries: tuple[Entry, ...], text: _Say) -> tuple[StateAlarms, ...]:
    """The riskiest states raise the alarms; the second is one agent's, the third the step cap's."""
    order = np.argsort(-automaton.risk[:, -1, 1], kind="stable").tolist()
    alarms = (12, 8, 5, 2, 1)[: len(order)]
    names = state_names(automaton, [entry.gloss for entry in entries])
    said = (
        "",
        "92 % of its steps are of agent " + text("alpha", 1) + ", of all steps 9.0 %.",
        "61 % of its steps are at step 27 or later.",
    )
    return tuple(
        StateAlarms(
            state=state,
            failed=alarms[at] if at < len(alarms) else 0,
            successful=at % 2 if at < len(alarms) else 0,
            share=alarms[at] / sum(alarms) if at < len(alarms) else 0.0,
            sentence=names[state],
            mix=(("agent", ((text("alpha", at), 0.6), (text("beta", at + 1), 0.3))), ("domain", ())),
            steps=(2, 8 + at, 20),
            at=tuple(range(8, 8 + alarms[at] + at % 2)) if at < len(alarms) else (),
            flags=(said[at],) if at < len(said) and said[at] else (),
            earliest=1,
            doubt="72 % of the 25 test runs that came here failed; by its risks 32 % would." if at == 5 else "",
            faults=(("same_call_same_result", alarms[at]),) if at < min(len(alarms), 2) else (),
            examples=(text(f"run r{at}, step 7: books", at),) if at < min(len(alarms), 2) else (),
            symbols=((entries[at % len(entries)].gloss, alarms[at] + at % 2),) if at < len(alarms) else (),
        )
        for at, state in enumerate(order)
    )


_Walk = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _run(
    dice: np.random.Generator,
    risk: NDArray[np.float64],
    where: NDArray[np.int32],
    push: NDArray[np.float64],
    start: int,
) -> _Walk:
    """One run: its symbols, the states before and the states after each."""
    leaning = dice.normal(0, 1.2)  # some runs go well, some badly
    liking = np.exp(leaning * push + dice.normal(0, 0.5, len(push)))
    symbols = dice.choice(len(push), size=int(dice.integers(4, 26)), p=liking / liking.sum())
    states = [start]
    for symbol in symbols.tolist():
        states.append(int(where[states[-1], symbol]))
    return symbols, np.array(states[:-1]), np.array(states[1:])


def _automaton(
    start: int,
    transitions: NDArray[np.int32],
    edges: NDArray[np.int64],
    clock: tuple[int, ...],
    logit: NDArray[np.float64],
    runs: list[_Walk],
) -> Automaton:
    n_states, columns = len(transitions), len(clock) + 1
    visits = np.zeros(n_states, dtype=np.int64)
    evidence = np.zeros((n_states, columns), dtype=np.int64)
    evidence_runs = np.zeros((n_states, columns), dtype=np.int64)
    for number, (_, _, after) in enumerate(runs):
        np.add.at(visits, after, 1)
        if number % 4 == 0:
            column = np.searchsorted(np.array(clock, dtype=np.int64), np.arange(1, len(after) + 1), side="right")
            np.add.at(evidence, (after, column), 1)
            seen = np.unique(np.stack([after, column]), axis=1)
            evidence_runs[seen[0], seen[1]] += 1
    shift = 0.5 * (np.arange(columns) - (columns - 1) / 2)
    outcome = 1 / (1 + np.exp(-(logit[:, None] + shift)))
    risk = np.stack([outcome * 0.4, outcome], axis=2)
    width = 1.64 * np.sqrt(risk * (1 - risk) / (evidence[:, :, None] + 5))
    thin = evidence_runs.max(axis=1) < 4
    able = np.flatnonzero(~thin)
    stand_in = np.arange(n_states, dtype=np.int32)
    if len(able):
        nearest = able[np.abs(logit[:, None] - logit[None, able]).argmin(axis=1)]
        stand_in = np.where(thin, nearest, stand_in).astype(np.int32)
    return Automaton(
        start=start,
        transitions=transitions,
        fallback=fallback_of(edges, transitions),
        clock=clock,
        risk=risk,
        interval=np.stack([np.clip(risk - width, 0, 1), np.clip(risk + width, 0, 1)], axis=3),
        edges=edges,
        visits=visits,
        evidence=evidence,
        evidence_runs=evidence_runs,
        stand_in=stand_in,
    )


def _entry(symbol: int, count: int, total: int, push: float, text: _Say) -> Entry:
    gloss, tool, status, _, history = KINDS[symbol % len(KINDS)]
    again = f" ({symbol // len(KINDS) + 1})" if symbol >= len(KINDS) else ""
    return Entry(
        symbol=symbol,
        gloss=text(gloss + again, symbol),
        condition=text(
            f"tool is {tool or 'none'} and status is {status}" + (" and errors ≥ 2" if history else ""), symbol
        ),
        terms=((text(f"tool:{tool or 'message'}", symbol), 2.41), (text(f"status:{status}", symbol + 1), 0.83)),
        tools=((text(tool or "message", symbol), 0.92), (text("think", symbol + 1), 0.08)),
        statuses=((status, 0.97), ("unknown", 0.03)),
        examples=tuple(text(f'{tool or "message"}({{"id": "R{symbol}{i}"}}) → {status}', symbol + i) for i in range(3)),
        count=count,
        share=count / total,
        risk_change=push * 0.12,
        reads_history=history,
    )


def _replay(number: int, automaton: Automaton, alarm: float | None, text: _Say, dice: np.random.Generator) -> Replay:
    """A run that takes one transition that no other run took, where there is one."""
    bad = number % 3 != 2
    push = np.array([KINDS[k % len(KINDS)][3] for k in range(automaton.n_symbols)])
    liking = np.exp((1.5 if bad else -1.0) * push)
    state, steps, sounding = automaton.start, [], False
    for t in range(6 + 3 * number):
        symbol = int(dice.choice(len(push), p=liking / liking.sum()))
        state, unseen = automaton.follow(state, symbol)
        imminent, outcome = (float(r) for r in automaton.risk[state, automaton.column(t + 1)])
        sounding = sounding or (alarm is not None and outcome > alarm)
        gloss, tool, status, *_ = KINDS[symbol % len(KINDS)]
        steps.append(
            ReplayStep(
                symbol=symbol,
                state=state,
                unseen=unseen,
                imminent=imminent,
                outcome=outcome,
                level="ALARM" if sounding else "WATCH" if outcome > 0.31 else "OK",
                texts=(
                    ("arrived", text(f"the user says {t}", t + 1)),
                    ("calls", text(f'{tool or "message"}({{"step": {t + 1},\n  "why": "{gloss}"}})', t)),
                    (f"result, {status}", text(status, t + 2)),
                ),
                teacher=None if number == 1 else float(np.clip(outcome + dice.normal(0, 0.06), 0, 1)),
            )
        )
    failed = None if number == 7 else bad
    kind = "succeeded" if not bad else "failed"
    groups = (("agent", text(("alpha", "beta")[number % 2], number)), ("domain", text("airline", 3)))
    note = "asked for" if number == 3 else ""
    return Replay(text(f"airline-{number + 1:02d}", number), failed, kind, groups, note, tuple(steps))
