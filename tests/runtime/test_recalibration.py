"""New thresholds from new runs, by hand-made monitor and runs whose risks are known to differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor

import prefixguard
from prefixguard.alarm import alarm_threshold, draw_one_per_task, run_maximum, watch_threshold
from prefixguard.bundle import open_bundle, write_bundle
from prefixguard.errors import ConfigError, DataError, OutputError
from prefixguard.evaluation import evaluate
from prefixguard.runtime import Level, Monitor, load
from prefixguard.stepview import Adapter, StepRecord, read_runs
from prefixguard.trace import Outcome, Run, run_digest, task_hash


def records(n: int, errors: int = 0, salt: int = 0) -> tuple[StepRecord, ...]:
    """n steps, the last `errors` of which fail; other arguments for another salt."""
    return tuple(
        StepRecord(
            t + 1, "agent", "", "find", f'{{"id":{1000 * salt + t}}}', "", "",
            "Error: order not found" if t >= n - errors else "ok", "error" if t >= n - errors else "ok",
        )
        for t in range(n)
    )  # fmt: skip


def run(name: str, task: str | None, outcome: Outcome, steps: tuple[StepRecord, ...], **groups: str) -> Run[StepRecord]:
    return Run(name, task, outcome, steps, f"{name}.json", groups)


def new_runs(n_tasks: int = 30, **groups: str) -> list[Run[StepRecord]]:
    """Two successful runs a task, of various risks, and one that failed every third task."""
    made = []
    for i in range(n_tasks):
        for k in range(2):
            salt = 10 * i + k
            made.append(run(f"r{i}-{k}", f"task {i}", Outcome.SUCCESS, records(4 + i % 3, (i + k) % 3, salt), **groups))
        if i % 3 == 0:
            made.append(run(f"r{i}-f", f"task {i}", Outcome.FAILURE, records(5, 4, 10 * i + 9), **groups))
    return made


def risks(monitor: Monitor, one: Run[StepRecord]) -> list[float]:
    return [reading.outcome_risk for reading in monitor.score_run(one.records)]


def test_the_threshold_is_that_of_one_successful_run_a_task(monitor: Monitor, tmp_path: Path) -> None:
    runs = new_runs()
    result = prefixguard.calibrate(monitor, runs, out=tmp_path / "new")
    good = [one for one in runs if one.outcome is Outcome.SUCCESS]
    drawn = draw_one_per_task([one.task_id for one in good], [one.run_id for one in good], seed=13)
    policy = monitor.bundle.calibration.policy
    maxima = [run_maximum(risks(monitor, good[i]), policy) for i in drawn]
    assert len(set(maxima)) > 5, "runs too alike to tell"
    expected = alarm_threshold(maxima, policy)
    assert (result.thresholds.alarm, result.thresholds.n_runs) == (expected.alarm, 30)
    mark = watch_threshold(np.concatenate([risks(monitor, one) for one in runs]))
    assert result.thresholds.watch == min(mark, expected.alarm)
    said = result.manifest["recalibration"]
    assert (said["runs"], said["successful"], said["failed"], said["monitor"]) == (70, 60, 10, monitor.bundle.id)
    assert said["drawn"] == sorted(run_digest(good[i].records) for i in drawn)
    assert sum(max(risks(load(result.path), good[i])) > result.thresholds.alarm for i in drawn) <= expected.allowed


def test_a_new_bundle_is_made_and_the_old_one_stays(bundle_path: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in bundle_path.iterdir()}
    one, two = (prefixguard.calibrate(bundle_path, new_runs(), out=tmp_path / name) for name in ("a", "b"))
    assert one.id == two.id != open_bundle(bundle_path).id
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert {path.name: path.read_bytes() for path in bundle_path.iterdir()} == before
    for name in ("model.onnx", "vocabulary.bin", "context.npz", "reasons.onnx", "adapter.json"):
        assert (tmp_path / "a" / name).read_bytes() == before[name]
    with pytest.raises(OutputError, match="holds a bundle already"):
        prefixguard.calibrate(bundle_path, new_runs(), out=tmp_path / "a")
    again = prefixguard.calibrate(tmp_path / "a", new_runs(40), out=tmp_path / "a", overwrite=True)
    assert again.manifest["recalibration"]["monitor"] == one.id and again.thresholds.n_runs == 40


def test_without_out_it_stands_beside_the_monitor(tmp_path: Path) -> None:
    write_bundle(tmp_path / "tiny", tiny_monitor.parts())
    assert prefixguard.calibrate(tmp_path / "tiny", new_runs()).path == tmp_path / "tiny-calibrated"
    with pytest.raises(OutputError, match="holds a bundle already"):
        prefixguard.calibrate(tmp_path / "tiny", new_runs(), out=tmp_path / "tiny")


def made_from(tmp_path: Path, sides: dict[str, list[str]], digests: dict[str, list[str]]) -> Monitor:
    parts = tiny_monitor.parts()
    info = {**parts.info, "tasks": {side: [task_hash(t) for t in tasks] for side, tasks in sides.items()}}
    write_bundle(tmp_path / "made", replace(parts, info={**info, "runs": digests}))
    return load(tmp_path / "made")


def test_runs_it_was_made_from_are_left_out_and_counted(tmp_path: Path) -> None:
    runs = new_runs(40)
    sides = {"train": ["task 0", "task 1"], "validation": ["task 2"], "calibration": [], "alarm": ["task 4"]}
    sides["test"] = ["task 5", "task 99"]
    # A repeat of a run that stood on the calibration side, under another task.
    digests = {"calibration": [run_digest(runs[-1].records)]}
    monitor = made_from(tmp_path, sides, digests)
    result = prefixguard.calibrate(monitor, runs, out=tmp_path / "new")
    said = result.manifest["recalibration"]
    assert said["left_out"] == {"train": 5, "validation": 2, "calibration": 1} and said["in_sample"] == 0
    assert said["runs"] == len(runs) - 8
    assert "8 runs of tasks the monitor was made from were left out (5 train, 2 validation, 1 calibration)." in (
        result.notes
    )
    assert any(note.startswith("2 runs are of tasks that set the thresholds before") for note in result.notes)
    tasks = result.manifest["tasks"]
    assert task_hash("task 5") in tasks["alarm"] and task_hash("task 10") in tasks["alarm"]
    assert tasks["test"] == [task_hash("task 99")] and task_hash("task 0") not in tasks["alarm"]
    table = evaluate(result.path, [*runs, *([run("x", "elsewhere", Outcome.FAILURE, records(3, 2, 7))])])
    assert table.runs == 1, "an evaluation leaves out what set the thresholds"

    marked = prefixguard.calibrate(monitor, runs, out=tmp_path / "all", all=True)
    assert marked.manifest["recalibration"]["in_sample"] == 8
    assert marked.notes[0].startswith("IN SAMPLE: 8 of these runs")
    assert "IN SAMPLE: 8" in (marked.path / "CARD.md").read_text()
    with pytest.raises(DataError, match=r"no run is left to calibrate on: 5 belong .*\(5 train\).*--all"):
        prefixguard.calibrate(monitor, runs[:5], out=tmp_path / "none")


def test_a_budget_that_the_runs_cannot_support_is_refused_with_the_number(monitor: Monitor, tmp_path: Path) -> None:
    result = prefixguard.calibrate(monitor, new_runs(30), out=tmp_path / "new", budget=0.05)
    assert result.thresholds.alarm is None and result.thresholds.needed == 45
    assert "needs at least 45. Give 15 more tasks" in result.thresholds.reason
    assert result.notes[-1].startswith("no alarm: 30 successful")
    opened = load(result.path)
    assert opened.bundle.calibration.policy.budget == 0.05
    levels = {r.level for one in new_runs(30) for r in opened.score_run(one.records)}
    assert levels == {Level.OK, Level.WATCH}
    assert "never says ALARM" in (result.path / "CARD.md").read_text()
    enough = prefixguard.calibrate(monitor, new_runs(45), out=tmp_path / "enough", budget=0.05)
    assert enough.thresholds.alarm is not None


def test_word_for_word_repeats_without_tasks_count_once(monitor: Monitor, tmp_path: Path) -> None:
    one = [run(f"a{i}", None, Outcome.SUCCESS, records(4, i % 3, i)) for i in range(25)]
    twice = [run(f"b{i}", None, Outcome.SUCCESS, records(4, i % 3, i)) for i in range(25)]
    result = prefixguard.calibrate(monitor, [*one, *twice], out=tmp_path / "new")
    assert result.thresholds.n_runs == 25
    assert "25 runs repeat another word for word." in result.notes
    named = [replace(r, task_id=r.run_id) for r in (*one, *twice)]
    assert prefixguard.calibrate(monitor, named, out=tmp_path / "named").thresholds.n_runs == 50
    assert any(note.startswith("50 runs name no task") for note in result.notes)


def test_policy_of_the_new_bundle(monitor: Monitor, tmp_path: Path) -> None:
    result = prefixguard.calibrate(
        monitor, new_runs(), out=tmp_path / "new", confidence=0.8, consecutive=2, release=0.2, cooldown=3
    )
    policy = load(result.path).bundle.calibration.policy
    assert (policy.budget, policy.confidence, policy.consecutive) == (0.1, 0.8, 2)
    assert (policy.release, policy.cooldown) == (0.2, 3)
    single = prefixguard.calibrate(monitor, new_runs(), out=tmp_path / "one", confidence=0.8)
    assert result.thresholds.alarm < single.thresholds.alarm, "two steps in a row are rarer than one"
    with pytest.raises(ConfigError, match=r"alarm budget 1\.5"):
        prefixguard.calibrate(monitor, new_runs(), out=tmp_path / "bad", budget=1.5)


def test_runs_that_no_threshold_can_rest_on(monitor: Monitor, tmp_path: Path) -> None:
    def refused(runs: list[Run[StepRecord]], said: str) -> None:
        with pytest.raises(DataError, match=said):
            prefixguard.calibrate(monitor, runs, out=tmp_path / "no")
        assert not (tmp_path / "no").exists()

    refused([], "there is no run to calibrate on")
    refused([run("a", "t", Outcome.FAILURE, records(3))], "all 1 runs failed")
    refused([run("a", "t", Outcome.UNKNOWN, records(3))], r"no run is known to have succeeded: 1 have no outcome")


def tiers() -> list[Run[StepRecord]]:
    """Gold runs are calm, basic ones err; a few trial runs; two runs of no tier."""
    made = [run(f"g{i}", f"g{i}", Outcome.SUCCESS, records(4, 0, i), tier="gold") for i in range(30)]
    made += [
        run(f"b{i}", f"b{i}", Outcome.SUCCESS, records(5, 3 if i < 3 else i % 3, 50 + i), tier="basic")
        for i in range(30)
    ]
    made += [run(f"t{i}", f"t{i}", Outcome.SUCCESS, records(4, 1, 90 + i), tier="trial") for i in range(4)]
    return [*made, *(run(f"n{i}", f"n{i}", Outcome.SUCCESS, records(4, 0, 95 + i)) for i in range(2))]


def test_groups_with_enough_runs_have_thresholds_of_their_own(monitor: Monitor, tmp_path: Path) -> None:
    result = prefixguard.calibrate(monitor, tiers(), out=tmp_path / "new", group_by="tier")
    groups = result.groups
    assert groups is not None and groups.by == "tier"
    assert groups.of["gold"].alarm < result.thresholds.alarm < groups.of["basic"].alarm
    assert groups.of["trial"].alarm is None
    assert any("1 of 3 values of tier have fewer than the 22 tasks" in note and "trial 4" in note
               for note in result.notes)  # fmt: skip
    assert any(note.startswith("2 successful runs have no group tier") for note in result.notes)

    opened = load(result.path)
    between = run("x", "x", Outcome.UNKNOWN, records(5, 1, 200))
    top = max(risks(opened, between))
    assert groups.of["gold"].alarm < top < groups.of["basic"].alarm, "the run of this test must lie between"

    def alarmed(group: str | None) -> bool:
        return any(r.level is Level.ALARM for r in opened.score_run(between.records, group=group))

    assert alarmed("gold") and not alarmed("basic")
    assert alarmed(None) == alarmed("trial") == alarmed("never seen") == (top > result.thresholds.alarm)
    of_runs = {
        tier: [r.level for one in prefixguard.score(opened, [replace(between, groups={"tier": tier})])
               for r in one.readings]
        for tier in ("gold", "basic")
    }  # fmt: skip
    assert Level.ALARM in of_runs["gold"] and Level.ALARM not in of_runs["basic"]


def test_a_live_session_is_told_its_group(monitor: Monitor, tmp_path: Path) -> None:
    opened = load(prefixguard.calibrate(monitor, tiers(), out=tmp_path / "new", group_by="tier").path)

    def levels(**options: Any) -> list[Level]:
        session = opened.start(**options)
        return [r.level for event in tiny_monitor.calm_run(2) + tiny_monitor.failing_run()[:5]
                for r in session.observe(event)]  # fmt: skip

    assert Level.ALARM in levels(group="gold")
    assert levels(group="basic").count(Level.ALARM) < levels(group="gold").count(Level.ALARM)
    assert levels(group="who?") == levels()
    assert [r.level for r in monitor.score_run(records(4, 2), group="gold")] == [
        r.level for r in monitor.score_run(records(4, 2))
    ], "a monitor without thresholds by group passes it over"


def test_groups_that_no_run_has(monitor: Monitor, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no successful run has a group 'colour'\. Groups of these runs: tier\."):
        prefixguard.calibrate(monitor, tiers(), out=tmp_path / "new", group_by="colour")
    few = [replace(one, groups={"tier": one.run_id[:2]}) for one in tiers()]
    result = prefixguard.calibrate(monitor, few, out=tmp_path / "few", group_by="tier")
    assert result.groups is None and result.thresholds.alarm is not None
    assert open_bundle(result.path).manifest["schema"].endswith("v1"), "nothing in it is by group"
    many = [run(f"m{i}", f"m{i}", Outcome.SUCCESS, records(3, 0, i), tier=f"v{i}") for i in range(201)]
    with pytest.raises(DataError, match="201 values, at most 200"):
        prefixguard.calibrate(monitor, many, out=tmp_path / "many", group_by="tier")


def test_an_automaton_is_calibrated_by_its_own_steps(tmp_path: Path) -> None:
    parts = tiny_automaton.parts()
    pictures = {"automaton.svg": b"<svg/>", "GLOSSARY.md": b"# Glossary\n"}
    write_bundle(tmp_path / "dfa", replace(parts, pictures=pictures))
    opened = load(tmp_path / "dfa")
    runs = new_runs()
    result = prefixguard.calibrate(opened, runs, out=tmp_path / "new")
    assert open_bundle(result.path).kind == "automaton"
    assert (result.path / "GLOSSARY.md").exists() and not (result.path / "automaton.svg").exists()
    assert "The automaton's picture shows the thresholds of before and is left out." in result.notes
    said = [max(risks(opened, one)) for one in runs if one.outcome is Outcome.SUCCESS]
    assert result.thresholds.alarm in said
    assert risks(load(result.path), runs[0]) == risks(opened, runs[0])


def test_no_imminent_risk_of_a_calibrated_automaton_is_above_the_outcome_risk(tmp_path: Path) -> None:
    """Of an automaton of before, in which some are; its outcome risks stay."""
    old = tiny_automaton.by_seed(1, 5, tiny_automaton.TYPED.n_symbols, (3, 9))
    assert (old.risk[..., 0] > old.risk[..., 1]).any()
    write_bundle(tmp_path / "dfa", tiny_automaton.parts(old))
    new = open_bundle(prefixguard.calibrate(tmp_path / "dfa", new_runs(), out=tmp_path / "new").path).automaton
    assert new is not None and (new.risk[..., 0] <= new.risk[..., 1]).all()
    assert (new.interval[..., 0, :] <= new.interval[..., 1, :]).all()
    assert (new.risk[..., 1] == old.risk[..., 1]).all() and (new.interval[..., 1, :] == old.interval[..., 1, :]).all()


def test_from_a_file_through_its_own_adapter(bundle_path: Path, tmp_path: Path) -> None:
    import json

    def raw(i: int) -> dict[str, Any]:
        return {"run_id": f"r{i}", "task_id": f"t{i}", "messages": tiny_monitor.calm_run(2 + i % 4)}

    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{**raw(i), "reward": 1.0} for i in range(24)] + [{**raw(30), "messages": []}]))
    seen: list[int] = []
    result = prefixguard.calibrate(bundle_path, path, out=tmp_path / "new", progress=seen.append)
    assert (result.thresholds.n_runs, seen[-1]) == (24, 24)
    adapter = Adapter.from_bytes(json.dumps(tiny_monitor.CHAT).encode(), "tiny_chat")
    parsed = list(read_runs(path, adapter))
    assert prefixguard.calibrate(bundle_path, parsed, out=tmp_path / "parsed").thresholds == result.thresholds
    (tmp_path / "plain.json").write_text(json.dumps([raw(i) for i in range(24)]))
    (tmp_path / "labels.csv").write_text("run_id,outcome\n" + "".join(f"r{i},success\n" for i in range(24)))
    labelled = prefixguard.calibrate(
        bundle_path, tmp_path / "plain.json", out=tmp_path / "labelled", labels=tmp_path / "labels.csv"
    )
    assert labelled.thresholds == result.thresholds
