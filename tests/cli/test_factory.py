"""The commands of the factory, as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_server import Exchange, model_server, says

from prefixguard.factory import LabelledRun, MistakeLabel, bare_run, read_corpus, write_corpus
from prefixguard.simulation import generate


def _corpus(path: Path) -> Path:
    def labelled(run: dict) -> LabelledRun:
        step = run["metadata"]["mistake_step"]
        mistakes = () if step is None else (MistakeLabel(step, "agent", "gave_up", "first_cause"),)
        return LabelledRun(bare_run(run), "replayed" if mistakes else "safe", mistakes, run["task_id"])

    write_corpus(path, map(labelled, generate(16, seed=2)))
    return path


def test_a_group_of_commands_lists_them(cli) -> None:
    said = cli("factory", "--help")
    assert said.code == 0 and "import" in said.out and "build" in said.out
    assert cli("factory", "fly").code == 2
    listed = cli("--help").out
    assert listed.count("factory") == 1, "the group stands in the list of commands once"


def test_import_and_build(cli, tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "stepview_adapters" / "golden" / "whoandwhen_turns"
    said = cli("factory", "import", "whoandwhen", golden, tmp_path / "ww.jsonl", "--json")
    assert said.code == 0 and said.lines[0]["counts"]["runs"] == len((tmp_path / "ww.jsonl").read_text().splitlines())
    assert "For tests only: build never trains on it." in said.lines[0]["notes"][0]
    corpus = _corpus(tmp_path / "mine.jsonl")
    said = cli("factory", "build", corpus, "--against", tmp_path / "ww.jsonl", "--kind", "gave_up=FM-3.1",
               "--out", tmp_path / "rows", "--seed", "3")  # fmt: skip
    assert said.code == 0 and "train-verdicts: BE" in said.told
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_text())
    assert manifest["constants"]["kinds"] == {"gave_up": "FM-3.1"} and manifest["against"][0]["name"] == "ww.jsonl"
    assert manifest["rows"]["train-hypotheses"]["present"] > 0


def test_bad_input_is_a_sentence(cli, tmp_path: Path) -> None:
    said = cli("factory", "import", "trail", tmp_path, tmp_path / "x.jsonl")
    assert said.code == 2 and "no set called 'trail'" in said.told
    said = cli("factory", "build", tmp_path / "none.jsonl", "--out", tmp_path / "rows")
    assert said.code == 2 and "Name a file of labelled runs" in said.told
    said = cli("factory", "build", _corpus(tmp_path / "c.jsonl"), "--kind", "gave_up", "--out", tmp_path / "rows")
    assert said.code == 2 and "--kind 'gave_up': KEY=VALUE is needed, such as --kind 'wrong_value=FM-2.6'" in said.told


def test_annotate_by_two_models_at_two_places(cli, tmp_path: Path) -> None:
    def failed(name: str) -> LabelledRun:
        said = [{"role": "user", "content": "Go."}, *({"role": "assistant", "content": text} for text in "abc")]
        return LabelledRun({"run_id": name, "outcome": "failure", "messages": said}, "imported")

    write_corpus(tmp_path / "c.jsonl", [failed("r1"), failed("r2")])
    held = {"exists": True, "substantive": True, "decisive": True, "earliest": True}
    models: set[str] = set()

    def play(exchange: Exchange) -> None:
        models.add(exchange.body["model"])
        is_claim = "Somebody holds" in exchange.body["messages"][-1]["content"]
        says(json.dumps(held if is_claim else {"candidates": [{"step": 2}]}))(exchange)

    with model_server(play) as one, model_server(play) as two:
        who = ("--proposer", "first", "--base-url", one.url, "--verifier", f"second@{two.url}")
        said = cli("factory", "annotate", tmp_path / "c.jsonl", tmp_path / "o.jsonl", *who, "--json")
    assert said.code == 0 and said.lines[0]["counts"]["labelled"] == 2 and models == {"first", "second"}
    assert {run.decisive.step for run in read_corpus(tmp_path / "o.jsonl")} == {2}
    said = cli("factory", "annotate", tmp_path / "c.jsonl", tmp_path / "o.jsonl")
    assert said.code == 2 and "name a model with --proposer" in said.told


def test_the_demo_says_in_a_log_how_far_training_is(cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A line each 20 seconds, whatever comes in between."""
    clock = [0.0]

    def demo(*, listen: Callable[[str, int, int], None], **_: object) -> None:
        listen("training: sft", 0, 1)
        for step in range(1, 100):
            clock[0] += 1
            listen("training", step, 250)
        raise KeyboardInterrupt

    monkeypatch.setattr("prefixguard.cli.commands.factory_training.demo", demo)
    monkeypatch.setattr("prefixguard.cli.progress.time.monotonic", lambda: clock[0])
    said = cli("factory", "demo", "--out", tmp_path / "d")
    lines = [f"  training: sft: {step} of 250 done" for step in (20, 40, 60, 80)]
    assert said.code == 3 and said.err.splitlines()[:5] == ["  training: sft ...", *lines]
    assert "of a training its last checkpoint, if it has one" in said.told


WITHOUT_EXTRAS = """
import sys
class Absent:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
from prefixguard.cli import main
main()
"""
EXTRAS = (
    "scipy",
    "sklearn",
    "torch",
    "lightgbm",
    "onnx",
    "aalpy",
    "openai",
    "trl",
    "transformers",
    "datasets",
    "pyarrow",
)


def test_help_and_corpora_need_no_extra(tmp_path: Path) -> None:
    """With what a plain installation has, commands are listed, and corpora are read, built and audited."""
    corpus, program = _corpus(tmp_path / "c.jsonl"), WITHOUT_EXTRAS.replace("{absent!r}", repr(EXTRAS))
    monitor = Path(__file__).parents[2] / "monitors" / "lab"
    for typed in (
        ["--help"],
        ["factory", "build", str(corpus), "--out", str(tmp_path / "rows")],
        ["audit", str(corpus), "--monitor", str(monitor), "--limit", "2"],
    ):
        said = subprocess.run([sys.executable, "-c", program, *typed], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr
