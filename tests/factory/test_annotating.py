"""Annotation against a server that plays proposers and verifiers over real HTTP."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from model_server import Exchange, fails, model_server, says

from prefixguard.errors import ConfigError, EndpointError, TraceError
from prefixguard.escalate import Endpoint
from prefixguard.factory import LabelledRun, MistakeLabel, annotate, read_corpus, write_corpus

CANARY = "canary-5d10"


def failed(name: str, n_steps: int = 5, **parts: object) -> LabelledRun:
    messages: list[dict] = [{"role": "user", "content": f"Task {name}."}]
    messages += [
        {"role": "assistant", "name": f"Agent{i % 2}", "content": f"{name} does part {i}"} for i in range(n_steps)
    ]
    run = {"run_id": f"{CANARY}-{name}", "task_id": f"{CANARY}-t-{name}", "outcome": "failure", "messages": messages}
    return LabelledRun(run, "imported", family=CANARY, provenance={"why": CANARY}, licence="own", **parts)


RUNS = [failed("alpha"), failed("beta"), failed("gamma", 8)]
Reply = dict | str | None


def plays(propose: Callable[[str, int], Reply], verify: Callable[[str, int, int], Reply]) -> tuple[Callable, Counter]:
    """A server's play. propose: of a run's name and a running number; verify: of name, step and number."""
    asked: Counter = Counter()

    def play(exchange: Exchange) -> None:
        text = exchange.body["messages"][-1]["content"]
        name = re.search(r"Task (\w+)\.", text)[1]
        claim = re.search(r"Somebody holds step (\d+)", text)
        kind = f"{name} {claim[1]}" if claim else name
        asked[kind] += 1
        reply = verify(name, int(claim[1]), asked[kind]) if claim else propose(name, asked[kind])
        if reply is None:
            fails(400, "no such model")(exchange)
        elif reply == "refuses":
            says("", refusal="I cannot judge people.")(exchange)
        else:
            says(reply if isinstance(reply, str) else json.dumps(reply))(exchange)

    return play, asked


def named(*steps: int) -> dict:
    return {"candidates": [{"step": step, "reason": f"It is wrong at {step}."} for step in steps]}


def judged(good: bool, confidence: float = 0.7) -> dict:
    return {"exists": True, "substantive": True, "decisive": good, "earliest": good, "confidence": confidence}


def labelled(tmp_path: Path, play: Callable, runs: list[LabelledRun] = RUNS, **options: object) -> tuple[dict, object]:
    write_corpus(tmp_path / "corpus.jsonl", runs)
    sent: list[str] = []

    def recorded(exchange: Exchange) -> None:
        sent.append(json.dumps(exchange.body))
        play(exchange)

    with model_server(recorded) as server:
        who = [Endpoint("played", server.url, temperature=0.2, max_retries=0)]
        report = annotate(tmp_path / "corpus.jsonl", tmp_path / "out.jsonl", who, **options)
    assert sent and CANARY not in "".join(sent), "ids and labels are not sent"
    return {
        one.run["messages"][0]["content"].split()[1][:-1]: one for one in read_corpus(tmp_path / "out.jsonl")
    }, report


def test_the_step_that_proposers_and_verifiers_agree_on_is_the_label(tmp_path: Path) -> None:
    gold = {"alpha": 2, "beta": 4, "gamma": 7}
    play, asked = plays(
        lambda name, n: named(gold[name], 1) if n % 2 else named(3), lambda name, step, n: judged(step == gold[name])
    )
    found, report = labelled(tmp_path, play)
    assert {name: one.decisive for name, one in found.items()} == {
        name: MistakeLabel(step, f"Agent{(step - 1) % 2}", "", "proposed") for name, step in gold.items()
    }
    assert all(one.source == "proposed" and one.licence == "own" for one in found.values())
    how = found["beta"].provenance["annotation"]
    assert [(v["step"], v["proposers"], v["passes"]) for v in how["votes"]] == [(1, 3, 0), (3, 2, 0), (4, 3, 3)]
    assert how["reference_shown"] is False and how["proposers"] == ["played"] * 5 and how["needed"] == 2
    assert report.counts["labelled"] == 3 and report.counts["abstained"] == 0
    assert report.counts["questions"] == sum(asked.values()) == 3 * (5 + 3 * 3)
    assert report.counts["verifiers agree"] == 1.0 and report.counts["proposers agree"] == pytest.approx(0.6)
    assert not report.skips.total


def test_nothing_is_asked_twice_and_the_same_bytes_come_out(tmp_path: Path) -> None:
    play, asked = plays(lambda name, n: named(2), lambda name, step, n: judged(True))
    write_corpus(tmp_path / "corpus.jsonl", RUNS)
    with model_server(play) as server:
        who = [Endpoint("played", server.url)]
        one = annotate(tmp_path / "corpus.jsonl", tmp_path / "again.jsonl", who)
        first, before = (tmp_path / "again.jsonl").read_bytes(), asked.total()
        two = annotate(tmp_path / "corpus.jsonl", tmp_path / "again.jsonl", who)
    assert asked.total() == before and one.counts["questions"] > 0 == two.counts["questions"]
    assert (tmp_path / "again.jsonl").read_bytes() == first


def test_an_interrupted_annotation_goes_on(tmp_path: Path) -> None:
    """What was answered before the interruption is not asked again, and the result is that of one go."""
    write_corpus(tmp_path / "corpus.jsonl", RUNS)
    play, asked = plays(lambda name, n: named(2), lambda name, step, n: judged(True))

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with model_server(play) as server:
        who = [Endpoint("played", server.url)]
        with pytest.raises(KeyboardInterrupt):
            annotate(tmp_path / "corpus.jsonl", tmp_path / "out.jsonl", who, workers=1, on_progress=stop)
        assert not (tmp_path / "out.jsonl").exists() and asked.total() == 8
        annotate(tmp_path / "corpus.jsonl", tmp_path / "out.jsonl", who, workers=1)
    assert asked.total() == 24 and len(list(read_corpus(tmp_path / "out.jsonl"))) == 3


def test_refusals_repeats_and_replies_outside_the_form_are_counted(tmp_path: Path) -> None:
    proposals: dict[str, list[Reply]] = {
        "alpha": ["refuses", named(2, 2), "I think it is step 2.", {"step": 2}, named(9, 2)],
        "beta": ["refuses"] * 5,
        "gamma": [named(3)] * 5,
    }
    checks: dict[str, list[Reply]] = {
        "alpha": ["refuses", judged(True), judged(True)],
        "gamma": [judged(True), {"exists": True}, "yes"],
    }
    play, _ = plays(lambda name, n: proposals[name][n - 1], lambda name, step, n: checks[name][n - 1])
    found, report = labelled(tmp_path, play, workers=1)
    assert set(found) == {"alpha"} and found["alpha"].decisive.step == 2
    assert report.skips.counts == {
        "a proposer: the model refused": 6,
        "a step that one proposer names twice": 1,
        "a proposer: the reply is no JSON object": 1,
        "a proposal outside the form": 1,
        "a proposed step at which no agent acts": 1,
        "a verifier: the model refused": 1,
        "a verification outside the form": 1,
        "a verifier: the reply is no JSON object": 1,
        "no candidate was proposed": 1,
        "too few verifiers answered": 1,
    }
    assert report.counts["abstained"] == 2


def test_a_verifier_that_always_says_yes_admits_nobody(tmp_path: Path) -> None:
    play, _ = plays(lambda name, n: named(1), lambda name, step, n: judged(n % 3 == 1))
    found, report = labelled(tmp_path, play, workers=1)
    assert not found and report.skips.counts == {"no candidate was admitted": 3}


def test_the_budget_ends_the_questions_and_nothing_is_mislabelled(tmp_path: Path) -> None:
    play, asked = plays(lambda name, n: named(2), lambda name, step, n: judged(True))
    found, report = labelled(tmp_path, play, budget_tokens=1, workers=1, proposals=1)
    assert not found and report.skips.counts == {"not asked: the budget was used up": 3} and asked.total() == 1
    asked.clear()
    found, report = labelled(tmp_path, play, budget_questions=10, workers=1)
    assert set(found) == {"alpha"} and report.skips.counts == {"not asked: the budget was used up": 2}
    assert asked.total() == report.counts["questions"] == 10


def test_reference_answers_are_shown_only_if_given_and_recorded(tmp_path: Path) -> None:
    seen: list[str] = []
    inner, _ = plays(lambda name, n: named(2), lambda name, step, n: judged(True))

    def play(exchange: Exchange) -> None:
        seen.append(exchange.body["messages"][-1]["content"])
        inner(exchange)

    references = tmp_path / "answers.jsonl"
    references.write_text(
        json.dumps({"run_id": RUNS[0].run_id, "answer": "forty two"}) + "\n\n"
        + json.dumps({"task_id": RUNS[1].run["task_id"], "answer": "forty two"}) + "\n"
    )  # fmt: skip
    found, report = labelled(tmp_path, play, references=references)
    assert set(found) == {"alpha", "beta"} and all('would have been: "forty two"' in text for text in seen)
    assert found["alpha"].provenance["annotation"]["reference_shown"] is True
    assert report.skips.counts == {"no reference answer for it": 1}
    seen.clear()
    labelled(tmp_path, play)
    assert seen and not any("forty two" in text or "would have been:" in text for text in seen)
    references.write_text("{}\n")
    with pytest.raises(TraceError, match=r"answers.jsonl:1: write"):
        labelled(tmp_path, play, references=references)


def test_only_failed_runs_without_a_step_are_asked_about(tmp_path: Path) -> None:
    known = failed("delta", mistakes=(MistakeLabel(1, None, "", "imported"),))
    safe = LabelledRun({**RUNS[0].run, "run_id": "safe", "outcome": "success"}, "safe")
    half = failed("eps", mistakes=(MistakeLabel(None, "Agent1", "FM-3.2", "imported"),))
    play, _ = plays(lambda name, n: named(2), lambda name, step, n: judged(True))
    found, report = labelled(tmp_path, play, [known, safe, half])
    assert set(found) == {"eps"} and [one.rule for one in found["eps"].mistakes] == ["proposed", "imported"]
    assert report.skips.counts == {"its decisive step is known": 1, "not a failed run": 1}


def test_nobody_answers(tmp_path: Path) -> None:
    play, _ = plays(lambda name, n: None, lambda name, step, n: None)
    with pytest.raises(EndpointError, match=r"nothing was answered: .*: the same command goes on"):
        labelled(tmp_path, play, workers=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"proposals": 0}, "proposals 0: from 1 to 64"),
        ({"needed": 4}, "needed 4: from 1 to 3, the verifications of a candidate"),
        ({"prompt_tokens": 10}, "prompt_tokens 10: 4000 or more"),
        ({"budget_tokens": 0}, "budget_tokens 0: 1 or more"),
        ({"verifiers": []}, "nobody to ask"),
    ],
)
def test_odd_options_are_refused(options: dict, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        annotate(tmp_path / "c", tmp_path / "o", [Endpoint("m", "http://127.0.0.1:9/v1")], **options)
