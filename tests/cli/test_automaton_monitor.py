"""Every command that takes a monitor takes one that is an automaton."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_automaton

from prefixguard.bundle import TypedMap, automaton_to_bytes, write_bundle
from prefixguard.stepview import load_adapter, read_runs

OPENAI_CHAT = load_adapter("openai_chat")


@pytest.fixture(scope="module")
def automaton_path(lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Over the simulation's own tools: calm, failed once, failed the same way again. Behind the shipped adapter."""
    tools = sorted({r.tool for run in read_runs(lab_file, OPENAI_CHAT) for r in run.records})
    typed = TypedMap(tuple(tools[:2]))  # as many symbols as fit the automaton; the other tools share theirs
    by_hand = tiny_automaton.by_hand()
    k = typed.n_symbols
    automaton = replace(
        by_hand, transitions=by_hand.transitions[:, :k], fallback=by_hand.fallback[:k], edges=by_hand.edges[:, :k]
    )
    written = automaton_to_bytes(automaton, typed, tiny_automaton.glosses(typed))
    path = tmp_path_factory.mktemp("automata") / "b"
    write_bundle(path, replace(tiny_automaton.parts(), adapter=OPENAI_CHAT.to_bytes(), automaton=written))
    return path


def test_info(cli, automaton_path: Path) -> None:
    (facts,) = cli("info", automaton_path, "--json").lines
    assert (facts["kind"], facts["model"]) == ("bundle", "automaton")
    assert facts["automaton"] == {"states": 3, "symbols": 12, "clock": 1}
    assert "states 3, symbols 12" in cli("info", automaton_path).told


def test_score_and_watch_say_the_state(cli, automaton_path: Path, lab_file: Path) -> None:
    lines = cli("score", automaton_path, lab_file).lines
    assert {line["state"] for line in lines} == {0, 1, 2}
    assert {line["level"] for line in lines} == {"OK", "WATCH", "ALARM"}
    failed = next(line for line in lines if line["state"] == 1)
    assert "state 1: outcome risk " in failed["reasons"][1]
    run = next(run for run in map(json.loads, lab_file.read_text().splitlines()) if run["run_id"] == failed["run_id"])
    events = "".join(json.dumps(message) + "\n" for message in run["messages"])
    told = cli("watch", automaton_path, "-", "--json", stdin=events).lines
    mine = [line for line in lines if line["run_id"] == failed["run_id"]]
    assert [(t["state"], t["outcome_risk"], t["level"], t["reasons"]) for t in told] == [
        (m["state"], m["outcome_risk"], m["level"], m["reasons"]) for m in mine
    ]


def test_watch_says_the_name_of_the_step_s_symbol(cli, automaton_path: Path, lab_file: Path) -> None:
    names = json.loads((automaton_path / "automaton.json").read_text())["glosses"]
    readings = cli("score", automaton_path, lab_file).lines
    said = cli("watch", automaton_path, lab_file).out.splitlines()
    assert len(said) == len(readings)
    for line, reading in zip(said, readings, strict=True):
        assert line.count("this step: ") == (reading["level"] != "OK")
        assert reading["level"] == "OK" or f"this step: {names[reading['symbol']]}" in line


def test_evaluate(cli, automaton_path: Path, lab_file: Path) -> None:
    (table,) = cli("evaluate", automaton_path, lab_file, "--json").lines
    assert table["runs"] == 160
    assert table["outcome"]["outcome_auroc_at_remaining"] > 0.5
