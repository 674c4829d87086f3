"""Tools that a run can call, and steps that it may have: said once, recorded, and the same live and from the file."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import prefixguard
from prefixguard.errors import ConfigError
from prefixguard.integrations.events import Event
from prefixguard.runtime import load, score
from prefixguard.trace import NO_OFFER, RunOffer

TOOLS = ["get_order", "refund"]


def work(guard: prefixguard.Guard, **given: Any) -> list[Any]:
    """A run of ten steps, of which the third calls a tool that was not offered."""
    readings = []
    with guard.run("Refund order 7.", run_id="r", **given) as run:
        for n in range(10):
            tool = "cancel" if n == 2 else "get_order"
            readings += run.returned(run.called(tool, {"n": n}, call_id=f"c{n}"), f"result {n}")
    return readings


def held(readings: list[Any], name: str) -> list[int]:
    return [r.step for r in readings if any(one.behaviour.name == name for one in r.behaviours)]


def test_what_is_offered_is_known_live_and_in_the_file(tmp_path: Path) -> None:
    live = work(prefixguard.Guard("rules", record=tmp_path), tools=TOOLS, step_limit=10)
    assert held(live, "missing_tool") == [3] and held(live, "near_step_cap") == [9, 10]
    (scored,) = score("rules", tmp_path)
    assert scored.run.offer == RunOffer(tuple(TOOLS), 10)
    assert [(r.to_json(), r.behaviours) for r in scored.readings] == [(r.to_json(), r.behaviours) for r in live]
    events = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert (events[0]["tools"], events[0]["step_limit"]) == (TOOLS, 10)
    assert not any("tools" in event for event in events[1:])
    session = load("rules").start()
    streamed = [r for event in events for r in session.observe(event)]
    assert [r.behaviours for r in streamed] == [r.behaviours for r in live]
    spooled = list(prefixguard.SpooledRuns(prefixguard.parse(tmp_path)))
    assert spooled[0].offer == scored.run.offer


def test_without_it_nobody_knows(tmp_path: Path) -> None:
    live = work(prefixguard.Guard("rules", record=tmp_path))
    assert not held(live, "missing_tool") and not held(live, "near_step_cap")
    (scored,) = score("rules", tmp_path)
    assert scored.run.offer == NO_OFFER


def test_a_sub_agent_has_tools_of_its_own() -> None:
    guard = prefixguard.Guard("rules")
    with guard.run("x", tools=TOOLS) as run:
        below = run.delegate("search", task="Find it.", call_id=run.called("get_order", {}))
        assert not held(below.returned(below.called("search", {}), "found"), "missing_tool")


def test_saved_it_is_known_in_the_next_process() -> None:
    monitor = load("rules", adapter="openai_chat")
    session = monitor.restore(monitor.start(tools=TOOLS, step_limit=1).save())
    called = [{"id": "c", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}]
    session.observe({"role": "assistant", "content": None, "tool_calls": called})
    readings = session.observe({"role": "tool", "tool_call_id": "c", "content": "ok"})
    assert held(readings, "missing_tool") == held(readings, "near_step_cap") == [1]


@pytest.mark.parametrize("limit", [0, -1, 1 << 40, True, "9"])
def test_a_limit_that_is_none_is_refused(limit: int) -> None:
    with pytest.raises(ConfigError, match=f"The limit of steps is {limit!r}: use a number of steps from 1"):
        load("rules").start(step_limit=limit)


@pytest.mark.parametrize("tools", ["get_order", [1], ["x"] * 1001])
def test_tools_that_are_none_are_refused(tools: Any) -> None:
    with pytest.raises(ConfigError, match=r"The tools are .*: give a list of at most 1,000 names, or None"):
        load("rules").start(tools=tools)


@pytest.mark.parametrize(
    "given",
    [{"tools": "get"}, {"tools": [1]}, {"tools": ["x" * 201]}, {"tools": ["a"] * 1001}, {"step_limit": 0},
     {"step_limit": True}, {"step_limit": "9"}, {"tools": {"a": 1}}],
)  # fmt: skip
def test_what_cannot_be_read_is_counted_and_disturbs_nothing(given: dict[str, Any]) -> None:
    guard = prefixguard.Guard("rules")
    assert len(work(guard, **given)) == 10 and guard.counters["unread_fields"] == 1
    name = next(iter(given))
    with pytest.raises(prefixguard.PrefixGuardError, match=f"event: {name} is "):
        Event.from_json({"run": "r", "kind": "task", **given})
    session = load("rules").start()
    session.observe({"schema": "prefixguard/event/v1", "run": "r", "kind": "task", "text": "x", **given})
    event = {"schema": "prefixguard/event/v1", "run": "r", "kind": "said", "text": "Where is it?"}
    assert [r.unknown_reason for r in session.observe(event)] == [None]


def test_what_is_said_after_the_first_step_is_too_late() -> None:
    session = load("rules").start()
    task = {"schema": "prefixguard/event/v1", "run": "r", "kind": "task", "text": "x", "step_limit": 100}
    said = {"schema": "prefixguard/event/v1", "run": "r", "kind": "said", "text": "Where is it?"}
    readings = [r for event in (task, said, {**task, "step_limit": 1}, said) for r in session.observe(event)]
    assert len(readings) == 2 and not held(readings, "near_step_cap")


def test_what_several_tasks_say_before_the_first_step_is_joined_live_and_in_the_file(tmp_path: Path) -> None:
    task = {"schema": "prefixguard/event/v1", "run": "r", "agent_path": "main", "kind": "task", "text": "x"}
    called = {**task, "kind": "called", "text": "", "tool": "cancel", "arguments": {}, "call_id": "c"}
    events = [{**task, "tools": TOOLS}, {**task, "step_limit": 1}, called, {**called, "kind": "returned", "text": "ok"}]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    session = load("rules").start()
    live = [reading for event in events for reading in session.observe(event)]
    (scored,) = score("rules", tmp_path)
    assert held(live, "missing_tool") == held(live, "near_step_cap") == [1]
    assert [r.behaviours for r in scored.readings] == [r.behaviours for r in live]


def test_a_run_that_moves_before_its_task_is_known_keeps_it() -> None:
    guard, other = prefixguard.Guard("rules"), prefixguard.Guard("rules")
    kept = json.loads(json.dumps(guard.save_run(guard.run(tools=TOOLS, step_limit=9).id)))
    other.resume_run(kept)
    other.feed({"run": kept["run"], "kind": "observed", "text": "Refund order 7."})
    other.feed({"run": kept["run"], "kind": "called", "tool": "cancel", "call_id": "c"})
    readings = other.feed({"run": kept["run"], "kind": "returned", "call_id": "c", "text": "ok"})
    assert held(readings, "missing_tool") == [1]


def test_the_openai_agents_sdk_says_the_tools_of_an_agent_that_has_all_of_them_itself(tmp_path: Path) -> None:
    agents = pytest.importorskip("agents")
    wrapper = pytest.importorskip("agents.run_context").RunContextWrapper

    def get_order(order: int) -> str:
        """Find an order."""
        return str(order)

    tool = agents.function_tool(get_order)
    alone = agents.Agent(name="seller", tools=[tool])
    triage = agents.Agent(name="triage", tools=[tool], handoffs=[alone])
    for name, agent, of_run in (("alone", alone, {}), ("triage", triage, {}), ("told", triage, {"tools": ["refund"]})):
        guard = prefixguard.Guard("rules", record=tmp_path / name)
        hooks, context = guard.openai_agents(run_id="r", **of_run), wrapper(context=None)
        asyncio.run(hooks.on_llm_start(context, agent, None, [{"role": "user", "content": "Find order 7."}]))
        guard.close()
    said = [
        json.loads((tmp_path / name / "r.jsonl").read_text().splitlines()[0]) for name in ("alone", "triage", "told")
    ]
    assert [event.get("tools") for event in said] == [["get_order"], None, ["refund"]]
