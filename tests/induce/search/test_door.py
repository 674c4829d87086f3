"""From samples alone to an adapter: runs in many shapes come out as the same records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hand_written import TOWNS, chats, folder, propose, steps, wanted

from prefixguard.induce.proposal import Choice
from prefixguard.trace import Outcome

OUTCOMES = [Outcome.FAILURE, Outcome.SUCCESS]


def renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): renamed(item, names) for key, item in value.items()}
    return [renamed(item, names) for item in value] if isinstance(value, list) else value


def flat(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs as a log of events, taking turns as a server would write them."""
    lines = []
    for at in range(max(len(run["messages"]) for run in runs)):
        lines += [{"session": run["run_id"], **run["messages"][at]} for run in runs if at < len(run["messages"])]
    return lines


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({f"{i}.json": run for i, run in enumerate(chats())}, id="a file a run"),
        pytest.param({"all.jsonl": chats()}, id="a line a run"),
        pytest.param({"all.json": {"made": "today", "runs": chats()}}, id="under a key"),
        pytest.param({"all.json": {run["run_id"]: run for run in chats()}}, id="an object of runs"),
        pytest.param({"all.json": [{"meta": {"k": 1}, "body": {"run": run}} for run in chats()]}, id="deep inside"),
        pytest.param({"all.json": [{**r, "messages": json.dumps(r["messages"])} for r in chats()]}, id="JSON in JSON"),
        pytest.param({f"{i}/log.jsonl": run["messages"] for i, run in enumerate(chats())}, id="a line an event"),
        pytest.param({"log.jsonl": flat(chats())}, id="lines with the id of their run"),
        pytest.param({"a.json": chats(), "b.json": "", "notes.md": "Some *words*.\n"}, id="other files beside"),
        pytest.param({"a.json": chats(notes="x" * 100_000)}, id="a long text beside"),
        pytest.param({"a.json": renamed(chats(), {"role": "k1", "content": "k2", "messages": "k3"})}, id="renamed"),
    ],
)
def test_runs_are_read_wherever_they_stand(files: dict[str, Any], tmp_path: Path) -> None:
    _, runs = propose(tmp_path, files)
    assert sorted(steps(run) for run in runs) == sorted(wanted(i) for i in range(6))


def test_outcome_task_id_and_all_that_is_said_are_found(tmp_path: Path) -> None:
    proposal, runs = propose(tmp_path, {"all.json": chats()})
    assert sorted(steps(run) for run in runs) == sorted(wanted(i) for i in range(6))
    assert [run.outcome for run in runs] == OUTCOMES * 3
    assert [run.task_id for run in runs] == [f"trip-{i % 3}" for i in range(6)]
    assert [run.run_id for run in runs] == [f"run-{i}" for i in range(6)]
    assert "$.reward" in proposal.spec["hidden"]
    first, *_, last = runs[0].records
    assert first.action == "Let me search as number 0 of 0."
    assert "A seat to Oslo on day 0, please." in first.observation
    assert "You book trains" not in first.observation
    assert last.action == "All is done for traveller 0."


