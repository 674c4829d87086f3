"""Chat-like formats: messages with speakers, calls in or beside them."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Truth, as_value, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "chat",
    ("every turn is an element of conversation.turns, sender says who", "$.conversation.turns[*].sender"),
    ("the outcome is the column resolution of tickets.csv, joined by ticket", "tickets.csv:resolution"),
)
def desk_csv(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A help desk's conversation export: one JSON a ticket, the bot's operations beside its body.

    Traps: outcome only in a companion tickets.csv (solved, reopened, empty for one run that nobody rated); a
    configuration file beside; results are turns of the sender "backoffice"; the first turn is a greeting with an empty
    body, and turns with an action may have an empty body, too.
    """
    rng, truths, table = random.Random(seed), [], io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["ticket", "queue", "resolution", "csat"])
    for episode in episodes(seed, runs, "retail", dialogue=True, unknown=1):
        clock, ticket = Clock((seed, episode.number)), f"T-{rng.randint(100000, 999999)}"
        turns: list[dict] = []

        def turn(sender: str, clock: Clock = clock, turns: list = turns, **more: Any) -> None:
            turns.append({"seq": len(turns) + 1, "at": clock.iso(), "sender": sender, **more})

        turn("bot", body="")
        turn("customer", body=episode.task)
        for act in episode.turns:
            if act.who == "user":
                turn("customer", body=act.text)
            elif not act.calls:
                turn("bot", body=act.text)
            for call in act.calls:
                ref = hexes(rng, 8)
                turn("bot", body=act.text, actions=[{"ref": ref, "op": call.tool, "params": call.args}])
                turn("backoffice", ref=ref, fault=call.error, reply=call.result)
        put(folder / "conversations" / f"{ticket}.json", {"export": 3, "conversation": {"id": ticket, "channel": "web", "locale": "en-GB", "turns": turns}}, indent=1)  # fmt: skip
        resolution = {"success": "solved", "failure": "reopened", "unknown": ""}[episode.outcome]
        rows.writerow([ticket, "orders", resolution, {"solved": rng.choice([4, 5]), "reopened": rng.choice([1, 2, 4])}.get(resolution, "")])  # fmt: skip
        truths.append(Truth(ticket, f"conversations/{ticket}.json", episode.task, episode.outcome, steps_of(episode)))  # fmt: skip
    put(folder / "tickets.csv", table.getvalue())
    put(folder / "bot_config.json", {"bot": "Nelly", "version": "2.4", "ops": ["find_customer", "order_details"], "greeting": ""})  # fmt: skip
    return truths


