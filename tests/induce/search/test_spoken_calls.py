"""Calls that stand in text are found by their form, whatever the tools are called; speech holds none."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

import pytest

from prefixguard.induce.search.spoken_calls import spoken_calls
from prefixguard.induce.search.spoken_names import names_share, value_of

TOOLS = ("search", "open_page")
THOUGHT = "I should see what is known about it before I go on."


def made(i: int) -> tuple[str, dict[str, str]]:
    return TOOLS[i % 2], {"q": f"Lisbon {i}"}


FORMS: dict[str, Callable[[str, dict[str, str]], str]] = {
    "brackets": lambda tool, given: f"{tool}[{given['q']}]",
    "last line": lambda tool, given: f'{THOUGHT}\n{tool}("{given["q"]}")',
    "json": lambda tool, given: json.dumps({"thought": THOUGHT, "action": {"name": tool, "args": given}}),
    "only key": lambda tool, given: json.dumps({tool: given}),
    "fenced json": lambda tool, given: f"{THOUGHT}\n```json\n{json.dumps({'tool': tool, 'args': given})}\n```",
    "labels": lambda tool, given: f"Thought: {THOUGHT}\nAction: {tool}\nAction Input: {given['q']}",
    "tags": lambda tool, given: f"{THOUGHT}\n<{tool}>{given['q']}</{tool}>",
    "named tags": lambda tool, given: f'{THOUGHT}\n<invoke name="{tool}">{given["q"]}</invoke>',
    "tagged json": lambda tool, given: f"<tool_call>{json.dumps({'name': tool, 'arguments': given})}</tool_call>",
    "in words": lambda tool, given: f"calling tool {tool} with args {json.dumps(given)}",
    "name and json": lambda tool, given: f"{tool} {json.dumps(given)}",
    "key and value": lambda tool, given: f"run=3 tool={tool} args={json.dumps(given)}",
    "with its result": lambda tool, given: f"{THOUGHT} [{tool}({json.dumps(given)}) -> it is on the coast]",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_calls(form: str) -> None:
    calls = [made(i) for i in range(12)]
    texts = [FORMS[form](*call) for call in calls]
    best = spoken_calls(texts, "@.text")[0]
    tool, given = value_of(best.tool), value_of(best.arguments)
    assert [tool(text) for text in texts] == [name for name, _ in calls], best
    assert all(arguments["q"] in str(given(text)) for text, (_, arguments) in zip(texts, calls, strict=True)), best
    assert (best.result is not None) == (form == "with its result")
    if THOUGHT in texts[0]:
        assert THOUGHT in str(value_of(best.said)(texts[0])), best


def test_a_block_of_code_is_a_call_of_its_language() -> None:
    texts = [f"{THOUGHT}\n```bash\nls -la dir{i}\n```" for i in range(9)]
    best = spoken_calls(texts, "@.text")[0]
    assert dict(best.tools) == {"bash": 9} and value_of(best.arguments)(texts[3]) == "ls -la dir3"


def test_speech_holds_no_calls() -> None:
    said = ["I think that {} is the right place to look for it.", "The plan for {} is clear, so we can go on.",
            "Let me check the order of {} for you.", "You can find {} in the list that I sent."]  # fmt: skip
    assert not spoken_calls([said[i % 4].format(f"item {i}") for i in range(24)], "@.text")
    assert names_share(["I", "The", "Let", "You"] * 6) == 0.0


def test_noise_is_looked_at_in_bounded_time() -> None:
    rng = random.Random(3)
    texts = ["".join(rng.choices("([{<`\"'\\|:=->}])\n a1", k=20_000)) for _ in range(40)]
    began = time.process_time()
    spoken_calls(["((((" * 5000, *texts], "@.text")
    assert time.process_time() - began < 20
