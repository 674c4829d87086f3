"""Frozen adapters on events of no shape they know: records or a TraceError come out, never anything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import TraceError
from prefixguard.stepview import list_adapters, load_adapter, serialize

ADAPTERS = {name: load_adapter(name) for name in list_adapters()}
NAMES = st.sampled_from([
    "role", "content", "tool_calls", "function", "name", "arguments", "id", "tool_call_id", "error",
    "action", "observation", "thought", "requestor", "kind", "body",
    "type", "source", "message", "parts", "steps", "step_number", "span_data", "attributes", "events", "status",
    "method", "params", "result", "kwargs", "data", "tool_use_id", "input", "output", "call_id", "is_error",
    "gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "openinference.span.kind",
])  # fmt: skip
WORDS = st.sampled_from(
    [
        *("user", "assistant", "tool", "system", "", "Action: x", "execute[", "```bash\nls\n```", "{'a': ("),
        *("agent", "ROLE_AGENT", "human", "ai", "tool_use", "tool_result", "function", "generation", "tools/call"),
        *("chat", "execute_tool", "LLM", "TOOL", "ActionEvent", "gen_ai.choice", "function_call", '[{"parts": [3]}]'),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("name", ADAPTERS)
@settings(max_examples=60, deadline=None)
@given(events=st.lists(VALUES, max_size=6), header=st.none() | st.dictionaries(NAMES, VALUES, max_size=2))
def test_odd_events_give_records_or_a_trace_error(name: str, events: list[Any], header: dict[str, Any] | None) -> None:
    parser = ADAPTERS[name].parser(header)
    records = []
    for event in events:
        try:
            records.extend(parser.observe(event))
        except TraceError as error:
            assert str(error)
    records.extend(parser.end())
    assert [record.index for record in records] == list(range(1, len(records) + 1))
    for record in records:
        assert record.status in ("ok", "error", "unknown")
        serialize(record).decode("utf-8")
