"""Span trees: traces of back-ends that watch applications of language models."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Truth, as_value, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "spans",
    ("observations of type TOOL are calls, GENERATION is the model; order by startTime", "$.observations[*].type"),
    ("the score named task_success has value 1 or 0", "$.scores[name=task_success].value"),
)
def observations_flat(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A trace with a flat list of observations, as a tracing product exports it, one JSON a trace.

    Traps: observations are in no order; parents by id, over two levels; generations repeat the history and list the
    calls that the tool observations make; a failed tool has level ERROR and its text in statusMessage; parallel calls;
    a second score (helpfulness) that is no verdict; EVENT observations say nothing; datasets.json beside.
    """
    rng, truths, items = random.Random(seed), [], []
    for episode in episodes(seed, runs, "coding", parallel=True):
        clock, trace = Clock((seed, episode.number)), f"tr-{hexes(rng, 12)}"
        spans: list[dict] = []

        def observed(kind: str, name: str, parent: str | None, before: Any, after: Any, error: str = "", clock: Clock = clock,
                     trace: str = trace, spans: list = spans) -> str:  # fmt: skip
            own = hexes(rng, 16)
            spans.append({"id": own, "traceId": trace, "type": kind, "name": name, "parentObservationId": parent, "startTime": clock.iso(), "endTime": clock.iso(), "level": "ERROR" if error else "DEFAULT", "statusMessage": error or None, "input": before, "output": after})  # fmt: skip
            return own

        root = observed("SPAN", "agent", None, {"issue": episode.task}, None)
        talk: list[dict] = [{"role": "system", "content": episode.system}, {"role": "user", "content": episode.task}]
        for act in episode.turns:
            turn = observed("SPAN", "turn", root, None, None)
            asked = [{"name": call.tool, "input": call.args} for call in act.calls]
            observed("GENERATION", "llm", turn, list(talk), {"role": "assistant", "content": act.text, "tools": asked})
            talk.append({"role": "assistant", "content": act.text, "tools": asked})
            if rng.random() < 0.3:
                observed("EVENT", "budget", turn, None, {"left": rng.randint(1, 99)})
            for call in act.calls:
                observed("TOOL", call.tool, turn, call.args, None if call.error else call.result, call.result if call.error else "")  # fmt: skip
                talk.append({"role": "tool", "content": call.result})
        rng.shuffle(spans)
        scores = [{"name": "helpfulness", "value": round(rng.random(), 2), "source": "EVAL"}, {"name": "task_success", "value": int(episode.ok), "source": "API"}]  # fmt: skip
        put(folder / f"{trace}.json", {"id": trace, "name": "fix-issue", "tags": [], "metadata": {"item": episode.task_id}, "scores": scores, "observations": spans}, indent=rng.choice([None, 2]))  # fmt: skip
        items.append({"item": episode.task_id, "status": "ACTIVE"})
        truths.append(Truth(trace, f"{trace}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))
    put(folder / "datasets.json", items)
    return truths


@unseen(
    "spans",
    ("spans' attributes are JSON in strings; trk.kind TOOL is a call", '$.data.spans[*].attributes["trk.kind"]'),
    ("the assessment correctness has the value yes or no", "$.info.assessments[name=correctness].feedback.value"),
)
def doubly_encoded(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A model tracker's traces, JSON lines, a trace a line, several a file.

    Traps: every attribute is JSON in a string, so a string is quoted twice and arguments are an object in a string;
    Chinese; spans are in order of their end; ids are strings, times numbers in nanoseconds; a failed tool has status
    ERROR and its text in an exception event; a trace that broke has no assessment (unknown); outputs are objects or
    texts; experiment.json beside.
    """
    rng, truths, files = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "travel_zh", unknown=1):
        clock, trace, root = Clock((seed, episode.number)), f"tk-{hexes(rng, 16)}", hexes(rng, 16)
        spans: list[dict] = []

        def span(kind: str, name: str, parent: str | None, before: Any, after: Any, error: str = "", own: str = "", start: int = 0,
                 clock: Clock = clock, spans: list = spans) -> None:  # fmt: skip
            begun = start or clock.ms() * 1_000_000
            plain = {"trk.kind": kind, "trk.inputs": before} | ({} if after is None else {"trk.outputs": after})
            attributes = {key: json.dumps(value, ensure_ascii=False) for key, value in plain.items()}
            events = [{"name": "exception", "attributes": {"exception.message": error}}] if error else []
            spans.append({"span_id": own or hexes(rng, 16), "parent_id": parent, "name": name, "start_time_ns": begun, "end_time_ns": clock.ms() * 1_000_000, "status": {"code": "ERROR" if error else "OK"}, "attributes": attributes, "events": events})  # fmt: skip

        start = clock.ms() * 1_000_000
        for act in episode.turns:
            span("LLM", "predict", root, {"n_messages": len(spans) + 1}, {"text": act.text})
            for call in act.calls:
                span("TOOL", call.tool, root, call.args, None if call.error else as_value(call.result), call.result if call.error else "")  # fmt: skip
        broken = "" if episode.outcome != "unknown" else "RateLimitError: quota"
        span("AGENT", "assistant", None, {"question": episode.task}, None if broken else episode.turns[-1].text, broken, root, start)  # fmt: skip
        assessments = [] if broken else [{"name": "correctness", "source": {"type": "HUMAN"}, "feedback": {"value": "yes" if episode.ok else "no"}}]  # fmt: skip
        name = f"traces-{episode.number // 5}.jsonl"
        files.setdefault(name, []).append({"info": {"trace_id": trace, "tags": {"case": episode.task_id}, "assessments": assessments}, "data": {"spans": spans}})  # fmt: skip
        truths.append(Truth(trace, name, episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for name, lines in files.items():
        put_lines(folder / name, lines, ascii_only=name.endswith("0.jsonl"))
    put(folder / "experiment.json", {"experiment_id": "31", "name": "zh", "artifact_location": "file:///x"})
    return truths


@unseen(
    "spans",
    ("spans whose tag kind is tool are calls, operationName is the tool; order by startTime", "$.data[0].spans[*].tags[key=kind]"),
    ("the root span's tag eval.result is pass or fail", "$.data[0].spans[*].tags[key=eval.result].value"),
)  # fmt: skip
def references(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A distributed-tracing back-end's export of an agent service, one JSON a trace.

    Traps: tags are lists of {key, type, value}; parents are in references (CHILD_OF), and in the older third of the
    files in parentSpanID; spans of an HTTP client and a database, which are no steps, hang below the tools; results are
    log fields, not tags; arguments are JSON in a string; error is a boolean tag; eval.result is missing in a trace
    that nobody judged (unknown); the alert (task) is a tag of the root; services.json beside.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "ops", parallel=True, unknown=1):
        clock, trace, root, old = Clock((seed, episode.number)), hexes(rng, 32), hexes(rng, 16), episode.number % 3 == 2
        spans: list[dict] = []

        def span(name: str, tags: dict, logged: dict | None = None, parent: str = root, own: str = "", begun: datetime | None = None,
                 clock: Clock = clock, trace: str = trace, old: bool = old, spans: list = spans) -> str:  # fmt: skip
            start, own = begun or clock.tick(), own or hexes(rng, 16)
            kinds = {bool: "bool", int: "int64"}
            place: dict = {"traceID": trace, "spanID": own, "operationName": name, "startTime": int(start.timestamp() * 1000) * 1000}  # fmt: skip
            place["duration"] = int((clock.tick() - start).total_seconds() * 1_000_000)
            if old:
                place |= {"parentSpanID": parent} if parent else {}
            else:
                place["references"] = [{"refType": "CHILD_OF", "traceID": trace, "spanID": parent}] if parent else []
            place["tags"] = [{"key": key, "type": kinds.get(type(value), "string"), "value": value} for key, value in tags.items()]  # fmt: skip
            fields = [{"key": key, "type": "string", "value": value} for key, value in (logged or {}).items()]
            place["logs"] = [{"timestamp": int(clock.now.timestamp() * 1000) * 1000, "fields": fields}] if fields else []
            place["processID"] = "p1"
            spans.append(place)
            return own

        begun = clock.tick()
        for act in episode.turns:
            span("model.reply", {"kind": "llm", "tokens": rng.randint(10, 900)}, {"text": act.text} if act.text else None)
            for call in act.calls:
                tags = {"kind": "tool", "args": json.dumps(call.args)} | ({"error": True} if call.error else {})
                own = span(call.tool, tags, {"result": call.result})
                if rng.random() < 0.4:
                    span("HTTP POST", {"kind": "client", "http.status_code": rng.choice([200, 200, 502])}, None, own)
        result = {"success": {"eval.result": "pass"}, "failure": {"eval.result": "fail"}}.get(episode.outcome, {})
        span("handle_alert", {"kind": "agent", "alert": episode.task, "alert.id": episode.task_id, **result}, None, "", root, begun)  # fmt: skip
        rng.shuffle(spans)
        processes = {"p1": {"serviceName": "oncall-agent", "tags": []}}
        put(folder / f"{trace[:12]}.json", {"data": [{"traceID": trace, "spans": spans, "processes": processes}], "errors": None})  # fmt: skip
        truths.append(Truth(trace, f"{trace[:12]}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))  # fmt: skip
    put(folder / "services.json", {"data": ["oncall-agent", "gateway"], "total": 2, "errors": None})
    return truths
