"""The live form of every format, written by hand: plain Python over the raw files, nothing of the interpreter."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.stepview.inspect_logs import conversations

Live = tuple[dict[str, Any], list[Any]]
LiveForm = Callable[[Path], Iterable[Live]]

#: Folder of the real set that each adapter reads.
REAL_SETS = {
    "tau_bench": "tau_bench", "tau2": "tau2", "sweagent": "sweagent", "mini_swe_agent": "minisweagent",
    "terminal_log": "terminal_bench", "webshop_react": "webshop_react", "online_mind2web": "mind2web_abp",
    "intercode": "intercode", "react_log": "reflexion", "whoandwhen": "whoandwhen", "whoandwhen_turns": "whoandwhen",
    "sentinel": "sentinel",
}  # fmt: skip


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _documents(root: Path, *patterns: str) -> Iterator[Any]:
    """JSON documents, and the lines of JSON lines."""
    for pattern in patterns:
        for path in sorted(root.rglob(pattern)):
            yield from _lines(path) if path.suffix == ".jsonl" else [json.loads(path.read_text(encoding="utf-8"))]


def _each(pattern: str, lives: Callable[[Any], Iterable[Live]]) -> LiveForm:
    """What every document holds."""
    return lambda root: (live for document in _documents(root, pattern) for live in lives(document))


def _run_objects(*names: str) -> LiveForm:
    """JSON files with a run, JSONL files with a run a line; the events are under the first of these names."""

    def lives(root: Path) -> Iterator[Live]:
        for run in _documents(root, "*.json", "*.jsonl"):
            held = [run, *(run[name] for name in ("values", "outputs") if name in run)]
            yield {}, next(one[name] for name in names for one in held if name in one)

    return lives


def _rows_of_tables(live: Callable[[Any], Live]) -> LiveForm:
    def lives(root: Path) -> Iterator[Live]:
        for path in sorted({*root.rglob("*.json"), *root.rglob("*.jsonl")}):
            rows = _lines(path) if path.suffix == ".jsonl" else json.loads(path.read_text(encoding="utf-8"))
            yield from map(live, rows)

    return lives


def _apart(events: Iterable[Any], key: Callable[[Any], Any]) -> Iterator[Live]:
    """Events that several runs wrote to one place, apart."""
    found: dict[Any, list[Any]] = {}
    for event in events:
        found.setdefault(key(event), []).append(event)
    for of_run in found.values():
        yield {}, of_run


def _files_of_lines(key: Callable[[Any], Any] = lambda line: None) -> LiveForm:
    """A file of events; those that differ in the key are of different runs."""
    return lambda root: (live for path in sorted(root.rglob("*.jsonl")) for live in _apart(_lines(path), key))


def _chunks(text: str) -> list[str]:
    """The text cut at places that have nothing to do with what it says."""
    cuts = [0]
    while cuts[-1] < len(text):
        cuts.append(cuts[-1] + 1 + (len(cuts) * 7919) % 331)
    return [text[a:b] for a, b in itertools.pairwise(cuts)]


def _rows(**columns: list[Any] | None) -> list[dict[str, Any]]:
    present = {name: column for name, column in columns.items() if column is not None}
    length = max(map(len, present.values()))
    return [{name: column[i] for name, column in present.items() if i < len(column)} for i in range(length)]


def _openai_chat(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.json", "*.jsonl"):
        is_array_of_runs = isinstance(document, list) and "role" not in document[0]
        for run in document if is_array_of_runs else [document]:
            if isinstance(run, list):
                yield {}, run
            else:
                yield {}, next(run[name] for name in ("messages", "history", "conversation") if name in run)


def _terminal_log(root: Path) -> Iterator[Live]:
    for path in sorted(root.rglob("results.json")):
        log = path.parent / "sessions" / "agent.log"
        text = log.read_bytes().decode("utf-8", "replace") if log.exists() else ""
        yield {"instruction": json.loads(path.read_text(encoding="utf-8"))["instruction"]}, _chunks(text)


def _webshop_react(document: Any) -> Iterator[Live]:
    outputs = [output for cell in document["cells"] for output in cell.get("outputs", [])]
    printed = "".join(part for output in outputs for part in output["text"])
    for run in re.split(r"(?m)^-{17}\n\d+\n", printed)[1:]:
        yield {}, _chunks(run)


def _intercode(document: Any) -> Iterator[Live]:
    for run in document.values():
        turns = run["turn_history"]
        rows = _rows(action=turns["actions"], observation=turns["observations"], thought=turns.get("thoughts"))
        yield {"query": run["query"]}, rows


def _react_log(root: Path) -> Iterator[Live]:
    for path in sorted(root.rglob("*.txt")):
        for run in re.split(r"(?m)^Question: ", path.read_text(encoding="utf-8"))[1:]:
            question, _, rest = re.split(r"(?m)^-+ BEGIN |^#{20,}$", run)[0].partition("\n")
            yield {"question": question}, _chunks(rest)


def _otlp(root: Path) -> Iterator[Live]:
    """Spans in the order in which they were exported, a trace for itself."""
    exports = _documents(root, "*.json", "*.jsonl")
    scopes = (scope for export in exports for resource in export["resourceSpans"] for scope in resource["scopeSpans"])
    return _apart((span for scope in scopes for span in scope["spans"]), lambda span: span["traceId"])


_messages = _run_objects("messages")
_history = _each("*.json", lambda run: [({}, run["history"])])
_LIVE: dict[str, LiveForm] = {
    "openai_chat": _openai_chat,
    "tau_bench": _each("*.json", lambda runs: (({}, run["traj"]) for run in runs)),
    "tau2": _each("*.json", lambda found: (({}, run["messages"]) for run in found["simulations"])),
    "sweagent": _each("*.traj", lambda run: [({"history": run["history"][:3]}, run["trajectory"])]),
    "mini_swe_agent": _each("*.traj.json", lambda run: [({}, run["messages"])]),
    "terminal_log": _terminal_log,
    "webshop_react": _each("*.ipynb", _webshop_react),
    "online_mind2web": _each(
        "result.json",
        lambda run: [({"task": run["task"]}, _rows(action=run["action_history"], thought=run["thoughts"]))],
    ),
    "intercode": _each("*.json", _intercode),
    "react_log": _react_log,
    "whoandwhen": _history,
    "whoandwhen_turns": _history,
    "a2a": _each("*.json", lambda document: [({}, document.get("result", document)["history"])]),
    "anthropic_messages": _messages,
    "atif": _each("trajectory.json", lambda run: [({}, run["steps"])]),
    "autogen": _messages,
    "claude_code": _files_of_lines(lambda line: line.get("agentId")),
    "inspect_log": _each(
        "*.json", lambda log: (({}, own) for sample in log["samples"] for _, own in conversations(sample))
    ),
    "claude_agent_sdk": _files_of_lines(lambda line: line.get("parent_tool_use_id")),
    "langgraph": _messages,
    "langgraph_stream": _files_of_lines(lambda line: tuple(line[0]) if isinstance(line, list) else ()),
    "scores": _files_of_lines(lambda line: line["run"]),
    "events": _files_of_lines(lambda line: (line["run"], line["agent_path"])),
    "mcp": _files_of_lines(),
    "openai_agents": _files_of_lines(lambda line: line.get("trace_id") or line["id"]),
    "openai_responses": _run_objects("items", "output"),
    "openhands": _run_objects("history"),
    "openinference": _otlp,
    "otel_genai": _otlp,
    "otel_genai_old": lambda root: (
        (header, [e for span in spans for e in span["events"]]) for header, spans in _otlp(root)
    ),
    "pydantic_ai": _messages,
    "sentinel": _files_of_lines(),
    "smolagents": _run_objects("steps"),
    "aftraj": _rows_of_tables(lambda row: ({"task": row["task"]}, row["turns"])),
    "tracertraj": _rows_of_tables(lambda row: ({"question": row["question"]}, row["history"])),
    "aegis": _rows_of_tables(
        lambda row: ({"input": {"query": row["input"]["query"]}}, row["input"]["conversation_history"])
    ),
    "mast": _rows_of_tables(lambda row: ({}, _chunks(row["trace"]["trajectory"]))),
}


@pytest.fixture(scope="session")
def live_runs() -> dict[str, LiveForm]:
    """For each adapter, a function from a folder of raw runs to the header and the live events of each run."""
    return _LIVE


@pytest.fixture(scope="session")
def real_set() -> Callable[[str], Path]:
    """The folder of the real runs that an adapter reads; skips where they are not unpacked."""
    root = Path(os.environ.get("PREFIXGUARD_TRACES") or Path(__file__).parents[2] / ".traces")

    def folder(adapter: str) -> Path:
        path = root / REAL_SETS[adapter]
        if not path.is_dir():
            pytest.skip(f"no real runs at {path}: unpack them, or set PREFIXGUARD_TRACES")
        return path

    return folder
