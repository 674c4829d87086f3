"""Safe runs are safe, and what is left out is counted with its reason."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from model_server import model_server, says

from prefixguard.errors import ConfigError
from prefixguard.escalate import Endpoint
from prefixguard.factory import LabelledRun, collect, read_corpus
from prefixguard.factory.environments import Environments, SimulationEnvironment
from prefixguard.factory.safe_runs import integrity
from prefixguard.simulation import play


def faults_of(run: LabelledRun) -> tuple[dict, ...]:
    """What only the simulation knows."""
    made = run.provenance
    number = int(made["task"].removeprefix("support-"))
    name = f"{made['environment']['world']}/{made['task']}/{made['seed']}"
    return play(made["environment"]["world"], number, name, agent=made["agent"]).faults


def test_no_run_that_is_kept_as_safe_has_a_fault(corpus: list[LabelledRun]) -> None:
    safe = [run for run in corpus if run.source == "safe"]
    assert len(safe) > 20 and not any(faults_of(run) for run in safe)
    assert all(run.run["outcome"] == "success" and not run.mistakes for run in safe)
    failed = [run for run in corpus if run.source == "natural"]
    assert len(failed) > 20 and all(run.run["outcome"] == "failure" and not run.mistakes for run in failed)


def test_nothing_is_lost_without_a_reason(corpus: list[LabelledRun], tmp_path: Path) -> None:
    report = collect("simulation:3", tmp_path / "again.jsonl", count=160, tasks=40)
    assert report.counts["safe"] + report.counts["failures"] + report.skips.total == 160
    assert set(report.skips.counts) <= {
        "integrity: a tool answered with an error",
        "integrity: arguments of a call are no JSON",
        "integrity: the agent made a fault",
    }
    assert list(read_corpus(tmp_path / "again.jsonl")) == corpus, "same seed, same runs"
    assert not (tmp_path / "again.jsonl.kept").exists()


def test_an_interruption_loses_nothing(corpus_file: Path, tmp_path: Path) -> None:
    path, played = tmp_path / "runs.jsonl", Counter[int]()

    def stop(done: int, _: int) -> None:
        played[done] += 1
        if done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        collect("simulation:3", path, count=160, tasks=40, on_progress=stop)
    assert not path.exists() and len(list((tmp_path / "runs.jsonl.kept").iterdir())) == 30
    collect("simulation:3", path, count=160, tasks=40)
    assert path.read_bytes() == corpus_file.read_bytes()


def test_a_trace_speaks_against_itself() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    done = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    end = {"role": "assistant", "content": "done"}

    def said(*messages: dict) -> str:
        return integrity(LabelledRun({"run_id": "r", "outcome": "success", "messages": list(messages)}, "safe"))

    assert said(asks, done, end) == ""
    assert said(asks, end) == "a call has no result"
    assert said(asks, {**done, "content": "Error: no such user"}, end) == "a tool answered with an error"
    broken = {**call, "function": {"name": "f", "arguments": '{"a": '}}
    assert said({**asks, "tool_calls": [broken]}, done, end) == "arguments of a call are no JSON"
    assert said({"role": "user", "content": "hello"}) == "it has no step"
    assert said(asks, done, {**end, "content": ""}) == "it ends without an answer"


def test_a_judge_is_believed_only_in_the_form(tmp_path: Path) -> None:
    """A judge that says no, says nothing, refuses, or talks: no run becomes safe by it, and each has its reason."""
    plays = [
        says('{"coherent": true}'),
        says('{"coherent": false, "step": 2}'),
        says("It looks fine to me."),
        says('{"verdict": "yes"}'),
        says("", refusal="I cannot judge this."),
        says('{"coherent": '),
        says('{"coherent": true}'),
    ]
    with model_server(*plays) as server:
        judge = Endpoint("judge", server.url, max_retries=0)
        report = collect("simulation:3", tmp_path / "a.jsonl", count=50, tasks=50, judge=judge)
        asked = len(server.requests)
        again = collect("simulation:3", tmp_path / "a.jsonl", count=50, tasks=50, judge=judge)
        assert len(server.requests) == asked, "a reply that is kept is not asked for again"
    assert again.as_json() == report.as_json()
    told = {reason: count for reason, count in report.skips.counts.items() if reason.startswith("coherence")}
    assert told == {
        "coherence: the judge found a step that does not serve the goal": 1,
        "coherence: the reply is no JSON object": 2,
        "coherence: the reply does not say": 1,
        "coherence: the model refused": 1,
    }
    shown = json.dumps(server.requests)
    assert "careful" not in shown and "success" not in shown.lower().replace("successful", "")


def test_a_spent_budget_makes_no_run_safe(tmp_path: Path) -> None:
    with model_server(says('{"coherent": true}')) as server:  # counts 1,100 tokens a reply
        judge = Endpoint("judge", server.url, max_retries=0)
        report = collect("simulation:3", tmp_path / "a.jsonl", count=50, tasks=50, judge=judge, budget_tokens=2000)
    assert report.counts["safe"] == 2 == len(server.requests)
    assert report.skips.counts["coherence: not asked: the budget was used up"] > 3


def test_what_is_asked_wrongly_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="count 0, tasks 50: each 1 or more"):
        collect("simulation", tmp_path / "a.jsonl", count=0)


def test_the_world_knows_silent_faults(corpus: list[LabelledRun]) -> None:
    """Of runs that succeeded, errors of tools do not show every fault: the simulation names the others."""
    world, hidden = SimulationEnvironment(3), 0
    for number in range(120):
        world.reset(f"support-{number:05d}", "x")
        if world.continuation(None) == "success":
            run = LabelledRun(world.trace(), "safe", provenance=world.provenance())
            hidden += not integrity(run) and bool(world.complaint(run))
    assert hidden > 5
    run = corpus[0]
    assert Environments().of(run).reference(run).startswith("verify_identity")
    assert replace(run, split="train").provenance == run.provenance
