"""docs/factory.md says what the commands write and which kinds of faults there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prefixguard.factory import LabelledRun
from prefixguard.factory.environments.simulation import SIMULATED_FAULTS
from prefixguard.factory.environments.tool_faults import TOOL_FAULTS, faults_of

MANUAL = (Path(__file__).parents[2] / "docs" / "factory.md").read_text("utf-8")


def test_the_example_of_the_form_is_a_line_that_is_written(corpus: list[LabelledRun]) -> None:
    (example,) = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", MANUAL, re.S) if '"labels"' in one]
    assert list(example) == list(corpus[0].as_json()) == list(LabelledRun.from_json(example).as_json())
    assert example["family"].startswith("simulation:") and example["licence"] == corpus[0].licence
    made = set(example["provenance"]) - {"source_run", "operator", "place"}
    assert made == set(corpus[0].provenance)


def test_all_kinds_of_faults_are_listed() -> None:
    for row, kinds in (("`simulation`", SIMULATED_FAULTS), ("all others", TOOL_FAULTS)):
        (line,) = re.findall(rf"^\| {row} \| (.*) \|$", MANUAL, re.M)
        assert line == ", ".join(f"`{kind}`" for kind in kinds)


def test_the_kinds_of_tools_are_those_that_are_made() -> None:
    calls = [{"tool": tool, "arguments": {"to": value}} for tool, value in (("a", "one"), ("b", "two"), ("a", "six"))]
    assert set(faults_of(2, calls)) == set(TOOL_FAULTS)