@unseen(
    "chat",
    ("runs are the elements of $.batch, their messages are entries with segments", "$.batch[*].entries[*].segments[*]"),
    ("a run passed when its reward is at least 0.7", "$.batch[*].grade.reward >= 0.7"),
)
def segments(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A model vendor's evaluation dump with typed segments in each message (like content blocks, but own names).

    Traps: several runs in one file; Chinese; parallel calls whose outcomes come back in another order; results in
    messages of the speaker "person"; a numeric reward, its pass mark only in experiment.json; payload is a list.
    """
    rng, truths, batches = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "travel_zh", dialogue=True, parallel=True):
        entries: list[dict] = [{"speaker": "setup", "segments": [{"kind": "prose", "text": episode.system}]}]
        entries.append({"speaker": "person", "segments": [{"kind": "prose", "text": episode.task}]})
        for act in episode.turns:
            said = [{"kind": "prose", "text": act.text}] if act.text else []
            if act.who == "user" or not act.calls:
                entries.append({"speaker": "person" if act.who == "user" else "model", "segments": said})
                continue
            handles = [f"h_{hexes(rng, 6)}" for _ in act.calls]
            invokes = [{"kind": "invoke", "handle": h, "operation": c.tool, "inputs": c.args} for h, c in zip(handles, act.calls, strict=True)]  # fmt: skip
            back = [{"kind": "outcome", "handle": h, "failed": c.error, "payload": [{"kind": "prose", "text": c.result}]} for h, c in zip(handles, act.calls, strict=True)]  # fmt: skip
            rng.shuffle(back)
            entries += [{"speaker": "model", "segments": said + invokes}, {"speaker": "person", "segments": back}]
        name, run = f"batch_{episode.number // 4:02}.json", f"zh-{hexes(rng, 10)}"
        batches.setdefault(name, []).append({"uid": run, "case": episode.task_id, "entries": entries, "grade": {"reward": episode.score, "grader": "rubric-2"}})  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for name, batch in batches.items():
        put(folder / name, {"experiment": "zh-travel", "batch": batch})
    put(folder / "experiment.json", {"experiment": "zh-travel", "pass_mark": 0.7, "model": "any", "temperature": 0.2}, indent=2)  # fmt: skip
    return truths


@unseen(
    "chat",
    ("each line is a run, its messages in conversations with from and value", "$.conversations[*]"),
    ("a call is JSON inside <tool_call> tags in a gpt value", "$.conversations[from=gpt].value"),
)
def sharegpt_tags(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A fine-tuning data set in the ShareGPT style with judged rollouts, JSON lines in shards.

    Traps: calls stand as tagged JSON inside the text of a message, after a <think> block; the older shard has own
    entries function_call and observation instead; a README.md beside (a data card with an example); the list of tools
    is JSON in a string; whether a call failed is nowhere said.
    """
    rng, truths, shards = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "research"):
        old, talk = episode.number < runs // 3, [{"from": "system", "value": episode.system}]
        talk.append({"from": "human", "value": episode.task})
        for act in episode.turns:
            if not act.calls:
                talk.append({"from": "gpt", "value": act.text})
            for call in act.calls:
                invoked = json.dumps({"name": call.tool, "arguments": call.args})
                if old:
                    if act.text:
                        talk.append({"from": "gpt", "value": act.text})
                    talk += [{"from": "function_call", "value": invoked}, {"from": "observation", "value": call.result}]
                    continue
                thought = f"<think>\n{act.text}\n</think>\n" if act.text else ""
                talk.append({"from": "gpt", "value": f"{thought}<tool_call>\n{invoked}\n</tool_call>"})
                talk.append({"from": "tool", "value": f"<tool_response>\n{call.result}\n</tool_response>"})
        run = f"{'r1' if old else 'r2'}-{hexes(rng, 8)}"
        name = f"rollouts-{'old' if old else 'new'}-{episode.number // 4:03}.jsonl"
        tools = json.dumps([{"name": "search_docs", "parameters": {"q": "string", "top": "integer"}}])
        verdict = "correct" if episode.ok else "incorrect"
        shards.setdefault(name, []).append({"id": run, "source": "rollout", "tools": tools, "conversations": talk, "meta": {"judge": {"verdict": verdict, "by": "panel"}}})  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode, errors=False)))
    for name, lines in shards.items():
        put_lines(folder / name, lines)
    put(folder / "README.md", '# Rollouts\n\nEach line: `{"conversations": [{"from": "human", "value": "..."}]}`.\n\nLicence: none.\n')  # fmt: skip
    return truths


