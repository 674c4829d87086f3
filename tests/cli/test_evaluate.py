from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from model_server import Exchange, fails, model_server, says
from scripted_judge import answer


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


@pytest.mark.slow
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


@pytest.mark.slow
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
        (("nowhere", "--controls", "--all"), "leave out one of them"),
        (("nowhere", "--report", "a.txt"), "must end in .html"),
    ):
        said = cli("evaluate", lab_bundle, *options)
        assert said.code == 2 and sentence in said.told


@pytest.mark.slow
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


def test_a_judge_stands_in_text_json_and_report_and_is_asked_once(
    cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that says the number of the step: its AUPRC is the step index's own, to the last digit."""

    def counts_steps(exchange: Exchange) -> None:
        steps = re.findall(r"^#\w{8} step (\d+) ", exchange.body["messages"][-1]["content"], re.M)
        says(answer(int(steps[-1]), int(steps[-1])))(exchange)

    page = tmp_path / "out" / "lab.html"
    with model_server(counts_steps) as server:
        url = server.url.replace("http://", "http://me:my-password@")
        asked = ("--judge-model", "played", "--judge-base-url", url, "--judge-sample", 50, "--keep", tmp_path)
        prices = ("--judge-price-in", 3, "--judge-price-out", 15)
        said = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *asked, *prices, "--judge-estimate")
        assert said.code == 0 and "nothing was sent" in said.told and "as the judge" not in said.told
        assert server.requests == []
        line = ["evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *asked, *prices, "--report", page]
        monkeypatch.setattr("sys.argv", ["prefixguard", *map(str, line)])
        said = cli(*line)
        assert said.code == 0, said.err
        sent = len(server.requests)
        assert f"50 prefixes are drawn, {sent} questions go to played at {server.url}" in said.told
        assert "at the given prices" in said.told and "Judge, outcome risk: fails (the 50 prefixes" in said.told
        again = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *asked, *prices, "--json")
        assert len(server.requests) == sent > 30
    assert again.code == 0 and f"0 questions go to played at {server.url} ({sent} were answered before)." in again.told
    found = json.loads(again.out)["judge"]
    assert found["outcome"]["judge"]["auprc"] == found["outcome"]["step index"]["auprc"] > 0
    assert found["outcome"]["step index"]["differences"]["auprc"] == {"value": 0.0, "interval": [0.0, 0.0]}
    assert found["costs"]["cost"] == (1000 * sent * 3 + 100 * sent * 15) / 1e6 and found["costs"]["kept"] == sent
    told = json.loads(page.with_suffix(".json").read_text())
    assert told["sections"]["judge"]["outcome"] == told["table"]["judge"]["outcome"] == found["outcome"]
    markdown = page.with_suffix(".md").read_text()
    assert "## A language model as the judge" in markdown and "Cost: " in markdown
    assert "A language model as the judge" in page.read_text()
    written = "".join(file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    assert f"--judge-base-url {server.url}" in markdown and "my-password" not in written + said.err + again.out


def test_a_report_stands_before_what_takes_long(cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "lab.html"
    with model_server(fails(401)) as server:
        asked = ("--judge-model", "played", "--judge-base-url", server.url, "--judge-sample", 30, "--keep", tmp_path)
        cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *asked, "--report", page)
        first = page.stat().st_mtime_ns
        assert server.requests
    unknown = ("--ablate", "--backend", "?")
    said = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *unknown, "--report", page)
    assert said.code == 2 and page.stat().st_mtime_ns > first
    assert json.loads(page.with_suffix(".json").read_text())["table"]["runs"] == 24


