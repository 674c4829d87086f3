"""Chat-like formats: messages with speakers, calls in or beside them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Truth, as_value, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "chat",
    ("a line is a conversation, its parts have author.type and part_type", "$.conversation_parts.items[*].part_type"),
    ("summary.json has the state of each conversation: solved or open", "summary.json:$.conversations.ID.state"),
)
def crm_parts(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A customer platform's conversation export, JSON lines, one conversation a line.

    Traps: outcome only in a companion summary.json by id (solved, open, null for one that was never closed); Spanish;
    calls and results are parts with their own part_type between the comments; input is JSON in a string; the opening
    message is not a part but `source`; parts of the author "admin" with part_type "assignment" say nothing.
    """
    rng, truths, lines, states = random.Random(seed), [], {}, {}
    for episode in episodes(seed, runs, "hr_es", dialogue=True, unknown=1):
        clock, run, parts = Clock((seed, episode.number)), str(rng.randint(10**9, 10**10)), []

        def part(who: str, kind: str, clock: Clock = clock, parts: list = parts, **more: Any) -> None:
            parts.append({"id": str(rng.randint(10**6, 10**7)), "created_at": clock.ms() // 1000, "author": {"type": who, "id": {"user": "u1", "bot": "b7", "admin": "a3"}[who]}, "part_type": kind, **more})  # fmt: skip

        part("admin", "assignment", body=None)
        for act in episode.turns:
            if act.who == "user" or not act.calls:
                part("user" if act.who == "user" else "bot", "comment", body=act.text)
            for call in act.calls:
                key = hexes(rng, 9)
                part("bot", "action", body=act.text or None, action={"key": key, "name": call.tool, "input": json.dumps(call.args, ensure_ascii=False)})  # fmt: skip
                part("bot", "action_result", body=None, action={"key": key, "status": "failed" if call.error else "done", "value": call.result})  # fmt: skip
        source = {"type": "conversation", "delivered_as": "customer_initiated", "body": episode.task}
        name = f"export-{episode.number // 6}.jsonl"
        lines.setdefault(name, []).append({"type": "conversation", "id": run, "source": source, "conversation_parts": {"total": len(parts), "items": parts}})  # fmt: skip
        states[run] = {"state": {"success": "solved", "failure": "open", "unknown": None}[episode.outcome], "rating": rng.choice([None, 3, 5])}  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    for name, entries in lines.items():
        put_lines(folder / name, entries)
    put(folder / "summary.json", {"exported": "2026-03-09", "conversations": states}, indent=1)
    put(folder / "workspace.json", {"workspace": "hr", "bot": {"id": "b7", "name": "Ana"}})
    return truths


@unseen(
    "chat",
    ("sessions have contents with parts: text, functionCall or functionResponse", "$.sessions[*].contents[*].parts[*]"),
    ("a session passed when its metric goal has a score of at least 0.7", "$.sessions[*].metrics[name=goal].score >= 0.7"),
)
def model_parts(folder: Path, seed: int, runs: int) -> list[Truth]:
    """An agent kit's evaluation sessions with contents of parts, several sessions a file.

    Traps: calls and responses have no ids (order within the turn and the name join them); parallel calls; a response is
    an object {"result": ...} or {"error": ...}; arguments are objects; roles are user and model, responses are in the
    role user; a numeric score, whose threshold is in eval_config.json only; a second metric that is no verdict.
    """
    rng, truths, files = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "data", dialogue=True, parallel=True):
        contents: list[dict] = [{"role": "user", "parts": [{"text": episode.task}]}]
        for act in episode.turns:
            said = [{"text": act.text}] if act.text else []
            uses = [{"functionCall": {"name": call.tool, "args": call.args}} for call in act.calls]
            contents.append({"role": "user" if act.who == "user" else "model", "parts": said + uses})
            back = [{"functionResponse": {"name": call.tool, "response": {"error" if call.error else "result": as_value(call.result)}}} for call in act.calls]  # fmt: skip
            contents += [{"role": "user", "parts": back}] * bool(back)
        run, name = f"sess_{hexes(rng, 9)}", f"eval_{episode.number // 4}.evalset.json"
        metrics = [{"name": "politeness", "score": round(rng.random(), 2)}, {"name": "goal", "score": episode.score}]
        files.setdefault(name, []).append({"sessionId": run, "appName": "warehouse", "evalId": episode.task_id, "systemInstruction": {"parts": [{"text": episode.system}]}, "contents": contents, "metrics": metrics})  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for name, sessions in files.items():
        put(folder / name, {"evalSetId": "warehouse-12", "sessions": sessions}, indent=2)
    put(folder / "eval_config.json", {"criteria": {"goal": 0.7, "politeness": None}, "model": "any"}, indent=2)
    return truths


@unseen(
    "chat",
    ("the agent speaks with the role user, the simulated customer with the role assistant", "$.log[role=user].content"),
    ("goal_check.met tells success; what the agent called is in agent_trace of its message", "$.log[*].agent_trace[*]"),
)
def sim_swapped(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A simulator's log of a simulated customer talking to a shop's agent, seen from the simulator's side.

    Traps: sides are swapped (role "assistant" is the simulated customer, "user" is the agent under test); the system
    message instructs the customer; calls hang on the agent's next speech, in the order made, with results inside; a
    third of the files is of an older version with `by` (sim, bot) and `say`; README.md beside; the task is the persona's
    goal, which the first message says; whether a call failed is nowhere said.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "retail", dialogue=True):
        old, log, pending = episode.number % 3 == 0, [], []

        def message(role: str, text: str, old: bool = old, log: list = log, pending: list = pending) -> None:
            if old:
                log.append({"by": "bot" if role == "user" else "sim", "say": text})
            else:
                log.append({"role": role, "content": text})
            if pending:
                log[-1]["agent_trace"] = list(pending)
                pending.clear()

        if not old:
            message("system", f"You play a customer. Your goal: {episode.task} Say bye when it is reached.")
        message("assistant", episode.task)
        for act in episode.turns:
            for call in act.calls:
                pending.append({"tool": call.tool, "arguments": call.args, "returned": call.result, "thought": act.text})
            if act.who == "user" or not act.calls:
                message("assistant" if act.who == "user" else "user", act.text)
        run = f"sim-{hexes(rng, 8)}"
        put(folder / f"{run}.json", {"simulation": run, "persona": {"goal": episode.task, "mood": rng.choice(["calm", "angry"])}, "log": log, "goal_check": {"met": episode.ok, "checked_by": "state diff"}}, indent=1)  # fmt: skip
        truths.append(Truth(run, f"{run}.json", episode.task, episode.outcome, steps_of(episode, errors=False)))
    put(folder / "README.md", "# Simulations\n\nEach file is one simulation. `log` is what the simulator saw.\n")
    return truths


@unseen(
    "chat",
    ("exchanges have a request, a list work with plan and uses, and a reply",
     "$.session.dialog.exchanges[*].work[*].uses[*]"),
    ("verdicts.json has pass true or false for each session", "verdicts.json:$[*].pass"),
)  # fmt: skip
def nested_turns(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A voice and chat assistant's session records: exchanges of a request, the work done for it and a reply.

    Traps: deep envelope; a turn nests request, rounds of parallel uses with their answers inside, and the reply; an
    answer's data is an object or a text; Chinese, escaped to ASCII; the outcome in a companion verdicts.json; a session
    that broke has a null reply and no verdict (unknown); ids once a file.
    """
    rng, truths, verdicts = random.Random(seed), [], []
    for episode in episodes(seed, runs, "travel_zh", dialogue=True, parallel=True, unknown=1):
        exchanges: list[dict] = [{"request": {"text": episode.task, "lang": "zh"}, "work": [], "reply": None}]
        for act in episode.turns:
            if act.who == "user":
                exchanges.append({"request": {"text": act.text, "lang": "zh"}, "work": [], "reply": None})
            elif not act.calls:
                exchanges[-1]["reply"] = {"text": act.text, "ms": rng.randint(300, 4000)}
            else:
                uses = [{"tool": c.tool, "with": c.args, "answer": {"ok": not c.error, "data": as_value(c.result)}} for c in act.calls]  # fmt: skip
                exchanges[-1]["work"].append({"plan": act.text, "uses": uses})
        run = f"{hexes(rng, 6)}-{hexes(rng, 6)}"
        session = {"sid": run, "device": "phone", "dialog": {"lang": "zh", "exchanges": exchanges}}
        put(folder / "sessions" / f"{run}.json", {"v": 7, "tenant": "t-9", "session": session}, ascii_only=True)
        if episode.outcome != "unknown":
            verdicts.append({"sid": run, "case": episode.task_id, "pass": episode.ok})
        task_id = "" if episode.outcome == "unknown" else episode.task_id
        truths.append(Truth(run, f"sessions/{run}.json", episode.task, episode.outcome, steps_of(episode), task_id))
    rng.shuffle(verdicts)
    put(folder / "verdicts.json", verdicts, indent=1)
    return truths


@unseen(
    "chat",
    ("messages with one thread_ts are a run; user UBOT is the agent, metadata has its calls", "$[*].thread_ts"),
    ("the reaction white_check_mark on the thread's first message is success, x is failure", "$[*].reactions[*].name"),
)
def channel_threads(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A team chat's channel export, a JSON array a day; an operations bot answers in threads.

    Traps: several runs in one file, mixed by time; a thread is told by thread_ts, which is the first message's ts; calls
    and results are in metadata.event_payload of messages whose text is an empty string or the thought; the outcome is
    a reaction on the first message (none: unknown), beside reactions that say nothing; join and topic messages of the
    channel that belong to no run; users.json beside.
    """
    truths, days = [], {}
    for episode in episodes(seed, runs, "ops", dialogue=True, unknown=1):
        rng, clock = random.Random(f"{seed}/{episode.number}"), Clock((seed, episode.number))
        day = f"ops-alerts/2026-03-{2 + episode.number // 4:02}.json"
        clock.now = Clock((seed, episode.number // 4, "day")).now
        root = f"{clock.ms() / 1000:.3f}{rng.randint(100, 999)}"
        reactions = [{"name": "eyes", "users": ["U2"], "count": 1}] * rng.randint(0, 1)
        mark = {"success": "white_check_mark", "failure": "x"}.get(episode.outcome)
        reactions += [{"name": mark, "users": ["U1"], "count": 1}] * bool(mark)
        thread: list[dict] = [{"type": "message", "user": "UALERT", "text": episode.task, "ts": root, "thread_ts": root}]
        if reactions:
            thread[0]["reactions"] = reactions

        def post(user: str, text: str, clock: Clock = clock, rng: random.Random = rng, root: str = root,
                 thread: list = thread, **payload: Any) -> None:  # fmt: skip
            entry = {"type": "message", "user": user, "text": text, "ts": f"{clock.ms() / 1000:.3f}{rng.randint(100, 999)}", "thread_ts": root}  # fmt: skip
            if payload:
                kind = "tool_finished" if "output" in payload else "tool_started"
                entry["metadata"] = {"event_type": kind, "event_payload": payload}
            thread.append(entry)

        for act in episode.turns:
            if act.who == "user" or not act.calls:
                post("U1" if act.who == "user" else "UBOT", act.text)
            for call in act.calls:
                key = hexes(rng, 6)
                post("UBOT", act.text, invocation=key, tool=call.tool, args=call.args)
                post("UBOT", "", invocation=key, output=call.result, success=not call.error)
        days.setdefault(day, []).extend(thread)
        truths.append(Truth(root, day, episode.task, episode.outcome, steps_of(episode)))
    for day, messages in days.items():
        first = min(float(message["ts"]) for message in messages)
        messages.append({"type": "message", "subtype": "channel_join", "user": "U4", "text": "<@U4> joined", "ts": f"{first + 60:.6f}"})  # fmt: skip
        put(folder / day, sorted(messages, key=lambda message: message["ts"]), indent=2)
    put(folder / "users.json", [{"id": "U1", "name": "ines"}, {"id": "UBOT", "name": "opsbot", "is_bot": True}, {"id": "UALERT", "name": "pager", "is_bot": True}])  # fmt: skip
    return truths
