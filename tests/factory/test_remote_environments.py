"""Worlds in other processes: one's own over HTTP, and what happens when one drifts, hangs or crashes."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from prefixguard.errors import ConfigError, ReplayDrift, ReplayError
from prefixguard.factory import LabelledRun, collect, inject, read_corpus, replay, write_corpus
from prefixguard.factory.environments import ProcessChannel, RemoteEnvironment, open_environment
from prefixguard.factory.environments.tool_faults import faults_of
from prefixguard.trace import Outcome

EXAMPLE = Path(__file__).parents[2] / "examples" / "replayable_world.py"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replayable_world", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), example().Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_world_of_ones_own(address: str, tmp_path: Path) -> None:
    """Collected, injected and replayed over HTTP; the labels are where the plan was left."""
    careful = collect(address, tmp_path / "safe.jsonl", count=6, tasks=3)
    assert careful.counts == {"runs": 6, "safe": 6, "failures": 0}
    report = inject(tmp_path / "safe.jsonl", tmp_path / "injected.jsonl", per_run=6, tries=12)
    runs = list(read_corpus(tmp_path / "injected.jsonl"))
    assert len({run.mistakes[0].kind for run in runs}) >= 4 and report.counts["injected"] == len(runs)
    sources = {run.run_id: run for run in read_corpus(tmp_path / "safe.jsonl")}
    for run in runs:
        step, source = run.mistakes[0].step or 0, sources[run.provenance["source_run"]]
        assert run.records()[: step - 1] == source.records()[: step - 1]
        assert run.records()[step - 1 : step] != source.records()[step - 1 : step]
    report = collect(address, tmp_path / "runs.jsonl", count=40, tasks=4, agent="careless")
    failures = [run for run in read_corpus(tmp_path / "runs.jsonl") if run.source == "natural"]
    assert len(failures) == report.counts["failures"] > 5
    replay(tmp_path / "runs.jsonl", tmp_path / "replayed.jsonl", rolls=2)
    for run in read_corpus(tmp_path / "replayed.jsonl"):
        boxes = [record.arguments for record in run.records()]
        first = next(i for i, box in enumerate(("red", "blue", "green")) if i >= len(boxes) or box not in boxes[i])
        assert run.mistakes[0].step == first + 1


WORLD = """
import json, sys, time
runs = {{}}
for line in sys.stdin:
    asked = json.loads(line)
    verb, at = asked["do"], asked["session"]
    done = runs.get(at, 0)
    {trouble}
    if verb == "tasks": said = {{"tasks": ["t"]}}
    elif verb == "reset": runs[at], said = 0, {{"observation": "go"}}
    elif verb == "step": runs[at], said = done + 1, {{"answer": f"{answer}"}}
    elif verb == "act": said = {{"action": None if done > 1 else {{"tool": "go", "arguments": {{"to": str(done)}}}}}}
    elif verb == "verify": said = {{"outcome": "success"}}
    else: said = {{}}
    print(json.dumps(said), flush=True)
