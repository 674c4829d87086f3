"""Inspect: samples and epochs are runs, scores are outcomes, sub-agents are apart; odd objects disturb nobody."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integration_players import PLAYERS, inspect_eval
from integrations import SCENARIOS, _served

from prefixguard import parse
from prefixguard.integrations import Guard
from prefixguard.integrations.inspect import InspectHooks, outcome_of
from prefixguard.runtime import Monitor
from prefixguard.stepview import StepRecord

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Inspect


def events_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["C"], True), ([1], True), ([1.0], True), ([True], True), (["1"], True), (["C", 1.0], True),
        (["I"], False), (["N"], False), ([0], False), ([0.0], False), ([False], False), (["I", 0], False),
        (["P"], None), ([0.5], None), ([], None), (["C", "I"], None), (["C", 0.5], None), ([None], None),
        ([{"a": 1}], None), ([[1]], None), (["true story"], None),
    ],
)  # fmt: skip
def test_the_value_of_a_score_that_is_success(values: list[Any], expected: bool | None) -> None:
    assert outcome_of({f"s{n}": SimpleNamespace(value=value) for n, value in enumerate(values)}) is expected


def test_one_scorer_may_be_the_one_that_counts() -> None:
    scores = {"match": {"value": "C"}, "rubric": {"value": "I"}}
    assert (outcome_of(scores), outcome_of(scores, "match"), outcome_of(scores, "rubric")) == (None, True, False)
    assert outcome_of(scores, "none of it") is None and outcome_of(None) is None and outcome_of([1]) is None


ODD = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2), st.just(object()))
FIELDS = {
    "event": st.sampled_from(["model", "tool", "span_begin", "span_end", "of a later release", 7, ["model"]]),
    "id": st.one_of(st.sampled_from(["a", "b"]), ODD), "span_id": st.one_of(st.sampled_from(["a", "b"]), ODD),
    "parent_id": st.one_of(st.sampled_from(["a", "b"]), ODD), "pending": ODD,
    "type": st.sampled_from(["agent", "tool", "subtask", None, 3, ["agent"]]), "name": ODD, "result": ODD, "error": ODD,
    "output": st.one_of(ODD, st.builds(lambda x: SimpleNamespace(choices=[SimpleNamespace(message=x)]), ODD)),
}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({}, optional=FIELDS).map(lambda found: SimpleNamespace(**found)), max_size=8),
    st.one_of(ODD, st.lists(st.builds(lambda x: SimpleNamespace(id=x, role="user"), ODD), max_size=2)),
)
def test_objects_of_another_release_never_raise_into_the_host(
    events_monitor: Monitor, events: list[Any], asked: Any
) -> None:
    """Whatever a transcript and messages hold, also spans in a circle: a hook that fails is counted by who calls it."""
    guard = Guard(events_monitor)
    hooks = InspectHooks(guard, None, {})
    begun = SimpleNamespace(eval_id="e", sample_id="s", summary=None)
    transcript = SimpleNamespace(events=[])
    hooks.begins(begun, transcript)
    for event in events:
        transcript.events.append(event)
        hooks.happens(begun)
    hooks.told(hooks.asks, SimpleNamespace(input=asked), "a", SimpleNamespace)
    hooks.told(hooks.ends, SimpleNamespace(sample_id="s", sample=SimpleNamespace(scores=asked)))
    hooks.told(hooks.ends, SimpleNamespace())
    hooks.told(hooks.begins, SimpleNamespace(), transcript)
    assert guard.open_runs == 0


# What Inspect itself does

NEEDED = pytest.mark.skipif(find_spec("inspect_ai") is None, reason="Inspect is not installed")


def play(replies: list[Any], hooks: Any, *, samples: int = 1, scorer: Any = None, **options: Any) -> Any:
    """A task that a model plays, of Inspect's own. replies : texts, or (tool, arguments), the same for each sample."""
    import inspect_ai
    from inspect_ai.agent import react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.tool import tool

    @tool
    def find() -> Any:
        async def execute(id: str) -> str:
            """Where an order is.

            Args:
                id: of the order
            """
            await asyncio.sleep(0)
            return f"order {id}: not there"

        return execute

    def answer(messages: Any, *_: Any) -> Any:
        n = sum(message.role == "assistant" for message in messages)
        reply = replies[min(n, len(replies) - 1)]
        if callable(reply):
            reply = reply(messages)
        is_text = isinstance(reply, str)
        made = ModelOutput.from_content("m", reply) if is_text else ModelOutput.for_tool_call("m", *reply)
        made.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)  # else Inspect downloads a tokenizer
        return made

    model = get_model("mockllm/model", custom_outputs=answer)
    data = [Sample(id=f"s{n}", input=f"Where is A{n}?", target=f"A{n}") for n in range(samples)]
    task = inspect_ai.Task(data, solver=react(tools=[find()], submit=False), scorer=scorer or includes(), name="orders")
    with hooks:
        return inspect_ai.eval(task, model=model, display="none", **options)[0]


