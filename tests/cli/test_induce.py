"""`induce-adapter` and `check-adapter`: what is shown, asked and written, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import TraceError
from prefixguard.induce.proposal import Choice, LeftOut, Mapped, Option, Proposal
from prefixguard.stepview import load_adapter

pytestmark = pytest.mark.usefixtures("one_process")


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "prefixguard/adapter/v1",
        "name": "x",
        "version": "1.0.0",
        "container": {"format": "json", "runs": "$[*]"},
        "run": {
            "id": "$.trip",
            "outcome": {"of": "$.won", "type": "boolean", "success": {"eq": True}, "failure": "else"},
        },
        "events": "$.legs[*]",
        "rules": [{"emit": "step", "tool": "@.did", "arguments": "@.to", "result": {"text": "@.saw"}}],
        "status": "ok",
        "hidden": ["$.won"],
        **changes,
    }


OPTIONS = (Option("what it saw", "@.saw", 0.7, "text"), Option("where it went", "@.to", 0.3, "short", "place 1"))
CHOICE = Choice("result", OPTIONS, 0, "the likeliest is taken")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    runs = [
        {
            "trip": f"t{i}",
            "won": i % 3 > 0,
            "legs": [{"did": "go", "to": f"p{i}{k}", "saw": f"s {k} {i}"} for k in range(3)],
        }
        for i in range(12)
    ]
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.json").write_text(json.dumps(runs))
    return tmp_path / "samples"


@pytest.fixture(autouse=True)
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the spec that offline inference proposes; gives the options it was asked with, and the answers it got."""
    seen: list[Any] = []

    def use(**changes: Any) -> list[Any]:
        def propose(samples: Any, *, name: str, hints: Any, ask: Any) -> Proposal:
            seen.append((dict(hints), ask(CHOICE)))
            mapped = (Mapped("@.did", "tool", 1.0, 0.9, "few values"),)
            return Proposal(spec(**changes), mapped, (LeftOut("$.won", "tells the end", 0.01),), (CHOICE,), ("a note",))

        monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", propose)
        return seen

    use()
    return use


def test_without_a_terminal_nothing_is_asked_and_everything_is_said(cli: Any, samples: Path, play: Any) -> None:
    out = samples.parent / "out"
    said = cli("induce-adapter", samples, "--out", out, "--hint", "outcome=$.won", env={"COLUMNS": "200"})
    assert said.code == 0 and said.out == ""
    assert play() == [({"outcome": "$.won"}, 0)]
    for part in (
        "How the first steps are read", "run t0", "step 1", "What is read", "@.did", "few values", "What is left out",
        "tells the end", "Decided: result is what it saw. It could also be: where it went. Say otherwise with --hint",
        "a note", "Reads 12 runs, 36 calls, all with results; outcomes all known.",
        f"Next: prefixguard train {samples} --adapter {out}/samples.json",
    ):  # fmt: skip
        assert part in said.told, part
    assert "Figures:" not in said.told and "microseconds" not in said.told
    adapter = load_adapter(out / "samples.json")
    assert f"samples 1.0.0 {adapter.sha256[:12]}" in said.told
    assert said.err.index("How the first steps") < said.err.index(f"{out}/samples.report.md"), "seen before written"


def test_json_is_the_report(cli: Any, samples: Path) -> None:
    said = cli("induce-adapter", samples, "--out", samples.parent / "out", "--yes", "--json")
    (report,) = said.lines
    assert report["adapter"]["name"] == "samples" and report["check"]["ok"]
    assert [Path(path).name for path in report["paths"]][:2] == ["samples.json", "samples.report.md"]


def test_a_check_that_fails_is_exit_code_1_and_nothing_is_written(cli: Any, samples: Path, play: Any) -> None:
    play(rules=[{"emit": "step", "tool": "@.did", "result": {"text": "$.won"}}], hidden=[])
    said = cli("induce-adapter", samples, "--out", samples.parent / "out")
    assert said.code == 1
    assert "the outcome is read from" in said.told and "A check failed (spec), so this is not an adapter" in said.told
    draft = samples.parent / "out" / "samples.draft.json"
    assert f"The draft is kept: {draft}" in said.told and json.loads(draft.read_text())["name"] == "samples"
    assert sorted(path.name for path in draft.parent.iterdir()) == ["samples.draft.json", "samples.draft.report.md"]
    said = cli("induce-adapter", samples, "--no-write", "--json", "--waive", "$.won=told by the agent")
    assert said.lines[0]["waived"] == [{"path": "$.won", "reason": "told by the agent"}]
    assert said.lines[0]["paths"] == []


