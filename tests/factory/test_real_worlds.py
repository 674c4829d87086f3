"""tau2-bench and TextWorld, where they are installed; and real runs of tau2, where there are some."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from prefixguard.factory import Skips, collect, inject, read_corpus, replay
from prefixguard.factory.contrast import candidates, point_of_no_return
from prefixguard.factory.environments import open_environment, recorded_runs

RECORDED = Path(os.environ.get("PREFIXGUARD_TRACES", ".traces")) / "tau2" / "prompt_refine"
RECORDED /= "debug_gpt4o_without_escape_test.json"
tau2 = pytest.mark.skipif(
    "PREFIXGUARD_TAU2_PYTHON" not in os.environ, reason="no interpreter with tau2-bench (PREFIXGUARD_TAU2_PYTHON)"
)
textworld = pytest.mark.skipif(
    "PREFIXGUARD_TEXTWORLD_PYTHON" not in os.environ,
    reason="no interpreter with textworld (PREFIXGUARD_TEXTWORLD_PYTHON)",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "careless"),
    [
        pytest.param("tau2-retail", {"count": 23, "tasks": 23, "seed": 13}, marks=tau2),  # of task 22 alone
        pytest.param("textworld", {"count": 4, "tasks": 2, "seed": 14}, marks=textworld),
    ],
)
def test_collected_injected_and_replayed(name: str, careless: dict[str, int], tmp_path: Path) -> None:
    """The scripted agent wins; a fault that is accepted loses; what a careless agent left out is found."""
    safe = collect(name, tmp_path / "safe.jsonl", count=2, tasks=2)
    assert safe.counts["failures"] == 0 and safe.counts["safe"] >= 1
    inject(tmp_path / "safe.jsonl", tmp_path / "injected.jsonl", per_run=2, tries=4)
    sources = {run.run_id: run for run in read_corpus(tmp_path / "safe.jsonl")}
    injected = list(read_corpus(tmp_path / "injected.jsonl"))
    for run in injected:
        step = run.mistakes[0].step or 0
        assert run.records()[: step - 1] == sources[run.provenance["source_run"]].records()[: step - 1]
        assert run.run["outcome"] == "failure" and step <= len(run.records())
    assert injected
    found = collect(name, tmp_path / "runs.jsonl", agent="careless", **careless)
    assert found.counts["failures"], "no failure to replay: choose another seed"
    replay(tmp_path / "runs.jsonl", tmp_path / "replayed.jsonl")
    replayed = list(read_corpus(tmp_path / "replayed.jsonl"))
    assert replayed
    for run in replayed:
        assert run.provenance["replay"]["candidates"]
        assert [one.rule for one in run.mistakes] == ["point_of_no_return"], "a reference goes on, not the agent"


@pytest.mark.real
@tau2
def test_real_runs_are_executed_again(tmp_path: Path) -> None:
    """Of recorded runs those are kept that play again and of which the world says what the record does; of those that
    failed, the losing write is one of the agent's writes, and nothing before it lost."""
    if not RECORDED.exists():
        pytest.skip("no recorded runs of tau2")
    world, skips = open_environment("tau2-retail"), Skips()
    found = []
    for run in recorded_runs(RECORDED, world, skips):  # type: ignore[arg-type]
        world.replay(run, len(world.decisions(run)))
        if run.run["outcome"] == world.verify() == "failure":
            played = candidates(world, run, world.corrections(run), rolls=1, salt="x")
            cause = point_of_no_return(played)
            found.append(cause)
            assert all(one.original == 1.0 for one in played if cause is not None and one.place < cause.place)
    world.close()
    assert any(found) and not skips.counts
    report = collect("tau2-retail", tmp_path / "real.jsonl", recorded=RECORDED)
    assert report.counts["runs"] == report.counts["safe"] + report.counts["failures"] + report.skips.total
    assert all(run.provenance["environment"] == {"name": "tau2-retail"} for run in read_corpus(tmp_path / "real.jsonl"))


class Retail:
    name, spec = "tau2-retail", {"name": "tau2-retail"}


def results(tasks: list[list[str]], runs: list[dict[str, Any]]) -> str:
    """A file of results: the actions of each task, and its runs."""
    hello = [{"role": "assistant", "content": "Hi"}]
    actions = [[{"name": name, "arguments": {}} for name in names] for names in tasks]
    document = {
        "info": {"environment_info": {"domain_name": "retail"}, "agent_info": {"llm": "m"}},
        "tasks": [{"id": str(i), "evaluation_criteria": {"actions": one}} for i, one in enumerate(actions)],
        "simulations": [{"task_id": "0", "messages": hello, **run} for run in runs],
    }
    return json.dumps(document)


def test_a_run_is_held_against_what_it_was_judged_by(tmp_path: Path) -> None:
    """Not against the tasks of its file, which may be those of other runs. Runs have the names of their files."""
    judged = [{"action": {"name": "cancel", "arguments": {"order_id": "#1"}}, "action_match": False}]
    runs = [
        {"reward_info": {"reward": 1.0, "action_checks": judged}},
        {"reward_info": {"reward": 0.0, "action_checks": []}},
        {"reward_info": {"reward": 0.0, "action_checks": None}},
        {"reward_info": {"reward": 0.0}},
        {"reward_info": None},
        {"reward_info": {"reward": 0.0, "action_checks": [{"action": None}]}},
    ]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.json").write_text(results([["exchange"]], runs))
    skips = Skips()
    found = list(recorded_runs(tmp_path, Retail(), skips))  # type: ignore[arg-type]
    references = [json.loads(run.provenance["task"])["reference"] for run in found]
    assert references == 2 * [[["cancel", {"order_id": "#1"}]], [], [["exchange", {}]], [["exchange", {}]]]
    assert [run.run_id for run in found] == [f"{folder}-same-{n}" for folder in "ab" for n in (1, 2, 3, 4)]
    assert skips.counts == {"a run without a reward": 2, "a run that is not in the form of tau2": 2}


def test_files_that_are_no_results_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"info": 3}')
    skips = Skips()
    assert list(recorded_runs(tmp_path, Retail(), skips)) == []  # type: ignore[arg-type]
    assert skips.counts == {"no results of tau2-bench": 2}
