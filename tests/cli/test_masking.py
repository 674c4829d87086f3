"""No secret of a run leaves the machine, in any of the commands that ask a model, nor is one kept of what was asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from model_server import model_server, says

from prefixguard.simulation import generate

MONITOR = Path(__file__).parents[2] / "monitors" / "lab"
SECRETS = ("ghp_" + "a1B2c3D4e5" * 3, "ann.smith@example.org", "4111 1111 1111 1111", "hunter22")
TEXT = f"Use {SECRETS[0]} for {SECRETS[1]}, card {SECRETS[2]}, password={SECRETS[3]}, order #W1234567."
SAFE = '<answer>{"answer": "SAFE", "reason": "Nothing is wrong so far."}</answer>'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secret") / "runs.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for run in generate(4, 31, trials=1):
            user = next(message for message in run["messages"] if message["role"] == "user")
            user["content"] = f"{user['content']} {TEXT}"
            file.write(json.dumps(run) + "\n")
    return path


def everything_in(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("options", [("--protocol", "post-hoc"), ("--protocol", "hypotheses"), ("--monitor", MONITOR)])
def test_audit_sends_and_keeps_marks(cli, runs: Path, tmp_path: Path, options: tuple[object, ...]) -> None:
    asked = ("audit", runs, "--adapter", "openai_chat", "--model", "m", "--limit", 2, *options)
    with model_server(says(SAFE)) as server:
        said = cli(*asked, "--base-url", server.url, "--out", tmp_path / "out")
        sent = json.dumps(server.requests)
        assert "order #W1234567" in sent and "<masked email 1>" in sent
        kept = everything_in(tmp_path / "out")
        assert not any(secret in text for secret in SECRETS for text in (sent, kept, said.out, said.err))
        assert re.search(r"Masked in what is sent: 2 card, \d+ email, 2 key, 2 password\.", said.err)
        assert said.lines[0]["calls"][0]["masked"].items() >= {"card": 1, "key": 1, "password": 1}.items()
        cli(*asked, "--base-url", server.url, "--no-mask")
        assert all(secret in json.dumps(server.requests) for secret in SECRETS)


def test_a_live_question_holds_marks_and_a_quote_of_one_is_found(cli, runs: Path, tmp_path: Path) -> None:
    quote = '{"answer": 2, "reason": "It should not have.", "quote": "for <masked email 1>, card <masked card 1>"}'
    with model_server(says(f"<answer>{quote}</answer>")) as server:
        where = ("--base-url", server.url, "--replies", tmp_path / "replies", "--threshold", 0.01)
        said = cli("watch", MONITOR, runs, "--escalate", "m", *where)
        sent = json.dumps(server.requests)
        kept = everything_in(tmp_path / "replies")
        assert "<masked email 1>" in sent and not any(secret in sent + kept for secret in SECRETS)
        assert "Masked in what is sent: " in said.err
        cli("watch", MONITOR, runs, "--escalate", "m", *where, "--no-mask")
        assert SECRETS[0] in json.dumps(server.requests)


def test_samples_are_shown_to_a_model_with_marks(cli, runs: Path) -> None:
    said = cli("induce-adapter", runs, "--show-pack")
    assert "<masked email 1>" in said.out and not any(secret in said.out for secret in SECRETS)
    assert re.search(r"Masked in what is sent: 1 card, \d+ email, 1 key, 1 password\.", said.err)
    assert SECRETS[1] in cli("induce-adapter", runs, "--show-pack", "--no-mask").out


def test_masking_is_an_option_of_asking(cli, runs: Path) -> None:
    said = cli("watch", MONITOR, runs, "--no-mask")
    assert said.code == 2 and "--no-mask: goes with --escalate MODEL" in said.err