def test_options_that_would_do_nothing_are_refused_with_a_remedy(cli, lab_bundle: Path) -> None:
    url = ("--judge-base-url", "http://127.0.0.1:9/v1")
    for options, sentence in (
        (("--seeds", "13,14"), "without --folds none are: add --folds 5, or leave --seeds out"),
        (("--repeats", 2), "add --folds 5, or leave --repeats out"),
        (url, "add --judge-model NAME"),
        (("--judge-estimate",), "add --judge-model NAME"),
        (("--judge-model", "m", *url, "--judge-price-in", 3), "give both, of tokens that are sent (price-in)"),
        (("--judge-model", "m", *url, "--judge-key-from", "NOT_SET_ANYWHERE"), "no key: NOT_SET_ANYWHERE is not set"),
        (("--judge-model", "m", "--judge-base-url", "localhost:8000"), "begins with http:// or https://"),
    ):
        said = cli("evaluate", lab_bundle, "nowhere", *options)
        assert said.code == 2 and sentence in said.told, said.told
    said = cli("evaluate", lab_bundle, "nowhere", "--judge-model", "m", env={"OPENAI_API_KEY": ""})
    assert said.code == 2 and "no key: OPENAI_API_KEY is not set" in said.told


def test_a_judge_that_is_not_there_leaves_the_evaluation_whole(
    cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path
) -> None:
    key = "sk-nobody-may-see-this-key"
    with model_server(fails(401, f"bad key {key}")) as server:
        asked = ("--judge-model", "m", "--judge-base-url", server.url, "--judge-sample", 20, "--keep", tmp_path)
        said = cli("evaluate", lab_bundle, fresh_lab_file, "--resamples", 20, *asked, env={"OPENAI_API_KEY": key})
    assert said.code == 0 and "24 runs of 6 tasks" in said.told
    assert "No question was answered, so there are no figures." in said.told and "Check the key" in said.told
    assert key not in said.err and not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_runs_are_parsed_once_a_call(
    cli, lab_bundle: Path, lab_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is looked at: scores, controls' material, leaks, examples of the report, fits."""
    from prefixguard.stepview import reader

    opened = []
    counted = reader.open_documents
    monkeypatch.setattr(reader, "open_documents", lambda source: opened.append(source) or counted(source))
    looks = ("--leaks", "--report", tmp_path / "a.html", "--folds", 2, "--ablate", "--backend", "?", "--keep", tmp_path)
    said = cli("evaluate", lab_bundle, lab_file, "--resamples", 20, *looks)
    assert said.code == 2 and "backend" in said.told and len(opened) == 1


@pytest.mark.slow
def test_a_stream_serves_every_look(cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    """Before, what is read twice had to be a file."""
    page = tmp_path / "a.html"
    options = ("--resamples", 20, "--leaks", "--json")
    from_file = cli("evaluate", lab_bundle, fresh_lab_file, *options)
    said = cli("evaluate", lab_bundle, "-", *options, "--report", page, stdin=fresh_lab_file.read_bytes())
    assert said.code == 0 and said.out == from_file.out and page.exists()


@pytest.mark.slow
def test_older_options_name_their_commands_and_say_the_same(
    cli, lab_bundle: Path, lab_file: Path, tmp_path: Path
) -> None:
    monitor, kept = tmp_path / "mine", tmp_path / "kept"
    config = ("--backend", "gbdt", "--max-features", 64, "--min-tasks", 2)
    assert cli("train", lab_file, "--adapter", "openai_chat", "--out", monitor, *config).code == 0
    older = ("--folds", 2, "--leave-agents-out", "--keep", kept, "--json", "--resamples", 20)
    said = cli("evaluate", monitor, lab_file, *older, "--group-by", "agent")
    if said.code:  # the agents of the simulation are of unlike size
        assert "fewer folds, or runs of more tasks" in said.told
        older = ("--folds", 2, "--keep", kept, "--json", "--resamples", 20)
        said = cli("evaluate", monitor, lab_file, *older, "--group-by", "agent")
    assert "warning: --folds works in this release only; now: prefixguard cross-validate --folds" in said.told
    fits = len(list(kept.iterdir()))
    options = ("--monitor", monitor, "--folds", 2, "--out", kept, "--resamples", 20, "--group-by", "agent", "--json")
    now = cli("cross-validate", lab_file, *options)
    assert now.code == 0 and json.loads(now.out) == json.loads(said.out)["folds"]
    assert len(list(kept.iterdir())) == fits, "what was fitted is taken up"