def test_members_of_a_zip_are_documents(tmp_path: Path) -> None:
    samples = folder(tmp_path, {"x.json": chats(1)})
    (samples / "x.json").unlink()
    with zipfile.ZipFile(samples / "runs.zip", "w") as archive:
        for i, run in enumerate(chats()):
            archive.writestr(f"{i}.json", json.dumps(run))
    _, runs = propose(tmp_path, {})
    assert [steps(run) for run in runs] == [wanted(i) for i in range(6)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_run_is_enough_where_roles_have_their_names(n: int, tmp_path: Path) -> None:
    _, runs = propose(tmp_path, {"run.json": chats(n) if n > 1 else chats(1)[0]})
    assert [steps(run) for run in runs] == [wanted(i) for i in range(n)]


def test_parallel_calls_keep_their_own_results(tmp_path: Path) -> None:
    runs = []
    for i in range(6):
        calls = [
            {"id": f"{i}.{j}", "name": ("weather", "map")[j % 2], "arguments": {"at" if j % 2 else "day": i + j}}
            for j in range(3)
        ]
        back = [{"role": "tool", "call": one["id"], "content": f"got {one['id']} out"} for one in reversed(calls)]
        runs.append(
            {
                "id": i,
                "turns": [
                    {"role": "user", "content": f"Look at {TOWNS[i]}"},
                    {"role": "assistant", "content": "", "calls": calls},
                    *back,
                    {"role": "assistant", "content": f"I have seen number {i}."},
                ],
            }
        )
    _, found = propose(tmp_path, {"a.json": runs})
    for i, run in enumerate(found):
        assert [one.result for one in run.records[:3]] == [f"got {i}.{j} out" for j in range(3)]
        assert [one.tool for one in run.records] == ["weather", "map", "weather", "respond"]


def test_flags_of_results_become_their_status(tmp_path: Path) -> None:
    runs = chats()
    for i, run in enumerate(runs):
        for j, message in enumerate(run["messages"]):
            if message["role"] == "tool":
                message["is_error"] = (i + j) % 3 == 0
    _, found = propose(tmp_path, {"a.json": runs})
    expected = [["error" if m["is_error"] else "ok" for m in r["messages"] if m["role"] == "tool"] for r in runs]
    assert [[str(one.status) for one in run.records[:-1]] for run in found] == expected


def near() -> list[dict[str, Any]]:
    """Two places that could tell how runs ended, and disagree."""
    return [{**run, "passed": i % 3 == 0, "reward": float(i % 2)} for i, run in enumerate(chats(12))]


def test_what_the_samples_do_not_decide_is_asked_and_the_answer_obeyed(tmp_path: Path) -> None:
    """An answer that is no option leaves the stated rule."""
    asked: list[Choice] = []

    def second(choice: Choice) -> int:
        asked.append(choice)
        return 1 if choice.field == "outcome" else 0

    files = {"a.json": near()}
    first, _ = propose(tmp_path / "1", files)
    other, _ = propose(tmp_path / "2", files, ask=second)
    choice = next(one for one in asked if one.field == "outcome")
    assert first.spec["run"]["outcome"] == choice.options[0].value
    assert other.spec["run"]["outcome"] == choice.options[1].value
    assert next(one for one in other.choices if one.field == "outcome").taken == 1
    for answer in (-1, 99):
        unchanged, _ = propose(tmp_path / str(answer), files, ask=lambda _, answer=answer: answer)
        assert unchanged.spec == first.spec


def test_the_report_says_what_is_read_and_what_is_left_out(tmp_path: Path) -> None:
    runs = chats()
    for run in runs:
        for j, message in enumerate(run["messages"]):
            message["trace"] = f"opaque-{j}-{run['run_id']}"
    proposal, _ = propose(tmp_path, {"a.json": runs})
    fields = {one.field for one in proposal.mapped}
    assert {"tool", "arguments", "call_id", "result", "action", "observation", "outcome", "task", "id"} <= fields
    assert all(0 <= one.coverage <= 1 and 0 <= one.confidence <= 1 and one.raw for one in proposal.mapped)
    left = {one.raw: one for one in proposal.left_out}
    assert any("trace" in raw and one.share > 0.05 and one.why for raw, one in left.items())
    assert any("$.messages[*]" in note for note in proposal.notes)


_AGAIN = """
import sys
from pathlib import Path
from prefixguard.induce import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import canonical
for name in sys.argv[1:]:
    found = propose_by_search(open_samples(name), name="mine")
    print(canonical(found.spec), found.mapped, found.left_out, found.notes, found.choices)
"""


def test_the_same_samples_give_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    shapes = {
        "a": {"a.json": near()},
        "b": {"log.jsonl": flat(chats())},
        "c": {"r.json": renamed(chats(), {"role": "x"})},
    }
    names = [str(folder(tmp_path / name, files)) for name, files in shapes.items()]
    said = [
        subprocess.run(
            [sys.executable, "-c", _AGAIN, *names],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "4242")
    ]
    assert said[0] == said[1]
    assert said[0].count("\n") >= 3
