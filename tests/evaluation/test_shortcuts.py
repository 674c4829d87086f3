import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.analyses.shortcuts import shortcuts
from prefixguard.metrics import Prefixes, at_remaining

FAILS = {"weak": 0.7, "middle": 0.4, "strong": 0.1}


def corpus(of_run, of_group, n=240, seed=0, fails=FAILS):
    """Runs of three agents; the risk is so much outcome, so much agent, and noise."""
    rng = np.random.default_rng(seed)
    names = list(fails)
    groups = [names[i % len(names)] for i in range(n)]
    failed = [bool(rng.random() < fails[name]) for name in groups]
    risks = [
        of_run * fail + of_group * fails[name] + rng.normal(0, 0.5, int(rng.integers(3, 12)))
        for fail, name in zip(failed, groups, strict=True)
    ]
    return risks, failed, [f"t{i // 6}" for i in range(n)], groups


def test_a_monitor_that_knows_the_agent_only():
    found = shortcuts(*corpus(0.0, 3.0, seed=1), resamples=100)
    assert found.pooled > 0.7 and found.group_only > 0.7
    assert abs(found.within - 0.5) < 0.06
    assert found.share_of_group > 0.8
    assert found.text.endswith("within one agent it does not exclude chance, so what it knows may be the agent alone.")


def test_a_monitor_that_knows_the_run_only():
    found = shortcuts(*corpus(1.0, 0.0), resamples=100)
    assert found.pooled > 0.8 and found.within > 0.8
    assert found.group_only > 0.7, "the agents do differ; this monitor does not use it"
    assert found.share_of_group < 0.1
    assert found.text.endswith("no fall beyond chance, so nothing shows that it is the agent that it knows.")


def test_a_monitor_that_knows_both():
    found = shortcuts(*corpus(0.4, 2.0), resamples=200)
    assert found.within < found.pooled
    assert found.intervals["within"][0] > 0.5
    assert 0.1 < found.share_of_group < 0.9
    assert found.text.endswith(
        f"{100 * found.share_of_group:.0f} % of what it has over chance is which agent made the run."
    )


def test_agents_that_do_not_differ_tell_nothing_and_not_less_than_nothing():
    """Shares that leave out one task each would come out far below .5 here, compared across tasks."""
    alike = {"one": 0.4, "other": 0.4}
    values = []
    for seed in range(8):
        risks, failed, tasks, groups = corpus(1.0, 0.0, seed=seed, fails=alike)
        values.append(shortcuts(risks, failed, tasks, groups, resamples=0).group_only)
    assert np.mean(values) == pytest.approx(0.5, abs=0.03)


def test_figures_are_those_of_the_metric():
    risks, failed, tasks, groups = corpus(0.5, 1.0)
    found = shortcuts(risks, failed, tasks, groups, resamples=0)
    prefixes, flat = Prefixes.of([len(r) for r in risks], failed, tasks), np.concatenate(risks)
    assert found.pooled == float(at_remaining(prefixes, flat).auroc())
    assert found.within == float(at_remaining(prefixes, flat, groups=groups).auroc())
    assert [(group.name, group.runs, group.tasks) for group in found.groups] == [
        ("middle", 80, 40), ("strong", 80, 40), ("weak", 80, 40)
    ]  # fmt: skip
    weak = [fail for fail, name in zip(failed, groups, strict=True) if name == "weak"]
    assert found.groups[2].failure_share == pytest.approx(np.mean(weak))
    mine = [i for i, name in enumerate(groups) if name == "weak"]
    alone = Prefixes.of([len(risks[i]) for i in mine], [failed[i] for i in mine], [tasks[i] for i in mine])
    assert found.groups[2].auroc == pytest.approx(
        float(at_remaining(alone, np.concatenate([risks[i] for i in mine])).auroc())
    )
    assert found.intervals == {}


def test_shares_come_from_other_tasks_by_hand():
    """Two tasks, two folds. In each task A fails and B does not: the other task's shares rank it without a fault."""
    runs = [[0.1]] * 4
    found = shortcuts(runs, [True, False, True, False], ["x", "x", "y", "y"], ["A", "B", "A", "B"], resamples=0)
    assert found.group_only == 1.0
    turned = shortcuts(runs, [True, False, False, True], ["x", "x", "y", "y"], ["A", "B", "A", "B"], resamples=0)
    assert turned.group_only == 0.0, "what was learnt on the other task is wrong here; in sample it would be .5"
    alone = shortcuts(runs, [True, False, True, False], ["x"] * 4, ["A", "B", "A", "B"], resamples=0)
    assert math.isnan(alone.group_only), "one task has no other to learn from"


