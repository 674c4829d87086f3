"""Three formats of rows: a database dump, an event bus, a gateway's request log."""

from __future__ import annotations

import csv
import io
import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unseen.truth import WORLD, Clock, Truth, as_value, episodes, hexes, put, put_lines, sorted_text, steps_of, unseen


def _table(rows: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["\\N" if value is None else value for value in row] for row in rows])
    return out.getvalue()


def _mixed(rng: random.Random, queues: list[list[Any]], width: int) -> Iterator[Any]:
    """The queues' items, each queue in its order, `width` queues at a time."""
    waiting = [list(reversed(queue)) for queue in queues]
    active = [waiting.pop(0) for _ in range(min(width, len(waiting)))]
    while active:
        queue = rng.choice(active)
        for _ in range(rng.randint(1, 3)):
            if queue:
                yield queue.pop()
        if not queue:
            active.remove(queue)
            if waiting:
                active.append(waiting.pop(0))


@unseen(
    "rows",
    ("status in the tasks table: completed worked, terminated did not, engine_error was our browser's crash", "status"),
    ("actions belong to a task by task_id; their order is step_order, then action_order", "step_order"),
)
def browser_tables(folder: Path, seed: int, runs: int) -> list[Truth]:
    r"""Like a CSV dump of the tables of Skyvern (browser automation): tasks and actions.

    One row of actions is a call with its result (params as JSON, output, status completed or failed), or a message; rows
    of all tasks in no order (the dump has no ORDER BY), to be sorted by step_order and action_order; \N is NULL; several
    actions in one step, the model's text on the first. Goal and outcome only in tasks.csv. schema.sql and README hold no run.
    """
    rng, clock = random.Random(f"browser_tables/{seed}"), Clock(f"browser_tables/{seed}")
    truths: list[Truth] = []
    tasks: list[list[Any]] = []
    actions: list[list[Any]] = []
    for episode in episodes(seed, runs, "browser", parallel=True, unknown=2):
        task = f"tsk_{rng.randint(10**17, 10**18)}"
        started = clock.iso()
        for step, turn in enumerate(episode.turns):
            if not turn.calls:
                actions.append([f"act_{rng.randint(10**17, 10**18)}", task, "o_4402", step, 0, "message", None, turn.text, None, None, "completed", None, clock.iso()])
            for order, call in enumerate(turn.calls):
                actions.append([f"act_{rng.randint(10**17, 10**18)}", task, "o_4402", step, order, "tool", call.tool, turn.text or None if order == 0 else None,
                                json.dumps(call.args), call.result, "failed" if call.error else "completed", rng.randint(20, 9000), clock.iso()])  # fmt: skip
        status, reason = {"success": ("completed", None), "failure": ("terminated", "The goal was not reached."), "unknown": ("engine_error", "chromium pod evicted (node pressure)")}[episode.outcome]
        tasks.append([task, "o_4402", episode.task, status, reason, "RESIDENTIAL", rng.choice([None, 30]), started, clock.iso()])
        truths.append(Truth(task, "dump/actions.csv", episode.task, episode.outcome, steps_of(episode, task=False)))
    rng.shuffle(actions)
    rng.shuffle(tasks)
    put(folder / "dump/tasks.csv", _table([["task_id", "organization_id", "navigation_goal", "status", "failure_reason", "proxy_location", "max_steps", "created_at", "finished_at"], *tasks]))
    put(folder / "dump/actions.csv", _table([["action_id", "task_id", "organization_id", "step_order", "action_order", "kind", "action_type", "model_text", "params", "output", "status", "duration_ms", "created_at"], *actions]))
    put(folder / "dump/schema.sql", "CREATE TABLE tasks (task_id text PRIMARY KEY, organization_id text, navigation_goal text, status text);\n"
        "CREATE TABLE actions (action_id text PRIMARY KEY, task_id text REFERENCES tasks, step_order int, action_order int, kind text);\n")  # fmt: skip
    put(folder / "README.md", "Nightly dump of the automation database. Restore with `COPY ... CSV HEADER NULL '\\N'`.\n")
    return truths


