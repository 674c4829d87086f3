"""Row-like formats: an element (row, line, entry) for every step or event."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

from unseen.truth import Call, Clock, Step, Truth, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "rows",
    ("every row of a steps file is a step: thought, tool, tool_input (JSON), observation", "steps/*.csv rows"),
    ("runs.csv has the question and the verdict per run_id", "runs.csv:verdict"),
)
def step_csv(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A data agent's step tables, one CSV a run, as a notebook user exports them.

    Traps: CSV with quoted line ends; the arguments are JSON in a cell; the question and the verdict (PASS, FAIL, INFRA)
    stand only in the companion runs.csv, and the file name is the only link; INFRA means that nobody knows; the last
    row has the answer in `thought` and no tool; a metrics.json with totals beside.
    """
    rng, truths, table = random.Random(seed), [], io.StringIO()
    index = csv.writer(table, lineterminator="\n")
    index.writerow(["run_id", "model", "question", "n_rows", "verdict"])
    for episode in episodes(seed, runs, "data", unknown=1):
        out, run = io.StringIO(), f"nb{rng.randint(10000, 99999)}"
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["idx", "elapsed_s", "thought", "tool", "tool_input", "observation", "failed"])
        for number, act in enumerate(episode.turns):
            call = act.calls[0] if act.calls else None
            cells = [call.tool, json.dumps(call.args), call.result, int(call.error)] if call else ["", "", "", 0]
            rows.writerow([number, round(rng.uniform(0.2, 30), 2), act.text, *cells])
        put(folder / "steps" / f"{run}.csv", out.getvalue())
        verdict = {"success": "PASS", "failure": "FAIL", "unknown": "INFRA"}[episode.outcome]
        index.writerow([run, rng.choice(["m1", "m2"]), episode.task, len(episode.turns), verdict])
        truths.append(Truth(run, f"steps/{run}.csv", episode.task, episode.outcome, steps_of(episode, task=False)))
    put(folder / "runs.csv", table.getvalue())
    put(folder / "metrics.json", {"pass_rate": 0.58, "mean_rows": 7.5, "cost_usd": {"m1": 1.2, "m2": 3.4}}, indent=2)
    return truths


