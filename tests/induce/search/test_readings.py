"""What the search makes of small sets, each made to hold one way of writing runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.naming import named_parts
from prefixguard.stepview import Adapter, StepRecord, read_runs

PLACES = ("Lisbon", "Oslo", "Quito", "Perth", "Turin", "Kyoto", "Dakar", "Lyon")


def read(folder: Path, files: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[StepRecord, ...]]]:
    """The spec that is found for the files, and the records of their runs."""
    for name, value in files.items():
        text = value if isinstance(value, str) else json.dumps(value)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    spec = dict(propose_by_search(open_samples(folder), name="found").spec)
    return spec, [run.records for run in read_runs(folder, Adapter(spec))]


def listed(commands: Sequence[str], n: int) -> dict[str, Any]:
    """A run whose steps are parallel lists."""
    said = [f"I should look closer at {PLACES[n]}, part {k} of the plan" for k in range(len(commands))]
    seen = [f"the {PLACES[(n + k) % 8]} page shows {k + 3} rows of prices and times" for k in range(len(commands))]
    return {"id": f"run-{n}", "score": n % 2, "actions": list(commands), "thoughts": said, "observations": seen}


def test_a_field_of_commands_gives_tools_and_what_they_are_given(tmp_path: Path) -> None:
    runs = [
        listed([f"open {PLACES[n]}.html", f"scroll to row {n}", "./check prices", f"open {PLACES[n - 1]}.html"], n)
        for n in range(8)
    ]
    spec, found = read(tmp_path, {f"{n}.json": run for n, run in enumerate(runs)})
    assert [r.tool for r in found[3]] == ["open", "scroll", "./check", "open"]
    assert [r.arguments for r in found[3]] == ["Perth.html", "row 3", "prices", "Quito.html"]
    assert all(r.action.startswith("I should") and r.result.startswith("the ") for run in found for r in run)
    assert named_parts(spec) == 0


def test_code_is_given_to_one_tool_but_for_calls_that_name_theirs(tmp_path: Path) -> None:
    queries = ["SELECT name FROM towns", "execute[SELECT 1]", "INSERT INTO towns VALUES (1)", "SELECT 2", "submit"]
    _, found = read(tmp_path, {f"{n}.json": listed(queries, n) for n in range(8)})
    assert [r.tool for r in found[0]] == ["execute", "execute", "execute", "execute", "submit"]
    assert [r.arguments for r in found[0]][1:3] == ["SELECT 1", "INSERT INTO towns VALUES (1)"]


def test_agents_whose_names_say_nothing_are_a_team_with_whoever_joins_it(tmp_path: Path) -> None:
    team = ("Ada", "Grace", "Edsger", "Barbara")
    for n in range(8):
        turns = [{"who": "human", "said": f"what does a night in {PLACES[n]} cost in week {n}?"}]
        for k in range(5):
            turns.append({"who": team[(n + k) % 4], "said": f"I think that source {k} of {PLACES[n]} tells it best"})
        (tmp_path / f"{n}.json").write_text(json.dumps({"run_id": f"r{n}", "turns": turns}), encoding="utf-8")
    spec = dict(propose_by_search(open_samples(tmp_path), name="team").spec)
    turns = [{"who": "human", "said": "and in winter, when it snows?"}, {"who": "Donald", "said": "it costs less then"}]
    (tmp_path / "0.json").write_text(json.dumps({"run_id": "r0", "turns": turns}), encoding="utf-8")
    run = next(iter(read_runs(tmp_path / "0.json", Adapter(spec))))
    assert [(r.agent, r.action, r.observation) for r in run.records] == [
        ("Donald", "it costs less then", "and in winter, when it snows?")
    ]


def test_a_log_in_which_much_is_printed_is_cut_where_steps_are_counted(tmp_path: Path) -> None:
    files: dict[str, Any] = {}
    for n in range(8):
        lines = [f"Installing: package {k} of {n}\nUnpacking: archive {k}, it is a large one" for k in range(30)]
        for k in range(1, 5):
            lines += [
                f"helper (step {k}, $0.{n}{k}):\nI look at {PLACES[n]} again.\n\n```bash\ncat {PLACES[n]}/{k}.txt\n```",
                "─" * 40 + f"\nUser:\nrow {k} of {PLACES[n]} holds {n * k} entries\n" + "─" * 40,
            ]
        files[f"{n}/agent.log"] = "\n".join(lines) + "\n"
    _, found = read(tmp_path, files)
    assert [(r.tool, r.arguments) for r in found[2]] == [("bash", f"cat Quito/{k}.txt") for k in range(1, 5)]
    assert [r.result for r in found[2]] == [f"row {k} of Quito holds {2 * k} entries" for k in range(1, 5)]


def test_a_kind_of_failure_or_null_tells_how_a_run_ended(tmp_path: Path) -> None:
    rows = []
    for n in range(8):
        rows.append({"file": f"{n}.jsonl", "failure_class": None if n % 2 else ("looping", "drift")[n % 4 // 2]})
        steps = [
            {"tool": ("find", "sum")[k % 2], "args": {("at", "of")[k % 2]: PLACES[n]}, "result": f"{n} and {k} of all"}
            for k in range(4)
        ]
        (tmp_path / f"{n}.jsonl").write_text("".join(f"{json.dumps(s)}\n" for s in steps), encoding="utf-8")
    (tmp_path / "manifest.json").write_text(json.dumps(rows), encoding="utf-8")
    spec = dict(propose_by_search(open_samples(tmp_path), name="faults").spec)
    found = {Path(run.source.split(" ")[0]).stem: run.outcome.value for run in read_runs(tmp_path, Adapter(spec))}
    assert found == {str(n): "success" if n % 2 else "failure" for n in range(8)}


@pytest.mark.parametrize(
    ("rule", "worth"),
    [
        ({"emit": "step", "tool": "@.tool", "action": "@.thought"}, 0.0),
        ({"emit": "step", "tool": "@.tool", "result": "@.thought"}, -0.5),
        ({"when": {"@.role": "user"}, "emit": "say", "action": "@.text"}, -1.0),
        ({"when": {"@.role": "assistant"}, "emit": "result", "each": "@.results[*]", "result": "@.text"}, 0.0),
    ],
)
def test_names_speak_against_what_they_contradict(rule: dict[str, Any], worth: float) -> None:
    assert named_parts({"rules": [rule]}) == pytest.approx(worth, abs=0.1)
