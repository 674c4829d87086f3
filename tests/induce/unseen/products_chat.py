"""Four conversational formats: a support inbox, a simulation harness, an IDE's chat sessions, phone calls."""

from __future__ import annotations

import csv
import io
import json
import random
import uuid
from pathlib import Path

from unseen.truth import (
    Clock,
    Episode,
    Step,
    Truth,
    as_value,
    episodes,
    hexes,
    put,
    sorted_text,
    steps_of,
    unseen,
)


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _with_values(steps: list[Step]) -> list[Step]:
    """Results that the format holds as objects."""
    return [step._replace(text=sorted_text(as_value(step.text))) if step.kind == "call" else step for step in steps]


@unseen(
    "chat",
    ("resolution_state in ai_outcomes.csv: resolved is good, routed_to_team is bad, system_error says nothing", "resolution_state"),
    ("what the customer wanted is the body of the conversation's source", "$.conversations[*].source.body"),
)
def support_inbox(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like Intercom's conversation export with Fin and its custom actions.

    Several conversations in a page of a list. The bot's actions are conversation parts: a started one with the input, a
    finished one (further down, in another order) with status and output, joined by run_id; outputs are objects where the
    API gave objects. Notes of the bot are its thoughts. Assignments and attribute changes are noise. The verdict stands
    in a CSV next to it, which knows conversations of other channels, too; a system error is no verdict.
    """
    rng, clock = random.Random(f"support_inbox/{seed}"), Clock(f"support_inbox/{seed}")
    truths: list[Truth] = []
    pages: dict[str, list[dict]] = {}
    table: list[list[str]] = []
    bot = {"type": "bot", "id": "991267", "name": "Fern", "email": "operator+x1@intercom.example"}
    per_page = (runs + 2) // 3
    for episode in episodes(seed, runs, "retail", dialogue=True, parallel=True, unknown=1):
        number = str(215470000000 + rng.randint(1, 9_999_999))
        contact = {"type": "user", "id": hexes(rng, 24), "name": "Customer", "email": ""}
        parts: list[dict] = []

        def part(kind: str, author: dict, body: str | None, parts: list[dict] = parts, **more: object) -> None:
            at = int(clock.tick(40).timestamp())
            parts.append({"type": "conversation_part", "id": str(rng.randint(10**10, 10**11)), "part_type": kind, "body": body,
                          "created_at": at, "updated_at": at, "notified_at": at, "assigned_to": None, "author": author,
                          "attachments": [], "external_id": None, "redacted": False, **more})  # fmt: skip

        opened = int(clock.tick(4000).timestamp())
        part("assignment", {"type": "admin", "id": "55102", "name": "Routing", "email": "routing@shop.example"}, None)
        for turn in episode.turns:
            if turn.who == "user":
                part("comment", contact, turn.text)
                if rng.random() < 0.4:
                    part("attribute_updated_by_workflow", bot, None, event_details={"attribute": {"name": "Language"}, "value": {"name": "en"}})
                continue
            if not turn.calls:
                part("comment", bot, turn.text)
                continue
            if turn.text:
                part("note", bot, turn.text)
            ends = []
            for call in turn.calls:
                run_id = f"car_{hexes(rng, 12)}"
                part("custom_action_started", bot, None, event_details={"action": {"name": call.tool, "run_id": run_id, "input": call.args}})
                ends.append({"run_id": run_id, "status": "error" if call.error else "success", "output": as_value(call.result)})
            rng.shuffle(ends)
            for end in ends:
                part("custom_action_finished", bot, None, event_details={"action": end})
        conversation = {
            "type": "conversation", "id": number, "created_at": opened, "updated_at": int(clock.tick().timestamp()),
            "waiting_since": None, "snoozed_until": None, "title": None, "state": "closed", "read": True, "priority": "not_priority",
            "source": {"type": "conversation", "id": str(rng.randint(10**9, 10**10)), "delivered_as": "customer_initiated", "subject": "",
                       "body": episode.task, "author": contact, "attachments": [], "url": "https://shop.example/help"},
            "contacts": {"type": "contact.list", "contacts": [{"type": "contact", "id": contact["id"]}]},
            "tags": {"type": "tag.list", "tags": []},
            "statistics": {"time_to_first_close": rng.randint(100, 9000), "count_reopens": 0, "count_conversation_parts": len(parts)},
            "conversation_parts": {"type": "conversation_part.list", "conversation_parts": parts, "total_count": len(parts)},
        }  # fmt: skip
        name = f"conversations/page_{episode.number // per_page + 1}.json"
        pages.setdefault(name, []).append(conversation)
        state = {"success": "resolved", "failure": "routed_to_team", "unknown": "system_error"}[episode.outcome]
        table.append([number, "true", state, str(rng.randint(1, 5)) if rng.random() < 0.3 else "", "messenger"])
        truths.append(Truth(number, name, episode.task, episode.outcome, _with_values(steps_of(episode, task=False))))
    for at, (name, conversations) in enumerate(pages.items(), 1):
        put(folder / name, {"type": "conversation.list", "pages": {"type": "pages", "page": at, "per_page": per_page, "total_pages": len(pages)},
                            "total_count": runs, "conversations": conversations}, indent=2)  # fmt: skip
    for _ in range(4):
        table.append([str(215480000000 + rng.randint(1, 9_999_999)), "false", rng.choice(["resolved", "routed_to_team"]), "", "email"])
    rng.shuffle(table)
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([["conversation_id", "ai_agent_participated", "resolution_state", "csat", "channel"], *table])
    put(folder / "ai_outcomes.csv", out.getvalue())
    return truths


_POLICY = """# 政策
当前时间由系统给出。你只能使用所提供的工具。
1. 修改、取消、退款之前，必须列出细节并得到用户明确的同意（“可以”）。
2. 每次最多处理一位乘客的订单；不得提供政策之外的补偿。
3. 不要编造工具没有返回的信息。遇到无法处理的请求，请转人工客服。
4. 航班：经济舱起飞前二十四小时内不可取消，除非航空公司取消了航班。
5. 酒店：入住前一天十八点以前可以免费取消。
"""


@unseen(
    "chat",
    ("each trial has a verdict.json with the reward, 1 is a success; with infrastructure_error there is none", "$.reward"),
    ("where point_of_view is customer the sides are the other way round: assistant is the simulated customer", "$.point_of_view"),
)
def sim_trials(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like the result folder of a tau-bench-like harness: a folder for each task and trial, conversation and verdict apart.

    A third was recorded from the customer's point of view: there the simulated customer is the assistant, and the agent,
    its tool calls included, is the user. Chinese, escaped; arguments as JSON strings; parallel calls; long system prompt.
    After an infrastructure error the reward is null and the last call has no result. The task's id is a folder's name only.
    """
    rng = random.Random(f"sim_trials/{seed}")
    truths: list[Truth] = []
    rewards: list[float] = []
    for episode in episodes(seed, runs, "travel_zh", dialogue=True, parallel=True, unknown=2):
        swapped = episode.number % 3 == 1
        agent, customer = ("user", "assistant") if swapped else ("assistant", "user")
        system = "你扮演顾客。每次只说一句话，不要提前透露全部信息，也不要说自己是模拟的。目的达到后结束对话。" if swapped else episode.system + "\n\n" + _POLICY * 3
        turns: list[dict] = [{"role": "system", "content": system}, {"role": customer, "content": episode.task}]
        steps = steps_of(episode, errors=False)
        for turn in episode.turns:
            if turn.who == "user":
                turns.append({"role": customer, "content": turn.text})
            elif not turn.calls:
                turns.append({"role": agent, "content": turn.text})
            else:
                ids = [f"chatcmpl-tool-{hexes(rng, 20)}" for _ in turn.calls]
                turns.append({"role": agent, "content": turn.text or None, "tool_calls": [
                    {"id": id_, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.args, ensure_ascii=False)}}
                    for id_, call in zip(ids, turn.calls, strict=True)]})  # fmt: skip
                turns += [{"role": "tool", "tool_call_id": id_, "content": call.result} for id_, call in zip(ids, turn.calls, strict=True)]
        if episode.outcome == "unknown":
            turns.pop()
            steps[-1] = steps[-1]._replace(text="")
            verdict = {"reward": None, "termination": "infrastructure_error", "error": "503 upstream connect error, gave up after 4 retries", "checks": {}}
        else:
            reward = 1.0 if episode.ok else 0.0
            rewards.append(reward)
            verdict = {"reward": reward, "termination": "user_stop" if rng.random() < 0.7 else "agent_stop", "error": None,
                       "checks": {"database": episode.ok, "communicated": episode.ok or rng.random() < 0.5}}  # fmt: skip
        verdict["duration_s"] = round(rng.uniform(20, 200), 2)
        sim = f"sim_{hexes(rng, 10)}"
        place = f"results/{episode.task_id}/trial_{episode.number % 3}"
        put(folder / place / "conversation.json",
            {"sim": sim, "point_of_view": "customer" if swapped else "agent", "models": {"agent": "harrier-2", "customer": "sim-mini"},
             "cost": {"agent": round(rng.uniform(0.01, 0.4), 4), "customer": round(rng.uniform(0.001, 0.02), 4)}, "turns": turns}, indent=1, ascii_only=True)  # fmt: skip
        put(folder / place / "verdict.json", verdict, indent=1)
        truths.append(Truth(sim, f"{place}/conversation.json", episode.task, episode.outcome, steps, episode.task_id))
    put(folder / "results/summary.json", {"domain": "travel", "pass^1": round(sum(rewards) / max(1, len(rewards)), 3), "n": len(rewards), "infra": runs - len(rewards)}, indent=1)
    put(folder / "config.yaml", "domain: travel\nagent:\n  model: harrier-2\n  temperature: 0.0\ncustomer:\n  model: sim-mini\nmax_turns: 40\n")
    return truths


