"""Trivial auditors: each by hand on a small set; constants never see the labels of their own task."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.auditor import AuditedSystem, audit_runs, audited, step_number, trivial_baselines
from prefixguard.auditor.baselines import Placed, best_constant, constants_elsewhere
from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import attribution
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run


def record(index: int, agent: str, *, actor: str = "agent", error: bool = False, event: int = -1) -> StepRecord:
    return StepRecord(index, actor, agent, "respond", "", "", "text", "", "error" if error else "ok", event)


def run(
    name: str,
    agents: Sequence[str],
    gold: int | None = None,
    who: str | None = None,
    *,
    error: int = 0,
    events: bool = False,
) -> Run[StepRecord]:
    """A run of these agents; without a label it succeeded. events: every record is the second of two entries."""
    records = tuple(
        record(i, agent, error=i == error, event=2 * i - 1 if events else -1) for i, agent in enumerate(agents, 1)
    )
    failed = gold is not None or who is not None
    mistake = Mistake(gold, who) if failed else None
    outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
    return Run(name, f"task {name}", outcome, records, "made.json", mistake=mistake)


RUNS = [
    run("a", ["Planner", "Coder", "Coder", "Web"], 2, "Coder", error=3),
    run("b", ["Planner", "Web", "Web"], 2, "Web"),
    run("c", ["Web", "Coder", "Planner", "Coder", "Coder"], 4, "Coder", error=1),
    run("d", ["Coder", "Web"]),
]


def named(runs: Sequence[Run[StepRecord]] = RUNS, **options: object) -> dict[str, AuditedSystem]:
    return {system.name: system for system in trivial_baselines(runs, **options)}  # type: ignore[arg-type]


def blames(system: AuditedSystem) -> list[tuple[int | None, str | None]]:
    return [(row.step, row.agent) for row in system.rows]


def test_every_rule_by_hand() -> None:
    found = named()
    assert blames(found["step 1"]) == [(1, "Planner"), (1, "Planner"), (1, "Web"), (1, "Coder")]
    assert blames(found["step 4"]) == [(4, "Web"), (3, "Web"), (4, "Coder"), (2, "Web")]  # at most the last
    assert blames(found["first agent"]) == blames(found["step 1"])
    assert blames(found["last agent"]) == [(4, "Web"), (3, "Web"), (5, "Coder"), (2, "Web")]
    assert blames(found["most active agent"]) == [(2, "Coder"), (2, "Web"), (2, "Coder"), (1, "Coder")]
    assert blames(found["first error"]) == [(3, "Coder"), (None, None), (1, "Web"), (None, None)]
    assert blames(found["before the first error"]) == [(2, "Coder"), (None, None), (1, "Web"), (None, None)]
    assert [row.alarm_step for row in found["before the first error"].rows] == [3, None, 1, None]
    assert [row.outcome for row in found["first error"].rows] == ["alarm", "safe", "alarm", "safe"]
    assert {row.outcome for row in found["never alarm"].rows} == {"safe"}
    assert [row.alarm_step for row in found["alarm at once"].rows] == [1, 1, 1, 1]
    assert all(system.trivial and all(row.calls == 0 for row in system.rows) for system in found.values())


def test_the_majority_agent_is_counted_on_other_tasks() -> None:
    """For b nobody else blames any of its agents, for c Coder and Web are blamed once each: the first to act."""
    assert blames(named()["majority agent elsewhere"]) == [(2, "Coder"), (1, "Planner"), (1, "Web"), (1, "Coder")]


def test_constants_come_from_other_tasks_and_hindsight_says_so() -> None:
    found = named()
    # Without a, gold is 2 and 4: a tie of hits and of near hits, so the smaller. Without c, it is 2.
    assert [row.step for row in found["mode step elsewhere"].rows] == [2, 2, 2, 2]
    assert [row.step for row in found["median step elsewhere"].rows] == [2, 2, 2, 2]
    assert found["best step, in hindsight"].hindsight
    assert not found["best step elsewhere"].hindsight
    assert [row.step for row in found["best step, in hindsight"].rows] == [2, 2, 2, 2]


def test_chance_is_an_exact_expectation() -> None:
    found = named()
    steps = attribution(found["random step"].rows, n_resamples=0)
    assert steps.step_accuracy == pytest.approx((1 / 4 + 1 / 3 + 1 / 5) / 3)
    assert steps.agent_accuracy == pytest.approx((2 / 4 + 2 / 3 + 3 / 5) / 3)
    assert steps.false_alarm_rate == pytest.approx(1.0)
    agents = attribution(found["random agent"].rows, n_resamples=0)
    assert agents.agent_accuracy == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    assert math.isnan(agents.step_accuracy)
    drawn = [blames(named(seed=seed)["random step, drawn"]) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_walks_know_when_they_alarm_and_alarming_at_once_is_never_safe() -> None:
    found = {name: attribution(system.rows, n_resamples=0) for name, system in named().items()}
    assert (found["alarm at once"].false_alarm_rate, found["never alarm"].false_alarm_rate) == (1.0, 0.0)
    assert found["alarm at once"].before_end == 1.0
    assert found["never alarm"].exact_f1 == 0.0
    assert math.isnan(found["step 1"].before_end)  # it judges the finished run


def test_entries_are_counted_from_one_and_agents_only_where_they_act() -> None:
    runs = [run("a", ["Planner", "Coder"], 2, "Coder", events=True), run("b", ["Web"], 1, "Web", events=True)]
    found = named(runs, index="event", constants=(3, 4))
    assert [(row.n_steps, row.gold_step) for row in found["entry 4"].rows] == [(4, 4), (2, 2)]
    assert blames(found["entry 4"]) == [(4, "Coder"), (2, "Web")]
    assert blames(found["entry 3"]) == [(3, None), (2, "Web")]  # no agent's step came from entry 3
    assert blames(found["last agent"]) == [(4, "Coder"), (2, "Web")]
    with pytest.raises(DataError, match="does not say which source entry"):
        trivial_baselines(RUNS, index="event")


def test_who_may_be_blamed() -> None:
    records = (record(1, "Me", actor="user"), record(2, "Coder"))
    runs = [Run("a", None, Outcome.FAILURE, records, "made.json", mistake=Mistake(2, "Coder"))]
    assert blames(named(runs)["first agent"]) == [(2, "Coder")]
    assert blames(named(runs, blame="all")["first agent"]) == [(1, "Me")]
    nobody = [Run("a", None, Outcome.FAILURE, records[:1], "made.json", mistake=Mistake(1, "Me"))]
    found = named(nobody)
    assert {found[name].rows[0].outcome for name in ("first agent", "random step", "random agent")} == {"abstain"}


def test_runs_without_outcome_or_steps_are_left_out() -> None:
    unknown = Run("u", None, Outcome.UNKNOWN, RUNS[0].records, "made.json")
    empty: Run[StepRecord] = Run("e", None, Outcome.FAILURE, (), "made.json")
    assert audit_runs([unknown, empty, RUNS[0]]) == (RUNS[0],)
    assert len(named([unknown, empty, RUNS[0]])["step 1"].rows) == 1
    with pytest.raises(DataError, match="has no outcome"):
        audited(unknown, "safe")
    with pytest.raises(DataError, match="has no step 5: it has 4"):
        step_number(RUNS[0], 5, "record")
    with pytest.raises(ConfigError, match="constant 0 is no step"):
        trivial_baselines(RUNS, constants=(0,))
    assert all(not system.rows for system in trivial_baselines([]))


@st.composite
def placed_runs(draw: st.DrawFn) -> list[Placed]:
    found = []
    for _ in range(draw(st.integers(0, 12))):
        n_steps = draw(st.integers(1, 9))
        found.append(Placed(draw(st.sampled_from("abcd")), n_steps, draw(st.integers(1, n_steps))))
    return found


def slow_best(runs: list[Placed], size: int) -> int:
    def worth(constant: int) -> tuple[int, int, int]:
        errors = [abs(min(constant, one.n_steps) - one.gold) for one in runs]
        return (-sum(error == 0 for error in errors), -sum(error <= 1 for error in errors), constant)

    return min(range(1, size + 1), key=worth)


@settings(max_examples=150, deadline=None)
@given(placed_runs())
def test_constants_are_the_best_of_all_tried_on_the_other_tasks(runs: list[Placed]) -> None:
    size = max((one.n_steps for one in runs), default=1)
    assert best_constant(runs) == slow_best(runs, size)
    for task, found in constants_elsewhere(runs, "abcd").items():
        others = [one for one in runs if one.task != task]
        golds = sorted(one.gold for one in others)
        assert found.best == slow_best(others, size)
        assert found.mode == min(golds, key=lambda step: (-golds.count(step), step), default=1)
        shift = [sum(abs(step - gold) for gold in golds) for step in range(1, size + 1)]
        assert shift[found.median - 1] == min(shift)
