"""`prefixguard export`: what it says and leaves, on the streams, in exit codes and for the commands that come after."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_monitor
from lab_export import one_teacher

from prefixguard.automata import ExportResult
from prefixguard.automata.model_selection import Candidate, CandidateTrial
from prefixguard.bundle import open_bundle, write_bundle
from prefixguard.cli import training_plan
from prefixguard.cli.commands import export as command
from prefixguard.simulation import write_runs

QUICK = ("--alphabet", "typed", "--learner", "ladder", "--clock", "--max-states", "16")


@pytest.fixture(scope="module", autouse=True)
def teacher():
    with one_teacher():
        yield


@pytest.fixture(scope="module")
def automaton(lab_bundle: Path, lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from prefixguard.automata import export

    out = tmp_path_factory.mktemp("automata") / "lab"
    return export(lab_bundle, lab_file, out=out, alphabet="typed", learner="ladder", clock=True, max_states=16).path


def test_json_is_one_line_on_standard_output(cli, lab_bundle: Path, lab_file: Path, automaton: Path, tmp_path) -> None:
    said = cli("export", lab_bundle, lab_file, *QUICK, "--out", tmp_path / "a", "--json")
    assert said.code == 0
    (facts,) = said.lines
    assert set(facts) == {"path", "id", "choice", "fidelity", "performance", "notes"}
    bundle = open_bundle(tmp_path / "a")
    assert (facts["path"], facts["id"]) == (str(tmp_path / "a"), bundle.id)
    assert facts["choice"] == bundle.manifest["config"]
    assert facts["fidelity"]["runs"] == bundle.manifest["metrics"]["test_runs"]
    written = json.loads((bundle.path / "automaton.json").read_bytes())["performance"]
    assert facts["performance"] == written and written["rows"][0]["by"] == "automaton"
    assert "Tried on folds" not in said.err
    assert bundle.id == open_bundle(automaton).id  # the command does what the function does


def test_people_are_told_on_standard_error(cli, lab_bundle: Path, lab_file: Path, tmp_path: Path) -> None:
    said = cli("export", lab_bundle, lab_file, *QUICK, "--out", tmp_path / "a", env={"COLUMNS": "80"})
    assert (said.code, said.out) == (0, "")
    assert "Tried on folds of the training runs" in said.told
    identifier = open_bundle(tmp_path / "a").id
    ours = json.loads((tmp_path / "a" / "automaton.json").read_bytes())["performance"]
    caught = f"Test runs: its alarms catch {ours['rows'][0]['caught']} of {ours['failed']} failures;"
    for words in (
        caught,
        *ours["notes"],
        "audit with care: All figures rest on",
        f"{tmp_path}/a {identifier[:12]}",
        "Next: open ",
    ):
        assert words in said.told
    rows = [line for line in said.err.splitlines() if "typed, ladder" in line and "Taken" not in line]
    assert len(rows) == 2 and sum("*" in row for row in rows) == 1, "in 80 columns too"
    assert "Taken (*): typed, ladder, " in said.told


def test_the_best_trials_and_the_choice_are_shown() -> None:
    named = Candidate("typed", "ladder", 8, clock=True)
    tried = tuple(CandidateTrial(named, i, 4, 1 - i / 100, 0.5, 0.5, 0.0) for i in range(56))
    tried = (*tried, replace(tried[-1], choice=Candidate("tree-context", "grid", 8, clock=False)))
    result = ExportResult(Path("a"), None, tried[-1].choice, tried, None, None, (), "")
    found = command._table(result, tried[-1].choice)
    assert found.row_count == 6 and list(found.columns[0].cells) == ["", "", "", "", "", "*"]
    assert list(found.columns[4].cells)[:5] == [f"{1 - i / 100:.3f}" for i in range(5)]


def test_runs_must_be_named_unless_they_are_the_labs(cli, tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", tiny_monitor.parts())
    said = cli("export", tmp_path / "m")
    assert said.code == 2
    assert "learned from the runs that its monitor learned from. Name them" in said.told and "lab" not in said.told


def test_every_command_takes_what_was_exported(cli, automaton: Path, lab_file: Path, fresh_lab_file: Path) -> None:
    (facts,) = cli("info", automaton, "--json").lines
    assert facts["model"] == "automaton"
    lines = cli("score", automaton, fresh_lab_file).lines
    assert all(line["state"] is not None and line["unknown_reason"] is None for line in lines)
    assert {line["level"] for line in lines} <= {"OK", "WATCH", "ALARM"}
    (table,) = cli("evaluate", automaton, lab_file, "--json").lines
    manifest = open_bundle(automaton).manifest
    assert table["runs"] == len(manifest["runs"]["test"])  # it leaves out what its teacher and itself learned from
    assert table["imminent"]["auprc"] == pytest.approx(manifest["metrics"]["imminent_auprc"], abs=1e-6)
    run_id = lines[0]["run_id"]
    told = cli("watch", automaton, fresh_lab_file, "--run-id", run_id, "--json").lines
    assert [(t["state"], t["level"]) for t in told] == [
        (m["state"], m["level"]) for m in lines if m["run_id"] == run_id
    ]


def test_a_table_from_an_automaton_needs_no_runs(cli, automaton: Path, tmp_path: Path) -> None:
    said = cli("export", automaton, "--to", "json-table", "--out", tmp_path / "table")
    assert said.code == 0
    assert "No runs are named" not in said.told and "Next" not in said.told
    assert sorted(path.name for path in (tmp_path / "table").iterdir()) == ["run.mjs", "run.py", "table.json"]
    (facts,) = cli(
        "export", automaton, "--to", "json-table", "--out", tmp_path / "table", "--overwrite", "--json"
    ).lines
    (takes,) = facts.pop("notes")
    assert takes.startswith("The table takes of each step its symbol, from 0 to ") and '"tool": name' in takes
    assert facts == {"path": str(tmp_path / "table"), "id": None, "choice": None, "fidelity": None, "performance": None}


def test_without_runs_the_labs_are_made_again(
    cli, lab_bundle: Path, lab_file: Path, automaton: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation's monitor is tested on a smaller lab than the product's; its numbers are changed, nothing else."""
    for module in (command, training_plan):
        monkeypatch.setattr(module, "SIMULATED_RUNS", 160)
    monkeypatch.setattr(training_plan, "LAB_SEED", 5)
    monkeypatch.chdir(tmp_path)
    said = cli("export", lab_bundle, *QUICK)
    assert said.code == 0
    assert "No runs are named: taking 160 runs of the built-in simulation." in said.told
    assert open_bundle(tmp_path / "automata" / lab_bundle.name).id == open_bundle(automaton).id