def _requests(episode: Episode) -> list[tuple[str, list]]:
    """(what the user asked, the agent's turns after it)."""
    out: list[tuple[str, list]] = [(episode.task, [])]
    for turn in episode.turns:
        if turn.who == "user":
            out.append((turn.text, []))
        else:
            out[-1][1].append(turn)
    return out


@unseen(
    "chat",
    ("the user's thumb on the last request: vote 1 up, 0 down, none if not voted", "$.requests[-1:].vote"),
    ("newer files have the calls in toolCallRounds and the results in toolCallResults by id", "$.requests[*].result.metadata.toolCallRounds[*]"),
)
def ide_chat_sessions(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like VS Code's chatSessions of Copilot's agent mode: a file for each session, with requests.

    Two layouts: version 3 has the rounds with calls (arguments as JSON strings) in a request's result metadata and the
    results in a map by call id, while `response` repeats what was shown (the same words, the calls without data);
    version 2 has all of it in `response`, input and output inside the invocation. The outcome is the vote on the last
    request, absent where nobody voted. workspace.json holds no run.
    """
    rng, clock = random.Random(f"ide_chat_sessions/{seed}"), Clock(f"ide_chat_sessions/{seed}")
    truths: list[Truth] = []
    spaces = [hexes(rng, 32) for _ in range(2)]
    for at, space in enumerate(spaces):
        put(folder / "workspaceStorage" / space / "workspace.json", {"folder": f"file:///home/dev/projects/app{at}"}, indent=2)
    for episode in episodes(seed, runs, "coding", dialogue=True, parallel=True, unknown=2):
        newer = episode.number % 5 not in (1, 3)
        session = _uuid(rng)
        requests: list[dict] = []
        for asked, turns in _requests(episode):
            shown: list[dict] = []
            rounds: list[dict] = []
            results: dict[str, dict] = {}
            for turn in turns:
                if turn.text:
                    shown.append({"value": turn.text, "supportThemeIcons": False, "supportHtml": False, "baseUri": None} if newer else {"kind": "markdown", "value": turn.text})
                calls: list[dict] = []
                for call in turn.calls:
                    id_ = f"call_{hexes(rng, 24)}__vscode-{clock.ms()}"
                    calls.append({"name": call.tool, "arguments": json.dumps(call.args, ensure_ascii=False), "id": id_})
                    results[id_] = {"$mid": 20, "content": [{"$mid": 21, "value": call.result}]}
                    entry = {"kind": "toolInvocationSerialized", "toolCallId": id_, "toolId": call.tool, "isConfirmed": True, "isComplete": True,
                             "invocationMessage": {"value": f"Using `{call.tool}`", "isTrusted": False}, "pastTenseMessage": {"value": f"Used `{call.tool}`"}}  # fmt: skip
                    if not newer:
                        entry = {"kind": "toolInvocation", "toolCallId": id_, "toolId": call.tool, "isConfirmed": True, "isComplete": True,
                                 "toolSpecificData": {"kind": "input", "rawInput": call.args},
                                 "resultDetails": {"output": [{"type": "text", "value": call.result}]}}  # fmt: skip
                    shown.append(entry)
                rounds.append({"id": _uuid(rng), "response": turn.text, "toolCalls": calls, "toolInputRetry": 0})
            request: dict = {
                "requestId": f"request_{_uuid(rng)}",
                "message": {"text": asked, "parts": [{"kind": "text", "text": asked, "range": {"start": 0, "endExclusive": len(asked)}}]},
                "variableData": {"variables": [{"kind": "file", "name": "settings.json", "id": "vscode.file"}] if rng.random() < 0.3 else []},
                "response": shown,
                "result": {"timings": {"firstProgress": rng.randint(300, 4000), "totalElapsed": rng.randint(5000, 90_000)}},
                "followups": [], "isCanceled": False, "timestamp": clock.ms(), "modelId": "copilot/heron-4",
                "agent": {"id": "github.copilot.editsAgent", "name": "agent", "isDefault": True, "modes": ["agent"]},
            }  # fmt: skip
            if newer:
                request["result"]["metadata"] = {"codeBlocks": [], "toolCallRounds": rounds, "toolCallResults": results, "modelMessageId": _uuid(rng)}
            requests.append(request)
        if episode.outcome != "unknown":
            requests[-1]["vote"] = int(episode.ok)
            if not episode.ok:
                requests[-1]["voteDownReason"] = "other"
        name = f"workspaceStorage/{spaces[episode.number % 2]}/chatSessions/{session}.json"
        put(folder / name, {"version": 3 if newer else 2, "requesterUsername": "dev", "responderUsername": "GitHub Copilot", "initialLocation": "panel",
                            "requests": requests, "sessionId": session, "creationDate": clock.ms(), "isImported": False, "lastMessageDate": clock.ms()}, indent=2)  # fmt: skip
        truths.append(Truth(session, name, episode.task, episode.outcome, steps_of(episode, errors=False)))
    return truths


@unseen(
    "chat",
    ("call_successful of the call's analysis; calls that broke down (call_status error) have no analysis", "$[*].call_analysis.call_successful"),
    ("the complete course is transcript_with_tool_calls, transcript and transcript_object are the same without tools", "$[*].transcript_with_tool_calls"),
)
def voice_calls(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like Retell's call list: arrays of phone calls, a file for each day. German.

    The speech stands three times (flat text, utterances, utterances with tools and timed words). The agent greets first;
    what the caller says then is the task. Invocation (arguments as a JSON string) and result (flag `successful`) are
    entries of their own, joined by tool_call_id; what the agent says right before an invocation goes with it. Node
    transitions, latencies and costs are noise. Broken calls have no analysis.
    """
    rng, clock = random.Random(f"voice_calls/{seed}"), Clock(f"voice_calls/{seed}")
    greeting = "Guten Tag, hier ist Nora vom Kundendienst. Was kann ich für Sie tun?"
    truths: list[Truth] = []
    days: dict[str, list[dict]] = {}
    for episode in episodes(seed, runs, "telco_de", dialogue=True, unknown=2):
        second = 0.4
        full: list[dict] = []

        def speak(role: str, text: str, full: list[dict] = full) -> None:
            nonlocal second
            words = []
            for word in text.split():
                end = round(second + rng.uniform(0.1, 0.5), 3)
                words.append({"word": word, "start": round(second, 3), "end": end})
                second = end
            second += 0.8
            full.append({"role": role, "content": text, "words": words, "metadata": {"response_id": len(full)}})

        speak("agent", greeting)
        speak("user", episode.task)
        for turn in episode.turns:
            if turn.text:
                speak("agent" if turn.who == "agent" else "user", turn.text)
            if turn.who == "user" and rng.random() < 0.5:
                full.append({"role": "node_transition", "former_node_id": "node-1", "former_node_name": "Anliegen", "new_node_id": "node-2", "new_node_name": "Lösung", "time_sec": round(second, 3)})
            for call in turn.calls:
                id_ = f"tool_call_{hexes(rng, 6)}"
                full.append({"role": "tool_call_invocation", "tool_call_id": id_, "name": call.tool, "arguments": json.dumps(call.args, ensure_ascii=False), "time_sec": round(second, 3)})
                second += rng.uniform(0.2, 3)
                full.append({"role": "tool_call_result", "tool_call_id": id_, "successful": not call.error, "content": call.result, "time_sec": round(second, 3)})
        spoken = [entry for entry in full if "words" in entry]
        start = int(clock.tick(20_000).timestamp() * 1000)
        call_id = f"call_{hexes(rng, 27)}"
        broken = episode.outcome == "unknown"
        entry = {
            "call_id": call_id, "call_type": "phone_call", "agent_id": "agent_5c1d20", "agent_version": 14, "call_status": "error" if broken else "ended",
            "start_timestamp": start, "end_timestamp": start + int(second * 1000), "duration_ms": int(second * 1000),
            "from_number": "+49301234" + str(rng.randint(1000, 9999)), "to_number": "+498009990", "direction": "inbound",
            "transcript": "".join(f"{'Agent' if e['role'] == 'agent' else 'User'}: {e['content']}\n" for e in spoken),
            "transcript_object": spoken, "transcript_with_tool_calls": full,
            "recording_url": f"https://recordings.example/{hexes(rng, 16)}/recording.wav",
            "disconnection_reason": "error_llm_websocket_lost_connection" if broken else rng.choice(["user_hangup", "agent_hangup"]),
            "latency": {"llm": {"p50": rng.randint(400, 900), "p99": rng.randint(1000, 3000), "num": len(spoken)}, "e2e": {"p50": rng.randint(900, 1900)}},
            "call_cost": {"combined_cost": round(rng.uniform(2, 40), 3), "product_costs": [{"product": "elevenlabs_tts", "cost": round(rng.uniform(1, 9), 3)}]},
            "opt_out_sensitive_data_storage": False,
        }  # fmt: skip
        if not broken:
            entry["call_analysis"] = {"in_voicemail": False, "user_sentiment": rng.choice(["Neutral", "Positive", "Negative"]), "call_successful": episode.ok,
                                      "call_summary": "Der Anrufer sprach mit dem Agenten über seinen Anschluss.", "custom_analysis_data": {}}  # fmt: skip
        name = f"calls_2026-03-{2 + episode.number // 5:02}.json"
        days.setdefault(name, []).append(entry)
        steps = [Step("say", "respond", None, greeting), *steps_of(episode)]
        truths.append(Truth(call_id, name, episode.task, episode.outcome, steps))
    for name, calls in days.items():
        put(folder / name, calls, indent=2)
    return truths
