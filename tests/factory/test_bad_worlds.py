"""Worlds that drift, hang or crash, and commands that are interrupted: one run alone is lost, nothing is mislabelled,
and every skip has its reason."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from prefixguard.factory import CorpusReport, LabelledRun, collect, inject, read_corpus, replay, write_corpus
from prefixguard.factory.environments import ProcessChannel, RemoteEnvironment, opening

FAILED, DRIFTED = "the environment failed", "the environment answers otherwise than it did"
NOT_SO = "it cannot be played again: it was not made so"

#: Tasks "good" and "bad"; to be gone: 0, then 1. A careless agent goes to 9 instead of 1.
WORLD = """
import json, sys, time
runs = {{}}
for line in sys.stdin:
    asked = json.loads(line)
    verb, at = asked["do"], asked["session"]
    task, agent, done = runs.get(at, ("", "", []))
    if task == "bad" and verb == "{when}":
        {trouble}
    if verb == "tasks": said = {{"tasks": ["good", "bad"]}}
    elif verb == "reset": runs[at], said = (asked["task"], asked["agent"], []), {{"observation": "go"}}
    elif verb == "step":
        done.append(asked["action"].get("arguments", {{}}).get("to"))
        said = {{"answer": "at %s%s" % (done[-1], {drift!r} if task == "bad" else "")}}
    elif verb == "act":
        to = "9" if done and agent == "careless" and asked["salt"] is None else str(len(done))
        said = {{"action": None if len(done) > 1 else {{"tool": "go", "arguments": {{"to": to}}}}}}
    elif verb == "verify": said = {{"outcome": "success" if done == ["0", "1"] else "failure"}}
    else: said = {{}}
    print(json.dumps(said), flush=True)
"""

TROUBLE = {
    "hangs": "time.sleep(30)",
    "crashes": "sys.exit('no more memory')",
    "talks": "print('hello', flush=True); continue",
    "refuses": """print('{"error": "out of fuel"}', flush=True); continue""",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts such a world where `textworld` is."""

    def put(when: str = "never", trouble: str = "pass", drift: str = "") -> None:
        file = tmp_path / "world.py"
        file.write_text(textwrap.dedent(WORLD).format(when=when, trouble=trouble, drift=drift))
        seconds = 1.0 if "sleep" in trouble else 20.0

        def opened(*_: str, **options: str) -> RemoteEnvironment:
            channel = ProcessChannel([sys.executable, str(file)], "toy", seconds=seconds, first=20.0)
            return RemoteEnvironment(channel, "toy", {"name": "textworld"})

        monkeypatch.setattr(opening, "shipped_world", opened)

    return put


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_costs_the_run_that_meets_it_and_no_other(
    toy: Callable[..., None], trouble: str, tmp_path: Path
) -> None:
    """Collected, injected and replayed in a world that fails in one task; then the world is mended: all is there."""
    toy()
    collect("textworld", tmp_path / "safe.jsonl", count=2, tasks=2)
    collect("textworld", tmp_path / "failed.jsonl", count=2, tasks=2, agent="careless")
    toy("step", TROUBLE[trouble])
    found = collect("textworld", tmp_path / "c.jsonl", count=2, tasks=2)
    assert found.counts == {"runs": 2, "safe": 1, "failures": 0} and found.skips.counts == {FAILED: 1}
    assert [run.run["task_id"] for run in read_corpus(tmp_path / "c.jsonl")] == ["good"]
    found = inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", kinds=["left_out"], tries=1)
    assert found.counts["injected"] == 1 and found.skips.counts == {FAILED: 1}
    found = replay(tmp_path / "failed.jsonl", tmp_path / "r.jsonl", rolls=1)
    assert found.counts["labelled"] == 1 and found.skips.counts == {FAILED: 1}
    toy()
    assert inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", kinds=["left_out"], tries=1).skips.total == 0
    replay(tmp_path / "failed.jsonl", tmp_path / "r.jsonl", rolls=1)
    assert [[one.step for one in run.mistakes] for run in read_corpus(tmp_path / "r.jsonl")] == [[2], [2]]


def test_a_failure_of_the_world_is_tried_again_after_an_interruption(toy: Callable[..., None], tmp_path: Path) -> None:
    """What the environment did not answer is no fact about the run, and is not kept."""
    toy()
    collect("textworld", tmp_path / "safe.jsonl", count=2, tasks=2)
    toy("step", TROUBLE["crashes"])

    def stop(done: int, of: int) -> None:
        if done == of:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", kinds=["left_out"], tries=1, on_progress=stop)
    toy()
    assert inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", kinds=["left_out"], tries=1).counts["injected"] == 2


def test_a_drift_is_counted_by_every_command(toy: Callable[..., None], tmp_path: Path) -> None:
    toy()
    collect("textworld", tmp_path / "safe.jsonl", count=2, tasks=2)
    collect("textworld", tmp_path / "failed.jsonl", count=2, tasks=2, agent="careless")
    toy(drift=", and elsewhere")
    found = inject(tmp_path / "safe.jsonl", tmp_path / "i.jsonl", kinds=["repeated_call"], tries=1)
    assert found.counts["injected"] == 1 and found.skips.counts == {DRIFTED: 1}
    found = replay(tmp_path / "failed.jsonl", tmp_path / "r.jsonl", rolls=1)
    assert found.counts["labelled"] == 1 and found.skips.counts == {DRIFTED: 1}