@NEEDED
def test_epochs_are_runs_of_one_task_and_scores_are_outcomes(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path / "runs")
    log = play(
        [("find", {"id": "A"}), "It is with A1."], guard.inspect(), samples=2, epochs=2, log_dir=str(tmp_path / "logs")
    )
    events = events_of(tmp_path / "runs")
    tasks = [(e["run"], e["task_id"], e["text"]) for e in events if e["kind"] == "task"]
    assert sorted(t[1:] for t in tasks) == [("orders/s0", "Where is A0?")] * 2 + [("orders/s1", "Where is A1?")] * 2
    assert {t[0] for t in tasks} == {sample.uuid for sample in log.samples}
    outcomes = {e["run"]: e["outcome"] for e in events if e["kind"] == "outcome"}
    assert outcomes == {s.uuid: "success" if s.scores["includes"].value == "C" else "failure" for s in log.samples}
    assert sorted(outcomes.values()) == ["failure"] * 2 + ["success"] * 2
    assert {e["agent"] for e in events if e["kind"] == "called"} == {"react"}
    assert guard.counters == {"events": 4 * 5} and guard.open_runs == 0


@NEEDED
@pytest.mark.parametrize("name", ["error", "nested, parallel", "handoff"])
def test_what_a_guard_recorded_is_what_the_log_holds(name: str, tmp_path: Path) -> None:
    """Runs, steps and outcomes; so a monitor may be trained on either."""
    player = PLAYERS["inspect"]
    scenario = player.adapted(SCENARIOS[name])
    guard = Guard.recording(tmp_path / "runs")
    with _served(scenario, player) as (url, _), guard.inspect():
        inspect_eval(url, scenario, log_dir=str(tmp_path / "logs"))
    live, logged = (
        {run.run_id.replace("/main", "", 1): (run.outcome, run.records) for run in parse(tmp_path / folder, adapter)}
        for folder, adapter in (("runs", "events"), ("logs", "inspect_log"))
    )
    assert len(live) == len(scenario.scripts) + (name == "nested, parallel")
    assert {run: (one, [without(r) for r in records]) for run, (one, records) in live.items()} == {
        run: (one, [without(r) for r in records]) for run, (one, records) in logged.items()
    }


def without(record: StepRecord) -> StepRecord:
    """The name of the agent and what a step took stand in events only, and they count otherwise; none is evidence."""
    return replace(record, agent="", event=0, signals=None)


@NEEDED
def test_what_scorers_ask_a_model_is_no_step(tmp_path: Path) -> None:
    from inspect_ai.scorer import model_graded_qa

    guard = Guard.recording(tmp_path / "runs")
    play(["GRADE: C"], guard.inspect(), scorer=model_graded_qa(), log_dir=str(tmp_path / "logs"))
    found = [(e["kind"], e.get("text", e.get("outcome", ""))) for e in events_of(tmp_path / "runs")]
    assert found == [("task", "Where is A0?"), ("said", "GRADE: C"), ("ended", ""), ("outcome", "success")]


@NEEDED
def test_a_sample_that_is_tried_again_is_another_run_and_one_that_broke_has_no_outcome(tmp_path: Path) -> None:
    broken = []

    def breaks(messages: Any) -> str:
        broken.append(messages)
        if len(broken) == 1 or len(broken) > 2:
            raise RuntimeError("no network")
        return "It is with A0."

    guard = Guard.recording(tmp_path / "runs")
    options: dict[str, Any] = {"retry_on_error": 1, "fail_on_error": False}
    play([("find", {"id": "A"}), breaks], guard.inspect(), log_dir=str(tmp_path / "1"), **options)
    play([("find", {"id": "A"}), breaks], guard.inspect(), log_dir=str(tmp_path / "2"), **options)
    events = events_of(tmp_path / "runs")
    runs = list(dict.fromkeys(e["run"] for e in events))
    assert len(runs) == 4 and {e["task_id"] for e in events if e["kind"] == "task"} == {"orders/s0"}
    assert [e["outcome"] for e in events if e["kind"] == "outcome"] == ["success"]
    assert sum(e["kind"] == "ended" for e in events) == 4 and guard.open_runs == 0


@NEEDED
def test_a_nudge_stays_before_the_model_and_a_stop_is_a_limit(events_monitor: Monitor, tmp_path: Path) -> None:
    heard = []

    def hears(messages: Any) -> Any:
        heard.append([message.text for message in messages if message.role == "user"])
        return "Enough." if len(heard) == 9 else ("find", {"id": "A"})

    guard = Guard(events_monitor, on_alarm=lambda alarm: "Ask the customer.", record=tmp_path / "runs")
    play([hears], guard.inspect(), log_dir=str(tmp_path / "1"))
    since = next(n for n, texts in enumerate(heard) if "Ask the customer." in texts)
    assert all(texts == ["Where is A0?", "Ask the customer."] for texts in heard[since:])
    assert sum(e["kind"] == "injected" for e in events_of(tmp_path / "runs")) == 1
    assert sum(e["kind"] == "observed" for e in events_of(tmp_path / "runs")) == 0, "a nudge is no observation"

    heard.clear()
    log = play([hears], Guard(events_monitor, on_alarm="stop").inspect(), log_dir=str(tmp_path / "2"))
    assert len(heard) < 9 and log.samples[0].limit.type == "custom" and log.samples[0].scores
    assert "stopped at" in log.samples[0].limit.reason


@NEEDED
def test_hooks_that_are_closed_watch_no_more(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path / "runs")
    with guard.inspect() as hooks:
        pass
    play(["It is with A0."], hooks, log_dir=str(tmp_path / "logs"))
    assert guard.counters == {}
