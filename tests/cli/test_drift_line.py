"""`watch` and `score` say on standard error, once, when the runs of a file are no longer like the calibration runs."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from prefixguard.runtime import calibrate
from prefixguard.simulation import generate

_OTHER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")


@pytest.fixture(scope="module")
def calibrated(lab_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulation's bundle, calibrated on one run of each of 40 further tasks: nine are too few to compare with."""
    folder = tmp_path_factory.mktemp("calibrated")
    runs = islice(generate(80, 5, trials=1), 40, None)
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    return calibrate(lab_bundle, folder / "runs.jsonl", out=folder / "lab").path


@pytest.fixture(scope="module")
def other_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of each of 20 new tasks, in words that no training run had."""
    path = tmp_path_factory.mktemp("drift") / "other.jsonl"
    with path.open("w") as out:
        for run in islice(generate(240, 5, trials=2), 200, None):
            for message in run["messages"]:
                if isinstance(message.get("content"), str):
                    message["content"] = message["content"].lower().translate(_OTHER)
            out.write(json.dumps(run) + "\n")
    return path


@pytest.mark.parametrize("command", [("score",), ("watch", "--json")])
def test_it_is_told_once_and_the_data_stay_as_they_are(cli, calibrated: Path, other_words: Path, command) -> None:
    said = cli(command[0], calibrated, other_words, *command[1:])
    assert said.code == 0
    assert said.told.startswith("DRIFT after ") and said.told.count("DRIFT") == 1
    assert "known terms a word: " in said.told and "the false-alarm budget is not to be relied on" in said.told
    tasks = int(said.told.split()[2])
    assert 1 < tasks <= 20 and f"(since run {tasks})" in said.told
    assert f"with run support-{100 + tasks - 1:05}-0: " in said.told, "of each task the first run counts"
    assert len({line["run_id"] for line in said.lines}) == 40
    assert set(said.lines[0]) == {
        "run_id", "step", "imminent_risk", "outcome_risk", "level", "symbol", "state", "reasons", "unknown_reason",
        "behaviours",
    }  # fmt: skip


def test_it_is_told_with_an_auditor_behind_the_monitor_too(cli, calibrated: Path, other_words: Path) -> None:
    nobody = ("--escalate", "m", "--base-url", "http://127.0.0.1:9/v1", "--threshold", "1")
    said, alone = (cli("watch", calibrated, other_words, "--json", *more) for more in (nobody, ()))
    assert said.code == 0 and said.told.count("DRIFT") == 1
    assert said.told.startswith(alone.told.rstrip())


def test_one_run_of_a_file_is_no_stream(cli, calibrated: Path, other_words: Path) -> None:
    said = cli("watch", calibrated, other_words, "--run-id", "support-00119-1", "--json")
    assert said.code == 0 and said.err == ""


def test_runs_of_the_same_world_and_bundles_without_a_reference_say_nothing(
    cli, lab_bundle: Path, lab_file: Path, fresh_lab_file: Path, other_words: Path
) -> None:
    assert cli("score", lab_bundle, fresh_lab_file).err == ""
    assert cli("score", lab_bundle, lab_file).err == "", "not even of the runs that it was made from"
    old = Path(__file__).parents[1] / "golden" / "bundle_v1"
    assert "DRIFT" not in cli("watch", old, other_words, "--json").err
