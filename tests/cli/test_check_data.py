from __future__ import annotations

import json
from pathlib import Path


def test_text_for_people_and_json_as_data(cli, lab_file: Path) -> None:
    said = cli("check-data", lab_file, "--adapter", "openai_chat", "--budget", 0.2)
    assert (said.code, said.out) == (0, "")
    for shown in ("160 runs of 40 tasks", "The split of a training", "20 % (asked for)", "Learning curve (boosted",
                  "100% of the training tasks", "step index", "agent (", "Fit to train on."):  # fmt: skip
        assert shown in said.told
    said = cli("check-data", lab_file, "--adapter", "openai_chat", "--budget", 0.2, "--no-curve", "--json")
    assert (said.code, said.err) == (0, "")
    found = json.loads(said.out)
    assert found["ok"] and found["curve"] is None and found["runs"] == 160
    assert [one["budget"] for one in found["budgets"]] == [0.2, 0.01, 0.05, 0.1]


def test_a_budget_that_cannot_be_kept_is_1(cli, lab_file: Path) -> None:
    said = cli("check-data", lab_file, "--adapter", "openai_chat", "--budget", 0.05, "--no-curve")
    assert said.code == 1
    assert "Not fit to train on as they are." in said.told and "ERROR: An alarm budget of 5 %" in said.told
    assert "more tasks like these would do" in said.told


def test_bad_input_is_2(cli, lab_file: Path, tmp_path: Path) -> None:
    said = cli("check-data", lab_file)
    assert said.code == 2 and "--adapter" in said.err
    said = cli("check-data", tmp_path / "nothing.jsonl", "--adapter", "openai_chat")
    assert said.code == 2 and "nothing.jsonl" in said.told
    said = cli("check-data", lab_file, "--adapter", "openai_chat", "--confidence", 2)
    assert said.code == 2 and "confidence = 2" in said.told
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps({"messages": [{"role": "assistant", "content": "Hi."}]}) + "\n")
    said = cli("check-data", runs, "--adapter", "openai_chat")
    assert said.code == 2 and "1 have no outcome: add one with --labels" in said.told
