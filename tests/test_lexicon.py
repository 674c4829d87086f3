"""Names are split into words and speak for meanings; they never decide by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.lexicon import Meaning, affinity, is_foreign, path_names, polarity, says_something, words


@pytest.mark.parametrize(
    ("key", "split"),
    [
        ("maxReward", ("max", "reward")),
        ("max_reward", ("max", "reward")),
        ("max-reward", ("max", "reward")),
        ("gen_ai.tool.name", ("gen", "ai", "tool", "name")),
        ("toolUseResult", ("tool", "use", "result")),
        ("HTTPStatus2", ("http", "status", "2")),
        ("", ()),
        ("___", ()),
    ],
)
def test_words_of_a_key(key: str, split: tuple[str, ...]) -> None:
    assert words(key) == split


def test_names_of_a_path() -> None:
    assert path_names('$.a["b c"][0].d[type=result].e') == ("a", "b c", "d", "e")


@pytest.mark.parametrize(
    ("path", "meaning"),
    [
        ("$.reward", Meaning.OUTCOME),
        ("$.summary.max_reward", Meaning.OUTCOME),
        ("$.is_correct", Meaning.OUTCOME),
        ("$.isResolved", Meaning.OUTCOME),
        ("$.result_status", Meaning.OUTCOME),
        ("$.termination_reason", Meaning.AFTER_END),
        ("$.finalMetrics", Meaning.AFTER_END),
        ("$.info.exit_status", Meaning.AFTER_END),
        ("$.total_cost", Meaning.AFTER_END),
        ("$.ground_truth", Meaning.HARNESS),
        ("$.evaluation_criteria.actions", Meaning.HARNESS),
        ("$.hardness", Meaning.HARNESS),
        ("$.mistake_step", Meaning.MISTAKE),
        ("$.task_id", Meaning.TASK_ID),
        ("$.question_ID", Meaning.TASK_ID),
        ("$.instanceId", Meaning.TASK_ID),
        ("$.query", Meaning.TASK_TEXT),
        ("$.problem_statement", Meaning.TASK_TEXT),
        ("$.sessionId", Meaning.RUN_ID),
        ("@.tool_call_id", Meaning.CALL_ID),
        ("@.function.arguments", Meaning.ARGUMENTS),
        ("@.tool_name", Meaning.TOOL),
        ("@.content", Meaning.TEXT),
        ("@.is_error", Meaning.ERROR),
        ("@.created_at", Meaning.TIME),
        ("@.role", Meaning.ROLE),
        ("assistant", Meaning.ROLE_AGENT),
        ("human", Meaning.ROLE_USER),
        ("observation", Meaning.ROLE_TOOL),
        ("developer", Meaning.ROLE_SYSTEM),
    ],
)
def test_a_telling_name_speaks(path: str, meaning: Meaning) -> None:
    assert affinity(path, meaning) >= 0.8


@pytest.mark.parametrize("path", ["$.k1", "$.x", "$.blorb", "$", "", "$.a.b.c[*]"])
def test_a_name_that_says_nothing_speaks_for_nothing(path: str) -> None:
    assert all(affinity(path, meaning) == 0 for meaning in Meaning)


def test_what_is_about_a_reward_is_not_the_reward() -> None:
    for about in ("reward_basis", "max_reward_idx", "score_threshold", "outcome_reason"):
        assert affinity(about, Meaning.OUTCOME) <= 0.5 < affinity(about.split("_")[0] + "_reward", Meaning.OUTCOME)


def test_what_stands_in_a_hidden_object_is_hidden_with_it() -> None:
    assert affinity("$.evaluation_criteria.k7", Meaning.HARNESS) >= 0.6
    assert affinity("$.review.k7", Meaning.AFTER_END) >= 0.6


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("success", 1), ("PASSED", 1), ("TASK_STATE_COMPLETED", 1), ("not failed", 1),
        ("failure", -1), ("error_max_turns", -1), ("not resolved", -1), ("unresolved", -1), ("INCORRECT", -1),
        ("LimitsExceeded", -1), ("timed_out", -1),
        ("partially correct", 0), ("pending", 0), ("user_stop", 0), ("submitted", 0), ("", 0),
        ("the agent was successful in finding the right page", 0),
    ],
)  # fmt: skip
def test_polarity(text: str, sign: int) -> None:
    assert polarity(text) == sign


def test_says_something() -> None:
    assert says_something("$.sampled") and says_something("$.erfolg")
    assert not says_something("$.info.k12") and not says_something("$.field_3")


@given(st.text(max_size=60))
def test_any_name_has_affinities_in_range(name: str) -> None:
    assert all(0 <= affinity(name, meaning) <= 1 for meaning in Meaning)
    assert polarity(name) in (-1, 0, 1)


def test_names_of_other_languages() -> None:
    assert is_foreign(["aufgabe", "schritte", "ergebnis", "werkzeug", "k1"])
    assert not is_foreign(["messages", "task_id", "sampled", "streaming", "reward"])
    assert not is_foreign(["aufgabe", "k1"])


@pytest.mark.parametrize("word", ["erfolgreich", "réussi", "Éxito", "bestanden"])
def test_good_words_of_other_languages(word: str) -> None:
    assert polarity(word) == 1


@pytest.mark.parametrize("word", ["fehlgeschlagen", "échec", "fallido", "gave up", "escalated"])
def test_bad_words_of_other_languages(word: str) -> None:
    assert polarity(word) == -1
