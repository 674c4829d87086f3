"""Span trees: traces of back-ends that watch applications of language models."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Truth, as_value, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "spans",
    ("runs nest by child_runs; those with run_type tool are the calls, in order of start_time", "$..child_runs[*]"),
    ("the feedback with key correctness has score 1 or 0", "$.feedback[key=correctness].score"),
)
def run_tree(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A run tree of a tracing service, one JSON document a trace, children nested in their parents.

    Traps: child_runs are in no order (start_time orders them); what the model said is in the llm run, which repeats the
    whole history and also lists the calls that the tool runs make; arguments are JSON in a string; a failed tool has
    `error` and no outputs; parallel calls; a second feedback (latency_ok) that is no verdict; examples.json beside.
    """
    rng, truths, examples = random.Random(seed), [], []
    for episode in episodes(seed, runs, "research", parallel=True):
        clock, trace = Clock((seed, episode.number)), f"{hexes(rng, 8)}-{hexes(rng, 4)}-4{hexes(rng, 3)}"

        def node(kind: str, name: str, inputs: Any, outputs: Any, error: str | None = None, children: list | None = None,
                 clock: Clock = clock, trace: str = trace) -> dict:  # fmt: skip
            begin = clock.iso()
            return {"id": hexes(rng, 16), "trace_id": trace, "name": name, "run_type": kind, "start_time": begin, "inputs": inputs, "outputs": outputs, "error": error, "child_runs": children or []}  # fmt: skip

        root = node("chain", "AgentLoop", {"question": episode.task}, {"answer": None})
        history: list[dict] = [{"role": "system", "content": episode.system}, {"role": "human", "content": episode.task}]  # fmt: skip
        for number, act in enumerate(episode.turns):
            asked = [{"name": call.tool, "args": call.args} for call in act.calls]
            step = node("chain", f"iteration_{number}", {"n": number}, None)
            reply = {"generations": [[{"text": act.text, "message": {"role": "ai", "tool_calls": asked}}]], "usage": {"total_tokens": rng.randint(100, 4000)}}  # fmt: skip
            step["child_runs"].append(node("llm", "ChatModel", {"messages": [list(history)]}, reply))
            history.append({"role": "ai", "content": act.text, "tool_calls": asked})
            for call in act.calls:
                outputs, error = (None, call.result) if call.error else ({"output": call.result}, None)
                step["child_runs"].append(node("tool", call.tool, {"input": json.dumps(call.args)}, outputs, error))
                history.append({"role": "tool", "content": call.result})
            rng.shuffle(step["child_runs"])
            root["child_runs"].append(step)
        rng.shuffle(root["child_runs"])
        root["outputs"]["answer"] = episode.turns[-1].text
        root["feedback"] = [{"key": "latency_ok", "score": rng.choice([0, 1])}, {"key": "correctness", "score": int(episode.ok)}]  # fmt: skip
        root["reference_example"] = episode.task_id
        put(folder / f"trace_{trace}.json", root, indent=rng.choice([None, 2]))
        examples.append({"example": episode.task_id, "split": "test"})
        truths.append(Truth(trace, f"trace_{trace}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))  # fmt: skip
    put(folder / "examples.json", examples)
    return truths


@unseen(
    "spans",
    ("lines are calls; trace_id groups them, op_name says what they are, tools are Tool.NAME", "@.trace_id, @.op_name"),
    ("the call of Scorer.goal_reached has output.passed", "$.events[op_name=...Scorer.goal_reached...].output.passed"),
)
def call_lines(folder: Path, seed: int, runs: int) -> list[Truth]:
    """An experiment tracker's exported function calls, JSON lines, several traces a file.

    Traps: a line is written when its call ended, so children come before parents and traces mix; the name of the tool
    is inside a URI ("trk:///acme/bot/op/Tool.gutschrift:9f3a"); the verdict is a call of its own near the end of a
    trace; a failed tool has `exception` and no output; outputs are objects or texts; a trace whose agent broke has no
    verdict (unknown); German, escaped to ASCII; a summary.json of counts beside.
    """
    rng, truths, files = random.Random(seed), [], {}
    digests = {name: hexes(rng, 8) for name in ("Eval.case", "Bot.run", "Bot.next_move", "Scorer.goal_reached")}
    for episode in episodes(seed, runs, "telco_de", dialogue=False, unknown=1):
        clock, trace, group = Clock((seed, episode.number)), hexes(rng, 14), episode.number // 4
        clock.now = Clock((seed, group, "group")).now
        lines = files.setdefault(f"calls_{group:02}.jsonl", [])
        ids = [hexes(rng, 12), hexes(rng, 12)]

        def call_line(op: str, parent: str | None, inputs: dict, output: Any, exception: str | None = None, own: str = "",
                      begun: str = "", clock: Clock = clock, trace: str = trace, lines: list = lines) -> None:  # fmt: skip
            digest = digests.setdefault(op, hexes(rng, 8))
            started = begun or clock.iso()
            lines.append({"id": own or hexes(rng, 12), "trace_id": trace, "parent_id": parent, "op_name": f"trk:///acme/bot/op/{op}:{digest}", "started_at": started, "ended_at": clock.iso(), "inputs": inputs, "output": output, "exception": exception})  # fmt: skip

        begun, talk = clock.iso(), [{"role": "user", "content": episode.task}]
        for act in episode.turns:
            call_line("Bot.next_move", ids[1], {"messages": list(talk)}, {"text": act.text, "final": not act.calls})
            talk.append({"role": "assistant", "content": act.text})
            for call in act.calls:
                output, error = (None, call.result) if call.error else (as_value(call.result), None)
                call_line(f"Tool.{call.tool}", ids[1], call.args, output, error)
                talk.append({"role": "tool", "content": call.result})
        broken = "ConnectionError: model endpoint closed" if episode.outcome == "unknown" else None
        answer = None if broken else {"answer": episode.turns[-1].text}
        call_line("Bot.run", ids[0], {"task": episode.task}, answer, broken, ids[1], begun)
        if not broken:
            call_line("Scorer.goal_reached", ids[0], {"case": episode.task_id}, {"passed": episode.ok, "why": "vgl. Zielzustand"})  # fmt: skip
        call_line("Eval.case", None, {"case": episode.task_id}, None, broken, ids[0], begun)
        truths.append(Truth(trace, f"calls_{group:02}.jsonl", episode.task, episode.outcome, steps_of(episode), episode.task_id))  # fmt: skip
    for name, lines in files.items():
        put_lines(folder / name, sorted(lines, key=lambda line: line["ended_at"]), ascii_only=True)
    put(folder / "summary.json", {"calls": sum(map(len, files.values())), "traces": runs, "goal_reached": {"true_fraction": 0.6}})  # fmt: skip
    return truths


@unseen(
    "spans",
    ("spans of meta.kind tool are calls, name is the tool; order by start_ns", "$.data.spans[*].meta.kind"),
    ("the root span's tags hold verdict:pass or verdict:fail", "$.data.spans[*].tags[*]"),
)
def tag_strings(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Spans of an application monitor, one JSON a trace; tags are strings "key:value".

    Traps: the verdict is one of the root's tags ("verdict:pass", "verdict:fail", "verdict:infra_error" for unknown);
    two layouts, since a third of the files come from an older agent with flat dotted keys in `attributes` instead of
    `meta`; spans are in order of their end; arguments are JSON in a string; a failed tool's text is error.message; the
    task is the root's input; ids of traces are numbers in strings; metrics.json and monitors.json beside.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "data", unknown=1, parallel=True):
        clock, trace, old = Clock((seed, episode.number)), str(rng.randint(10**17, 10**18)), episode.number % 3 == 1
        spans: list[dict] = []

        def span(kind: str, name: str, parent: str, before: str, after: str, error: str = "", own: str = "", begun: Any = None,
                 tags: tuple = (), clock: Clock = clock, trace: str = trace, old: bool = old, spans: list = spans) -> None:  # fmt: skip
            start = begun or clock.tick()
            end = clock.tick()
            place = {"span_id": own or str(rng.randint(10**17, 10**18)), "parent_id": parent, "trace_id": trace, "name": name}  # fmt: skip
            start_ns = int(start.timestamp() * 1000) * 1_000_000
            place |= {"start_ns": start_ns, "duration": int((end - start) / timedelta(microseconds=1)) * 1000}
            place |= {"status": "error" if error else "ok", "tags": ["env:eval", "service:warehouse-bot", *tags]}
            if old:
                flat = {"span.kind": kind, "input.value": before, "output.value": after}
                place["attributes"] = flat | ({"error.message": error} if error else {})
            else:
                place["meta"] = {"kind": kind, "input": {"value": before}, "output": {"value": after}}
                place["meta"] |= {"error": {"message": error}} if error else {}
            spans.append(place)

        root, begun = str(rng.randint(10**17, 10**18)), clock.tick()
        for act in episode.turns:
            span("llm", "completion", root, "(messages withheld)", act.text)
            for call in act.calls:
                span("tool", call.tool, root, json.dumps(call.args), "" if call.error else call.result, call.result if call.error else "")  # fmt: skip
        verdict = {"success": "pass", "failure": "fail", "unknown": "infra_error"}[episode.outcome]
        answer = "" if episode.outcome == "unknown" else episode.turns[-1].text
        span("agent", "warehouse-bot", "undefined", episode.task, answer, "", root, begun, (f"case:{episode.task_id}", f"verdict:{verdict}"))  # fmt: skip
        put(folder / "traces" / f"{trace}.json", {"data": {"type": "span_export", "spans": spans}, "meta": {"page": None}})  # fmt: skip
        truths.append(Truth(trace, f"traces/{trace}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))  # fmt: skip
    put(folder / "metrics.json", {"series": [{"metric": "llm.tokens", "points": [[1, 20], [2, 31]]}]})
    put(folder / "monitors.json", {"monitors": [{"name": "bot errors", "threshold": 0.1}]}, indent=2)
    return truths
