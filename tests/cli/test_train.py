from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
import tiny_monitor

from prefixguard.bundle import open_bundle, write_bundle
from prefixguard.cli.training_plan import plan_training
from prefixguard.distribution import install_command
from prefixguard.errors import ConfigError, UsageError
from prefixguard.trace import Side, task_hash

SMALL = [
    "--epochs",
    "1",
    "--symbol-epochs",
    "1",
    "--members",
    "1",
    "--teacher",
    "0",
    "--max-features",
    "64",
    "--budget",
    "0.25",
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, dict[str, Any]]]:
    """What `train` is called with, in an empty folder, without any training."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def train(runs: str, **options: Any) -> Any:
        calls.append((Path(runs).read_text()[:20] if Path(runs).is_file() else runs, options))
        data = {"runs": 4, "failed": 1, "tasks": 2, "steps": 9}
        manifest = {"data": data, "metrics": {"outcome_auroc": 0.7, "lost": None}, "training_seconds": 1.0}
        from prefixguard.stepview import ReadReport

        return SimpleNamespace(
            path=options["out"], id="ab" * 32, manifest=manifest, report=ReadReport(), notes=("a note.",)
        )

    monkeypatch.setattr("prefixguard.learn.train", train)
    monkeypatch.chdir(tmp_path)
    return calls


def test_train_then_use(cli, lab_file: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    said = cli("train", lab_file, "--adapter", "openai_chat", "--backend", "gru", "--out", out, *SMALL, "--json")
    assert said.code == 0, said.err
    (facts,) = said.lines
    assert facts["path"] == str(out) and facts["data"]["runs"] == 160 and len(facts["id"]) == 64
    assert cli("score", out, fresh_lab_file).code == 0


def test_without_anything_it_trains_on_the_lab_and_says_so(cli, asked) -> None:
    said = cli("train", "--backend", "gru")
    assert said.code == 0
    assert "there is no prefixguard.toml here: training on 1,200 runs of the built-in simulation" in said.told
    ((material, options),) = asked
    assert material.startswith('{"run_id":"support-0')
    assert options["adapter"] == "openai_chat" and options["out"] == Path("monitors/lab")
    assert "a note." in said.err and "outcome auroc 0.700" in said.err


def test_it_reads_the_file_in_the_folder_and_says_so(cli, asked) -> None:
    Path("prefixguard.toml").write_text(
        '[train]\nruns = "mine.jsonl"\nadapter = "tau2"\nlabels = "l.csv"\nepochs = 7\nseed = 1\n'
    )
    said = cli("train", "--seed", "2")
    assert "Training on mine.jsonl through adapter tau2, as prefixguard.toml says." in said.told
    ((runs, options),) = asked
    assert (runs, options["adapter"], options["labels"]) == ("mine.jsonl", "tau2", Path("l.csv"))
    assert options["out"] == Path("monitors/mine")
    assert (options["config"].epochs, options["config"].seed) == (7, 2), "the command line has the last word"


def test_a_file_that_names_no_runs_trains_on_the_lab_with_its_options(cli, asked) -> None:
    Path("prefixguard.toml").write_text("[train]\nepochs = 3\n")
    said = cli("train")
    assert "prefixguard.toml names none: training on 1,200 runs of the built-in simulation" in said.told
    assert asked[0][1]["config"].epochs == 3


def test_the_file_in_the_folder_is_not_for_other_runs(cli, asked) -> None:
    Path("prefixguard.toml").write_text('[train]\nruns = "mine.jsonl"\nadapter = "tau2"\nepochs = 7\n')
    cli("train", "other.jsonl", "--adapter", "openai_chat")
    ((runs, options),) = asked
    assert runs == "other.jsonl" and options["config"].epochs == 24


def test_paths_of_a_file_are_meant_from_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "there" / "x.toml"
    file.parent.mkdir()
    file.write_text('[train]\nruns = "mine.jsonl"\nadapter = "tau2"\nout = "m"\n')
    plan = plan_training(None, None, None, None, file, {})
    assert plan.runs == str(tmp_path / "there" / "mine.jsonl") and plan.out == tmp_path / "there" / "m"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[train\n", "not readable as TOML"),
        ("epochs = 3\n", "has no section [train]"),
        ("[train]\nepoch = 3\n", "unknown option 'epoch'"),
        ("[train]\nruns = 3\n", "runs = 3: a path in quotes is needed"),
        ("[train]\nadapter = [1]\n", "adapter = [1]: a name or a path, in quotes, is needed"),
        ('[train]\nepochs = "many"\n', "epochs = 'many': a whole number"),
    ],
)
def test_a_file_that_is_wrong(cli, asked, content: str, told: str) -> None:
    Path("prefixguard.toml").write_text(content)
    said = cli("train")
    assert said.code == 2 and told in said.told and asked == []


def test_runs_need_an_adapter(cli, asked) -> None:
    said = cli("train", "mine.jsonl")
    assert said.code == 2
    shipped = "a2a, aegis, aftraj, anthropic_messages,"
    assert f"how is mine.jsonl to be read? Say --adapter NAME (shipped: {shipped}" in said.told


def test_an_adapter_needs_runs() -> None:
    with pytest.raises(UsageError, match="no runs are named"):
        plan_training(None, "tau2", None, None, None, {})


def test_unknown_config_file() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read"):
        plan_training("x", "tau2", None, None, Path("nowhere.toml"), {})


@pytest.mark.slow
def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    """Where torch is not installed, help works and train says what to install."""
    import subprocess

    program = (
        "import sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError('No module named torch', name='torch')\n"
        "sys.meta_path.insert(0, Gone())\n"
        "from prefixguard.cli import main; main()"
    )
    env = {**os.environ, "COLUMNS": "200"}
    run = [sys.executable, "-c", program]
    assert subprocess.run([*run, "train", "--help"], capture_output=True, env=env).returncode == 0
    done = subprocess.run([*run, "train"], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 2
    needs = f"Error: backend gru needs torch. Install it with: {install_command('train')}"
    assert done.stderr.splitlines()[-1] == f"{needs}. Or: prefixguard train --backend gbdt needs no torch"


def test_a_training_begins_from_a_monitor_of_healthy_runs(cli, lab_file: Path, tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("day_one", "day_two", "day_three"))
    options = ("--backend", "healthy", "--seed", 7, "--horizon", 2, "--budget", "0.3")
    assert cli("train", lab_file, "--adapter", "openai_chat", "--out", one, *options).code == 0
    begun = cli("train", lab_file, "--from", one, "--backend", "gbdt", "--budget", "0.25", "--out", two, "--json")
    assert begun.code == 0, begun.err
    (facts,) = begun.lines
    assert (facts["seed"], facts["horizon"], facts["backend"]) == (7, 2, "gbdt")
    assert open_bundle(two).calibration.policy.budget == 0.25, "the command line has the last word"
    assert open_bundle(two).adapter.sha256 == open_bundle(one).adapter.sha256
    compared = facts["compared"]
    assert [column["name"] for column in compared["monitors"]] == ["day_one", "day_two"]
    assert compared["runs"] > 0 and compared["left_out_by"]["used_by_a_monitor"] > 0 and not compared["in_sample"]
    skills = [column["outcome"]["skill"] for column in compared["monitors"]]
    assert skills[0] is None and skills[1] is not None, "what a healthy monitor says is no risk of failing"
    assert "outcome_auroc_at_index" in compared["monitors"][1]["ahead"]["outcome"]

    used = sorted(h for side in Side for h in open_bundle(two).manifest["tasks"][side.value] if side is not Side.TEST)
    runs = [orjson.loads(line) for line in lab_file.read_bytes().splitlines()]
    only = [run for run in runs if task_hash(run["task_id"]) in used]
    assert 0 < len(only) < len(runs)
    (tmp_path / "seen.jsonl").write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in only))
    again = cli("train", tmp_path / "seen.jsonl", "--from", two, "--out", three, "--backend", "gbdt", "--json")
    assert again.code == 0 and again.lines[0]["compared"] is None
    assert "warning: day_two and the new monitor are not compared: no run is left" in again.told


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("-",), "--from compares both monitors on the runs, which takes runs that can be read again."),
        ((), "--from compares both monitors on the runs, which takes runs that can be read again."),
        (("runs.jsonl", "--adapter", "tau2"), "was trained through adapter tiny_chat"),
    ],
)
def test_what_cannot_be_begun_from(cli, tmp_path: Path, typed: tuple[str, ...], said: str) -> None:
    write_bundle(tmp_path / "m", tiny_monitor.parts(info={"horizon": 3, "seed": 13}))
    found = cli("train", *typed, "--from", tmp_path / "m", "--backend", "gbdt", "--out", tmp_path / "n")
    assert found.code == 2 and said in found.told


def test_rules_are_no_beginning(cli, tmp_path: Path) -> None:
    found = cli("train", "runs.jsonl", "--from", "rules", "--out", tmp_path / "n")
    assert "A training that begins from a monitor needs risks, and rules have none." in found.told and found.code != 0