"""


def world(tmp_path: Path, trouble: str = "pass", answer: str = "at {done}", seconds: float = 20.0) -> RemoteEnvironment:
    file = tmp_path / "world.py"
    file.write_text(textwrap.dedent(WORLD).format(trouble=trouble, answer=answer))
    channel = ProcessChannel([sys.executable, str(file)], "toy", seconds=seconds, first=20.0)
    return RemoteEnvironment(channel, "toy", {"name": "toy"})


def recorded(tmp_path: Path) -> LabelledRun:
    toy = world(tmp_path)
    toy.reset("t", "0")
    assert toy.continuation(None) is Outcome.SUCCESS
    run = LabelledRun(toy.trace(), "safe", provenance=toy.provenance())
    toy.close()
    return run


def test_a_run_plays_again_and_a_copy_stands_where_it_stood(tmp_path: Path) -> None:
    run, toy = recorded(tmp_path), world(tmp_path)
    assert [decision.step for decision in toy.decisions(run)] == [1, 2]
    toy.replay(run, 1)
    other = toy.fork()
    assert other.step({"tool": "go", "arguments": {"to": "1"}}) == "at 1" == toy.step({"tool": "go", "arguments": {}})
    assert other.trace()["messages"] == run.run["messages"]
    toy.close()


def test_another_answer_is_a_drift(tmp_path: Path) -> None:
    run, toy = recorded(tmp_path), world(tmp_path, answer="elsewhere {done}")
    with pytest.raises(ReplayDrift, match=r"step 1: toy answers 'elsewhere 0', it was 'at 0'\."):
        toy.replay(run, 2)
    toy.close()


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        ("time.sleep(30 if verb == 'step' else 0)", r"toy did not answer within 0\.5 seconds, and was ended"),
        ("sys.exit('no more memory') if verb == 'step' else 0", "toy ended, and said: no more memory"),
        ("print('hello') if verb == 'step' else 0", "one JSON object was expected"),
        ("print('[1]') if verb == 'step' else 0", "one JSON object was expected"),
        ("""print('{"error": "out of fuel"}') if verb == 'step' else 0""", "toy: out of fuel"),
        ("""print('{"answer": 3}') if verb == 'step' else 0""", "toy answered without 'answer', a text"),
    ],
)
def test_a_world_in_trouble_is_said(tmp_path: Path, trouble: str, sentence: str) -> None:
    toy = world(tmp_path, trouble, seconds=0.5)
    toy.reset("t", "0")
    with pytest.raises(ReplayError, match=sentence):
        toy.step({"tool": "go", "arguments": {}})
    toy.close()


def test_a_world_that_crashed_is_begun_again(tmp_path: Path) -> None:
    """The next run gets a new process; what was asked before is not answered by it."""
    marker = tmp_path / "crashed"
    there = f"__import__('os').path.exists({str(marker)!r})"
    trouble = f"open({str(marker)!r}, 'x') and sys.exit() if verb == 'step' and not {there} else 0"
    toy = world(tmp_path, trouble)
    toy.reset("t", "0")
    with pytest.raises(ReplayError, match="toy ended without a word"):
        toy.continuation(None)
    toy.reset("t", "0")
    assert toy.continuation(None) is Outcome.SUCCESS
    toy.close()


def test_a_process_clears_up_behind_itself(tmp_path: Path) -> None:
    """It ends with its input, and is killed only where it does not."""
    left = tmp_path / "left"
    left.touch()
    toy = world(tmp_path, f"__import__('atexit').register(lambda: __import__('os').remove({str(left)!r}))")
    toy.tasks(1)
    toy.close()
    assert not left.exists()


def test_an_agent_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    toy = world(tmp_path, "done = 0 if verb == 'act' else done")
    toy.reset("t", "0")
    with pytest.raises(ReplayError, match="its agent did not end within 200 actions"):
        toy.continuation(None)
    toy.close()


def test_a_server_that_is_not_there_is_said(corpus: list[LabelledRun], tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="Is the environment's server up"):
        open_environment("http://127.0.0.1:9").tasks(1)
    made = {"environment": {"name": "http://127.0.0.1:9"}, "task": "t", "seed": "0", "agent": ""}
    safe = next(run for run in corpus if run.source == "safe")
    write_corpus(tmp_path / "safe.jsonl", [replace(safe, provenance=made)])
    with pytest.raises(ReplayError, match=r"nothing was answered: http://127\.0\.0\.1:9/reset: .*is as it was"):
        inject(tmp_path / "safe.jsonl", tmp_path / "out.jsonl", tries=2)
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(ReplayError, match="does not run"):
        ProcessChannel([str(tmp_path / "nothing")], "toy").ask({"do": "tasks"})


def test_what_must_be_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFIXGUARD_TAU2_PYTHON", raising=False)
    monkeypatch.delenv("PREFIXGUARD_TEXTWORLD_PYTHON", raising=False)
    with pytest.raises(ConfigError, match=r"tau2-retail has no interpreter.*sierra-research/tau2-bench"):
        open_environment("tau2-retail")
    with pytest.raises(ConfigError, match=r"textworld has no interpreter.*pip install textworld"):
        open_environment("textworld")
    with pytest.raises(ConfigError, match="no domain 'telecom' here; there are: retail, airline"):
        open_environment("tau2-telecom")
    with pytest.raises(ReplayError, match=r"(?s)No module named.*pip install -e tau2-bench"):
        open_environment("tau2-retail", sys.executable)
    with pytest.raises(ReplayError, match=r"(?s)No module named 'textworld'.*pip install textworld"):
        open_environment("textworld", sys.executable)
    with pytest.raises(
        ConfigError, match="recorded runs are read for tau2-retail and tau2-airline, not for simulation"
    ):
        collect("simulation", "nowhere.jsonl", recorded="runs")


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ({"tool": "go", "arguments": {"to": "9"}, "reason": "so"}, {"tool": "go", "arguments": {"to": "9"}}),
        ({"say": "I cannot do that."}, {"say": "I cannot do that."}),
        ({"tool": "", "say": "No."}, {"say": "No."}),
        ({"tool": "go", "arguments": {"to": "0"}}, None),  # what the agent did
        ({"tool": "go", "say": "No."}, None),  # neither
        ({"say": ""}, None),
        ({"say": 3, "tool": None}, None),
        ({}, None),
    ],
)
def test_a_correction_is_a_call_or_words(said: dict, action: dict | None, tmp_path: Path) -> None:
    run, toy = recorded(tmp_path), world(tmp_path)
    found = toy.correction(run, 1, said)
    assert (found and found.action) == action and toy.correction(run, 3, said) is toy.correction(run, 0, said) is None
    toy.close()


def test_faults_are_made_of_what_the_run_holds() -> None:
    one = {"tool": "put", "arguments": {"box": "red", "shelf": "A1"}}
    other = {"tool": "take", "arguments": {"box": "blue", "shelf": "B2"}}
    found = faults_of(1, [other, one, {"say": "done"}])
    assert set(found) == {"left_out", "gave_up", "wrong_value", "mistyped_value", "wrong_tool", "repeated_call"}
    assert found["wrong_value"]["arguments"] == {"box": "blue", "shelf": "A1"}
    assert found["mistyped_value"]["arguments"] == {"box": "rde", "shelf": "A1"}
    assert found["wrong_tool"]["tool"] == "take" and found["repeated_call"]["arguments"] == other["arguments"]
    assert all(fault["instead_of"] == one for fault in found.values())
    assert faults_of(2, [other, one, {"say": "done"}]) == {}
