"""The table of fault sets: say-yes-to-all is always there, the class list too."""

from __future__ import annotations

import json

import pytest

from prefixguard.auditor import agents_of, fault_row, fault_table
from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import FaultSets
from prefixguard.stepview import StepRecord
from prefixguard.trace import Fault, Outcome, Run

MODES = [f"FM-{i}" for i in range(14)]


def run(name: str, *faults: Fault) -> Run[StepRecord]:
    records = tuple(
        StepRecord(k, actor, agent, "run", "", "", "", "", "ok")
        for k, (actor, agent) in enumerate([("agent", "Web"), ("agent", "Coder"), ("user", "Me")], 1)
    )
    return Run(name, None, Outcome.FAILURE, records, "made.json", faults=faults)


RUNS = [run(str(i), Fault("Web" if i % 2 else "Coder", MODES[i % 14])) for i in range(28)]


def test_say_yes_to_all_stands_beside_every_auditor() -> None:
    right = [fault_row(one, FaultSets.of([(f.agent or "", f.mode or "") for f in one.faults])) for one in RUNS]
    silent = [fault_row(one, None) for one in RUNS]
    found = fault_table({"right": right, "silent": silent}, MODES, agents=agents_of(RUNS), n_resamples=50)
    assert list(found.figures) == ["right", "silent", "say yes to all"]
    assert [figures.micro_f1 for figures in found.figures["right"]] == [1.0, 1.0, 1.0]
    assert found.figures["silent"][2].failed_audits == 28
    yes = found.figures["say yes to all"]
    assert round(100 * yes[2].micro_f1, 2) == 13.33
    assert yes[1].precision == 0.5
    text = found.to_text()
    assert max(map(len, text.splitlines())) <= 118
    assert "Failure modes (classes of macro-F1: fixed 14)" in text
    assert "union of gold and predicted" in text
    assert "13.3 %" in text
    assert json.loads(found.to_json())["systems"]["silent"]["error"]["class_list"] == "fixed 14"
    assert "| say yes to all |" in found.to_markdown()


def test_labels_without_agent_or_mode_count_where_they_can() -> None:
    row = fault_row(run("a", Fault("Web", None), Fault(None, "FM-3"), Fault("Coder", "FM-1")), None)
    assert row.gold.pairs == {("Coder", "FM-1")}
    assert row.gold.agents == {"Web", "Coder"}
    assert row.gold.modes == {"FM-1", "FM-3"}


def test_agents_of_a_run_are_those_that_act_as_agents() -> None:
    assert agents_of(RUNS[:1]) == {"0": ["Coder", "Web"]}


def test_what_is_refused() -> None:
    rows = [fault_row(one, None) for one in RUNS]
    with pytest.raises(ConfigError, match="without an auditor"):
        fault_table({}, MODES)
    with pytest.raises(DataError, match='"b" has other runs or labels than "a"'):
        fault_table({"a": rows, "b": rows[1:]}, MODES)
