"""Trained auditors side by side: each behind an endpoint, audited as any model, beside auditors that know nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.errors import ConfigError, DataError
from prefixguard.factory import LabelledRun, MistakeLabel, bare_run, stage_table, write_corpus
from prefixguard.factory.prompt_steps import steps_of
from prefixguard.factory.stage_table import evaluate
from prefixguard.factory.trained_model import write_record
from prefixguard.factory.training_rows import verdict_reply
from prefixguard.simulation import generate


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Ten short runs of the simulation, with their labels."""

    def labelled(run: dict) -> LabelledRun:
        step = run["metadata"]["mistake_step"]
        mistakes = () if step is None else (MistakeLabel(step, None, "", "first_cause"),)
        return LabelledRun(bare_run(run), "replayed" if mistakes else "safe", mistakes, run["task_id"])

    short = [run for run in generate(24, seed=4) if len(run["messages"]) < 28]
    write_corpus(tmp_path / "corpus.jsonl", map(labelled, short))
    return tmp_path / "corpus.jsonl"


class Engine:
    """Two models: one that alarms at the first step it sees that failed, one that says safe."""

    @staticmethod
    def answering(folder: str):
        def answer(messages, most: int, temperature: float) -> tuple[str, bool, int, int]:
            failed = [step for step in steps_of(messages).records if step.status == "error"]
            alarm = failed and folder.endswith("alarms")
            return verdict_reply(failed[0].index if alarm else None, "agent" if alarm else None), True, 9, 9

        return answer


def test_models_stand_beside_auditors_that_know_nothing(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_table, "engine_part", lambda module, what: Engine)
    for name in ("silent", "alarms"):
        (tmp_path / name).mkdir()
        write_record(tmp_path / name, {"stage": name, "form": "short"})
    told: list[str] = []
    table = evaluate(
        [tmp_path / "silent", tmp_path / "alarms"], corpus=[corpus], limit=5, out=tmp_path / "audit",
        listen=lambda what, done, of: told.append(f"{what} {done}/{of}"),
    )  # fmt: skip
    rows = {row.name: row for row in table.rows}
    assert table.runs == 5 and told[-1] == "auditing with alarms 5/5"
    assert rows["silent"].figures.counts.alarmed == 0 < rows["alarms"].figures.counts.alarmed
    assert rows["alarms"].figures.step_accuracy == pytest.approx(rows["first error"].figures.step_accuracy)
    assert rows["random step"].trivial and not rows["alarms"].trivial
    counts = rows["silent"].figures.counts
    assert (counts.unsafe, counts.safe) == (3, 2)  # spread over the corpus
    assert "silent: a tiny model (silent), asked in a short form of the prompt" in table.notes
    again = evaluate([tmp_path / "silent", tmp_path / "alarms"], corpus=[corpus], limit=5, out=tmp_path / "audit")
    assert json.dumps(again.as_json()["systems"][1]["counts"]) == json.dumps(table.as_json()["systems"][1]["counts"])


def test_an_interrupted_evaluation_asks_nothing_twice(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Counting:
        @staticmethod
        def answering(folder: str):
            return lambda messages, *_: (asked.append(json.dumps(messages)) or verdict_reply(None, None), True, 1, 1)

    def stop(what: str, done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(stage_table, "engine_part", lambda module, what: Counting)
    with pytest.raises(KeyboardInterrupt):
        evaluate([tmp_path], corpus=[corpus], limit=3, out=tmp_path / "audit", listen=stop)
    assert asked
    again = evaluate([tmp_path], corpus=[corpus], limit=3, out=tmp_path / "audit")
    assert again.runs == 3 and len(asked) == len(set(asked))


def test_labels_never_reach_a_prompt(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = corpus.read_text("utf-8").replace('"family": "support', '"family": "CANARY support')
    corpus.write_text(text.replace('"kind": ""', '"kind": "CANARY"'), "utf-8")
    seen: list[str] = []

    class Listening:
        @staticmethod
        def answering(folder: str):
            return lambda messages, *_: (seen.append(json.dumps(messages)) or verdict_reply(None, None), True, 1, 1)

    monkeypatch.setattr(stage_table, "engine_part", lambda module, what: Listening)
    evaluate([tmp_path], corpus=[corpus], limit=2)
    assert seen and not any("CANARY" in said for said in seen)


def test_what_cannot_be_evaluated_is_a_sentence(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a model is named twice"):
        evaluate([tmp_path, tmp_path], corpus=[corpus])
    with pytest.raises(ConfigError, match="no model to evaluate"):
        evaluate([], corpus=[corpus])
    corpus.write_text("", "utf-8")
    with pytest.raises(DataError, match=r"no run of .*corpus.jsonl has a label and is wanted"):
        evaluate([tmp_path], corpus=[corpus])
