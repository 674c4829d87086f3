"""How well public formats are read must not get worse: a floor under the agreement with their truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from agreement import agree, read_truth, readings

from prefixguard.induce import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import Adapter, read_runs

HERE = Path(__file__).parents[1]
#: Floors of (records, split speech joined; results). All runs, all outcomes, and nearly all tools and arguments are
#: right in all of them.
FLOORS = {
    "a2a": (1.0, None),
    "anthropic_messages": (1.0, 1.0),
    "atif": (1.0, 1.0),
    "autogen": (0.9, 1.0),
    "claude_code": (0.98, 1.0),
    "inspect": (1.0, 1.0),
    "langgraph": (1.0, 1.0),
    "langgraph_dumpd": (1.0, 1.0),
    "mcp": (1.0, 0.8),
    "openai_agents": (0.95, 0.95),
    "openai_responses": (1.0, 1.0),
    "openhands": (0.95, 0.9),
    "openinference": (0.95, 0.95),
    "otel_genai": (1.0, 1.0),
    "smolagents": (0.95, 0.8),
}


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_a_public_format_is_read_as_well_as_ever(name: str) -> None:
    folder = HERE / "samples" / name
    adapter = Adapter(propose_by_search(open_samples(folder), name=name).spec)
    found = agree(readings(read_runs(folder, adapter), folder), read_truth(HERE / "truth" / f"{name}.jsonl"))
    records, results = FLOORS[name]
    assert found.runs == 1.0
    assert found.records_joined >= records
    assert found.tools is not None and found.tools >= 0.95
    assert found.arguments is None or found.arguments >= 0.95
    assert found.outcomes == 1.0
    assert results is None or found.results >= results