def test_a_group_of_one_fold_gets_the_share_of_all_others():
    found = shortcuts([[0.1]] * 4, [True, False, True, False], ["x", "x", "y", "y"], list("ABCD"), resamples=0)
    assert found.group_only == 0.5


def test_steps_that_were_not_judged_are_left_out():
    risks, failed, tasks, groups = corpus(0.5, 1.0)
    blind = [risk.copy() for risk in risks]
    for risk in blind:
        risk[-1] = np.nan
    found = shortcuts(blind, failed, tasks, groups, resamples=0)
    assert found.pooled != shortcuts(risks, failed, tasks, groups, resamples=0).pooled
    nothing = shortcuts([np.full(3, np.nan)] * 4, [True, False] * 2, list("aabb"), list("xyxy"), resamples=5)
    assert math.isnan(nothing.pooled) and "nothing can be said" in nothing.text


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from([0.0, 0.5, 1.0, math.nan]), max_size=4), st.booleans(),
                  st.sampled_from("abc"), st.sampled_from("xyz")),
        max_size=10,
    ),
    st.integers(2, 4),
)  # fmt: skip
def test_any_runs_give_plain_json_and_text(runs, folds):
    columns = [[run[i] for run in runs] for i in range(4)]
    found = shortcuts(*columns, folds=folds, resamples=4)
    plain = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert sum(group["runs"] for group in plain["groups"]) == len(runs)
    assert found.text in " ".join(found.to_text().split("\n"))
    for name in ("pooled", "within", "group_only", "share_of_group"):
        assert plain[name] is None or 0.0 <= plain[name] <= 1.0


def test_degenerate_runs_are_said_in_words():
    one_group = shortcuts(*corpus(0.5, 0.0)[:3], ["x"] * 240, grouped_by="file", resamples=10)
    assert one_group.text == "All runs are of one file: whether a monitor knows runs or files cannot be told from them."
    assert one_group.within == one_group.pooled
    one_class = shortcuts([[0.1], [0.2]], [True, True], ["a", "b"], ["x", "y"], resamples=10)
    assert one_class.text.startswith("Failed and successful runs with equally many steps left are not both there")
    one_run = shortcuts([[0.1]], [True], ["a"], ["x"], resamples=10)
    assert one_run.groups[0].failure_share == 1.0
    apart = shortcuts([[0.9], [0.1]] * 4, [True, False] * 4, list("aabbccdd"), ["x", "y"] * 4, resamples=20)
    assert apart.text.endswith(
        "No agent has both failed and successful runs to compare, so all that ranks may be the agent."
    )


def test_text_is_narrow_and_lists_the_largest_groups():
    risks, failed, tasks, _ = corpus(0.5, 0.0)
    groups = [f"{'long name ' * 9}{i % 20}" for i in range(240)]
    found = shortcuts(risks, failed, tasks, groups, grouped_by="file", resamples=20)
    text = found.to_text()
    assert max(map(len, text.split("\n"))) <= 118
    assert "and 8 more" in text and text.startswith("Shortcuts: is it the run, or the file?")
    assert found.as_json() == shortcuts(risks, failed, tasks, groups, grouped_by="file", resamples=20).as_json()


def test_wrong_arguments():
    with pytest.raises(DataError, match="1 scored runs with 1 outcomes, 1 tasks and 2 groups"):
        shortcuts([[0.1]], [True], ["a"], ["x", "y"])
    with pytest.raises(ConfigError, match="1 folds: shares of a group come from other folds"):
        shortcuts([[0.1]], [True], ["a"], ["x"], folds=1)


def test_names_of_groups_are_harmless_for_a_terminal() -> None:
    risks = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.1, 0.2]]
    found = shortcuts(risks, [True, False] * 2, list("abcd"), ["x\x1b[31m\nhi", "y" * 80] * 2, resamples=5)
    text = found.to_text()
    assert "\x1b" not in text and "x\\x1b[31m\\nhi" in text and "y" * 59 + "…" in text
