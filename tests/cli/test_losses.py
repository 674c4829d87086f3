"""Runs that lost something are called so by every command that reads them, with the same words and numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Runs = list[dict[str, Any]]


@pytest.fixture
def broken(lab_file: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], None]], Path]:
    """The simulation's runs, each changed."""

    def write(change: Callable[[dict[str, Any]], None]) -> Path:
        runs = [json.loads(line) for line in lab_file.read_text().splitlines()]
        for run in runs:
            change(run)
        path = tmp_path / "broken.jsonl"
        path.write_text("".join(json.dumps(run) + "\n" for run in runs))
        return path

    return write


def without_results(run: dict[str, Any]) -> None:
    for message in run["messages"]:
        if message["role"] == "tool":
            message["content"] = ""


def without_text(run: dict[str, Any]) -> None:
    run["messages"] = [{"role": "assistant", "content": ""} for _ in run["messages"]]


def one_step(run: dict[str, Any]) -> None:
    run["messages"] = [run["messages"][0], {"role": "assistant", "content": f"Done with {run['run_id']}."}]


@pytest.mark.slow
def test_every_command_says_that_results_are_lost(cli, broken, tmp_path: Path, lab_bundle: Path) -> None:
    path = broken(without_results)
    told = [
        cli("info", path, "--adapter", "openai_chat"),
        cli("parse", path, "--adapter", "openai_chat", "--json"),
        cli("check-data", path, "--adapter", "openai_chat", "--no-curve"),
        cli("train", path, "--adapter", "openai_chat", "--backend", "gbdt", "--out", tmp_path / "m"),
    ]
    for said in told:
        assert (
            "warning: " in said.told and "calls (100 %) have no result: what came back is not in the runs" in said.told
        )
        assert f"Look how they are read: prefixguard parse {path if said is not told[3] else 'RUNS'}" in said.told
        assert said.told.count("have no result: what came back is not in the runs") == 1, "said once"
    found = json.loads(cli("info", path, "--adapter", "openai_chat", "--json").out)
    assert len(found["lost"]) == 1 and "have no result" in found["lost"][0]
    for command in ("score", "watch"):
        said = cli(command, lab_bundle, path)
        assert "warning: the results of calls: empty in" in said.told
        assert "in the monitor's training runs it was filled in" in said.told


def test_whole_runs_are_not_accused(cli, lab_file: Path, lab_bundle: Path) -> None:
    assert json.loads(cli("info", lab_file, "--adapter", "openai_chat", "--json").out)["lost"] == []
    assert "warning" not in cli("parse", lab_file, "--adapter", "openai_chat", "--json").err
    assert "warning" not in cli("score", lab_bundle, lab_file).err


def test_where_nothing_can_be_learned_training_stops_at_once(cli, broken, tmp_path: Path) -> None:
    path, sentence = broken(without_text), "steps has a text: no observation, words of the agent, arguments or result."
    said = cli("train", path, "--adapter", "openai_chat", "--backend", "gbdt", "--out", tmp_path / "m")
    assert said.code == 2 and sentence in said.told and "unexpected" not in said.told
    assert not (tmp_path / "m").exists()
    said = cli("check-data", path, "--adapter", "openai_chat")
    assert said.code == 1 and "ERROR: None of" in said.told and sentence in said.told


def test_runs_of_one_step_are_said(cli, broken) -> None:
    said = cli("check-data", broken(one_step), "--adapter", "openai_chat")
    assert "runs (100 %) have one step, so a monitor can say nothing before they end" in said.told


def test_runs_of_one_step_are_said_by_a_monitor_of_longer_ones(cli, broken, lab_bundle: Path) -> None:
    path = broken(one_step)
    for command in ("score", "watch"):
        said = cli(command, lab_bundle, path)
        assert "runs have one step; the monitor's training runs had" in said.told
        assert "Look how they are read with prefixguard parse." in said.told


def test_a_live_run_says_at_its_end_what_it_never_had(cli, lab_bundle: Path, lab_file: Path) -> None:
    run = max((json.loads(line) for line in lab_file.read_text().splitlines()), key=lambda one: len(one["messages"]))
    without_results(run)
    events = "".join(json.dumps(event) + "\n" for event in run["messages"])
    said = cli("watch", lab_bundle, "-", stdin=events)
    last = said.out.splitlines()[-1]
    assert "UNKNOWN" in last and "the results of calls: nothing" in last
