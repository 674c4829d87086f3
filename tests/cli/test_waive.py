"""`--waive PLACE=REASON` works wherever a finding names it, and what is waived stays visible."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest


@pytest.fixture
def leaking(lab_file: Path, tmp_path: Path) -> Path:
    """The simulation's runs with the verdict behind the last result."""
    runs = [json.loads(line) for line in lab_file.read_text().splitlines()]
    for run in runs:
        while run["messages"][-1]["role"] != "tool":
            run["messages"].pop()
        run["messages"][-1]["content"] += f" reward: {1.0 if run['outcome'] == 'success' else 0.0}"
    path = tmp_path / "leaking.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return path


def options(text: str) -> list[str]:
    return sorted(set(re.findall(r"--waive '([^'=]+)=REASON'", text)))


def test_check_data_is_waived_by_the_option_that_it_prints(cli, leaking: Path) -> None:
    command = ("check-data", leaking, "--adapter", "openai_chat", "--budget", 0.2, "--no-curve")
    said = cli(*command)
    assert said.code == 1 and "result" in options(said.told)
    waive = [part for place in options(said.told) for part in ("--waive", f"{place}=seen live")]
    said = cli(*command, *waive)
    assert said.code == 0 and "note: waived (seen live): " in said.told
    assert "'actor' waived nothing: nothing was found there." in cli(*command, "--waive", "actor=x").told
    found = json.loads(cli(*command, *waive, "--json").out)
    assert found["ok"] and {one["waived"] for one in found["leaks"] if one["waived"]} == {"seen live"}


@pytest.mark.slow
def test_check_adapter_is_waived_by_the_option_that_it_prints(cli, leaking: Path) -> None:
    command = ("check-adapter", "openai_chat", leaking, "--no-processes")
    said = cli(*command)
    assert said.code == 1 and "result" in options(said.told)
    waive = [part for place in options(said.told) for part in ("--waive", f"{place}=seen live")]
    again = cli(*command, *waive, "--json")
    assert again.code == 0 and "waived (seen live): " in again.told
    assert "waived nothing" not in again.told
    idle = cli(*command, *waive, "--waive", "$.nowhere=x", "--waive", "actor=y")
    for place in ("$.nowhere", "actor"):
        assert f"{place!r} waived nothing: nothing was found there." in " ".join(idle.told.split())
    assert re.findall(r"openai_chat \w{12}", again.told) == re.findall(r"openai_chat \w{12}", said.told), (
        "the same hash"
    )


@pytest.mark.slow
def test_evaluate_is_waived_too(cli, lab_bundle: Path, leaking: Path) -> None:
    command = ("evaluate", lab_bundle, leaking, "--all", "--resamples", 20, "--leaks")
    assert "ERROR" in cli(*command).told
    said = cli(*command, "--waive", "result=seen live", "--json")
    found = [one for one in json.loads(said.out)["leaks"]["findings"] if one["field"] == "result"]
    assert found and {(one["severity"], one["waived"]) for one in found} == {("note", "seen live")}
    said = cli(*command[:-1], "--waive", "result=seen live")
    assert said.code == 2 and "add --leaks" in said.told


def test_what_is_no_waiver_is_2(cli, leaking: Path) -> None:
    said = cli("check-data", leaking, "--adapter", "openai_chat", "--waive", "result")
    assert said.code == 2 and "--waive 'result': KEY=VALUE is needed" in said.told
