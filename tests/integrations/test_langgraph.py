"""Graphs of LangGraph: branches that run at once, interrupts, names of paths, and nudges that callbacks cannot give."""

from __future__ import annotations

import json
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from prefixguard.integrations import Guard
from prefixguard.runtime import Monitor

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the frameworks


class Scripted(GenericFakeChatModel):  # type: ignore[misc]
    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self


class State(TypedDict):
    question: str
    out: Annotated[list[str], operator.add]


def ask(words: str) -> str:
    return str(Scripted(messages=iter([AIMessage(f"answer to {words}")])).invoke(words).content)


def beside() -> Any:
    """Two nodes that run at once, one of them a graph."""
    inner: Any = StateGraph(State)
    inner.add_node("model", lambda state: {"out": [ask("inner")]})
    inner.add_edge(START, "model")
    graph: Any = StateGraph(State)
    graph.add_node("look", inner.compile())
    graph.add_node("think", lambda state: {"out": [ask("think")]})
    graph.add_edge(START, "look")
    graph.add_edge(START, "think")
    return graph.compile()


def events(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {f.stem: [json.loads(line) for line in f.read_text().splitlines()] for f in sorted(folder.glob("*.jsonl"))}


def test_branches_that_begin_at_once_are_one_run_of_one_task(tmp_path: Path) -> None:
    guard, graph = Guard.recording(tmp_path), beside()
    for n in range(60):
        graph.invoke({"question": "Where?", "out": []}, config={"callbacks": [guard.langgraph(run_id=f"r{n}")]})
    runs = events(tmp_path)
    assert len(runs) == 60 and "internal_errors" not in guard.counters
    assert {frozenset(e["agent_path"] for e in run) for run in runs.values()} == {frozenset({"main", "main/look#1"})}
    assert len({e["task_id"] for run in runs.values() for e in run if e["kind"] == "task"}) == 1


@pytest.mark.parametrize("hook", ["langchain", "langgraph", "a new handler"])
def test_an_interrupted_call_returns_after_the_resume(hook: str, tmp_path: Path) -> None:
    def human(question: str) -> str:
        """Ask a person."""
        return f"human said {interrupt(question)}"

    wants = AIMessage("", tool_calls=[{"name": "human", "args": {"question": "ok?"}, "id": "c1"}])
    model = Scripted(messages=iter([wants, AIMessage("done"), AIMessage("again")]))
    guard = Guard.recording(tmp_path)
    middleware = [guard.langchain(run_id="r")] if hook == "langchain" else []
    agent = create_agent(model, [human], middleware=middleware, checkpointer=InMemorySaver())
    handler = guard.langgraph(run_id="r")

    def config() -> Any:
        used = [] if middleware else [handler if hook == "langgraph" else guard.langgraph(run_id="r")]
        return {"configurable": {"thread_id": "1"}, "callbacks": used}

    agent.invoke({"messages": [("user", "go")]}, config())
    assert guard.open_runs == 1
    agent.invoke(Command(resume="yes"), config())
    assert guard.open_runs == 0 and set(guard.counters) == {"events"}
    agent.invoke({"messages": [("user", "next")]}, config())
    runs = events(tmp_path)
    told = [(e["agent_path"], e["kind"], e.get("text")) for e in runs["r"]]
    assert told[2:] == [("main", "returned", "human said yes"), ("main", "said", "done"), ("main", "ended", None)]
    assert [e["kind"] for e in runs["r-2"]] == ["task", "said", "ended"]


def test_an_interrupt_that_nobody_answers_ends_with_the_next_question(tmp_path: Path) -> None:
    graph: Any = StateGraph(State)
    graph.add_node("ask", lambda state: {"out": [ask("a")]})
    graph.add_node("wait", lambda state: {"out": [interrupt("ok?")]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "wait")
    guard, made = Guard.recording(tmp_path), graph.compile(checkpointer=InMemorySaver())
    for _ in range(3):
        config = {"configurable": {"thread_id": "1"}, "callbacks": [guard.langgraph()]}
        made.invoke({"question": "Where?", "out": []}, config)
    assert guard.open_runs == 1
    assert sorted(run[-1]["kind"] for run in events(tmp_path).values()) == ["ended", "ended", "said"]


def test_a_nudge_that_callbacks_cannot_give_is_a_warning(
    events_monitor: Monitor, caplog: pytest.LogCaptureFixture
) -> None:
    acted: list[str] = []

    class Sink:
        def emit(self, watched: Any) -> None:
            acted.append(watched.acted)

    guard = Guard(events_monitor, on_alarm="nudge", sinks=[Sink()])
    for task in ("one", "two"):
        run = guard.run(task)
        guard.no_nudges(run.id, "callbacks of LangChain cannot nudge: use the middleware")
        for n in range(8):
            run.returned(run.called("find", {"n": n}), "Error: no such order", is_error=True)
        assert run.nudge() is None
        run.end()
    guard.close()
    assert guard.counters["alarms"] == 2 and acted.count("warn") == 2 and "nudge" not in acted
    assert caplog.text.count("callbacks of LangChain cannot nudge: use the middleware") == 1
