"""What an automaton is good for stands above all else, drawn from its figures by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_summary import PERFORMANCE, invented_summary

from prefixguard.automata.page import to_page
from prefixguard.automata.picture.svg import to_svg
from prefixguard.automata.summary.alarms import PLAIN_RULE
from prefixguard.automata.summary.verdict import verdict_of
from prefixguard.bundle import AlarmCount

IT = invented_summary(12)
ROWS = (
    replace(PERFORMANCE.rows[0], in_time=38),
    *PERFORMANCE.rows[1:3],
    AlarmCount(PLAIN_RULE, 0.5, 25, 9, 4.0, 15, None, None, None, 22),
    AlarmCount("agent alone", 0.5, 80, 80, 9.0, 120, None, None, None, 80),
)
MEASURED = replace(PERFORMANCE, rows=ROWS)


def test_what_it_is_good_for_and_what_not_is_said_from_its_figures() -> None:
    faults = tuple(replace(one, faults=(("errors_in_a_row", one.failed), ("reads", 99))) for one in IT.ranked)
    assert verdict_of(MEASURED, IT.fidelity, faults, IT.missed, ()) == (
        "Use it to stop runs with “errors in a row”: it catches 41 of 82 failed runs, 38 with a step left, at 5 false "
        "alarms on 158 successful runs. Such a step is read at 28 of its 28 alarms on failed runs. It does not foresee "
        "the other 41: 30 of them went through the states of a run that succeeded; 33 end with writes: "
        "book_reservation, as do 120 of 158 successes. Of what is simpler, the best is the plain rule: 25, 22 with a "
        "step left, at 15 false alarms."
    )
    none = tuple(replace(one, faults=(("reads", one.failed),)) for one in IT.ranked)
    said = verdict_of(MEASURED, IT.fidelity, none, replace(IT.missed, alike=3), ())
    assert said.startswith("It catches 41 of 82 failed runs, 38 with a step left, at 5 false alarms on 158 successful")
    assert "no fault of the catalogue holds at a third of these alarms" in said and "went through" not in said


@pytest.mark.parametrize(
    ("clock", "agent", "said"),
    [
        (0.5, 0.57, ""),
        (0.6, 0.5, "the number of the step alone (.60) tells the runs apart about as well as its risk (.66)."),
        (0.6, 0.6, "the number of the step alone (.60) and the agent alone (.60) tell the runs apart about as well as"),
        (0.6, 0.8, "At equally many steps left the agent alone (.80) tells the runs apart better than its risk (.66)."),
    ],
)
def test_whether_it_knows_more_than_simpler_scores_is_said(clock: float, agent: float, said: str) -> None:
    known = replace(IT.fidelity, rem_interval=(0.58, 0.72), clock=(None, clock), groups=(("agent", agent),))
    found = verdict_of(MEASURED, known, IT.ranked, IT.missed, ())
    assert said in found and ("At equally many steps left" in found) == bool(said)


def test_a_simpler_score_that_does_no_worse_is_preferred() -> None:
    rule = AlarmCount(PLAIN_RULE, 0.5, 41, 9, 4.0, 5, None, None, None, 40)
    found = verdict_of(replace(MEASURED, rows=(*ROWS[:3], rule)), IT.fidelity, IT.ranked, IT.missed, ())
    said = "the best is the plain rule: 41, 40 with a step left, at 5 false alarms: it does no worse, so prefer it."
    assert said in found
    other = verdict_of(MEASURED, IT.fidelity, IT.ranked, IT.missed, ())
    assert "prefer it" not in other


def test_groups_none_of_whose_failures_are_caught_are_named() -> None:
    part = replace(IT.parts[0], by="agent", value="beta", failed=9, caught=0)
    some = replace(part, value="gamma", caught=1)
    assert "It catches no failure of agent beta (9)." in verdict_of(
        MEASURED, IT.fidelity, IT.ranked, IT.missed, (part, some)
    )
    few = verdict_of(MEASURED, IT.fidelity, IT.ranked, IT.missed, (replace(part, failed=4),))
    assert "no failure of" not in few


def test_without_alarms_or_runs_it_is_good_for_nothing() -> None:
    silent = tuple(replace(one, at=(), failed=0, successful=0) for one in IT.ranked)
    assert verdict_of(MEASURED, IT.fidelity, silent, IT.missed, ()).startswith("As an alarm it is of no use")
    unknown = replace(MEASURED, failed=0, successful=0)
    assert "not known" in verdict_of(unknown, IT.fidelity, silent, IT.missed, ())


def test_the_verdict_stands_first_on_the_page_and_in_the_text_beside_the_picture() -> None:
    page = to_page(IT).decode()
    assert page.index("</h1>") < page.index(IT.verdict) < page.index("A finite automaton of")
    assert f">{IT.verdict} From the highest risk down" in to_svg(IT).decode()