def test_without_a_folder_a_refused_draft_is_not_kept(cli: Any, samples: Path, play: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(samples.parent)
    play(rules=[{"when": {"@.did": "never"}, "emit": "skip"}])
    said = cli("induce-adapter", samples)
    assert said.code == 1 and "so nothing is written." in said.told and "Reads no run." in said.told
    assert [path.name for path in samples.parent.iterdir()] == ["samples"]


def test_nothing_is_trained_where_no_outcome_is_known(cli: Any, samples: Path, play: Any) -> None:
    play(run={"id": "$.trip"})
    said = cli("induce-adapter", samples, "--out", samples.parent / "out")
    assert said.code == 0 and "all with results; no outcome known." in said.told
    assert "prefixguard train" not in said.told and "--hint outcome=PATH" in said.told and "--labels" in said.told
    labels = samples.parent / "labels.csv"
    labels.write_text("run_id,outcome\n" + "".join(f"t{i},{('success', 'failure')[i % 2]}\n" for i in range(12)))
    said = cli("induce-adapter", samples, "--out", samples.parent / "out", "--labels", labels, "--overwrite")
    assert f"--labels {labels}" in said.told and "outcomes all known" in said.told
    assert "success; " in said.told, "the preview knows the labels too"


def test_only_the_first_steps_are_shown_and_long_texts_are_cut(cli: Any, samples: Path) -> None:
    runs = json.loads((samples / "a.json").read_text())
    for run in runs:
        run["legs"] = [{**leg, "saw": f"{leg['saw']}\n" + "a line of it\n" * 50} for leg in run["legs"] * 5]
    (samples / "a.json").write_text(json.dumps(runs))
    said = cli("induce-adapter", samples, "--no-write", env={"COLUMNS": "120"})
    assert "step 6" in said.told and "step 7" not in said.told and "run t1" not in said.told
    assert len(said.err.splitlines()) <= 85
    assert "step 3" not in cli("induce-adapter", samples, "--no-write", "--steps", "2").told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hint", "outcome"), "--hint 'outcome': KEY=VALUE is needed, such as --hint 'outcome=$.result.ok'"),
        (("--waive", "$.x="), "--waive '$.x=': KEY=VALUE is needed"),
        (("--name", "../x"), "an adapter cannot be called '../x'"),
        (("--hint", "colour=$.x"), "hint 'colour'"),
    ],
)
def test_bad_input_is_exit_code_2(cli: Any, samples: Path, options: tuple[str, ...], message: str) -> None:
    said = cli("induce-adapter", samples, *options)
    assert said.code == 2 and message in said.told


def test_samples_that_are_not_there_or_say_nothing(cli: Any, tmp_path: Path, monkeypatch: Any) -> None:
    said = cli("induce-adapter", tmp_path / "none")
    assert said.code == 2 and "there is no such file or folder" in said.told

    def refuse(*args: Any, **options: Any) -> Proposal:
        raise TraceError("nothing looks like runs.")

    monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", refuse)
    (tmp_path / "a.txt").write_text("hello")
    said = cli("induce-adapter", tmp_path)
    assert said.code == 2 and "nothing looks like runs." in said.told


def test_standard_input_cannot_be_read_twice(cli: Any) -> None:
    said = cli("induce-adapter", "-", stdin="{}")
    assert said.code == 2 and "Save them to a file" in said.told


def test_an_interruption_leaves_nothing(cli: Any, samples: Path, monkeypatch: Any) -> None:
    def stop(*args: Any, **options: Any) -> Proposal:
        raise KeyboardInterrupt

    monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", stop)
    said = cli("induce-adapter", samples, "--out", samples.parent / "out")
    assert said.code == 3 and "Nothing is left behind" in said.told and not (samples.parent / "out").exists()


