"""Leave one agent out: who is trained on, who is tested, and what not knowing an agent costs."""

import numpy as np
import pytest

from prefixguard.errors import DataError
from prefixguard.evaluation.retraining import leave_one_agent_out, partition
from prefixguard.learn import TrainConfig, featurise
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

pytestmark = pytest.mark.usefixtures("few_trees")
TREES = TrainConfig(backend="gbdt", max_features=64)


@pytest.fixture(scope="module")
def corpus():
    """180 runs of 30 tasks by three agents. Failing runs say 'red', those of the odd agent 'green'; it has its own
    tool, so that whoever knows it can tell."""
    dice = np.random.default_rng(4)
    runs = []
    for i in range(180):
        agent = ("one", "two", "odd")[i % 3]
        fails = bool(dice.random() < 0.5)
        word = "red" if fails != (agent == "odd") else "green"
        tool = "peek" if agent == "odd" else "look"
        records = tuple(
            StepRecord(t, "agent", agent, tool, "{}", "", f"{word} {dice.choice(['a', 'b'])}", f"item {i}", "ok")
            for t in range(1, 7)
        )
        outcome = Outcome.FAILURE if fails else Outcome.SUCCESS
        runs.append(Run(f"r{i}", f"t{i // 6}", outcome, records, "x", {"agent": agent}))
    return featurise(runs)


def test_neither_the_agent_nor_the_tasks_are_known(corpus, fits, tmp_path):
    found = leave_one_agent_out(corpus, TREES, folds=2, out=tmp_path, resamples=20)
    pools = [pool + validation for pool, validation, _ in fits]
    assert len(pools) == 2 * 4 and [one.agent for one in found.agents] == ["odd", "one", "two"]
    plan = partition(corpus, folds=2)
    by_agents = [frozenset(corpus.groups[r]["agent"] for r in pool) for pool in pools]
    assert by_agents[:2] == [{"one", "two", "odd"}] * 2
    assert sorted(map(sorted, by_agents[2:])) == sorted(
        [["odd", "one"], ["odd", "one"], ["odd", "two"], ["odd", "two"], ["one", "two"], ["one", "two"]]
    )
    for i, pool in enumerate(pools):
        tasks = {corpus.task_ids[r] for r in pool}
        assert not tasks & {corpus.task_ids[r] for r in plan[i % 2].test.tolist()}
    again = leave_one_agent_out(corpus, TREES, folds=2, out=tmp_path, resamples=20)
    assert len(fits) == 8, "all of it was kept"
    assert repr(again) == repr(found)


def test_an_agent_that_speaks_otherwise_costs_what_it_is_not_known(corpus):
    found = leave_one_agent_out(corpus, TREES, folds=2, resamples=40)
    rows = {one.agent: one for one in found.agents}
    odd = rows["odd"].unknown["outcome"]
    assert odd.outcome_auroc_at_remaining < 0.1, "its words mean the contrary to whoever knows the others only"
    cost = odd.differences["outcome_auroc_at_remaining"]
    assert cost.value == rows["odd"].known["outcome"].outcome_auroc_at_remaining - odd.outcome_auroc_at_remaining
    assert cost.value > 0.2 and cost.interval[0] > 0.0
    assert rows["one"].trained_on[1] < rows["one"].trained_on[0]
    assert (rows["one"].runs, found.grouped_by) == (60, "agent")
    assert found.mean("unknown", "outcome", "outcome_auroc_at_remaining") < found.mean(
        "known", "outcome", "outcome_auroc_at_remaining"
    )
    text = found.to_text()
    assert "Neither has seen a run of the tasks" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 118
    assert found.as_json()["agents"][0]["agent"] == "odd"


def test_at_most_so_many_are_left_out(corpus):
    found = leave_one_agent_out(corpus, TREES, folds=2, most=1, resamples=0)
    assert [one.agent for one in found.agents] == ["odd"]
    assert any("The 1 with the most runs" in note for note in found.notes)


def test_one_agent_is_refused(corpus):
    alone = [
        Run(f"r{i}", f"t{i}", Outcome.FAILURE if i % 2 else Outcome.SUCCESS, (_said(i),), "x", {"agent": "a"})
        for i in range(40)
    ]
    with pytest.raises(DataError, match="there is nobody to leave out"):
        leave_one_agent_out(alone, TREES)
    with pytest.raises(DataError, match=r"no run has a group 'team'\. Groups of these runs: agent"):
        leave_one_agent_out(corpus, TREES, group_by="team")


def _said(i):
    return StepRecord(1, "agent", "", "look", "{}", "", f"words {i}", "ok", "ok")
