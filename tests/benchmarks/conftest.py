"""Small samples of the paper's four sets, written in their published formats. All stories are invented."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

VERDICT = "verdict-9f3c"  # stands in fields that only the harness knows; no record may hold it


def webarena_page(url: str, observed: str, prediction: str, parsed: str, answer: str = "") -> str:
    """One page as the benchmark's writer leaves it: the observation's div is never closed, nothing is escaped."""
    action = repr({"action_type": "<ActionTypes.X: 1>", "answer": answer, "raw_prediction": prediction})
    return (
        f"<h2>New Page</h2>\n<h3 class='url'><a href={url}>URL: {url}</a></h3>\n"
        f"<div class='state_obv'><pre>{observed}</pre><div>\n"
        "<img src='data:image/png;base64,iVBORw0KGgo=' style='width:50vw; height:auto;'/>\n"
        "<div class='prev_action' style='background-color:pink'>None</div>\n"
        f"<div class='predict_action'><div class='raw_parsed_prediction' style='background-color:grey'>"
        f"<pre>{prediction}</pre></div><div class='action_object' style='background-color:grey'><pre>{action}</pre>"
        f"</div><div class='parsed_action' style='background-color:yellow'><pre>{parsed}</pre></div></div>\n"
    )


def webarena_file(task: int, pages: list[str]) -> str:
    """render_N.html: the task with its reference answers stands in its head."""
    head = f"<pre>task_id: {task}\nintent: Find the price of lamp {task}\neval: {{'reference': '{VERDICT}'}}\n</pre>\n"
    return (
        f"\n<!DOCTYPE html>\n<head>\n</head>\n<html>\n    <body>\n     {head}{''.join(pages)}\n    </body>\n</html>\n"
    )


def webarena_run(task: int, passed: bool, steps: int) -> str:
    pages = []
    for t in range(1, steps + 1):
        last = t == steps
        parsed = f"stop [{task} crowns]" if last else f"click [{t}] where [{t}] is [{t}] link 'lamp {t}'"
        if not last and not passed and t == 2:
            parsed = "click [77] where [77] is No match found"
        said = f"Let me see <shelf> {t}. ```{parsed.split(' where')[0]}```"
        pages.append(
            webarena_page(f"http://shop/{task}/{t}", f"[{t}] link 'lamp {t}' a < b page-{task}-{t}.", said, parsed)
        )
    if not passed:
        stop = "Early stop: Reach max steps 30"
        pages.append(
            webarena_page("http://shop/end", f"[1] heading 'end' page-{task}-end.", "", f"stop [{stop}]", stop)
        )
    return webarena_file(task, pages)


@pytest.fixture
def webarena_runs() -> dict[int, tuple[bool, str]]:
    """Task -> passed, and its file."""
    return {task: (task % 3 != 0, webarena_run(task, task % 3 != 0, 2 + task % 3)) for task in range(8)}


@pytest.fixture
def webarena_log(webarena_runs: dict[int, tuple[bool, str]]) -> str:
    lines = ["2023-08-01 - INFO - [Config file]: config_files/99.json"]  # begun, never judged
    for task, (passed, _) in webarena_runs.items():
        lines.append(f"2023-08-01 - INFO - [Config file]: config_files/{task}.json")
        lines.append(f"2023-08-01 - INFO - [Result] ({'PASS' if passed else 'FAIL'}) config_files/{task}.json")
    return "\n".join(lines) + "\n"


@pytest.fixture
def webarena(tmp_path: Path, webarena_runs: dict[int, tuple[bool, str]], webarena_log: str) -> Path:
    """A folder with one archive."""
    folder = tmp_path / "webarena"
    folder.mkdir()
    with zipfile.ZipFile(folder / "release_v1.0_gpt3.5direct.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("gpt35/merged_log.txt", webarena_log)
        for task, (_, text) in webarena_runs.items():
            archive.writestr(f"gpt35/render_{task}.html", text)
        archive.writestr("gpt35/trace/0.zip", b"a recording")
        archive.writestr("../../escaped.txt", "out")
    return folder


def tau2_simulation(task: str, trial: int, failed: bool, steps: int = 5) -> dict:
    messages: list[dict] = [{"role": "assistant", "content": "Hi! How can I help?"}]
    for t in range(1, steps):
        messages.append({"role": "user", "content": f"I want to change booking {task}, point {t}."})
        arguments = {"booking": task, "point": t}
        call = {"id": f"c{t}", "name": "change_booking", "arguments": arguments, "requestor": "assistant"}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        refused = failed and t > 1
        content = "Error: fare rules do not allow it" if refused else f"changed {t}"
        messages.append({"role": "tool", "id": f"c{t}", "content": content, "requestor": "assistant", "error": refused})
    messages.append({"role": "assistant", "content": "Is there anything else?"})
    messages.append({"role": "user", "content": "###STOP###"})
    return {
        "id": f"{task}-{trial}",
        "task_id": task,
        "trial": trial,
        "termination_reason": VERDICT,
        "reward_info": {"reward": 0.0 if failed else 1.0, "nl_assertions": [{"note": VERDICT}]},
        "messages": messages,
    }


@pytest.fixture
def tau2(tmp_path: Path) -> Path:
    """One result file: 20 tasks of two trials each."""
    folder = tmp_path / "tau2"
    folder.mkdir()
    simulations = [
        tau2_simulation(str(task), trial, (task + trial) % 3 == 0, 4 + task % 3)
        for task in range(20)
        for trial in range(2)
    ]
    tasks = [{"id": str(task), "user_scenario": VERDICT} for task in range(20)]
    info = {"environment_info": {"domain_name": "airline"}, "user_info": {"llm": "u"}, "agent_info": {"llm": "a"}}
    document = {"info": info, "tasks": tasks, "simulations": simulations}
    (folder / "model-x_airline_default_user-y_4trials.json").write_text(json.dumps(document))
    return folder


@pytest.fixture
def terminalbench(tmp_path: Path) -> Path:
    """data/*.parquet: twelve rows of two tasks with steps, and one without."""
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    rows = []
    for n in range(12):
        failed = n % 3 == 0
        steps = [
            {"src": "user", "msg": f"Repair the clock in room {n}.", "tools": None, "obs": None},
            {"src": "agent", "msg": "I look.", "tools": [{"fn": "bash", "cmd": "ls clock"}], "obs": "gear spring"},
            {
                "src": "agent",
                "msg": "Both at once.",
                "tools": [{"fn": "bash", "cmd": "oil gear"}, {"fn": "bash", "cmd": "wind spring"}],
                "obs": "[error] spring broke" if failed else "ticking",
            },
            {"src": "agent", "msg": "The clock is repaired.", "tools": None, "obs": None},
        ]
        rows.append(
            {
                "task_name": f"clock-{n % 2}",
                "trial_name": f"clock-{n % 2}.{n}",
                "trial_id": f"{VERDICT}-{n}",
                "agent": "terminus",
                "model": "m",
                "reward": 0 if failed else 1,
                "steps": json.dumps(steps),
            }
        )
    rows.append({**rows[0], "trial_id": "none", "steps": "null"})
    folder = tmp_path / "terminalbench"
    (folder / "data").mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "data" / "train-00000-of-00001.parquet")
    return folder


@pytest.fixture
def skillsbench(tmp_path: Path) -> Path:
    """Six trials of three tasks, and one trial in another form."""
    folder = tmp_path / "skillsbench" / "opus-with-skills-t1"
    for n in range(6):
        failed = n % 2 == 0
        trial = folder / f"bread-{n % 3}__{n}"
        (trial / "trajectory").mkdir(parents=True)
        reward = {"rewards": {"reward": 0.4 if failed else 1.0}}
        result = {"task_name": f"bread-{n % 3}", "trial_name": trial.name, "error": VERDICT}
        result |= {"verifier_result": reward} if n < 3 else reward
        (trial / "result.json").write_text(json.dumps(result))
        (trial / "config.json").write_text(json.dumps({"agent": {"name": "opus", "model_name": "m"}}))
        text = {"type": "content", "content": {"type": "text", "text": "oven at 200"}}
        diff = {"type": "diff", "path": "recipe.md", "oldText": "salt", "newText": "sugar"}
        events = [
            {"type": "user_message", "text": "Bake bread."},
            {"type": "agent_thought", "text": "The oven first."},
            {"type": "tool_call", "tool_call_id": "1", "kind": "execute", "title": "oven --on", "status": "completed",
             "content": [text]},
            {"type": "tool_call", "tool_call_id": "2", "kind": "edit", "title": "Write", "content": [diff],
             "status": "failed" if failed else "completed"},
            {"type": "agent_message", "text": "Bread is ready."},
        ]  # fmt: skip
        if failed:
            events.append({"type": "agent_timeout", "reason": VERDICT, "timeout_sec": 9, "pending_tool_call_ids": []})
        events.append({"phase": "verifier", "type": "score", "reward": VERDICT})
        (trial / "trajectory" / "acp_trajectory.jsonl").write_text("\n".join(map(json.dumps, events)))
    other = folder / "bread-9__9"
    other.mkdir()
    (other / "result.json").write_text(json.dumps({"task_name": "bread-9", "rewards": {"reward": 1.0}}))
    (other / "config.json").write_text("{}")
    return folder.parent


@pytest.fixture
def verdict() -> str:
    """What no record may hold."""
    return VERDICT