@unseen(
    "rows",
    ("the record's key is the run; its payload is JSON text in value", "$.key"),
    ("the run.closed event's verdict is accepted or rejected; a run.lost has no verdict", "$.value.verdict"),
)
def bus_records(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like a console consumer's dump of a Kafka topic, a file for each partition. Spanish.

    The runs of a partition are interleaved; the run's id is the record's key, the event's type a header, the payload a
    JSON string. Requested and succeeded/failed calls are joined by callId, and other records stand between them; outputs
    are objects where they can be. Thoughts are events of their own. Heartbeats have no key. A lost run has no verdict.
    """
    rng, clock = random.Random(f"bus_records/{seed}"), Clock(f"bus_records/{seed}")
    truths: list[Truth] = []
    queues: dict[int, list[list[tuple[str | None, str, dict]]]] = {0: [], 1: []}
    for episode in episodes(seed, runs, "hr_es", dialogue=True, parallel=True, unknown=2):
        run = f"rr-{hexes(rng, 8)}"
        events: list[tuple[str | None, str, dict]] = [(run, "run.accepted", {"goal": episode.task, "channel": rng.choice(["teams", "web"]), "caseRef": episode.task_id})]
        for turn in episode.turns:
            if turn.who == "user":
                events.append((run, "message.inbound", {"body": turn.text}))
            elif not turn.calls:
                events.append((run, "message.outbound", {"body": turn.text, "tokens": rng.randint(10, 90)}))
            else:
                if turn.text:
                    events.append((run, "planner.thought", {"body": turn.text, "tokens": rng.randint(10, 90)}))
                ends: list[tuple[str | None, str, dict]] = []
                for call in turn.calls:
                    id_ = rng.randint(100_000, 999_999)
                    events.append((run, "tool.requested", {"callId": id_, "tool": call.tool, "input": call.args}))
                    ends.append((run, "tool.failed", {"callId": id_, "error": call.result, "ms": rng.randint(3, 4000)}) if call.error
                                else (run, "tool.succeeded", {"callId": id_, "output": as_value(call.result), "ms": rng.randint(3, 4000)}))  # fmt: skip
                rng.shuffle(ends)
                events += ends
        if episode.outcome == "unknown":
            events.append((run, "run.lost", {"reason": "worker lease expired", "worker": f"w-{rng.randint(1, 9)}"}))
        else:
            events.append((run, "run.closed", {"verdict": "accepted" if episode.ok else "rejected", "reviewer": "people-ops", "totalTokens": rng.randint(2000, 90_000)}))
        partition = episode.number % 2
        queues[partition].append(events)
        steps = [step._replace(text=sorted_text(as_value(step.text))) if step.kind == "call" and not step.is_error else step for step in steps_of(episode)]
        truths.append(Truth(run, f"hr.agent-runs.v2/partition-{partition}.jsonl", episode.task, episode.outcome, steps, episode.task_id))
    for partition, lists in queues.items():
        records: list[dict] = []
        offset = rng.randint(10_000, 90_000)
        mixed: list[tuple[str | None, str, dict]] = []
        for event in _mixed(rng, lists, 3):
            if rng.random() < 0.08:
                mixed.append((None, "worker.heartbeat", {"worker": f"w-{rng.randint(1, 9)}", "load": round(rng.random(), 2)}))
            mixed.append(event)
        for key, kind, payload in mixed:
            records.append({"topic": "hr.agent-runs.v2", "partition": partition, "offset": offset, "tstype": "create", "ts": clock.ms(), "broker": 1,
                            "headers": ["ce_type", kind, "ce_specversion", "1.0"], "key": key, "value": json.dumps(payload, ensure_ascii=False)})  # fmt: skip
            offset += 1
        put_lines(folder / f"hr.agent-runs.v2/partition-{partition}.jsonl", records)
    return truths


def _schemas(domain: str) -> list[dict]:
    kinds = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
    return [{"name": name, "description": f"Calls {name.replace('_', ' ')}.",
             "input_schema": {"type": "object", "properties": {key: {"type": kinds[type(value)]} for key, value in args.items()}}}
            for name, args, _, _ in WORLD[domain]["tools"]]  # fmt: skip


@unseen(
    "rows",
    ("one line is one request to the model and holds the whole conversation so far; tags.session says which run", "$.tags.session"),
    ("analysts' verdicts are in feedback.jsonl, score 1 good and 0 bad; sessions that died of a 529 have none", "$.score"),
)
def gateway_requests(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like the request log of an LLM gateway (LiteLLM, Helicone) before an Anthropic-shaped API.

    Each row repeats the conversation so far and adds one answer, so a run is its last row (or all rows' answers); rows of
    several sessions interleave; a small model's title request belongs to each session but not to the agent's course; some
    requests were refused with 529 and sent again. Content blocks, parallel tool_use, is_error only where true. Verdicts in
    feedback.jsonl by session; a session whose last request is a 529 has none. model_prices.json holds no run.
    """
    rng, clock = random.Random(f"gateway_requests/{seed}"), Clock(f"gateway_requests/{seed}")
    truths: list[Truth] = []
    verdicts: list[dict] = []
    queues: dict[str, list[list[dict]]] = {"2026-03-02": [], "2026-03-03": []}
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    for episode in episodes(seed, runs, "data", parallel=True, unknown=2):
        session = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        tags = {"session": session, "team": "analytics", "case": episode.task_id}
        rows: list[dict] = []

        def row(request: dict, answer: list[dict] | None, why: str, tags: dict = tags, rows: list[dict] = rows) -> None:
            usage = {"input_tokens": rng.randint(300, 9000), "output_tokens": rng.randint(10, 600), "cache_read_input_tokens": rng.randint(0, 4000)}
            response = {"id": f"msg_{hexes(rng, 20)}", "type": "message", "role": "assistant", "model": request["model"], "content": answer, "stop_reason": why, "usage": usage}
            rows.append({"id": f"req_{hexes(rng, 16)}", "route": "/v1/messages", "status": 200 if answer else 529, "latency_ms": rng.randint(200, 20_000),
                         "cost_usd": round(rng.uniform(0.0001, 0.05), 6), "tags": tags, "request": request, "response": response if answer else overloaded})  # fmt: skip

        row({"model": "wren-mini", "max_tokens": 32, "messages": [{"role": "user", "content": f"Write a title of at most five words for a chat that begins so:\n\n{episode.task}"}]},
            [{"type": "text", "text": "Warehouse question"}], "end_turn")  # fmt: skip
        messages: list[dict] = [{"role": "user", "content": episode.task}]

        def request(messages: list[dict] = messages, system: str = episode.system) -> dict:
            return {"model": "heron-4", "max_tokens": 4096, "temperature": 0, "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
                    "tools": _schemas("data"), "messages": list(messages)}  # fmt: skip

        for turn in episode.turns:
            if rng.random() < 0.08:
                row(request(), None, "")
            blocks: list[dict] = [{"type": "text", "text": turn.text}] if turn.text else []
            back: list[dict] = []
            for call in turn.calls:
                id_ = f"toolu_{hexes(rng, 18)}"
                blocks.append({"type": "tool_use", "id": id_, "name": call.tool, "input": call.args})
                back.append({"type": "tool_result", "tool_use_id": id_, "content": call.result} | ({"is_error": True} if call.error else {}))
            row(request(), blocks, "tool_use" if turn.calls else "end_turn")
            messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": back}]
        if episode.outcome == "unknown":
            row(request(), None, "")
        else:
            verdicts.append({"session": session, "score": int(episode.ok), "by": rng.choice(["mk", "tro", "jb"]), "at": clock.iso()})
        day = "2026-03-02" if episode.number < (runs + 1) // 2 else "2026-03-03"
        queues[day].append(rows)
        truths.append(Truth(session, f"requests/{day}.jsonl", episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for day, lists in queues.items():
        ticks = Clock(f"{seed}/{day}", f"{day}T06:00:00")
        put_lines(folder / f"requests/{day}.jsonl", [{"ts": ticks.iso()} | row for row in _mixed(rng, lists, 3)])
    rng.shuffle(verdicts)
    put_lines(folder / "feedback.jsonl", verdicts)
    put(folder / "model_prices.json", {"heron-4": {"input": 3.0, "output": 15.0}, "wren-mini": {"input": 0.25, "output": 1.25}}, indent=2)
    return truths
