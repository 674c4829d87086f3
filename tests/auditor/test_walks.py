"""How an auditor is led through a run, and which verdict is the run's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from walking_auditor import WalkingScript, steps_of

from prefixguard.auditor.walks import Walk, one_a_turn, query_steps, walk
from prefixguard.errors import ConfigError
from prefixguard.escalate.prompting import MIN_BUDGET, PromptKind, ask_for_verdict
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord

ALARM, SAFE = VerdictOutcome.ALARM, VerdictOutcome.SAFE
ABSTAIN, ERROR = VerdictOutcome.ABSTAIN, VerdictOutcome.ERROR


def gone(
    kind: PromptKind, says: Callable[[int, tuple[int, int] | None], Verdict], n: int = 6, **options: object
) -> tuple[Walk, WalkingScript]:
    script = WalkingScript(kind, says)
    return asyncio.run(walk(steps_of(n), script, **options)), script  # type: ignore[arg-type]


def alarm_from(step: int) -> Callable[[int, tuple[int, int] | None], Verdict]:
    return lambda prefix, _: Verdict(ALARM, step=step) if prefix >= step else Verdict(SAFE)


def failed(walked: Walk) -> int:
    return sum(call.judged.verdict.outcome is ERROR for call in walked.calls)


def test_the_first_alarm_ends_an_online_walk() -> None:
    found, script = gone(PromptKind.ONLINE, alarm_from(3))
    assert (found.verdict.outcome, found.verdict.step, found.alarm_step) == (ALARM, 3, 3)
    assert script.prefixes == [1, 2, 3]


def test_a_late_alarm_keeps_the_step_it_blames_and_the_step_at_which_it_came_apart() -> None:
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(ALARM, step=2) if prefix >= 5 else Verdict(SAFE))
    assert (found.verdict.step, found.alarm_step) == (2, 5)


def test_a_run_without_an_alarm_is_walked_to_its_end() -> None:
    found, script = gone(PromptKind.ONLINE, lambda *_: Verdict(SAFE))
    assert found.verdict.outcome is SAFE and found.alarm_step is None
    assert script.prefixes == [1, 2, 3, 4, 5, 6]


def test_steps_of_others_than_agents_are_not_asked_about() -> None:
    records = steps_of(4, others={2})
    script = WalkingScript(PromptKind.ONLINE, lambda *_: Verdict(SAFE))
    asyncio.run(walk(records, script))
    assert script.prefixes == [1, 3, 4] == list(query_steps(records))


def test_an_error_does_not_end_a_walk_and_is_said() -> None:
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(ERROR, fault="x") if prefix == 2 else Verdict(SAFE))
    assert found.verdict.outcome is SAFE and failed(found) == 1
    assert found.verdict.notes == ("1 of 6 questions gave no verdict",)


def test_an_error_on_the_last_prefix_is_never_safe() -> None:
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(ERROR, fault="x") if prefix == 6 else Verdict(SAFE))
    assert found.verdict.outcome is ERROR


def test_alarms_must_be_confirmed_where_that_is_asked() -> None:
    flicker = {2: ALARM, 4: ALARM, 5: ALARM}
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(flicker.get(prefix, SAFE), step=prefix), confirm=2)
    assert (found.verdict.step, found.alarm_step) == (5, 5)
    alone, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(ALARM if prefix == 6 else SAFE, step=6), confirm=2)
    assert alone.verdict.outcome is ABSTAIN and "not confirmed" in alone.verdict.notes[0]


@pytest.mark.parametrize("between", [ERROR, ABSTAIN])
def test_only_a_safe_verdict_takes_an_alarm_back(between: VerdictOutcome) -> None:
    said = {2: ALARM, 3: between, 4: ALARM}
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(said.get(prefix, SAFE), step=2), confirm=2)
    assert (found.verdict.outcome, found.alarm_step) == (ALARM, 4)
    said = {2: ALARM, 3: between, 4: SAFE, 5: ALARM, 6: between}
    found, _ = gone(PromptKind.ONLINE, lambda prefix, _: Verdict(said.get(prefix, SAFE), step=2), confirm=2)
    assert (found.verdict.outcome, found.alarm_step) == (between, None)


def outcomes(*said: VerdictOutcome) -> Callable[[int, tuple[int, int] | None], Verdict]:
    return lambda prefix, _: Verdict(said[prefix - 1], fault=f"f{prefix}", detail=f"d{prefix}.", reason=f"r{prefix}")


def test_steps_without_a_verdict_are_never_safe_where_each_is_judged_alone() -> None:
    found, _ = gone(PromptKind.STEP_BY_STEP, outcomes(SAFE, ERROR, ABSTAIN, ERROR, SAFE), n=5)
    verdict = found.verdict
    assert (verdict.outcome, verdict.fault, found.alarm_step) == (ERROR, "f2", None)
    assert verdict.detail == "2 of 5 steps have no verdict; the first: d2."


def test_a_step_that_could_not_be_told_leaves_the_run_open_where_each_is_judged_alone() -> None:
    found, _ = gone(PromptKind.STEP_BY_STEP, outcomes(SAFE, ABSTAIN, SAFE), n=3)
    assert (found.verdict.outcome, found.verdict.reason) == (ABSTAIN, "r2")
    assert found.verdict.notes == ("1 of 3 steps could not be told",)
    found, _ = gone(PromptKind.STEP_BY_STEP, outcomes(SAFE, SAFE, SAFE), n=3)
    assert found.verdict.outcome is SAFE


def test_an_alarm_counts_where_steps_before_it_have_no_verdict() -> None:
    found, _ = gone(PromptKind.STEP_BY_STEP, outcomes(ERROR, ABSTAIN, ALARM), n=3)
    assert (found.verdict.outcome, found.alarm_step) == (ALARM, 3)


@pytest.mark.parametrize("kind", [kind for kind in PromptKind if kind is not PromptKind.ONLINE])
def test_nothing_confirms_an_alarm_about_what_is_asked_once(kind: PromptKind) -> None:
    with pytest.raises(ConfigError, match=f"confirm 2: {kind.value}"):
        gone(kind, alarm_from(3), confirm=2)


def test_step_by_step_asks_about_agents_steps_only_and_about_each_once() -> None:
    """The auditor sees the step that it judges as the newest; it was asked after the step that was escalated."""
    records = steps_of(7, others={1, 3, 4, 6})
    script = WalkingScript(PromptKind.STEP_BY_STEP, lambda prefix, _: Verdict(ALARM if prefix == 5 else SAFE, step=5))
    found = asyncio.run(walk(records, script, steps=(1, 3, 4, 6, 7)))
    assert script.prefixes == [2, 5] and found.alarm_step == 6
    assert one_a_turn(records, (1, 3, 4, 6, 7)) == (3, 6, 7)


def test_a_gate_picks_the_prefixes() -> None:
    found, script = gone(PromptKind.ONLINE, alarm_from(3), steps=(2, 5))
    assert script.prefixes == [2, 5] and found.alarm_step == 5 and found.verdict.step == 3


def test_a_gate_that_lets_nothing_through_is_safe_and_says_so() -> None:
    found, script = gone(PromptKind.ONLINE, alarm_from(3), steps=())
    assert found.verdict == Verdict(SAFE, notes=("never asked",)) and script.prefixes == []


@pytest.mark.parametrize("steps", [(0,), (7,), (3, 2), (2, 2)])
def test_steps_out_of_the_run_or_order_are_refused(steps: Sequence[int]) -> None:
    with pytest.raises(ConfigError, match="rising, from 1 to 6"):
        gone(PromptKind.ONLINE, alarm_from(3), steps=steps)


def test_post_hoc_is_one_question_with_no_alarm_step() -> None:
    found, script = gone(PromptKind.POST_HOC, lambda *_: Verdict(ALARM, step=4))
    assert (found.verdict.step, found.alarm_step, script.prefixes) == (4, None, [6])


def test_a_run_without_steps_is_an_error() -> None:
    assert gone(PromptKind.ONLINE, alarm_from(1), n=0)[0].verdict.fault == "no-steps"


@given(n=st.integers(1, 40), data=st.data())
def test_binary_search_finds_every_step_with_few_questions(n: int, data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, n))

    def says(_: int, within: tuple[int, int] | None) -> Verdict:
        begin, end = within or (1, n)
        middle = (begin + end) // 2
        return Verdict(ALARM, step=begin if wanted <= middle else middle + 1)

    found, script = gone(PromptKind.BINARY_SEARCH, says, n=n)
    assert found.verdict.step == wanted and found.verdict.agent == f"a{wanted % 2}"
    assert len(script.prefixes) <= max(1, n - 1).bit_length() and found.alarm_step is None


@pytest.mark.parametrize("outcome", [ABSTAIN, ERROR])
def test_a_search_that_gets_no_half_has_no_step(outcome: VerdictOutcome) -> None:
    found, script = gone(PromptKind.BINARY_SEARCH, lambda *_: Verdict(outcome, fault="x"))
    assert found.verdict.outcome is outcome and found.verdict.step is None and len(script.prefixes) == 1


def test_only_the_prefix_is_shown() -> None:
    seen: list[tuple[StepRecord, ...]] = []

    class Watching(WalkingScript):
        async def judge(self, records, **options):  # type: ignore[no-untyped-def]
            seen.append(tuple(records))
            return await super().judge(records, **options)

    asyncio.run(walk(steps_of(3), Watching(PromptKind.ONLINE, lambda *_: Verdict(SAFE))))
    assert [len(records) for records in seen] == [1, 2, 3]


@given(n=st.integers(1, 20), others=st.sets(st.integers(1, 20)), steps=st.sets(st.integers(1, 20)))
def test_there_are_never_more_turns_than_steps_of_agents(n: int, others: set[int], steps: set[int]) -> None:
    records = steps_of(n, others)
    asked = sorted(step for step in steps if step <= n)
    kept = one_a_turn(records, asked)
    assert set(kept) <= set(asked) and list(kept) == sorted(kept) and len(kept) <= len(query_steps(records))
    assert set(asked) & set(query_steps(records)) <= set(kept)
    assert bool(kept) == any(step >= acting for step in asked for acting in query_steps(records))


class Cramped(WalkingScript):
    """Its prompts hold few tokens, so that most of a long run is left out."""

    def left_out(
        self, records: Sequence[StepRecord], *, answer: str | None = None, within: tuple[int, int] | None = None
    ) -> tuple[tuple[int, int], ...]:
        return ask_for_verdict(self.kind, records, MIN_BUDGET, answer=answer, within=within).excerpt.elided


def searched(script: WalkingScript, records: Sequence[StepRecord]) -> Walk:
    return asyncio.run(walk(records, script))


def wordy(n: int, letters: int) -> tuple[StepRecord, ...]:
    return tuple(replace(record, result=f"{record.index} " * (letters // 2)) for record in steps_of(n))


def test_a_half_of_which_nothing_was_shown_is_not_blamed() -> None:
    """Of a range the newest steps are shown, so far as there is room; of a run the first one too."""

    def says(_: int, within: tuple[int, int] | None) -> Verdict:
        return Verdict(ALARM, step=33)  # the second half of 1 to 64, then the first of 33 to 64

    found = searched(Cramped(PromptKind.BINARY_SEARCH, says), wordy(64, 400))
    assert [call.within for call in found.calls] == [(1, 64), (33, 64)]
    assert (found.verdict.outcome, found.verdict.fault, found.verdict.step) == (ERROR, "step-not-shown", None)
    assert failed(found) == 1 and found.calls[-1].judged.verdict.outcome is ERROR
    assert "some steps of the range were not shown" in found.verdict.notes


def test_a_search_says_where_steps_of_a_range_were_left_out() -> None:
    says = lambda _, within: Verdict(ALARM, step=within[1])  # noqa: E731
    found = searched(Cramped(PromptKind.BINARY_SEARCH, says), wordy(64, 400))
    assert (found.verdict.outcome, found.verdict.step) == (ALARM, 64)
    assert found.verdict.notes == ("some steps of the range were not shown",)
    assert searched(Cramped(PromptKind.BINARY_SEARCH, says), wordy(4, 4)).verdict.notes == ()


def test_an_only_step_is_blamed_without_a_question_and_says_so() -> None:
    found, script = gone(PromptKind.BINARY_SEARCH, alarm_from(1), n=1)
    assert found.verdict == Verdict(ALARM, step=1, agent="a1", notes=("only step; nothing was asked",))
    assert script.prefixes == []


def towards(step: int) -> WalkingScript:
    def says(_: int, within: tuple[int, int] | None) -> Verdict:
        begin, end = within or (1, 1)
        middle = (begin + end) // 2
        return Verdict(ALARM, step=begin if step <= middle else middle + 1)

    return WalkingScript(PromptKind.BINARY_SEARCH, says)


def test_of_anothers_step_the_agents_step_before_it_is_blamed() -> None:
    found = searched(towards(4), steps_of(4, others={2, 4})).verdict
    assert (found.outcome, found.step, found.agent) == (ALARM, 3, "a1")
    assert found.notes == ("the search ended at step 4, where no agent acted",)


@pytest.mark.parametrize(("n", "others", "step"), [(1, {1}, 1), (4, {1, 3}, 3), (4, {1, 2}, 2)])
def test_a_search_that_ends_where_no_agent_acted_is_an_error(n: int, others: set[int], step: int) -> None:
    found = searched(towards(step), steps_of(n, others)).verdict
    assert (found.outcome, found.fault, found.step, found.agent) == (ERROR, "not-an-agent-step", None, None)
    assert f"step {step} is of: environment" in found.detail
