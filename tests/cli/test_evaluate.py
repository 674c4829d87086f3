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


def test_a_report_with_leaks_and_controls(cli, lab_bundle: Path, lab_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "out" / "lab.html"
    said = cli("evaluate", lab_bundle, lab_file, "--resamples", 20, "--controls", "--leaks", "--report", page, "--json")
    assert said.code == 0, said.err
    figures = json.loads(said.out)
    assert {"boosting", "process mining", "raw text", "words so far"} <= set(figures["baselines"])
    assert figures["baselines"]["boosting"]["imminent"]["auprc"] > figures["imminent"]["prevalence"]
    assert figures["leaks"]["judged"] == 160
    assert "control: boosting" in said.err
    told = json.loads(page.with_suffix(".json").read_text())
    assert told["table"]["imminent"] == figures["imminent"]
    assert "boosting" in page.with_suffix(".md").read_text()
    text = page.read_text()
    assert "<script src" not in text and "http://" not in text.replace("http://www.w3.org/", "")


def test_the_report_of_an_automaton_has_its_picture(
    cli, lab_bundle: Path, lab_file: Path, fresh_lab_file: Path, tmp_path: Path
) -> None:
    folder, page = tmp_path / "automaton", tmp_path / "out.html"
    options = ("--alphabet", "typed", "--learner", "ladder", "--max-states", 8)
    assert cli("export", lab_bundle, lab_file, "--to", "dfa", "--out", folder, *options).code == 0
    assert cli("evaluate", folder, fresh_lab_file, "--resamples", 20, "--report", page).code == 0
    told = json.loads(page.with_suffix(".json").read_text())["sections"]
    assert told["automaton"] is not None and told["examples"] is not None
    assert "Glossary" in page.read_text()


def test_what_a_report_and_controls_cannot_do_is_said_before_anything_is_read(cli, lab_bundle: Path) -> None:
    for options, sentence in (
        (("-", "--report", "a.html"), "standard input can be read once"),
        (("nowhere", "--controls", "--all"), "leave out one of them"),
        (("nowhere", "--report", "a.txt"), "must end in .html"),
    ):
        said = cli("evaluate", lab_bundle, *options)
        assert said.code == 2 and sentence in said.told


def test_the_report_shows_its_controls_and_the_errors_of_the_audit(
    cli, lab_bundle: Path, lab_file: Path, tmp_path: Path
) -> None:
    planted = tmp_path / "planted.jsonl"
    lines = []
    for line in lab_file.read_text().splitlines():
        run = json.loads(line)
        said = [message for message in run["messages"] if message["role"] == "tool"]
        if run["outcome"] == "failure" and said:
            said[0]["content"] = f"{said[0]['content']} zq7"
        lines.append(json.dumps(run))
    planted.write_text("\n".join(lines) + "\n")
    page = tmp_path / "out.html"
    said = cli("evaluate", lab_bundle, planted, "--resamples", 20, "--all", "--leaks", "--report", page)
    assert said.code == 0, said.err
    assert "The leak audit found errors in result" in page.with_suffix(".md").read_text()
    said = cli("evaluate", lab_bundle, lab_file, "--resamples", 20, "--controls", "--report", page)
    assert "Controls: trained on the runs" in said.told
    text = page.with_suffix(".md").read_text()
    assert "No controls were trained" not in text and "The leak audit found errors" not in text
    assert json.loads(page.with_suffix(".json").read_text())["sections"]["controls"]
