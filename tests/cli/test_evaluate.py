from __future__ import annotations

import json
from pathlib import Path


def test_the_table_is_for_people_and_json_is_data(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    said = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20)
    assert (said.code, said.out) == (0, "")
    for shown in ("24 runs of 6 tasks", "end oracle", "incumbent rule", "step index", "First alerts"):
        assert shown in said.err
    said = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, "--json")
    assert said.code == 0 and said.err == ""
    figures = json.loads(said.out)
    assert figures["runs"] == 24 and figures["left_out"] == 0
    assert {"imminent", "outcome", "first_alert", "baselines", "prefixes", "failed_runs"} <= set(figures)


def test_runs_it_was_made_from_are_left_out_unless_asked_for(cli, lab_bundle: Path, lab_file: Path) -> None:
    figures = json.loads(cli("evaluate", lab_bundle, lab_file, "--resamples", 20, "--json").out)
    assert 0 < figures["runs"] < 160 and figures["runs"] + figures["left_out"] == 160
    assert not figures["in_sample"]
    said = cli("evaluate", lab_bundle, lab_file, "--resamples", 20, "--all")
    assert "IN SAMPLE" in said.err and "160 runs of 40 tasks" in said.err


def test_runs_without_outcome_need_labels(cli, lab_bundle: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps({"messages": [{"role": "assistant", "content": "Hi."}]}) + "\n")
    said = cli("evaluate", lab_bundle, runs)
    assert said.code == 2
    assert "none of 1 has an outcome. Give a labels file" in said.told and "prefixguard score" in said.told
    assert len(cli("score", lab_bundle, runs).lines) == 1
