"""Log-probabilities become a confidence that holds: fitted on one audit, used by the next."""

from __future__ import annotations

import json
import math
from pathlib import Path

from model_server import Exchange, model_server

from prefixguard.simulation import generate

SAFE = '<answer>{"answer": "SAFE", "agent": null, "reason": "Nothing is wrong here.", "quote": null}</answer>'


def says_safe(exchange: Exchange) -> None:
    """SAFE of every run; it is sure of it where the run is short."""
    words = exchange.body["messages"][-1]["content"]
    sure = math.log(0.97 if words.count(" step ") < 26 else 0.7)
    before, _, after = SAFE.partition('"SAFE"')
    tokens = [(before, 0.0), ('"SAFE"', sure), (after, 0.0)]
    content = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": SAFE},
        **({"logprobs": {"content": content}} if exchange.body.get("logprobs") else {}),
    }
    exchange.send(200, json.dumps({"model": "played", "choices": [choice]}).encode())


def test_a_confidence_is_fitted_and_used(cli, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    with runs.open("w") as file:
        for run in generate(60, 17, trials=4):
            file.write(json.dumps(run) + "\n")
    with model_server(says_safe) as server:
        asked = ("audit", runs, "--adapter", "openai_chat", "--model", "played", "--base-url", server.url)
        post_hoc = (*asked, "--protocol", "post-hoc")
        first = cli(*post_hoc, "--logprobs", "--out", tmp_path / "a")
        assert first.code == 0, first.err
        kept = tmp_path / "a" / "confidence.json"
        fitted = json.loads(kept.read_text())
        lines = first.lines
        assert fitted["pairs"] == 60
        assert fitted["right"] == sum(line["label"]["outcome"] == "success" for line in lines)
        assert {round(line["verdict"]["confidence"], 2) for line in lines} == {0.97, 0.7}
        second = cli(*post_hoc, "--confidence", kept)
        assert second.code == 0, second.err
        found = [text["verdict"] for text in second.lines]
        share = fitted["right"] / 60
        assert abs(sum(verdict["confidence"] for verdict in found) / 60 - share) < 0.05
        assert not any("not calibrated" in note for verdict in found for note in verdict["notes"])
        plain = cli(*post_hoc, "--limit", 3)
        assert [text["verdict"]["confidence"] for text in plain.lines] == [None] * 3
        few = cli(*post_hoc, "--logprobs", "--limit", 3)
        assert few.code == 0 and "Confidences stay as they are" in few.err
        broken = tmp_path / "broken.json"
        broken.write_text("{}")
        said = cli(*post_hoc, "--confidence", broken)
        assert said.code == 2 and "this is no confidence map" in said.err
        said = cli(*asked, "--protocol", "hypotheses", "--logprobs")
        assert said.code == 2 and "hypotheses gives none" in said.err


def test_a_corpus_fits_a_confidence_against_its_own_labels(cli, tmp_path: Path) -> None:
    """An alarm of a corpus' run is right where it blames the step of the label."""
    from prefixguard.factory import LabelledRun, MistakeLabel, bare_run, write_corpus

    alarm = '<answer>{"answer": 1, "agent": "agent", "reason": "It is wrong from the start.", "quote": null}</answer>'

    def blames_the_first(exchange: Exchange) -> None:
        before, _, after = alarm.partition("1")
        content = [{"token": token, "logprob": value} for token, value in ((before, 0.0), ("1", -0.2), (after, 0.0))]
        message = {"role": "assistant", "content": alarm}
        choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": {"content": content}}
        exchange.send(200, json.dumps({"model": "played", "choices": [choice]}).encode())

    labelled = []
    for number, run in enumerate(generate(60, 17, trials=4)):
        plain = {**bare_run(run), "outcome": "failure"}
        labelled.append(LabelledRun(plain, "replayed", (MistakeLabel(1 + number % 2, None, "", "first_cause"),)))
    write_corpus(tmp_path / "corpus.jsonl", labelled)
    with model_server(blames_the_first) as server:
        asked = ("--model", "played", "--base-url", server.url, "--protocol", "post-hoc", "--logprobs")
        said = cli("audit", tmp_path / "corpus.jsonl", *asked, "--out", tmp_path / "a")
    assert said.code == 0, said.err
    fitted = json.loads((tmp_path / "a" / "confidence.json").read_text())
    assert (fitted["pairs"], fitted["right"]) == (60, 30)
