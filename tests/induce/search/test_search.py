"""The search on formats whose truth is known, the objective on readings that are known to be worse, and its bounds."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.samples import open_samples
from prefixguard.induce.search import beam
from prefixguard.induce.search.beam import search
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.families import events
from prefixguard.induce.search.objective import judge
from prefixguard.stepview import Adapter, load_adapter

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "induce" / "samples"


@pytest.fixture(scope="module")
def bench() -> Any:
    """The benchmark of unseen formats, and their generators."""
    folder = str(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("unseen_benchmark", ROOT / "benchmarks" / "unseen.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    kept = list(sys.path)
    sys.path[:0] = [folder, str(ROOT / "tests" / "induce")]
    sys.modules.pop("unseen", None)
    try:
        sys.path.remove(folder)
        sys.path.append(folder)
        spec.loader.exec_module(module)
        sys.path.remove(folder)
        module.FORMATS = importlib.import_module("unseen").FORMATS
    finally:
        sys.path[:] = kept
    return module


@pytest.mark.parametrize("name", ["segments", "converse_envelope", "typed_events", "numbered_object", "tag_strings"])
@pytest.mark.parametrize("seed", [3])
def test_a_format_is_read_as_it_was(bench: Any, tmp_path: Path, name: str, seed: int) -> None:
    truth = bench.truth_of(bench.FORMATS[name].write(tmp_path, seed, 11))
    adapter = Adapter(propose_by_search(open_samples(tmp_path), name="unseen").spec)
    found = bench.figures_of(adapter, tmp_path, truth)
    assert {figure: found[figure] for figure in ("records", "tools", "results")} == pytest.approx(
        {"records": 1.0, "tools": 1.0, "results": 1.0}, abs=0.05
    ), found["why"]


@pytest.mark.parametrize(
    "name",
    [
        "bus_records",  # payloads are JSON in a text; heartbeats are of no run
        "browser_tables",  # rows in no order, NULL in cells; failures that are called "terminated"
        "sim_trials",  # prompts of two kinds; in a third of the runs the sides are turned
        "support_inbox",  # conversations in pages; words of which one is a success and one broke off
        "otlp_openinference",  # one row a run among annotations of several kinds, by the id of the last span
        "ci_traces",  # setup lines; a call and its result in one text; outcomes listed by an id of the first lines
        "chatml_rollouts",  # marks and tags in one text; several calls before their results, without ids
        "helicone_requests",  # requests that hold all of the talk so far, newest first; a score on the last
        "autogen_bench",  # the verdict is a line of a log beside the run
        "dspy_evaluate",  # names that count; a mark that stands in a file of settings
        "gateway_requests",  # a request beside the talk; what is said twice was said twice
        "codex_rollouts",  # two layouts; events that mirror others; the run's id is a part of its file's name
        "adk_sessions",  # a mark beside the score of one of two metrics; results under one of two names
        "bedrock_agent",  # what a model got and wrote says again what others say; parts inside parts
        "claude_exports",  # signs for words; reports of tests in XML
        "crm_parts",  # a kind whose messages a user and the agent say
        "model_parts",  # results without ids that name their tool; a mark in a file of settings under the score's name
        "nested_turns",  # a request and a reply around the work between them
        "phoenix_sessions",  # a run is a session of several traces; calls and replies are repeated
    ],
)
def test_a_products_format_is_read(bench: Any, tmp_path: Path, name: str) -> None:
    truth = bench.truth_of(bench.FORMATS[name].write(tmp_path, 4, 12))
    adapter = Adapter(propose_by_search(open_samples(tmp_path), name="unseen").spec)
    found = bench.figures_of(adapter, tmp_path, truth)
    assert min(found[figure] for figure in ("records", "tools", "results", "outcomes")) >= bench.READ, found


def test_events_in_the_json_of_a_cell_are_read_in_the_order_of_their_rows(bench: Any, tmp_path: Path) -> None:
    truth = bench.truth_of(bench.FORMATS["dialogflow_cx"].write(tmp_path, 4, 12))
    spec = propose_by_search(open_samples(tmp_path), name="unseen").spec
    assert spec["events"]["order_by"].startswith("^.") and "json" in spec["events"]["flatten"][1]
    found = bench.figures_of(Adapter(spec), tmp_path, truth)
    assert min(found[figure] for figure in ("records", "tools", "results")) >= bench.READ, found


def test_a_table_may_be_apart_by_semicolons(bench: Any, tmp_path: Path) -> None:
    truth = bench.truth_of(bench.FORMATS["semicolon_csv"].write(tmp_path, 4, 12))
    proposal = propose_by_search(open_samples(tmp_path), name="unseen")
    found = bench.figures_of(Adapter(proposal.spec), tmp_path, truth)
    assert min(found[figure] for figure in ("records", "tools", "results")) >= bench.READ, found
    assert "outcome" in {choice.field for choice in proposal.choices}  # it stands in a row of the table, among others


def test_an_unsure_reading_and_a_missing_outcome_are_questions(bench: Any, tmp_path: Path) -> None:
    """Steps that lie in lists by the name of a node; a vote that no word of the samples calls an outcome. That a
    machine broke is no verdict: one that stands beside is read without a question."""
    asked = {}
    for name in ("workflow_executions", "ide_chat_sessions"):
        bench.FORMATS[name].write(tmp_path / name, 4, 12)
        proposal = propose_by_search(open_samples(tmp_path / name), name="unseen")
        asked[name] = {choice.field: choice.options[choice.taken].confidence for choice in proposal.choices}
        assert asked[name]["events"] < 0.5
        assert ("outcome" in proposal.spec["run"]) is (name == "workflow_executions")
    assert asked["ide_chat_sessions"]["outcome"] < 0.5
    assert "outcome" not in asked["workflow_executions"]


def _spoiled(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Readings that are worse than the right one, each in one thing."""
    rules = spec["rules"]
    calls = [i for i, rule in enumerate(rules) if rule["emit"] == "call"]
    results = [i for i, rule in enumerate(rules) if rule["emit"] == "result"]
    says = [i for i, rule in enumerate(rules) if rule["emit"] == "say"]

    def without(drop: list[int]) -> dict[str, Any]:
        return {**spec, "rules": [rule for i, rule in enumerate(rules) if i not in drop]}

    def turned(at: list[int], emit: str, field: str, was: str) -> dict[str, Any]:
        kept = {i: {k: v for k, v in rules[i].items() if k in ("when", "then")} for i in at}
        return {
            **spec,
            "rules": [
                {**kept[i], "emit": emit, field: rule[was]} if i in kept and was in rule else rule
                for i, rule in enumerate(rules)
            ],
        }

    return {
        "no results": without(results),
        "no calls": without(calls),
        "no speech": without(says),
        "the agent's speech as what it hears": turned(says, "observe", "observation", "action"),
        "results as the agent's speech": turned(
            [i for i in results if "each" not in rules[i]], "say", "action", "result"
        ),
    }