@pytest.mark.parametrize(
    "made",
    [
        {},
        {"environment": "textworld"},
        {"environment": {"name": "textworld"}},
        {"environment": {"name": "textworld"}, "task": 3, "seed": None, "agent": []},
        {"environment": {"name": "simulation", "world": 3}},
        {"environment": {"name": "simulation", "world": 3}, "task": "t", "seed": "", "agent": "", "turns": []},
        {"environment": {"name": "simulation", "world": 3}, "task": "support-1", "seed": "", "agent": "", "turns": [3]},
    ],
)
def test_a_run_that_was_not_made_so_is_counted(
    made: dict[str, Any], toy: Callable[..., None], corpus: list[LabelledRun], tmp_path: Path
) -> None:
    toy()
    safe, failed = (next(run for run in corpus if run.source == source) for source in ("safe", "natural"))
    write_corpus(tmp_path / "c.jsonl", [replace(safe, provenance=made), replace(failed, provenance=made)])
    assert inject(tmp_path / "c.jsonl", tmp_path / "i.jsonl", tries=1).skips.counts == {NOT_SO: 1}
    assert replay(tmp_path / "c.jsonl", tmp_path / "r.jsonl", rolls=1).skips.counts == {NOT_SO: 1}


def test_messages_that_no_agent_with_tools_says_are_counted(toy: Callable[..., None], tmp_path: Path) -> None:
    toy()
    collect("textworld", tmp_path / "f.jsonl", count=2, tasks=2, agent="careless")
    one, other = read_corpus(tmp_path / "f.jsonl")
    for odd in ({"role": "assistant", "tool_calls": [3]}, {"content": "x"}, {"role": "assistant", "tool_calls": 3}):
        broken = replace(one, run={**one.run, "messages": [odd, *one.run["messages"]]})
        write_corpus(tmp_path / "odd.jsonl", [broken, other])
        found = replay(tmp_path / "odd.jsonl", tmp_path / "r.jsonl", rolls=1)
        assert found.counts["labelled"] == 1 and found.skips.counts == {NOT_SO: 1}


def test_kept_work_is_not_taken_for_another_run_of_the_same_id(corpus: list[LabelledRun], tmp_path: Path) -> None:
    """After an interruption the corpus was made anew: its runs have the old ids, and get labels of their own."""
    failed = [run for run in corpus if run.source == "natural"][:2]
    ids = [one.run_id for one in failed]
    swapped = [replace(run, run={**run.run, "run_id": name}) for run, name in zip(failed, ids[::-1], strict=True)]

    def stop(done: int, of: int) -> None:
        if done == of:
            raise KeyboardInterrupt

    write_corpus(tmp_path / "c.jsonl", failed)
    with pytest.raises(KeyboardInterrupt):
        replay(tmp_path / "c.jsonl", tmp_path / "r.jsonl", rolls=2, on_progress=stop)
    write_corpus(tmp_path / "c.jsonl", swapped)
    replay(tmp_path / "c.jsonl", tmp_path / "r.jsonl", rolls=2)
    own = {run.run_id: run.run["messages"] for run in swapped}
    found = list(read_corpus(tmp_path / "r.jsonl"))
    assert found and all(run.run["messages"] == own[run.run_id] for run in found)


def interrupted(work: Callable[[], object], at: int) -> int:
    """Do some work, with ^C at its call number `at` of a function of ours (0: never). Returns the number of calls."""
    calls = itertools.count(1)
    last = 0

    def hook(frame: FrameType, event: str, _: object) -> None:
        nonlocal last
        if event == "call" and "/prefixguard/" in frame.f_code.co_filename:
            last = next(calls)
            if last == at:
                raise KeyboardInterrupt

    sys.setprofile(hook)
    try:
        work()
    finally:
        sys.setprofile(None)
    return last


def seen(report: CorpusReport) -> str:
    return json.dumps(report.as_json(), sort_keys=True).replace(str(report.path), "OUT")


@pytest.mark.parametrize("command", ["collect", "inject", "replay", "collect in a process", "replay in a process"])
def test_an_interruption_at_any_point_loses_nothing(
    command: str, corpus: list[LabelledRun], toy: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command goes on to the same corpus and the same report; until then there is no corpus, or all of it; and
    no process of an environment is left."""
    toy()
    source = tmp_path / "source.jsonl"
    if "process" in command:
        collect("textworld", source, count=4, tasks=2, agent="careless")
    else:
        few = [[run for run in corpus if run.source == source][:4] for source in ("safe", "natural")]
        write_corpus(source, few[0] + few[1])
    begun, begin = list[subprocess.Popen[bytes]](), subprocess.Popen

    def noted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(begin(*args, **options))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)

    def work(out: Path) -> CorpusReport:
        match command:
            case "collect":
                return collect("simulation:3", out, count=8, tasks=4)
            case "collect in a process":
                return collect("textworld", out, count=4, tasks=2)
            case "inject":
                return inject(source, out, tries=2)
            case _:
                return replay(source, out, rolls=2)

    whole = tmp_path / "whole.jsonl"
    report = work(whole)
    total = interrupted(lambda: work(tmp_path / "counted.jsonl"), 0)
    places = random.Random(7).sample(range(2, total), 6) + [total - back for back in (0, 3, 8, 20, 60)]
    for number, place in enumerate(places):
        out = tmp_path / f"{number}.jsonl"
        for at in (place, place // 2 + 1):  # twice
            if not out.exists():
                try:
                    interrupted(lambda out=out: work(out), at)  # type: ignore[misc]
                except KeyboardInterrupt:
                    pass
                else:  # what was kept made it shorter
                    assert out.exists()
            assert not out.exists() or out.read_bytes() == whole.read_bytes()
        assert seen(work(out)) == seen(report), f"interrupted at call {place} of {total}"
        assert out.read_bytes() == whole.read_bytes()
        assert not out.with_name(f"{out.name}.kept").exists() and not list(tmp_path.glob(".*"))
    assert bool(begun) == ("process" in command) and all(one.wait(5) is not None for one in begun)
