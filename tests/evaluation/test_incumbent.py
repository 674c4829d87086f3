import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.evaluation import StuckDetector, StuckRule, stuck_scores
from prefixguard.stepview import StepRecord


def act(tool="search", arguments="{}", result="nothing", status="ok", action="", observation=""):
    return StepRecord(1, "agent", "", tool, arguments, observation, action, result, status)


def say(text="hm", observation=""):
    return StepRecord(1, "agent", "", "respond", "", observation, text, "", "unknown")


USER = StepRecord(1, "user", "", "respond", "", "", "go on", "", "unknown")


def fired(records, rule=None):
    detector = StuckDetector(rule)
    return [detector.observe(record) for record in records]


def test_the_same_action_and_observation_four_times():
    assert fired([act()] * 5) == [None, None, None, "same action, same observation", "same action, same observation"]


def test_a_new_observation_is_progress():
    """Legitimate polling whose answer changes is not stuck."""
    assert not any(fired([act(result=str(i % 3)) for i in range(12)]))


def test_the_same_action_with_any_error_three_times():
    failing = [act(result=f"error {i}", status="error") for i in range(3)]
    assert fired(failing) == [None, None, "same action, error"]
    assert fired([*failing[:2], act(result="fine"), *failing[:2]]) == [None] * 5


def test_other_arguments_are_another_action():
    assert not any(fired([act(arguments=str(i), status="error") for i in range(9)]))


def test_the_text_beside_a_call_does_not_count():
    assert fired([act(action=f"thought {i}") for i in range(4)])[-1] == "same action, same observation"


def test_where_there_is_no_tool_the_text_is_the_action():
    assert not any(fired([act(tool="", action=f"cmd {i}") for i in range(8)]))
    assert fired([act(tool="", action="cmd")] * 4)[-1] == "same action, same observation"


def test_three_messages_in_a_row_are_a_monologue():
    assert fired([say(), say(), say()]) == [None, None, "monologue"]
    assert fired([say(), say(), act(), say(), say()]) == [None] * 5


def test_six_alternating_actions():
    pair = [act("a"), act("b")]
    assert fired(pair * 3) == [None] * 5 + ["alternating actions"]
    assert not any(fired([act("a"), act("b"), act("c")] * 4))


@pytest.mark.parametrize("interruption", [[USER], [say(), act("other", observation="the user answers")]])
def test_when_the_user_speaks_everything_starts_over(interruption):
    assert not any(fired([act()] * 3 + interruption + [act()] * 3))


def test_an_answer_ends_a_monologue():
    assert not any(fired([say(observation="answer")] * 6))


def test_numbers_can_be_chosen_and_are_checked():
    assert fired([act()] * 2, StuckRule(same_observation=2))[-1] == "same action, same observation"
    with pytest.raises(ConfigError, match="stuck rule: monologue is 0, use 1 or more"):
        StuckRule(monologue=0)
    with pytest.raises(ConfigError, match="alternating is 2, use 3 or more"):
        StuckRule(alternating=2)


records = st.lists(
    st.sampled_from([act("a"), act("b"), act("a", status="error"), say(), say(observation="yes"), USER]), max_size=25
)


@settings(deadline=None)
@given(records, st.integers(0, 25))
def test_the_future_does_not_leak_and_the_score_never_falls(run, cut):
    scores = stuck_scores(run)
    assert stuck_scores(run[:cut]).tolist() == scores[:cut].tolist()
    assert sorted(scores) == scores.tolist()
    assert len(scores) == len(run)


def plainly(run, rule):
    """The rule by its definition: the last actions since the user spoke are looked at anew after every record."""
    recent, said = [], 0
    for record in run:
        if record.actor != "agent" or (said and record.observation):
            recent, said = [], 0
        if record.actor != "agent":
            yield None
        elif record.tool in ("", "respond") and not record.result:
            said += 1
            yield "monologue" if said >= rule.monologue else None
        else:
            said = 0
            recent.append(
                (
                    (record.tool, record.arguments, record.action if not record.tool else ""),
                    record.result,
                    record.status,
                )
            )
            same, failing, pairs = (recent[-n:] for n in (rule.same_observation, rule.same_error, rule.alternating))
            if len(same) == rule.same_observation and len({step[:2] for step in same}) == 1:
                yield "same action, same observation"
            elif len(failing) == rule.same_error and {(step[0], step[2]) for step in failing} == {
                (failing[0][0], "error")
            }:
                yield "same action, error"
            elif len(pairs) == rule.alternating and all(pairs[i][:2] == pairs[i - 2][:2] for i in range(2, len(pairs))):
                yield "alternating actions"
            else:
                yield None


@settings(deadline=None)
@given(records, st.builds(StuckRule, *(st.integers(1, 4) for _ in range(3)), st.integers(3, 6)))
def test_counts_give_what_the_definition_gives(run, rule):
    assert fired(run, rule) == list(plainly(run, rule))
