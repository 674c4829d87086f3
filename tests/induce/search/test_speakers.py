"""What words for kinds of events say."""

from __future__ import annotations

import pytest

from prefixguard.induce.search.speakers import Part, part_of


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("assistant", Part.SAY),
        ("AIMessage", Part.SAY),
        ("agent_message", Part.SAY),
        ("gpt", Part.SAY),
        ("human", Part.USER),
        ("UserMessage", Part.USER),
        ("tool", Part.RESULT),
        ("ToolMessage", Part.RESULT),
        ("tool_result", Part.RESULT),
        ("function_call_output", Part.RESULT),
        ("observation", Part.RESULT),
        ("environment", Part.RESULT),
        ("function_call", Part.CALL),
        ("tool_use", Part.CALL),
        ("ToolCallRequestEvent", Part.CALL),
        ("system", Part.SYSTEM),
        ("developer", Part.SYSTEM),
        ("thinking", Part.THOUGHT),
        ("redacted_thinking", Part.THOUGHT),
        ("token_count", Part.NOISE),
        ("heartbeat", Part.NOISE),
    ],
)
def test_a_word_for_a_part_is_known(value: str, part: Part) -> None:
    found = part_of(value)
    assert found is not None
    assert found[0] is part
    assert 0 < found[1] <= 1


@pytest.mark.parametrize("value", ["k7", "Ann", "", "7", "x" * 61, "a long sentence about the weather"])
def test_other_words_say_nothing(value: str) -> None:
    assert part_of(value) is None
