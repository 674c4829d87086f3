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