@unseen(
    "rows",
    ("lines are events, run says which run they belong to, type what they are", "@.run, @.type"),
    ("the outcome is the state of the closed event: resolved or escalated", "$.events[type=closed].body.state"),
)
def typed_events(folder: Path, seed: int, runs: int) -> list[Truth]:
    """An on-call agent's event stream, JSON lines a shift, the runs of a shift interleaved.

    Traps: several runs in one file and mixed line by line; parallel calls, whose results come in any order; heartbeat
    events; the outcome is in the run's last event; a run that broke has an event "crashed" and is never closed (unknown); error only as exit code; the alert (task) is an event of its own.
    """
    truths, shifts = [], {}
    for episode in episodes(seed, runs, "ops", parallel=True, unknown=2):
        rng, clock = random.Random(f"{seed}/{episode.number}"), Clock((seed, episode.number))
        clock.now = Clock((seed, episode.number // 4, "shift")).now
        run, shift = f"inc-{hexes(rng, 7)}", f"shift-{episode.number // 4}.jsonl"
        events: list[dict] = []

        def event(kind: str, run: str = run, clock: Clock = clock, events: list = events, **body: Any) -> None:
            events.append({"at": clock.iso(), "run": run, "type": kind, "body": body})

        event("alert", text=episode.task, alert_id=episode.task_id, severity=rng.randint(1, 4))
        for act in episode.turns:
            if act.text:
                event("reasoning" if act.calls else "report", text=act.text)
            numbers = [rng.randint(1000, 9999) for _ in act.calls]
            for number, call in zip(numbers, act.calls, strict=True):
                event("invoked", call=number, action=call.tool, params=call.args)
            for number, call in rng.sample(list(zip(numbers, act.calls, strict=True)), len(numbers)):
                event("heartbeat", load=round(rng.random(), 2))
                event("completed", call=number, exit=rng.randint(1, 3) if call.error else 0, out=call.result)
        if episode.outcome == "unknown":
            event("crashed", reason="worker evicted")
        else:
            event("closed", state="resolved" if episode.ok else "escalated", minutes=rng.randint(3, 90))
        shifts.setdefault(shift, []).append(events)
        truths.append(Truth(run, shift, episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for shift, queues in shifts.items():
        put_lines(folder / shift, sorted((line for queue in queues for line in queue), key=lambda line: line["at"]))
    return truths


@unseen(
    "rows",
    ("each example has intermediate_steps, a list of pairs of an action and its observation",
     "$.examples[*].intermediate_steps[*][0].tool"),
    ("score 1.0 is a success, everything less a failure", "$.examples[*].score"),
)  # fmt: skip
def pair_tuples(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Predictions of an agent executor over an evaluation set: pairs [action, observation] by position.

    Traps: pairs without keys; `log` holds the thought and once more the call (said is its first line); one tool has its
    only argument as a bare string; several runs in one file; the closing answer stands beside the pairs as `output`;
    partial scores below 1 are failures; with an even seed ALL runs succeeded (with an odd one 40 % failed): show even
    ones, ask about odd ones; run_config.json beside; no ids for the calls.
    """
    rng, truths, files = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "coding", failures=0.4 if seed % 2 else 0.0):
        pairs, steps = [], []
        for act in episode.turns[:-1]:
            call = act.calls[0]
            bare = call.args["selector"] if call.tool == "run_tests" else None
            args = call.args if bare is None else {"": bare}
            given = call.args if bare is None else bare
            log = f"{act.text}\nAction: {call.tool}\nAction Input: {given if bare else json.dumps(given)}"
            pairs.append([{"tool": call.tool, "tool_input": given, "log": log, "type": "AgentAction"}, call.result])
            steps.append(Step("call", call.tool, args, call.result, None, act.text))
        final, run = episode.turns[-1].text, f"ex-{hexes(rng, 9)}"
        score = 1.0 if episode.ok else rng.choice([0.0, 0.0, 0.5])
        name = f"predictions_{episode.number // 5}.json"
        files.setdefault(name, []).append({"example_id": run, "inputs": {"issue": episode.task, "repo": episode.task_id}, "intermediate_steps": pairs, "output": final, "score": score, "latency": round(rng.uniform(5, 80), 1)})  # fmt: skip
        steps.append(Step("say", "respond", None, final))
        truths.append(Truth(run, name, episode.task, episode.outcome, steps, episode.task_id))
    for name, examples in files.items():
        put(folder / name, {"dataset": "repo-issues-small", "examples": examples}, indent=2)
    put(folder / "run_config.json", {"executor": {"max_iterations": 15}, "llm": "any", "score": "exact"})
    return truths


@unseen(
    "rows",
    ("steps is an object numbered from 1, take them by number; act has the tool as its only key", "$.steps.*.act"),
    ("judge.points at least job.required is a success; the agent's own done.success is not", "$.judge.points"),
)
def numbered_object(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A browser agent's history, one JSON a run.

    Traps: steps are an object whose keys sort as text ("1", "10", "2"); the name of the tool is a key; the last act
    "done" claims success in every run, and is no verdict; a numeric judgement against a mark in the same file; the goal
    stands in the job, not among the steps; failed steps have `problem` instead of `page`; judge null is unknown.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "browser", unknown=1):
        calls: list[tuple[str, Call]] = [(act.text, act.calls[0]) for act in episode.turns if act.calls]
        if episode.outcome != "unknown":
            calls.append(("", Call("done", {"answer": episode.turns[-1].text, "success": True}, "", False)))
        entries, steps = [], []
        for thought, call in calls:
            page, problem = (None, call.result) if call.error else (call.result, None)
            entries.append({"thinking": thought, "act": {call.tool: call.args}, "page": page, "problem": problem, "tab": rng.randint(0, 2)})  # fmt: skip
            steps.append(Step("call", call.tool, call.args, call.result, call.error, thought))
        numbered = {str(number): entry for number, entry in enumerate(entries, 1)}
        required, run = rng.choice([60, 75]), f"job-{hexes(rng, 8)}"
        points = min(100, required + rng.randint(0, 25)) if episode.ok else required - rng.randint(1, 50)
        judge = None if episode.outcome == "unknown" else {"points": points, "comment": "see rubric"}
        job = {"uid": run, "goal": episode.task, "site": "shop", "template": episode.task_id, "required": required}
        put(folder / f"{run}.json", {"job": job, "steps": dict(sorted(numbered.items())), "judge": judge}, indent=1)
        truths.append(Truth(run, f"{run}.json", episode.task, episode.outcome, steps, episode.task_id))
    return truths