@pytest.mark.parametrize("name", ["anthropic_messages", "langgraph", "openai_responses"])
def test_the_right_reading_is_worth_more_than_a_spoiled_one(name: str) -> None:
    evidence = Evidence(open_samples(SAMPLES / name))
    right = json.loads(load_adapter(name).to_bytes())
    worth = judge(right, evidence).total
    assert worth > 0.9
    for what, spec in _spoiled(right).items():
        if spec["rules"] != right["rules"]:
            assert judge(spec, evidence).total < worth, what
    evidence.close()


def test_a_spec_that_is_wrong_or_reads_nothing_is_worth_nothing() -> None:
    evidence = Evidence(open_samples(SAMPLES / "langgraph"))
    right = json.loads(load_adapter("langgraph").to_bytes())
    assert judge({**right, "rules": "all"}, evidence).total == 0
    assert judge({**right, "rules": [{"emit": "skip"}]}, evidence).total == 0
    evidence.close()


def test_edits_lead_from_a_wrong_part_to_the_right_one() -> None:
    evidence = Evidence(open_samples(SAMPLES / "langgraph"))
    first = max(chain.from_iterable(events.propose(evidence)), key=lambda one: judge(one.spec, evidence).worth)
    rules = [
        {**{k: v for k, v in rule.items() if k != "observation"}, "emit": "say", "action": rule["observation"]}
        if rule["emit"] == "observe"
        else rule
        for rule in first.spec["rules"]
    ]
    assert rules != first.spec["rules"]
    wrong = Candidate({**first.spec, "rules": rules}, "events")
    best = search([iter([wrong])], evidence)[0]
    assert best.judgement.total >= judge(first.spec, evidence).total - 0.005
    evidence.close()


def test_the_search_keeps_to_its_work_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "MOST_WORK", 600.0)
    found = []
    for pause in (0.0, 0.01):
        evidence = Evidence(open_samples(SAMPLES / "openhands"))
        monkeypatch.setattr(beam, "judge", lambda *a, pause=pause, **k: (_spend(pause), judge(*a, **k))[1])
        found.append([(one.candidate.spec, one.total) for one in search(events.propose(evidence), evidence)])
        assert evidence.work < 1_200
        evidence.close()
    assert found[0] == found[1]


def _spend(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_the_runs_that_are_judged_are_of_all_parts_of_the_samples(tmp_path: Path) -> None:
    for n in range(60):
        (tmp_path / f"{n:02}.json").write_text(json.dumps({"steps": [{"role": "user", "content": f"go {n}"}]}))
    evidence = Evidence(open_samples(tmp_path))
    spec = {"schema": "prefixguard/adapter/v1", "name": "a", "version": "1.0.0", "container": {"format": "json"}}
    adapter = Adapter({**spec, "events": "$.steps[*]", "rules": [{"emit": "observe", "observation": "@.content"}]})
    files = [int(run.file[:2]) for run in evidence.runs(adapter)]
    assert len(files) == 24 and max(b - a for a, b in pairwise(files)) <= 3 and files[-1] > 55
    evidence.close()


def test_without_names_it_still_reads(tmp_path: Path) -> None:
    turns = [{"q0": "a", "q1": f"please sort list number {n} for me"} for n in range(3)]
    for n in range(6):
        run = []
        for k, turn in enumerate(turns):
            run += [
                turn | {"q1": f"{turn['q1']} in room {n}{k}"},
                {
                    "q0": "b",
                    "q7": {"q8": ("sort", "look")[k % 2], "q9": {"xs" if k % 2 == 0 else "at": [n, k]}},
                    "q4": f"id{n}{k}7",
                },
                {"q0": "c", "q4": f"id{n}{k}7", "q1": f"here comes answer {n} of {k} with words"},
                {"q0": "b", "q1": f"I sorted it, the end is {n} and {k}"},
            ]
        (tmp_path / f"{n}.json").write_text(json.dumps({"z": run}), encoding="utf-8")
    made = propose_by_search(open_samples(tmp_path), name="renamed")
    text = json.dumps(made.spec)
    assert '"tool": "@.q7.q8"' in text and '"@.q7.q9"' in text
    assert made.spec["events"] == "$.z[*]"
