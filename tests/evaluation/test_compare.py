"""`compare` with hand-made monitors: which runs count, what is paired, and what a difference is."""

import json

import numpy as np
import pytest
import tiny_monitor

from prefixguard.alarm import AlarmPolicy, alarm_table, table_to_json
from prefixguard.bundle import write_bundle
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation import evaluate
from prefixguard.evaluation.comparing import compare
from prefixguard.runtime import load
from prefixguard.stepview import Adapter, read_runs
from prefixguard.trace import Run, run_digest, task_hash

TABLE = table_to_json(alarm_table(np.linspace(0.2, 0.9, 60), AlarmPolicy()))
LATE = table_to_json(alarm_table(np.linspace(0.8, 0.99, 60), AlarmPolicy()))
#: The same chat, read with one record a message and none a tool result, under another name.
SHORT = {
    **tiny_monitor.CHAT,
    "name": "tiny_short",
    "rules": [
        {"when": {"@.role": "user"}, "emit": "say", "action": {"text": "@.content"}},
        *tiny_monitor.CHAT["rules"],
    ],
}


def bundle(folder, *, name="m", model=None, adapter=None, **info):
    changes = {} if model is None else {"model": model}
    if adapter is not None:
        changes["adapter"] = Adapter.from_bytes(json.dumps(adapter).encode(), adapter["name"]).to_bytes()
    info = {"horizon": 3, "alarm_table": TABLE} | info
    write_bundle(folder / name, tiny_monitor.parts(info=info, **changes))
    return folder / name


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Sixteen runs of eight tasks; every fourth fails, each in another way of being long."""
    runs = []
    for i in range(16):
        fails = i % 4 == 0
        messages = tiny_monitor.failing_run() if fails else tiny_monitor.calm_run(2 + i % 5)
        messages[0] = tiny_monitor.user(f"Request {i}")
        runs.append({"run_id": f"r{i}", "task_id": f"t{i // 2}", "reward": 0.0 if fails else 1.0, "messages": messages})
    path = tmp_path_factory.mktemp("runs") / "runs.json"
    path.write_text(json.dumps(runs))
    return path


def test_a_monitor_is_not_ahead_of_itself(tmp_path, source):
    one = load(bundle(tmp_path, tasks={"train": [task_hash("elsewhere")]}))
    found = compare([one, one, one], source, resamples=60)
    assert found.paired and (found.runs, found.failed_runs, found.tasks) == (16, 4, 8)
    assert [column.name for column in found.monitors] == ["m (1)", "m (2)", "m (3)"]
    first, *others = found.monitors
    assert first.ahead == {} and all(alerts.ahead == {} for alerts in first.alerts)
    for column in others:
        assert repr(column.imminent) == repr(first.imminent) and repr(column.outcome) == repr(first.outcome)  # NaN
        for risk in ("imminent", "outcome"):
            assert column.ahead[risk]["auprc"].value == 0.0
            assert column.ahead[risk]["auprc"].interval == (0.0, 0.0)
        at_ten = column.alerts[-1]
        assert at_ten.ahead["alerted"].value == 0.0 and at_ten.ahead["early"].interval == (0.0, 0.0)
        assert (at_ten.only_this, at_ten.only_first, at_ten.both) == (0, 0, 4)


def test_each_column_is_what_evaluate_says(tmp_path, source):
    one, other = bundle(tmp_path, name="a"), bundle(tmp_path, name="b", model=tiny_monitor.model(-1.0))
    found = compare([one, other], source, resamples=60)
    for place, path in enumerate((one, other)):
        table = evaluate(path, source, resamples=60)
        assert repr(found.monitors[place].imminent) == repr(table.imminent)
        assert repr(found.monitors[place].outcome) == repr(table.outcome)
        assert repr([a.row for a in found.monitors[place].alerts]) == repr(list(table.first_alert))
        assert found.clocks["step index"]["outcome"].auprc == table.baselines["step index"].outcome.auprc
    worse = found.monitors[1]
    assert worse.outcome.auprc < found.monitors[0].outcome.auprc
    lead = worse.ahead["outcome"]["auprc"]
    assert lead.value == worse.outcome.auprc - found.monitors[0].outcome.auprc
    assert lead.interval[0] <= lead.value <= lead.interval[1]


def test_what_any_of_them_was_made_from_is_left_out_for_all(tmp_path, source):
    repeated = next(run for run in read_runs(source, load(bundle(tmp_path)).bundle.adapter) if run.run_id == "r15")
    one = bundle(tmp_path, name="a", tasks={"train": [task_hash("t0"), task_hash("t1")], "test": [task_hash("t5")]})
    other = bundle(
        tmp_path,
        name="b",
        tasks={"alarm": [task_hash("t1"), task_hash("t2")]},
        runs={"train": [run_digest(repeated.records)]},
    )
    found = compare([one, other], source, resamples=10)
    left = 16 - 6
    same_words = found.left_out["used_by_a_monitor"] - 6
    assert same_words >= 1, "the repeat of a training run"
    assert found.runs == left - same_words and found.in_sample == 0
    assert [column.used for column in found.monitors] == [4, 4 + same_words]
    every = compare([one, other], source, all=True, resamples=10)
    assert (every.runs, every.in_sample) == (16, 6 + same_words)
    assert "IN SAMPLE" in every.to_text() and every.as_json()["in_sample"] is True


def test_runs_without_steps_are_counted_as_evaluate_counts_them(tmp_path, source):
    runs = json.loads(source.read_text())
    for run in runs[:3]:
        run["messages"] = []
    runs[4]["reward"] = None
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs))
    one, other = bundle(tmp_path, name="a"), bundle(tmp_path, name="b", adapter=SHORT)
    out = evaluate(one, path, resamples=5).left_out
    assert (out.empty, out.without_outcome) == (3, 1)
    for pair in ([one, one], [one, other]):
        found = compare(pair, path, resamples=5).left_out
        assert (found["empty"], found["without_outcome"]) == (3, 1)


def test_first_alerts_are_compared_run_by_run(tmp_path, source):
    soon, late = bundle(tmp_path, name="soon"), bundle(tmp_path, name="late", alarm_table=LATE)
    found = compare([soon, late], source, resamples=40)
    by_budget = {alerts.row.budget: alerts for alerts in found.monitors[1].alerts}
    at_five = by_budget[0.05]
    first = next(alerts for alerts in found.monitors[0].alerts if alerts.row.budget == 0.05)
    assert at_five.row.thresholds.alarm > first.row.thresholds.alarm
    assert at_five.ahead["early"].value == at_five.row.alerts.early - first.row.alerts.early
    assert at_five.both + at_five.only_first == round(4 * first.row.alerts.alerted)
    assert at_five.only_this == 0
    assert by_budget[0.01].row.alerts is None and by_budget[0.01].ahead == {}, "60 runs do not support 1 %"
    assert "late at 1 % (has 60, needs 230)" in " ".join(found.to_text().split())


def test_budgets_that_one_lacks_are_left_out(tmp_path, source):
    one, other = bundle(tmp_path, name="a"), bundle(tmp_path, name="b", alarm_table=[])
    found = compare([one, other], source, resamples=10)
    assert [alerts.row.budget for alerts in found.monitors[0].alerts] == [0.10]


def test_monitors_of_other_adapters_are_not_paired_by_prefix(tmp_path, source):
    one, other = bundle(tmp_path, name="a"), bundle(tmp_path, name="b", adapter=SHORT)
    seen = []
    found = compare([one, other], source, resamples=30, progress=seen.append)
    assert seen == list(range(1, 33)), "each adapter reads all sixteen"
    assert not found.paired and found.runs == 16 and found.clocks == {}
    assert found.monitors[1].prefixes == found.monitors[0].prefixes + 16
    assert found.monitors[1].ahead == {}
    assert found.monitors[1].alerts[-1].ahead["alerted"].interval is not None
    assert repr(found.monitors[1].outcome) == repr(evaluate(other, source, resamples=30).outcome)
    text = " ".join(found.to_text().split())
    assert "prefixes cannot be paired" in text and "(tiny_chat, tiny_short)" in text


def test_parsed_runs_need_one_adapter(tmp_path, source):
    one, other = bundle(tmp_path, name="a"), bundle(tmp_path, name="b", adapter=SHORT)
    runs = list(read_runs(source, load(one).bundle.adapter))
    again = compare([one, one], runs, resamples=10)
    assert again.to_json() == compare([one, one], source, resamples=10).to_json()
    with pytest.raises(ConfigError, match="read through 2 adapters, and these runs can be read once only"):
        compare([one, other], runs)
    with pytest.raises(ConfigError, match="2 adapters"):
        compare([one, other], "-")


def test_other_horizons_mean_other_imminent_risks(tmp_path, source):
    found = compare([bundle(tmp_path, name="a"), bundle(tmp_path, name="b", horizon=1)], source, resamples=10)
    assert set(found.monitors[1].ahead) == {"outcome"}
    assert found.monitors[1].imminent.prevalence < found.monitors[0].imminent.prevalence
    assert any("different horizons" in note for note in found.notes)


def test_it_says_why_nothing_is_left(tmp_path, source):
    one = bundle(tmp_path, name="a", tasks={"train": [task_hash(f"t{i}") for i in range(8)]})
    other = bundle(tmp_path, name="b")
    with pytest.raises(DataError, match=r"16 used by a monitor.*--all"):
        compare([one, other], source)
    with pytest.raises(ConfigError, match="needs two or more"):
        compare([one], source)
    with pytest.raises(DataError, match="there is no run to compare on"):
        compare([other, other], [])


def test_groups_and_text(tmp_path, source):
    one = load(bundle(tmp_path, name="a-rather-long-name-of-a-monitor-indeed"))
    other = load(bundle(tmp_path, name="b", model=tiny_monitor.model(-1.0)))
    runs = [
        Run(r.run_id, r.task_id, r.outcome, r.records, r.source, {"agent": "ab"[i % 2]})
        for i, r in enumerate(read_runs(source, one.bundle.adapter))
    ]
    found = compare([one, other], runs, resamples=40)
    assert found.grouped_by == "agent"
    assert max(map(len, found.to_text().splitlines())) <= 118
    with pytest.raises(DataError, match=r"no run has a group 'tier'\. Groups of these runs: agent"):
        compare([one, other], runs, group_by="tier")
