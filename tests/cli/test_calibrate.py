from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import orjson
import pytest

from prefixguard.runtime import load
from prefixguard.simulation import generate


@pytest.fixture(scope="module")
def later_lab_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 further runs of 20 tasks that are not in the runs that the bundle was made from."""
    path = tmp_path_factory.mktemp("later") / "later.jsonl"
    path.write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in islice(generate(240, 5), 160, None)))
    return path


def test_a_bundle_with_new_marks(cli, lab_bundle: Path, later_lab_file: Path, tmp_path: Path) -> None:
    said = cli("calibrate", lab_bundle, later_lab_file, "--out", tmp_path / "new")
    assert (said.code, said.out) == (0, "")
    assert "80 runs (" in said.told and "drawn, one a task" in said.told
    assert "at most 25 % of runs that would succeed alarm, with confidence 90 %" in said.told
    old, new = load(lab_bundle).bundle, load(tmp_path / "new").bundle
    assert new.id != old.id and new.manifest["recalibration"]["monitor"] == old.id
    assert new.calibration.thresholds != old.calibration.thresholds
    assert new.model_bytes == old.model_bytes
    said = cli("calibrate", lab_bundle, later_lab_file, "--out", tmp_path / "new")
    assert said.code == 2 and "holds a bundle already" in said.told
    said = cli("calibrate", lab_bundle, later_lab_file, "--out", tmp_path / "new", "--overwrite", "--json")
    assert said.code == 0 and said.lines[0]["id"] == new.id
    assert said.lines[0]["recalibration"]["runs"] == 80 and said.lines[0]["groups"] is None


def test_too_few_runs_are_1_and_name_the_number(cli, lab_bundle: Path, later_lab_file: Path, tmp_path: Path) -> None:
    said = cli("calibrate", lab_bundle, later_lab_file, "--out", tmp_path / "new", "--budget", 0.05)
    assert said.code == 1
    assert "cannot support a false-alarm budget of 5 % at 90 % confidence: that needs at least 45" in said.told
    assert "The bundle says WATCH and OK only." in said.told
    levels = {one["level"] for one in cli("score", tmp_path / "new", later_lab_file).lines}
    assert levels == {"OK", "WATCH"}


def test_runs_it_was_made_from(cli, lab_bundle: Path, lab_file: Path, tmp_path: Path) -> None:
    said = cli("calibrate", lab_bundle, lab_file, "--out", tmp_path / "new", "--json")
    facts = said.lines[0]["recalibration"]
    assert sum(facts["left_out"].values()) + facts["runs"] == 160 and facts["left_out"]["train"] > 0
    assert "runs of tasks the monitor was made from were left out" in said.told
    said = cli("calibrate", lab_bundle, lab_file, "--out", tmp_path / "all", "--all")
    assert said.code == 0 and "IN SAMPLE" in said.told and "IN SAMPLE" in (tmp_path / "all" / "CARD.md").read_text()


def test_thresholds_by_group(cli, lab_bundle: Path, later_lab_file: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    lines = [json.loads(line) for line in later_lab_file.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["agent"] = "gold" if number % 4 else "basic"  # three of four runs of each task
    runs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = cli("calibrate", lab_bundle, runs, "--out", tmp_path / "new", "--group-by", "agent", "--json")
    assert said.code == 0
    groups = said.lines[0]["groups"]["agent"]
    assert set(groups) == {"basic", "gold"} and groups["gold"]["alarm"] is not None
    for group in ("gold", "basic", "nobody"):
        live = cli("watch", tmp_path / "new", "--json", "--group", group,
                   stdin="".join(json.dumps(message) + "\n" for message in lines[0]["messages"]))  # fmt: skip
        assert live.code == 0 and len(live.lines) > 2
    said = cli("watch", tmp_path / "new", runs, "--group", "gold")
    assert said.code == 2 and "--group goes with standard input" in said.told
    said = cli("calibrate", lab_bundle, runs, "--out", tmp_path / "no", "--group-by", "tier")
    assert said.code == 2 and "no successful run has a group 'tier'. Groups of these runs: agent." in said.told
    assert not (tmp_path / "no").exists()


def test_runs_without_outcome(cli, lab_bundle: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps({"messages": [{"role": "assistant", "content": "Hi."}]}) + "\n")
    said = cli("calibrate", lab_bundle, runs, "--out", tmp_path / "new")
    assert said.code == 2 and "no run is known to have succeeded: 1 have no outcome" in said.told


def test_rules_by_the_runs_alone(cli, lab_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "rules.json"
    said = cli(
        "calibrate", "rules", lab_file, "--alarm-rate", 0.1, "--out", out, "--adapter", "openai_chat", "--seed", 7
    )
    assert (said.code, said.out) == (0, ""), said.told
    assert "drawn, one a task; at the usual counts" in said.told
    assert "at most 10 % of runs alarm, with confidence 90 %, if new runs are like these (" in said.told
    assert "Outcomes were not used. Of the drawn runs, these alarm:" in said.told
    again = cli(
        "calibrate", "rules", lab_file, "--alarm-rate", 0.1, "--out", out, "--adapter", "openai_chat", "--json",
        "--overwrite", "--seed", 7,
    )  # fmt: skip
    facts = again.lines[0]
    assert facts["id"] == load(out).bundle.id and facts["calibration"]["alarmed"] <= facts["calibration"]["allowed"]
    scored = cli("score", out, lab_file)
    assert scored.code == 0 and {line["level"] for line in scored.lines} <= {"OK", "WATCH", "ALARM"}
    assert cli("watch", out, lab_file, "--json").code == 0


def test_rules_take_no_option_of_a_bundle(cli, lab_bundle: Path, lab_file: Path) -> None:
    said = cli("calibrate", "rules", lab_file, "--budget", 0.1, "--group-by", "tier")
    assert said.code == 2 and "--budget, --group-by: goes with a bundle, and rules are none. Leave it out." in said.told
    said = cli("calibrate", lab_bundle, lab_file, "--alarm-rate", 0.1)
    assert said.code == 2 and "--alarm-rate and --behaviours go with calibrate rules" in said.told
    said = cli("calibrate", "rules", lab_file, "--alarm-rate", 0.001, "--adapter", "openai_chat")
    assert said.code == 2 and "cannot support an alarm rate of 0.1 %" in said.told
