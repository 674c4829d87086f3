"""The run section of a spec from small runs of many shapes, written to a folder and read back through the spec."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import ConfigError
from prefixguard.induce.offline.run_fields import RunFields, RunView, infer_run_fields
from prefixguard.induce.proposal import Choice, take_first
from prefixguard.induce.samples import open_samples
from prefixguard.stepview import Adapter, parse_path, read_runs, walk
from prefixguard.trace import LabelBook, read_labels

RULES = [
    {"when": {"@.role": "user"}, "emit": "observe", "observation": {"text": "@.content"}},
    {"when": "else", "emit": "say", "action": {"text": "@.content"}},
]


def turns(n: int, user: str = "") -> list[dict[str, Any]]:
    said = [{"role": "user", "content": user}] if user else []
    return [*said, *({"role": "assistant", "content": f"step {i} of this run"} for i in range(n))]


class Folder:
    """A folder of samples, what is inferred from it, and what the inferred spec reads."""

    def __init__(
        self,
        path: Path,
        files: Mapping[str, Any],
        *,
        runs: str | None = None,
        events: str = "$.messages[*]",
        match: str = "**/*.json",
        hints: Mapping[str, str] | None = None,
        lines: bool = False,
    ) -> None:
        self.path, self.asked = path, list[Choice]()
        for name, value in files.items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value if isinstance(value, str) else json.dumps(value))
        self.container: dict[str, Any] = {"format": "json", "files": match}
        if runs is not None:
            self.container["runs"] = runs
        self.events = events
        samples = open_samples(path)
        spec = {**self._spec({}), "hidden": []}
        views = []
        of_events = walk(parse_path(events, "events")[1])
        for document in sorted(p for p in files if Path(p).match(match.replace("**/", ""))):
            value = files[document]
            found = walk(parse_path(runs, "runs")[1])(value) if runs else [value]
            keys = list(value) if runs == "$.*" else [None] * len(found)
            views.extend(
                RunView(document, value, run, key, i, tuple(of_events(run)), len(found))
                for i, (key, run) in enumerate(zip(keys, found, strict=True), 1)
            )

        def ask(choice: Choice) -> int:
            self.asked.append(choice)
            return take_first(choice)

        self.fields: RunFields = infer_run_fields(
            views, samples, runs_path=runs, events_paths=[events], hints=hints or {}, ask=ask
        )
        assert spec["schema"]

    def _spec(self, run: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0", "container": self.container,
            "run": dict(run), "events": self.events, "rules": RULES,
        }  # fmt: skip

    def read(self) -> list[Any]:
        spec = self._spec(self.fields.run)
        spec["hidden"] = self.fields.hidden
        skip = [{"when": when, "emit": "skip"} for when in self.fields.skip_events]
        spec["rules"] = [*skip, *RULES]
        return list(read_runs(self.path, Adapter(spec)))

    def outcomes(self) -> str:
        """One letter a run: s, f or u."""
        return "".join(run.outcome.value[0] for run in self.read())

    def tasks(self) -> list[str | None]:
        return [run.task_id for run in self.read()]


def many(n: int, **fields: Any) -> list[dict[str, Any]]:
    """Runs with their turns; a callable field is asked with the number of the run."""
    return [
        {**{k: v(i) if callable(v) else v for k, v in fields.items()}, "messages": turns(3 + i % 4)} for i in range(n)
    ]


def test_fields_of_the_run(tmp_path: Path) -> None:
    runs = many(12, task_id=lambda i: f"t{i % 4}", reward=lambda i: float(i % 3 == 0), model="m")
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["task"] == "$.task_id"
    assert folder.fields.run["outcome"]["of"] == "$.reward"
    assert folder.outcomes() == "sff" * 4
    assert "$.reward" in folder.fields.hidden and "$.model" not in folder.fields.hidden
    assert folder.fields.outcomes is not None and folder.fields.outcomes[:3] == (1, -1, -1)
    assert not folder.asked


def test_deep_fields_and_a_map_of_runs(tmp_path: Path) -> None:
    runs = {
        str(i): {"summary": {"max_reward": i % 3 / 2, "max_reward_idx": i, "turns": i}, "messages": turns(3)}
        for i in range(12)
    }
    folder = Folder(tmp_path, {"a.json": runs, "b.json": runs}, runs="$.*")
    assert folder.fields.run["outcome"]["of"] == "$.summary.max_reward"
    assert folder.outcomes() == "ffs" * 8
    assert folder.fields.run["task"] == "$key"
    assert "$.summary" in folder.fields.hidden


@pytest.mark.parametrize("odd", ["false", None, 0.5, "missing"])
def test_what_is_no_side_stays_unknown(tmp_path: Path, odd: Any) -> None:
    runs = many(10, success=lambda i: i % 2 == 0)
    runs[3]["success"] = odd
    if odd == "missing":
        del runs[3]["success"]
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.outcomes() == "sfsusfsfsf"


def test_two_rewards_are_a_choice(tmp_path: Path) -> None:
    runs = many(12, reward=lambda i: float(i % 2), scores=lambda i: {"reward": float(i % 3 == 0)})
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    (choice,) = folder.asked
    assert choice.field == "outcome" and [o.value["of"] for o in choice.options] == ["$.reward", "$.scores.reward"]
    assert folder.fields.run["outcome"]["of"] == "$.reward"
    assert folder.fields.choices[0].rule


def test_the_answer_to_a_choice_is_taken(tmp_path: Path) -> None:
    runs = many(12, reward=lambda i: float(i % 2), score=lambda i: float(i % 3 == 0))
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    views = [RunView("a.json", runs, run, None, i, tuple(run["messages"]), 12) for i, run in enumerate(runs, 1)]
    fields = infer_run_fields(
        views, open_samples(tmp_path), runs_path="$[*]", events_paths=["$.messages[*]"], hints={}, ask=lambda _: 1
    )
    assert fields.run["outcome"]["of"] == "$.score" != folder.fields.run["outcome"]["of"]
    assert fields.choices[0].taken == 1


def test_names_that_mean_nothing(tmp_path: Path) -> None:
    words = ["book a flight to Rome for two", "cancel the order of the blue lamp", "find a red shoe in size nine"]
    runs = many(
        30, k1=lambda i: words[i % 3], k2=lambda i: float(i % 7 < 2), k3=lambda i: 3 + i % 4, k4=lambda i: i * 7
    )
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["outcome"]["of"] == "$.k2"
    assert len(set(folder.tasks())) == 3
    assert "preamble" not in folder.fields.run
    assert any("guess" in note for note in folder.fields.notes)


def test_nothing_to_be_found_is_said(tmp_path: Path) -> None:
    runs = many(6, turns=lambda i: i, sampled=lambda i: i in (1, 2, 5))
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert "outcome" not in folder.fields.run and folder.fields.outcomes is None
    assert any("--labels" in note for note in folder.fields.notes)
    assert any("task" in note for note in folder.fields.notes)


def test_ids_that_every_domain_counts_for_itself(tmp_path: Path) -> None:
    files = {
        f"{domain}.json": {
            "info": {"environment": {"domain_name": domain}, "seed": 3},
            "tasks": [{"id": str(i), "goal": f"the {domain} task with the number {i}"} for i in range(5)],
            "simulations": many(15, task_id=lambda i: str(i % 5), reward=lambda i: float(i % 2)),
        }
        for domain in ("air", "shop")
    }
    folder = Folder(tmp_path, files, runs="$.simulations[*]")
    assert folder.fields.run["task"] == {"join": ["%.info.environment.domain_name", "$.task_id"], "sep": ":"}
    assert len(set(folder.tasks())) == 10
    assert "%.tasks" in folder.fields.hidden and not any(str(h).startswith("%.sim") for h in folder.fields.hidden)


def test_colliding_ids_without_names(tmp_path: Path) -> None:
    files = {
        f"{domain}.json": {
            "k1": {"k2": {"k3": domain}, "k4": 3},
            "k5": [{"k6": str(i), "k7": f"the {domain} task with the number {i}"} for i in range(5)],
            "k8": many(15, k6=lambda i: str(i % 5), k9=lambda i: float(i % 4 == 0)),
        }
        for domain in ("air", "shop")
    }
    folder = Folder(tmp_path, files, runs="$.k8[*]")
    assert len(set(folder.tasks())) == 10


def test_a_file_that_repeats_over_folders_is_the_task(tmp_path: Path) -> None:
    files = {
        f"{agent}/trajs/repo-{i}.traj": {"messages": turns(3 + i), "info": {"exit_status": "submitted"}}
        for agent in ("a1", "a2")
        for i in range(6)
    }
    for agent in ("a1", "a2"):
        files[f"{agent}/results/results.json"] = {
            "resolved": ["repo-1", "repo-4"], "submitted": [f"repo-{i}" for i in range(6)], "error_ids": ["repo-5"],
        }  # fmt: skip
    folder = Folder(tmp_path, files, match="**/*.traj")
    assert folder.fields.run["task"] == {"file": "stem"}
    assert folder.fields.run["outcome"] == {
        "of": {"file": "stem"}, "type": "string",
        "success": {"in": {"sibling": "../results/results.json", "path": "$.resolved"}}, "failure": "else",
    }  # fmt: skip
    assert folder.outcomes() == "fsffsf" * 2
    assert "$.info" in folder.fields.hidden


def test_lists_of_both_sides(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"run{i}.json": {"messages": turns(3)} for i in range(6)}
    files["outcomes.jso"] = {"passed": ["run1"], "failed": [f"run{i}" for i in (0, 2, 3, 4, 5)]}
    folder = Folder(tmp_path, files)
    assert folder.outcomes() == "fsffff"
    assert folder.fields.run["outcome"]["failure"] == {"in": {"sibling": "outcomes.jso", "path": "$.failed"}}


def test_a_report_for_each_run(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for i in range(8):
        files[f"trajs/x__y-{i}.traj.json"] = {"instance_id": f"x__y-{i}", "messages": turns(3)}
        files[f"logs/x__y-{i}/report.json"] = {"patch_exists": True, "resolved": i % 2 == 0, "tests": {"ok": [1]}}
    folder = Folder(tmp_path, files, match="**/*.traj.json")
    assert folder.fields.run["outcome"]["of"] == {"sibling": "../logs/{task}/report.json", "path": "$.resolved"}
    assert folder.outcomes() == "sf" * 4


def test_a_report_named_after_the_file_only(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for i in range(8):
        files[f"trajs/x__y-{i}.traj.json"] = {"messages": turns(3)}
        files[f"logs/x__y-{i}.report"] = {"k1": True, "k2": i % 2 == 0}
    folder = Folder(tmp_path, files, match="**/*.traj.json")
    assert folder.outcomes() == "sf" * 4


def test_a_verdict_beside_each_run(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for i in range(8):
        files[f"a/{i:04d}/run.json"] = {"messages": turns(3)}
        files[f"a/{i:04d}/verdict.jso"] = {"judged_at": "2026-05-04", "accomplished": i % 4 == 0}
    folder = Folder(tmp_path, files)
    assert folder.fields.run["outcome"]["of"] == {"sibling": "verdict.jso", "path": "$.accomplished"}
    assert folder.outcomes() == "sfff" * 2


def test_a_reward_in_a_text_file(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for i in range(6):
        files[f"{i}/run.json"] = {"messages": turns(3)}
        files[f"{i}/verifier/reward.txt"] = f"{i % 2}\n"
    folder = Folder(tmp_path, files)
    assert folder.outcomes() == "fs" * 3


def test_a_table_of_verdicts(tmp_path: Path) -> None:
    files: dict[str, Any] = {"a.json": many(8, run_id=lambda i: f"run-{i}-x", task_id=lambda i: f"task-{i % 4}-y")}
    files["summary.jso"] = {"total": 8, "instances": [{"id": f"run-{i}-x", "resolved": i == 2} for i in range(8)]}
    folder = Folder(tmp_path, files, runs="$[*]")
    assert folder.outcomes() == "ffsfffff"
    path = folder.fields.run["outcome"]["success"]["in"]["path"]
    assert path == "$.instances[resolved=true].id"


def test_a_last_event_tells_and_is_not_read(tmp_path: Path) -> None:
    runs = many(10)
    for i, run in enumerate(runs):
        run["messages"] = [{"type": "message", "content": f"step {j}"} for j in range(4)]
        run["messages"].append({
            "type": "result", "subtype": "success" if i % 2 else "error_max_turns", "total_cost_usd": 0.2,
            "duration_ms": 100, "num_turns": 4, "content": "all done"
        })  # fmt: skip
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.skip_events == [{"@.type": "result"}]
    assert folder.outcomes() == "fs" * 5
    assert all(len(run.records) == 4 for run in folder.read())


def test_an_evaluation_event_with_a_boolean(tmp_path: Path) -> None:
    runs = many(10)
    for i, run in enumerate(runs):
        run["messages"] = [{"type": "message", "content": f"step {j}"} for j in range(4 + i % 3)]
        run["messages"].append({"type": "evaluation", "passed": i % 5 == 0, "content": ""})
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.outcomes() == "sffff" * 2
    assert folder.fields.skip_events == [{"@.type": "evaluation"}]


def test_the_final_act_of_an_agent_is_not_skipped(tmp_path: Path) -> None:
    runs = many(10, reward=lambda i: float(i % 2))
    for run in runs:
        run["messages"] = [{"type": "message", "content": f"step {j}"} for j in range(4)]
        run["messages"].append({"type": "submit", "content": "my answer is 12"})
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.skip_events == []


def test_what_only_the_simulated_user_knows_is_hidden(tmp_path: Path) -> None:
    def info(i: int) -> dict[str, Any]:
        task = {
            "user_id": f"u{i % 5}", "instruction": f"You are person {i % 5} and want a refund, but say so late.",
            "actions": [{"name": "refund"}], "outputs": [],
        }  # fmt: skip
        return {"task": task, "user_cost": 0.1 * i}

    runs = many(20, task_id=lambda i: i % 5, reward=lambda i: float(i % 3 == 0), info=info)
    for i, run in enumerate(runs):
        run["messages"] = turns(3, user=f"hello, I need some help please, variant {i}")
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert "preamble" not in folder.fields.run
    assert "$.info" in folder.fields.hidden


def test_a_task_text_that_no_event_says_is_the_preamble(tmp_path: Path) -> None:
    tasks = ["find a cheap flight to Rome", "find a red shoe", "book a table for two"]
    runs = many(9, task=lambda i: tasks[i % 3], ground_truth=lambda i: tasks[i % 3] + " (done)", score=lambda i: i % 2)
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["preamble"] == "$.task"
    assert "$.ground_truth" in folder.fields.hidden and "$.task" not in folder.fields.hidden
    assert folder.read()[0].records[0].observation == "find a cheap flight to Rome"


def test_what_the_first_turn_says_is_no_preamble(tmp_path: Path) -> None:
    runs = many(6, question=lambda i: f"what is {i} plus two, and why?")
    for run in runs:
        run["messages"] = [{"role": "x", "content": "Please answer: " + run["question"]}, *turns(3)]
    assert "preamble" not in Folder(tmp_path, {"a.json": runs}, runs="$[*]").fields.run


@pytest.mark.parametrize("names", [("mistake_step", "mistake_agent"), ("k1", "k2")])
def test_labels_of_mistakes(tmp_path: Path, names: Sequence[str]) -> None:
    files = {}
    who = ["Planner", "Coder", "Checker", "Surfer"]
    for i in range(8):
        history = [{"name": who[(i + j) % 4], "content": f"turn {j} of {i}"} for j in range(6)]
        step = [0, 5, 2, 3, 1, 4, 2, 0][i]
        files[f"{i}.json"] = {names[0]: str(step), names[1]: who[(i + step) % 4], "messages": history}
    fields = Folder(tmp_path, files).fields
    assert fields.run["labels"] == {"mistake_step": f"$.{names[0]}", "step_base": 0, "mistake_agent": f"$.{names[1]}"}


def test_one_field_under_two_names(tmp_path: Path) -> None:
    files = {f"{i}.json": {"is_correct" if i % 2 else "is_corrected": i < 3, "messages": turns(3)} for i in range(10)}
    folder = Folder(tmp_path, files)
    assert set(folder.fields.run["outcome"]["of"]["first"]) == {"$.is_correct", "$.is_corrected"}
    assert folder.outcomes() == "sss" + "f" * 7


def test_folders_named_after_outcomes(tmp_path: Path) -> None:
    files = {f"{'passed' if i % 3 else 'failed'}/r{i}.json": {"messages": turns(3)} for i in range(9)}
    folder = Folder(tmp_path, files)
    assert folder.fields.run["outcome"]["of"] == {"file": "parent"}
    assert sorted(folder.outcomes()) == sorted("fss" * 3)


def test_hints_have_the_last_word(tmp_path: Path) -> None:
    runs = many(
        8, reward=lambda i: float(i % 2), verdict=lambda i: {"v": "bad" if i % 4 else "good"}, who=lambda i: i % 3
    )
    hints = {"outcome": "$.verdict.v", "task": "$.who", "id": "$.nr"}
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]", hints=hints)
    assert folder.fields.run["task"] == "$.who" and folder.fields.run["id"] == "$.nr"
    assert folder.outcomes() == "sfff" * 2


def test_a_hint_that_leads_to_no_outcome_is_said(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a.json": many(5, reward=1.0)}, runs="$[*]", hints={"outcome": "$.messages"})
    assert "outcome" not in folder.fields.run
    assert any("hint outcome=$.messages" in note for note in folder.fields.notes)


def test_noise_changes_nothing(tmp_path: Path) -> None:
    runs = many(
        40, reward=lambda i: float(i % 3 == 0), task_id=lambda i: f"t{i % 8}", sampled=lambda i: (i * 7919) % 13 < 6,
        weight=lambda i: (i * 0.137) % 1, beacon=lambda i: f"{i * 48271 % 65537:08x}", region="north-4",
        remark=lambda i: f"amber birch {i % 3} cedar delta ember fjord grove heron inlet",
    )  # fmt: skip
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["outcome"]["of"] == "$.reward" and folder.fields.run["task"] == "$.task_id"
    assert not folder.asked and "preamble" not in folder.fields.run


def test_hidden_never_holds_the_events(tmp_path: Path) -> None:
    runs = [
        {"payload": {"final": {"log": run["messages"], "cost": 3}, "reward": i % 2}} for i, run in enumerate(many(6))
    ]
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]", events="$.payload.final.log[*]")
    assert folder.fields.hidden == ["$.payload.final.cost", "$.payload.reward"]
    assert len(folder.read()) == 6


def test_no_runs() -> None:
    fields = infer_run_fields(
        [], open_samples(Path(__file__)), runs_path=None, events_paths=["$.m[*]"], hints={}, ask=take_first
    )
    assert fields.run == {} and fields.notes


def test_odd_runs_do_no_harm(tmp_path: Path) -> None:
    odd = {'a"b': 1, "a'\"b": 2, "": 3, "a.b": {"reward": True}, "deep": {"x": {}}, "n": [[1]], "messages": turns(2)}
    for _ in range(50):
        odd = {**odd, "deep": {"d": odd["deep"]}}
    folder = Folder(tmp_path, {"a.json": [odd, {"messages": []}, {**odd, "a.b": {"reward": False}}]}, runs="$[*]")
    assert folder.fields.run["outcome"]["of"] == '$["a.b"].reward'
    assert folder.outcomes() == "sf"


def test_a_task_named_in_the_report(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for i in range(8):
        files[f"trial-{i:02d}x/agent/run.json"] = {"session_id": f"s-{i}-abc", "messages": turns(3)}
        report = {"task_name": f"task-{i % 4}", "verifier_result": {"reward": float(i % 2)}, "finished_at": "2026"}
        files[f"trial-{i:02d}x/result.jso"] = report
    folder = Folder(tmp_path, files)
    assert folder.fields.run["task"] == {"sibling": "../result.jso", "path": "$.task_name"}
    assert folder.tasks() == [f"task-{i % 4}" for i in range(8)] and folder.outcomes() == "fs" * 4


def test_folders_of_a_task_hold_its_repetitions(tmp_path: Path) -> None:
    files = {f"results/{t}/{i}/m.json": {"messages": turns(3)} for t in ("book", "refund", "logs") for i in range(3)}
    assert Folder(tmp_path, files).tasks() == ["book"] * 3 + ["logs"] * 3 + ["refund"] * 3


def test_names_that_number_the_repetitions_of_a_task(tmp_path: Path) -> None:
    files = {f"{t}__{i}f3a9c{i}.json": {"messages": turns(3)} for t in ("book", "refund", "logs") for i in range(3)}
    assert Folder(tmp_path, files).tasks() == ["book"] * 3 + ["logs"] * 3 + ["refund"] * 3


def test_a_header_line_names_the_task(tmp_path: Path) -> None:
    runs = many(12)
    for i, run in enumerate(runs):
        run["messages"].insert(0, {"type": "start", "task_id": f"t{i % 4}", "content": "begin"})
    assert Folder(tmp_path, {"a.json": runs}, runs="$[*]").tasks() == [f"t{i % 4}" for i in range(12)]


def test_attributes_of_spans(tmp_path: Path) -> None:
    def attributes(**values: str) -> list[dict[str, Any]]:
        return [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in values.items()]

    runs = []
    for i in range(10):
        spans: list[dict[str, Any]] = [
            {"traceId": f"t-{i}", "content": f"span {j}", "attributes": attributes(tool_name="ls")} for j in range(4)
        ]
        spans[0]["attributes"] += attributes(benchmark_task=f"task-{i % 5}")
        told = attributes(evaluation_score_label="pass" if i % 3 else "fail")
        spans[2]["events"] = [{"name": "evaluation.result", "attributes": told}]
        runs.append({"messages": spans})
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.outcomes() == "fssfssfssf"
    assert folder.tasks() == [f"task-{i % 5}" for i in range(10)]


def test_a_guess_may_be_refused(tmp_path: Path) -> None:
    runs = many(12, k1=lambda i: i % 2 == 0)
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    (choice,) = folder.asked
    assert choice.options[-1].value is None and folder.fields.run["outcome"]["of"] == "$.k1"
    views = [RunView("a.json", runs, run, None, i, tuple(run["messages"]), 12) for i, run in enumerate(runs, 1)]
    fields = infer_run_fields(
        views,
        open_samples(tmp_path),
        runs_path="$[*]",
        events_paths=["$.messages[*]"],
        hints={},
        ask=lambda asked: len(asked.options) - 1,
    )
    assert "outcome" not in fields.run and fields.outcomes is None


def test_a_state_that_all_runs_share_gives_way(tmp_path: Path) -> None:
    runs = many(12, status="success", rating=lambda i: {"rubric": {"value": "C" if i % 2 else "I"}})
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["outcome"]["of"] == "$.rating.rubric.value"
    assert folder.outcomes() == "fs" * 6


def test_repetitions_numbered_in_a_folder_further_out(tmp_path: Path) -> None:
    files = {f"{t}__{i}f3a9c{i}/agent/x.json": {"messages": turns(3)} for t in ("book", "logs") for i in range(4)}
    assert Folder(tmp_path, files).tasks() == ["book"] * 4 + ["logs"] * 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("verdicts.csv", "run,passed\n" + "".join(f"run-{i}-x,{'yes' if i % 2 else 'no'}\n" for i in range(6))),
        ("verdicts.jsn", json.dumps({f"run-{i}-x": {"passed": i % 2 == 0} for i in range(6)})),
        ("verdicts.jsn", json.dumps({"results": {f"run-{i}-x": float(i % 2) for i in range(6)}})),
        ("verdicts.jsl", "".join(json.dumps({"id": f"run-{i}-x", "passed": i < 2}) + "\n" for i in range(6))),
    ],
)
def test_a_table_that_no_spec_can_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    runs = many(6, run_id=lambda i: f"run-{i}-x")
    folder = Folder(tmp_path, {"a.json": runs, name: text}, runs="$[*]")
    assert "outcome" not in folder.fields.run
    assert any(name in note and "--labels" in note for note in folder.fields.notes)


def test_a_list_of_successes_that_no_sample_is_in(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"trajs/repo-{i}.traj": {"messages": turns(3)} for i in range(6)}
    every = [f"repo-{i}" for i in range(9)]
    files["results.jso"] = {"completed_ids": every[1:], "resolved": ["repo-8"], "submitted_ids": every}
    folder = Folder(tmp_path, files, match="**/*.traj")
    assert folder.fields.run["outcome"]["success"] == {"in": {"sibling": "../results.jso", "path": "$.resolved"}}
    assert folder.outcomes() == "f" * 6


def test_ids_counted_anew_in_data_sets_of_one_environment(tmp_path: Path) -> None:
    files = {}
    for data in ("one", "two", "three"):
        files[f"m/{data}.json"] = {
            str(i): {
                "environment": "bash" if data != "three" else "sql", "dataset": data, "task_id": i,
                "query": f"list the files of {data} {i} by size", "reward": i % 2, "messages": turns(3),
            }
            for i in range(12)
        }  # fmt: skip
    assert len(set(Folder(tmp_path, files, runs="$.*").tasks())) == 36


def test_equal_first_words_are_one_task(tmp_path: Path) -> None:
    asked = ["please book me a flight to Rome", "please find the invoice of March", "please mend the failing test"]
    runs = many(12)
    for i, run in enumerate(runs):
        run["messages"] = [{"role": "system", "content": f"be brief, {i}"}, *turns(3, user=asked[i % 3])]
    folder = Folder(tmp_path, {"a.json": runs}, runs="$[*]")
    assert folder.fields.run["task"] == "$.messages[1].content"
    assert len(set(folder.tasks())) == 3


def fields_of(tmp_path: Path, runs: list[dict[str, Any]], **hints: str) -> Any:
    views = [RunView("a.json", runs, run, None, i, tuple(run["messages"]), len(runs)) for i, run in enumerate(runs, 1)]
    (tmp_path / "a.json").write_text(json.dumps(runs))
    return infer_run_fields(
        views,
        open_samples(tmp_path),
        runs_path="$[*]",
        events_paths=["$.messages[*]"],
        hints=hints,
        ask=take_first,
    )


def test_one_known_word_of_two_is_taken_and_asked_about(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a.json": many(12, verdict=lambda i: "resolved" if i % 2 else "handed on")}, runs="$[*]")
    assert folder.outcomes() == "fs" * 6
    assert [choice.field for choice in folder.asked] == ["outcome"]
    assert any("--hint success=" in note for note in folder.fields.notes)


def test_hints_say_where_and_which(tmp_path: Path) -> None:
    runs = many(6, verdict=lambda i: "blau" if i % 2 else "gelb")
    assert fields_of(tmp_path, runs, outcome="$.verdict", success="gelb").outcomes == (1, -1) * 3
    assert fields_of(tmp_path, runs, success="blau").outcomes == (-1, 1) * 3
    guessed = fields_of(tmp_path, runs, outcome="$.verdict")
    assert guessed.outcomes == (-1, 1) * 3 and guessed.choices
    assert any("--hint success=VALUE" in note for note in guessed.notes)
    wrong = fields_of(tmp_path, runs, outcome="$.verdict", success="rot")
    assert wrong.outcomes is None and any("'rot'" in note and "'blau'" in note for note in wrong.notes)
    assert not any(note.startswith("No outcome was found") for note in wrong.notes)


def test_a_hint_may_be_a_value_of_the_spec(tmp_path: Path) -> None:
    runs = many(6)
    fields = fields_of(tmp_path, runs, task='{"join": [{"file": "stem"}, "$.messages[1].content"], "sep": "/"}')
    assert fields.run["task"] == {"join": [{"file": "stem"}, "$.messages[1].content"], "sep": "/"}
    with pytest.raises(ConfigError, match="not a value of the spec language"):
        fields_of(tmp_path, runs, outcome='{"folder": "parent"}')


def test_two_folders_without_a_known_word_are_a_question(tmp_path: Path) -> None:
    files = {f"{'kala' if i % 2 else 'mafa'}/r{i}x.json": {"messages": turns(3)} for i in range(8)}
    folder = Folder(tmp_path, files)
    assert "outcome" not in folder.fields.run
    (choice,) = [choice for choice in folder.asked if choice.field == "outcome"]
    assert [option.value is None for option in choice.options] == [True, False, False]
    assert any("'kala' (4)" in note and "--hint success=" in note.replace("'", "") for note in folder.fields.notes)


def test_folders_of_verdicts_in_other_languages(tmp_path: Path) -> None:
    files = {f"{'erfolgreich' if i % 2 else 'gescheitert'}/r{i}x.json": {"messages": turns(3)} for i in range(8)}
    assert sorted(Folder(tmp_path, files).outcomes()) == ["f"] * 4 + ["s"] * 4


def test_labels_that_are_given_end_the_questions(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, many(12, k1=lambda i: i % 2 == 0), labels="labels.csv")
    assert "outcome" not in fields.run and not fields.choices
    assert not any("--labels" in note or "unknown" in note for note in fields.notes)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("results.csv", "file,result\n" + "".join(f"q{i}.json,{'pass' if i % 2 else 'fail'}\n" for i in range(6))),
        ("results.jsonl", "".join(json.dumps({"run": f"q{i}", "verdict": i % 2 == 1}) + "\n" for i in range(6))),
        ("verdict.json", json.dumps({f"q{i}": "accepted" if i % 2 else "rejected" for i in range(6)})),
        ("verdict.json", json.dumps({"rows": [{"f": f"x/q{i}.json", "score": i % 2} for i in range(6)]})),
    ],
)
def test_a_table_by_file_names_comes_with_a_command(tmp_path: Path, name: str, text: str) -> None:
    files: dict[str, Any] = {f"q{i}.json": {"messages": turns(3)} for i in range(6)}
    folder = Folder(tmp_path, {**files, name: text}, match="q*.json")
    assert not any(note.startswith("No outcome was found") for note in folder.fields.notes)
    (command,) = [note for note in folder.fields.notes if note.startswith("python3 -c")]
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    labels = LabelBook(read_labels(tmp_path / "labels.jsonl"), sorted(files))
    outcomes = [labels.find(path, path) for path in sorted(files)]
    assert "".join(label.outcome.value[0] for label in outcomes if label is not None) == "fsfsfs"