def test_at_a_terminal_choices_and_the_freezing_are_asked(cli: Any, samples: Path, play: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("prefixguard.cli.commands.induction.is_conversation", lambda: True)
    out = samples.parent / "out"
    said = cli("induce-adapter", samples, "--out", out, stdin="7\n2\nn\n")
    assert play()[-1] == ({}, 1), "the second option"
    assert "The samples do not decide: result." in said.told and "place 1" in said.told
    assert "A number from 1 to 2." in said.told and "Freeze adapter samples?" in said.told
    assert said.code == 1 and not out.exists()
    assert cli("induce-adapter", samples, "--out", out, stdin="\n\n").code == 0 and play()[-1][1] == 0
    assert cli("induce-adapter", samples, "--out", out, "--overwrite", stdin="").code == 3, "the input ended"
    asked = cli("induce-adapter", samples, "--out", out, "--overwrite", "--yes")
    assert asked.code == 0 and "Which" not in asked.told


def test_a_known_format_is_said_and_offered(cli: Any, fresh_lab_file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    said = cli("induce-adapter", fresh_lab_file, "--out", tmp_path, "--no-write")
    assert "Known format: openai_chat reads 20 runs" in said.told and "--adapter openai_chat" in said.told
    assert "Known format" not in cli("induce-adapter", fresh_lab_file, "--no-write", "--no-recognise").told
    monkeypatch.setattr("prefixguard.cli.commands.induction.is_conversation", lambda: True)
    said = cli("induce-adapter", fresh_lab_file, "--out", tmp_path, stdin="y\n")
    assert said.code == 0 and f"Next: prefixguard parse {fresh_lab_file} --adapter openai_chat" in said.told
    assert not list(tmp_path.iterdir())


def test_the_pack_is_shown_and_nothing_else_is_done(cli: Any, samples: Path, play: Any) -> None:
    said = cli("induce-adapter", samples, "--show-pack", "--model", "m")
    assert said.code == 0 and "a.json" in said.out and "trip" in said.out
    assert "tokens of 1 files" in said.told and play() == []


def test_control_characters_of_samples_do_not_reach_the_terminal(cli: Any, samples: Path) -> None:
    text = (samples / "a.json").read_text().replace("s 0 0", "\\u001b[31mred")
    (samples / "a.json").write_text(text)
    said = cli("induce-adapter", samples, "--no-write")
    assert "\x1b" not in said.err and "red" in said.err


def test_check_adapter_says_findings_and_exits_with_1_for_errors(cli: Any, samples: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(spec(name="good")))
    bad.write_text(json.dumps(spec(name="bad", rules=[{"when": {"@.did": "never"}, "emit": "skip"}])))
    said = cli("check-adapter", good, samples, "--no-processes")
    assert said.code == 0 and f"good {load_adapter(good).sha256[:12]}: no errors, score" in said.told
    said = cli("check-adapter", bad, samples, "--no-processes", "--json")
    assert said.code == 1 and said.lines[0]["ok"] is False and "error: " in said.told and "bad" in said.told
    said = cli("check-adapter", "tau3", samples)
    assert said.code == 2 and "Nearest: tau2" in said.told


def test_a_question_that_nobody_answers_is_exit_code_4_and_its_flag_answers_it(
    cli: Any, samples: Path, monkeypatch: Any
) -> None:
    out = samples.parent / "out"
    won, lost = (spec()["run"]["outcome"] | {"success": {"eq": one}} for one in (True, False))
    near = (Option("won", won, 0.45, "a name"), Option("not won", lost, 0.4, "a name"))

    def propose(samples: Any, *, name: str, hints: Any, ask: Any) -> Proposal:
        choices = () if "run.outcome" in hints else (Choice("outcome", near, 0, "the likeliest"),)
        return Proposal(spec(), choices=choices)

    monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", propose)
    draft = samples.parent / "kept.json"
    said = cli("induce-adapter", samples, "--out", out, "--yes", "--draft", draft)
    assert said.code == 4 and "What is outcome? won (45%); not won (40%)." in said.told
    assert "--hint 'run.outcome={" in said.told and json.loads(draft.read_text())["name"] == "samples"
    assert not (out / "samples.json").exists()
    assert "Left open: What is outcome?" in draft.with_suffix(".report.md").read_text()
    assert cli("induce-adapter", samples, "--out", out, "--yes", "--sure", "0.4").code == 0
    answer = f"run.outcome={json.dumps(lost)}"
    assert cli("induce-adapter", samples, "--out", out, "--yes", "--overwrite", "--hint", answer).code == 0
    frozen = json.loads((out / "samples.json").read_text())
    assert frozen["run"] == {"id": "$.trip", "outcome": lost}


def test_a_draft_is_always_kept_where_it_is_named_and_frozen_when_mended(cli: Any, samples: Path, play: Any) -> None:
    draft, out = samples.parent / "drafts" / "mine.json", samples.parent / "out"
    assert cli("induce-adapter", samples, "--no-write", "--draft", draft, "--name", "mine").code == 0
    assert draft.exists() and not out.exists()
    play(rules=[{"when": {"@.did": "never"}, "emit": "skip"}])
    assert cli("induce-adapter", samples, "--out", out, "--draft", draft, "--name", "mine").code == 1
    said = cli("check-adapter", draft, samples, "--no-processes", "--freeze", "--out", out)
    assert said.code == 1 and not (out / "mine.json").exists()
    mended = json.loads(draft.read_text())
    mended["rules"] = spec()["rules"]
    draft.write_text(json.dumps(mended))
    said = cli(
        "check-adapter", draft, samples, "--no-processes", "--freeze", "--out", out, "--mended", "all legs are steps"
    )
    assert said.code == 0 and str(out / "mine.json") in said.told
    assert "all legs are steps" in (out / "mine.report.md").read_text()


def test_an_error_shows_the_hint_that_would_work(cli: Any, samples: Path, monkeypatch: Any) -> None:
    said = cli("induce-adapter", samples, "--hint", "events=legs")
    assert said.code == 2 and "--hint 'events=$.legs[*]'" in said.told

    def nothing(*args: Any, **options: Any) -> Any:
        raise TraceError("nothing looks like runs.")

    monkeypatch.setattr("prefixguard.induce.induction.propose_by_search", nothing)
    said = cli("induce-adapter", samples, "--no-recognise")
    assert said.code == 2 and "--hint 'events=$.legs[*]'" in said.told