@unseen(
    "chat",
    ("messages are under record.exchange.request.messages, the last reply is record.exchange.response.output.message",
     "$.record.exchange.request.messages[*]"),
    ("evaluation.json lists recordId and label, PASS or FAIL", "evaluation.json:$.results[*].label"),
)  # fmt: skip
def converse_envelope(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Invocation records of a cloud's model gateway: the last request of a session with its whole history.

    Traps: deep envelope; content parts told by their only key (text, toolUse, toolResult); results as {"json": ...}
    objects or texts; the closing answer is not among the messages but in the response; Spanish; parallel calls; a
    throttled session without a response has no label (unknown); ids once a file; outcome in a companion file.
    """
    rng, truths, results = random.Random(seed), [], []
    for episode in episodes(seed, runs, "hr_es", parallel=True, dialogue=True, unknown=1):
        messages: list[dict] = [{"role": "user", "content": [{"text": episode.task}]}]
        for act in episode.turns:
            said = [{"text": act.text}] if act.text else []
            ids = [f"tooluse_{hexes(rng, 12)}" for _ in act.calls]
            uses = [{"toolUse": {"toolUseId": i, "name": c.tool, "input": c.args}} for i, c in zip(ids, act.calls, strict=True)]  # fmt: skip
            messages.append({"role": "user" if act.who == "user" else "assistant", "content": said + uses})
            if act.calls:
                back = []
                for i, call in zip(ids, act.calls, strict=True):
                    value = as_value(call.result)
                    part = {"text": value} if isinstance(value, str) else {"json": value}
                    back.append({"toolResult": {"toolUseId": i, "content": [part], "status": "error" if call.error else "success"}})  # fmt: skip
                messages.append({"role": "user", "content": back})
        exchange: dict = {"operation": "Converse", "request": {"system": [{"text": episode.system}], "messages": messages}}  # fmt: skip
        if episode.outcome == "unknown":
            exchange["error"] = {"code": "ThrottlingException", "message": "Too many tokens, please wait."}
        else:
            exchange["response"] = {"output": {"message": messages.pop()}, "stopReason": "end_turn", "usage": {"inputTokens": rng.randint(900, 9000), "outputTokens": rng.randint(20, 400)}}  # fmt: skip
        run = f"{hexes(rng, 8)}-{hexes(rng, 4)}"
        clock = Clock((seed, episode.number))
        put(folder / "records" / f"{run}.json", {"schema": "invocation/1", "record": {"recordId": run, "region": "eu-south-2", "timestamp": clock.iso(), "exchange": exchange}}, ascii_only=True)  # fmt: skip
        if episode.outcome != "unknown":
            results.append({"recordId": run, "case": episode.task_id, "label": "PASS" if episode.ok else "FAIL"})
        task_id = "" if episode.outcome == "unknown" else episode.task_id
        truths.append(Truth(run, f"records/{run}.json", episode.task, episode.outcome, steps_of(episode), task_id))
    rng.shuffle(results)
    put(folder / "evaluation.json", {"suite": "hr-es", "results": results}, indent=1)
    return truths


@unseen(
    "chat",
    ("each request has the user's message.text and a list response with prose and calls", "$.requests[*].response[*]"),
    ("the folder kept means success, the folder undone means failure", "parent folder"),
)
def ide_requests(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Chat sessions of a coding assistant in an editor, one JSON a session.

    Traps: a request holds the user's text and all that the assistant did until the next; prose and calls stand in one
    list; a call holds its own result, its input is JSON in a string; progress items ("thinking...") that are nothing;
    the outcome is the folder (kept or undone by the developer); settings.json beside; only the session id names a run.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "coding", dialogue=True):
        clock, session = Clock((seed, episode.number)), f"{hexes(rng, 8)}-{hexes(rng, 4)}-{hexes(rng, 4)}"
        requests: list[dict] = []

        def ask(text: str, requests: list = requests, clock: Clock = clock) -> None:
            requests.append({"requestId": f"request_{len(requests)}", "at": clock.ms(), "message": {"text": text, "parts": [{"kind": "text", "range": [0, len(text)]}]}, "response": []})  # fmt: skip

        ask(episode.task)
        for act in episode.turns:
            if act.who == "user":
                ask(act.text)
                continue
            items = requests[-1]["response"]
            if rng.random() < 0.3:
                items.append({"kind": "progress", "label": "Working"})
            if act.text:
                items.append({"kind": "markdown", "value": act.text})
            for call in act.calls:
                outcome = {"ok": not call.error, "output": [{"type": "text", "value": call.result}]}
                items.append({"kind": "toolRun", "callId": hexes(rng, 10), "toolName": call.tool, "input": json.dumps(call.args), "confirmed": True, "outcome": outcome})  # fmt: skip
        path = Path("kept" if episode.ok else "undone", f"{session}.json")
        put(folder / path, {"version": 3, "responder": "Pilot", "sessionId": session, "requests": requests}, indent=2)
        truths.append(Truth(session, path.as_posix(), episode.task, episode.outcome, steps_of(episode)))
    put(folder / "settings.json", {"editor.fontSize": 13, "assistant.autoApprove": True, "assistant.model": "auto"})
    return truths