def test_without_runs_those_of_the_file_are_taken_with_their_labels(
    cli, lab_bundle: Path, automaton: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_runs(tmp_path / "all.jsonl", 160, 5)
    runs = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    ends = [{"run_id": run["run_id"], "outcome": run.pop("outcome")} for run in runs]
    for name, lines in (("bare.jsonl", runs), ("ends.jsonl", ends)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    toml = '[train]\nruns = "bare.jsonl"\nadapter = "openai_chat"\nlabels = "ends.jsonl"\n'
    (tmp_path / "prefixguard.toml").write_text(toml)
    said = cli("export", lab_bundle, *QUICK, "--out", tmp_path / "a")
    assert said.code == 0, said.err
    assert "No runs are named: taking bare.jsonl, as prefixguard.toml says." in said.told
    made = [open_bundle(path).manifest["files"] for path in (tmp_path / "a", automaton)]  # the page names the file
    assert made[0]["automaton.json"] == made[1]["automaton.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", "svg"), "Error: --to svg: choose one of dfa, json-table."),
        (("--max-states", "1"), "Error: max_states = 1: a whole number between 2 and 4096 is needed."),
        (("--alphabet", "words"), "Error: alphabet 'words': choose one of behaviours, tree-context, "),
        (("--learner", "guess"), "Error: learner 'guess': choose one of memoryless, ladder"),
        (("--labels", "none.jsonl"), "none.jsonl"),
    ],
    ids=str,
)
def test_what_is_wrong_is_a_message_and_2(
    cli, arguments: tuple[str, ...], message: str, lab_bundle: Path, lab_file: Path, tmp_path: Path
) -> None:
    said = cli("export", lab_bundle, lab_file, "--out", tmp_path / "x", *arguments)
    assert (said.code, said.out) == (2, "")
    assert message in said.told
    assert not (tmp_path / "x").exists()


def test_other_runs_and_taken_names_are_a_message_and_2(
    cli, lab_bundle: Path, lab_file: Path, fresh_lab_file: Path, automaton: Path, tmp_path: Path
) -> None:
    said = cli("export", lab_bundle, fresh_lab_file, "--out", tmp_path / "x")
    assert said.code == 2 and "0 are among these 24. An automaton is learned from the runs" in said.told
    said = cli("export", lab_bundle, lab_file, "--out", automaton)
    assert said.code == 2 and "holds a bundle already." in said.told
    said = cli("export", automaton, lab_file, "--out", tmp_path / "x")
    assert said.code == 2 and "is an automaton already. For its table, say --to json-table." in said.told
    said = cli("export", tmp_path / "none")
    assert said.code == 2 and said.told.startswith(f"Error: No bundle at {tmp_path}/none")


def test_help_names_every_alphabet_and_learner(cli) -> None:
    from prefixguard.automata import ALPHABETS, FORMATS, LEARNERS

    told = cli("export", "--help", env={"COLUMNS": "200"}).out
    for name in (*ALPHABETS, *LEARNERS, *FORMATS):
        assert name in told, name
