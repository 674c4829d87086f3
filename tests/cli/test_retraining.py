"""Commands that train on folds, and the one that asks a judge: what they take, say, keep and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_server import model_server
from scripted_judge import Scripted, answer

import prefixguard
from prefixguard.learn import TrainConfig, trees
from prefixguard.stepview import SpooledRuns, load_adapter
from prefixguard.store import Store


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "ROUNDS", 8)


def test_a_file_of_settings_says_how_is_trained(cli, lab_file: Path, tmp_path: Path) -> None:
    """The command is the function, with its fits kept and taken up again."""
    settings = tmp_path / "settings.toml"
    settings.write_text('[train]\nbackend = "gru"\nmax_features = 64\nmin_tasks = 2\n')
    asked = ("--adapter", "openai_chat", "--config", settings, "--backend", "gbdt", "--out", tmp_path / "kept")
    said = cli("cross-validate", lab_file, *asked, "--folds", 2, "--resamples", 10, "--json")
    assert said.code == 0 and f"Fits that are done are kept in {tmp_path / 'kept'}" in said.err, said.err
    config = TrainConfig(backend="gbdt", max_features=64, min_tasks=2)
    runs = SpooledRuns.read(str(lab_file), load_adapter("openai_chat"))
    found = prefixguard.cross_validate(runs, config, folds=2, resamples=10)
    assert json.loads(said.out) == json.loads(json.dumps(found.as_json()))
    assert [asked["fold"] for asked, _ in Store(tmp_path / "kept").each("fold")] != []
    shown = cli("cross-validate", lab_file, *asked, "--folds", 2, "--resamples", 10)
    assert shown.out == "" and "2 task-grouped folds, seed 13: 160 runs of 40 tasks" in shown.told


def test_who_is_named_twice_or_not_at_all_is_refused(cli, lab_bundle: Path, lab_file: Path, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("[train]\n")
    for options, sentence in (
        (("--monitor", lab_bundle, "--config", tmp_path / "t.toml"), "--monitor and --config both say how is trained"),
        (("--trust", "key.pem", "--adapter", "openai_chat"), "--trust is for a monitor: name one with --monitor."),
        ((), "Say --adapter NAME"),
        (("--monitor", lab_bundle, "--adapter", "tau_bench"), "was trained through"),
        (("--adapter", "openai_chat", "--seeds", "a"), "--seeds 'a': give whole numbers, by comma"),
    ):
        said = cli("cross-validate", lab_file, *options)
        assert said.code == 2 and sentence in said.told, said.told


def test_what_is_no_training_cannot_be_trained_like(cli, lab_file: Path) -> None:
    automaton = Path(__file__).parents[2] / "automata" / "lab"
    said = cli("ablate", lab_file, "--monitor", automaton)
    assert said.code == 2 and "of an automaton, the one it was learned from" in said.told


def test_work_of_an_older_release_is_said(cli, lab_file: Path, tmp_path: Path) -> None:
    (tmp_path / "folds").mkdir()
    (tmp_path / "folds" / "protocol.json").write_text("{}")
    said = cli("leave-agents-out", lab_file, "--adapter", "openai_chat", "--out", tmp_path, "--group-by", "team")
    assert "protocol.json: kept by release 0.3 or older. It is not taken up" in said.told
    assert said.code == 2 and "no run has a group 'team'" in said.told


def test_a_judge_is_asked_once_for_the_same(cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    judge = Scripted(lambda n: answer((31 * n) % 100, 5))
    with model_server(judge.play) as server:
        asked = ("--model", "played", "--base-url", server.url, "--sample", 30, "--out", tmp_path, "--resamples", 10)
        said = cli("judge", lab_bundle, fresh_lab_file, *asked, "--estimate", "--key-from", "NOT_SET_ANYWHERE")
        assert said.code == 0 and "nothing was sent" in said.told and server.requests == [] and said.out == ""
        said = cli("judge", lab_bundle, fresh_lab_file, *asked, "--json")
        sent = len(server.requests)
        assert said.code == 0 and sent > 20, said.err
        again = cli("judge", lab_bundle, fresh_lab_file, *asked)
        assert len(server.requests) == sent
        found = prefixguard.judge(
            lab_bundle,
            fresh_lab_file,
            prefixguard.Endpoint("played", server.url),
            sample=30,
            out=tmp_path,
            resamples=10,
        )
    assert "A language model as the judge: played" in again.told and f"({sent} were answered before)" in again.told
    assert found is not None
    ours, theirs = json.loads(said.out), found.as_json()
    assert ours["outcome"] == theirs["outcome"] and ours["outcomes"] == theirs["outcomes"]
    assert theirs["costs"]["kept"] == sent
