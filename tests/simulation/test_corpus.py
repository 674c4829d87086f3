from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import least_seconds

from prefixguard.errors import ConfigError, OutputError
from prefixguard.simulation import WORLDS, generate, write_runs
from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.faults import FAULTS, PROFILES
from prefixguard.stepview import ReadReport, load_adapter, read_runs, serialize

Runs = list[dict[str, Any]]


def steps_of(run: dict[str, Any]) -> int:
    """Steps counted from the messages alone."""
    agent = [message for message in run["messages"] if message["role"] == "assistant"]
    return sum(len(message.get("tool_calls", ())) or 1 for message in agent)


def test_another_process_and_hash_seed_give_the_same_bytes(tmp_path: Path) -> None:
    write_runs(tmp_path / "here.jsonl", 60, seed=5)
    here = hashlib.sha256((tmp_path / "here.jsonl").read_bytes()).hexdigest()
    code = "import sys; from prefixguard.simulation import write_runs; write_runs(sys.argv[1], 60, seed=5)"
    for hash_seed in ("1", "2"):
        there = tmp_path / f"{hash_seed}.jsonl"
        subprocess.run(
            [sys.executable, "-c", code, str(there)], check=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}
        )
        assert hashlib.sha256(there.read_bytes()).hexdigest() == here


def test_the_first_runs_do_not_depend_on_how_many_are_asked_for() -> None:
    assert list(generate(10, seed=3)) == list(generate(25, seed=3))[:10]
    assert list(generate(10, seed=3)) != list(generate(10, seed=4))


def test_ids_and_trials(lab_runs: Runs) -> None:
    assert len({run["run_id"] for run in lab_runs}) == len(lab_runs)
    assert set(Counter(run["task_id"] for run in lab_runs).values()) == {4}
    assert Counter(run["task_id"] for run in generate(7, seed=1, trials=3)) == {
        "support-00000": 3,
        "support-00001": 3,
        "support-00002": 1,
    }


def test_proportions_are_the_promised_ones(lab_runs: Runs) -> None:
    failed = [run for run in lab_runs if run["outcome"] == "failure"]
    assert 0.25 < len(failed) / len(lab_runs) < 0.35
    assert 0.65 < sum(run["metadata"]["observable"] for run in failed) / len(failed) < 0.8
    repaired = [fault for run in lab_runs for fault in run["metadata"]["faults"] if fault["repaired"]]
    assert len(repaired) > len(lab_runs) / 4, "recoveries are part of the world"
    assert {fault["kind"] for run in lab_runs for fault in run["metadata"]["faults"]} == set(FAULTS)
    rate = {
        profile.name: [run["outcome"] == "failure" for run in lab_runs if run["agent"] == profile.name]
        for profile in PROFILES
    }
    assert sum(rate["careful"]) / len(rate["careful"]) < 0.1
    assert sum(rate["guessing"]) / len(rate["guessing"]) > 0.4


def test_a_run_fails_exactly_when_a_fault_was_not_made_good(lab_runs: Runs) -> None:
    for run in lab_runs:
        losses = [fault for fault in run["metadata"]["faults"] if not fault["harmless"] and not fault["repaired"]]
        assert (run["outcome"] == "failure") == bool(losses), run["run_id"]
        assert run["metadata"]["mistake_step"] == (min(fault["step"] for fault in losses) if losses else None)
        assert all(1 <= fault["step"] <= steps_of(run) for fault in run["metadata"]["faults"]), run["run_id"]


def test_every_result_follows_its_call(lab_runs: Runs) -> None:
    for run in lab_runs:
        waiting: list[str] = []
        for message in run["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] == waiting.pop(0), run["run_id"]
            else:
                assert not waiting, run["run_id"]
                waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert not waiting


def test_messages_say_nothing_a_live_monitor_could_not_know(lab_runs: Runs) -> None:
    hidden = ["success", "failure", "failed", "outcome", "reward", "true_risk", "profile", *FAULTS]
    hidden += [profile.name for profile in PROFILES]
    word = re.compile(r"\b(" + "|".join(hidden) + r")\b", re.IGNORECASE)
    for run in lab_runs:
        assert set(run) == {"run_id", "task_id", "outcome", "messages", "agent", "metadata"}
        assert not word.search(json.dumps(run["messages"])), run["run_id"]
        for message in run["messages"]:
            assert set(message) <= {"role", "content", "tool_calls", "tool_call_id", "name"}


def test_lengths_are_open_and_a_cap_cuts(lab_runs: Runs) -> None:
    lengths = sorted(steps_of(run) for run in lab_runs)
    assert lengths[0] < 6 < 30 < lengths[-1]
    assert [len(run["metadata"]["true_risk"]) for run in lab_runs] == [steps_of(run) for run in lab_runs]
    capped = list(generate(100, seed=13, max_steps=9))
    assert max(map(steps_of, capped)) in (9, 10, 11)  # the calls of one message are one act
    for run, whole in zip(capped, lab_runs, strict=False):
        assert run["messages"] == whole["messages"][: len(run["messages"])]
        assert run["metadata"]["true_risk"] is None


def test_runs_are_varied(lab_runs: Runs) -> None:
    openings = Counter(run["messages"][1]["content"] for run in lab_runs)
    assert openings.most_common(1)[0][1] < 5
    texts = Counter(
        message["content"] for run in lab_runs for message in run["messages"] if message["role"] == "assistant"
    )
    assert len(texts) > 2000


def test_a_file_holds_one_run_a_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert write_runs(path, 9, seed=2) == path.stat().st_size
    assert [json.loads(line) for line in path.read_text().splitlines()] == list(generate(9, seed=2))
    assert [file.name for file in tmp_path.iterdir()] == ["runs.jsonl"]


def test_an_impossible_place_says_where(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write the simulation's runs to .*nowhere.runs\.jsonl: No such file"):
        write_runs(tmp_path / "nowhere" / "runs.jsonl", 1, seed=2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"world": "suport"}, "there is no simulation world named 'suport'; the worlds are: support"),
        ({"n_runs": -1}, "n_runs is -1; it must be 0 or more"),
        ({"trials": 0}, "trials is 0; it must be 1 or more"),
        ({"max_steps": 0}, "max_steps is 0; it must be 1 or more, or None for no cap"),
    ],
)
def test_numbers_out_of_range_are_refused_before_the_first_run(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        generate(**{"n_runs": 1, "seed": 1, **options})


def test_thousands_of_runs_in_seconds() -> None:
    assert WORLDS == ("support",)
    (seconds,) = least_seconds(lambda: list(generate(200, seed=8)))
    assert 200 / seconds > 100, f"{200 / seconds:.0f} runs a second; about 500 are expected on an idle core"


def test_a_name_is_a_stream_for_ever() -> None:
    """Written once: other releases of Python must give the same."""
    rng = Rng("prefixguard")
    assert (rng.digits(6), rng.below(100), rng.pick("abcdef"), rng.some("abcdef", 3)) == (
        "536012",
        51,
        "e",
        ["a", "c", "e"],
    )


@given(name=st.text(), low=st.integers(-50, 50), width=st.integers(0, 50))
def test_numbers_stay_in_range(name: str, low: int, width: int) -> None:
    rng = Rng(name)
    assert 0 <= rng.below(7) < 7
    assert low <= rng.between(low, low + width) <= low + width
    assert len(rng.digits(8)) == 8
    assert sorted(rng.some("abcd", 9)) == list("abcd")


def test_weights_are_shares() -> None:
    rng = Rng("weights")
    drawn = [rng.weighted("abc", (1.0, 0.0, 3.0)) for _ in range(4000)]
    assert drawn.count("b") == 0
    assert 0.22 < drawn.count("a") / 4000 < 0.28


def test_the_shipped_adapter_reads_the_lab(tmp_path: Path, lab_runs: list[dict[str, Any]]) -> None:
    path = tmp_path / "lab.jsonl"
    write_runs(path, 200, seed=13)
    report = ReadReport()
    runs = list(read_runs(path, load_adapter("openai_chat"), report=report))
    assert (report.runs, report.skipped, report.empty, report.late_results) == (200, [], {}, 0)
    for run, raw in zip(runs, lab_runs, strict=False):
        assert (run.run_id, run.task_id, run.outcome) == (raw["run_id"], raw["task_id"], raw["outcome"])
        assert dict(run.groups) == {"agent": raw["agent"]}
        assert len(run.records) == len(raw["metadata"]["true_risk"]), "its records are the simulation's steps"
        errors = [message["content"].startswith("Error") for message in raw["messages"] if message["role"] == "tool"]
        assert [record.status == "error" for record in run.records if record.tool != "respond"] == errors


def test_a_monitor_sees_the_same_live_whatever_stands_beside_the_messages(lab_runs: list[dict[str, Any]]) -> None:
    adapter = load_adapter("openai_chat")
    for raw in lab_runs[:50]:
        seen = []
        for header in (None, {key: value for key, value in raw.items() if key != "messages"}):
            parser = adapter.parser(header)
            records = [record for message in raw["messages"] for record in parser.observe(message)] + parser.end()
            seen.append([serialize(record) for record in records])
        assert seen[0] == seen[1]
