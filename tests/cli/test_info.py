from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import prefixguard
from prefixguard.simulation import generate


def test_a_bundle(cli, lab_bundle: Path) -> None:
    (facts,) = cli("info", lab_bundle, "--json").lines
    assert facts["kind"] == "bundle" and facts["adapter"].startswith("openai_chat")
    assert facts["data"]["runs"] == 160 and facts["terms"] == 256 and facts["alarm"] > 0
    said = cli("info", lab_bundle)
    assert (said.code, said.out) == (0, "") and facts["id"] in said.err


def test_a_bundle_that_was_calibrated_anew_by_group(cli, lab_bundle: Path, tmp_path: Path) -> None:
    runs = list(islice(generate(240, 5), 160, None))
    for number, run in enumerate(runs):
        run["agent"] = "gold" if number % 4 else "basic"
    next(run for run in runs if run["outcome"] == "success")["agent"] = "rare"
    later = tmp_path / "later.jsonl"
    later.write_text("".join(json.dumps(run) + "\n" for run in runs))
    made = prefixguard.calibrate(lab_bundle, later, out=tmp_path / "new", group_by="agent")
    (facts,) = cli("info", tmp_path / "new", "--json").lines
    assert facts["alarm_by_group"]["by"] == "agent"
    own = made.groups.of
    assert {value: one["alarm"] for value, one in facts["alarm_by_group"]["of"].items()} == {
        value: one.alarm for value, one in own.items()
    }
    assert facts["recalibration"]["runs"] == 80 and facts["recalibration"]["drawn"] == made.thresholds.n_runs
    said = cli("info", tmp_path / "new").told
    assert (
        f"agent: basic {own['basic'].alarm:.4g} (on {own['basic'].n_runs} runs), gold {own['gold'].alarm:.4g}" in said
    )
    assert f"rare the common one ({own['rare'].n_runs} of {own['rare'].needed} runs needed)" in said
    assert "thresholds set anew on 80 runs (" in said and facts["recalibration"]["monitor"][:12] in said
    (before,) = cli("info", lab_bundle, "--json").lines
    assert before["alarm_by_group"] == {} == before["recalibration"]
    assert "by group" not in cli("info", lab_bundle).told


def test_an_adapter(cli, tmp_path: Path) -> None:
    (facts,) = cli("info", "openai_chat", "--json").lines
    assert facts["kind"] == "adapter" and facts["live"] is True
    adapter = prefixguard.load_adapter("openai_chat")
    assert facts["sha256"] == adapter.sha256
    mine = tmp_path / "mine.json"
    mine.write_bytes(adapter.to_bytes())
    assert cli("info", mine, "--json").lines == [facts]


def test_runs(cli, fresh_lab_file: Path) -> None:
    (facts,) = cli("info", fresh_lab_file, "--adapter", "openai_chat", "--json").lines
    assert (facts["kind"], facts["runs"], facts["tasks"], facts["repeats"]) == ("runs", 24, 6, 0)
    raw = [json.loads(line) for line in fresh_lab_file.read_text().splitlines()]
    assert facts["outcomes"]["failure"] == sum(run["outcome"] == "failure" for run in raw)
    assert facts["steps"] == sum(len(run["metadata"]["true_risk"]) for run in raw)
    assert facts["groups"] == {"agent": len({run["agent"] for run in raw})}


def test_what_it_is_not_sure_of(cli, fresh_lab_file: Path) -> None:
    said = cli("info", fresh_lab_file)
    assert said.code == 2
    assert "If it holds runs, say what reads them: --adapter NAME" in said.told
    said = cli("info", "openai_chad")
    assert said.code == 2 and "Nearest: openai_chat" in said.told


def test_adapters(cli) -> None:
    said = cli("adapters", "--json")
    assert [one["name"] for one in said.lines] == list(prefixguard.list_adapters())
    assert all(one["description"] and one["version"] for one in said.lines)
    table = cli("adapters")
    assert table.out == ""
    lines = table.err.splitlines()
    assert [line.split()[0] for line in lines[:-2]] == list(prefixguard.list_adapters()), "one line an adapter"
    assert all(len(line) <= 110 and len(line.split()) >= 2 for line in lines[:-2]), "and what it reads"
    assert "prefixguard info NAME" in lines[-2]
