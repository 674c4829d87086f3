"""The live form of every format, written by hand: plain Python over the raw files, nothing of the interpreter."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Live = tuple[dict[str, Any], list[Any]]

#: Folder of the real set that each adapter reads.
REAL_SETS = {
    "tau_bench": "tau_bench", "tau2": "tau2", "sweagent": "sweagent", "mini_swe_agent": "minisweagent",
    "terminal_log": "terminal_bench", "webshop_react": "webshop_react", "online_mind2web": "mind2web_abp",
    "intercode": "intercode", "react_log": "reflexion", "whoandwhen": "whoandwhen", "whoandwhen_turns": "whoandwhen",
}  # fmt: skip


def _documents(root: Path, pattern: str) -> Iterator[Any]:
    for path in sorted(root.rglob(pattern)):
        yield json.loads(path.read_text(encoding="utf-8"))


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
    documents = [*_documents(root, "*.json")]
    for path in sorted(root.rglob("*.jsonl")):
        documents.extend(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    for document in documents:
        is_array_of_runs = isinstance(document, list) and "role" not in document[0]
        for run in document if is_array_of_runs else [document]:
            if isinstance(run, list):
                yield {}, run
            else:
                yield {}, next(run[name] for name in ("messages", "history", "conversation") if name in run)


def _tau_bench(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.json"):
        for run in document:
            yield {}, run["traj"]


def _tau2(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.json"):
        for run in document["simulations"]:
            yield {}, run["messages"]


def _sweagent(root: Path) -> Iterator[Live]:
    for run in _documents(root, "*.traj"):
        yield {"history": run["history"][:3]}, run["trajectory"]


def _mini_swe_agent(root: Path) -> Iterator[Live]:
    for run in _documents(root, "*.traj.json"):
        yield {}, run["messages"]


def _terminal_log(root: Path) -> Iterator[Live]:
    for path in sorted(root.rglob("results.json")):
        log = path.parent / "sessions" / "agent.log"
        text = log.read_bytes().decode("utf-8", "replace") if log.exists() else ""
        yield {"instruction": json.loads(path.read_text(encoding="utf-8"))["instruction"]}, _chunks(text)


def _webshop_react(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.ipynb"):
        printed = "".join(
            part for cell in document["cells"] for output in cell.get("outputs", []) for part in output["text"]
        )
        for run in re.split(r"(?m)^-{17}\n\d+\n", printed)[1:]:
            yield {}, _chunks(run)


def _online_mind2web(root: Path) -> Iterator[Live]:
    for run in _documents(root, "result.json"):
        yield {"task": run["task"]}, _rows(action=run["action_history"], thought=run["thoughts"])


def _intercode(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.json"):
        for run in document.values():
            turns = run["turn_history"]
            yield (
                {"query": run["query"]},
                _rows(action=turns["actions"], observation=turns["observations"], thought=turns.get("thoughts")),
            )


def _react_log(root: Path) -> Iterator[Live]:
    for path in sorted(root.rglob("*.txt")):
        for run in re.split(r"(?m)^Question: ", path.read_text(encoding="utf-8"))[1:]:
            question, _, rest = re.split(r"(?m)^-+ BEGIN |^#{20,}$", run)[0].partition("\n")
            yield {"question": question}, _chunks(rest)


def _whoandwhen(root: Path) -> Iterator[Live]:
    for run in _documents(root, "*.json"):
        yield {}, run["history"]


def _rows_of_tables(root: Path) -> Iterator[dict[str, Any]]:
    documents = {path: json.loads(path.read_text(encoding="utf-8")) for path in root.rglob("*.json")}
    documents |= {path: _lines(path) for path in root.rglob("*.jsonl")}
    for path in sorted(documents):
        yield from documents[path]


def _aftraj(root: Path) -> Iterator[Live]:
    for row in _rows_of_tables(root):
        yield {"task": row["task"]}, row["turns"]


def _tracertraj(root: Path) -> Iterator[Live]:
    for row in _rows_of_tables(root):
        yield {"question": row["question"]}, row["history"]


def _aegis(root: Path) -> Iterator[Live]:
    for row in _rows_of_tables(root):
        yield {"input": {"query": row["input"]["query"]}}, row["input"]["conversation_history"]


def _mast(root: Path) -> Iterator[Live]:
    for row in _rows_of_tables(root):
        yield {}, _chunks(row["trace"]["trajectory"])


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _files_of_lines(root: Path) -> Iterator[list[Any]]:
    for path in sorted(root.rglob("*.jsonl")):
        yield _lines(path)


def _run_objects(root: Path, *lists: str) -> Iterator[Live]:
    """JSON files with a run, JSONL files with a run a line; the events are under the first of these names."""
    runs = [*_documents(root, "*.json"), *itertools.chain.from_iterable(_files_of_lines(root))]
    for run in runs:
        held = [run, *(run[name] for name in ("values", "outputs") if name in run)]
        yield {}, next(one[name] for name in lists for one in held if name in one)


def _messages(root: Path) -> Iterator[Live]:
    yield from _run_objects(root, "messages")


def _a2a(root: Path) -> Iterator[Live]:
    for document in _documents(root, "*.json"):
        yield {}, document.get("result", document)["history"]


def _atif(root: Path) -> Iterator[Live]:
    for run in _documents(root, "trajectory.json"):
        yield {}, run["steps"]


def _apart(lines: list[Any], key: Callable[[Any], Any]) -> Iterator[Live]:
    """Lines that several runs wrote to one place, apart."""
    found: dict[Any, list[Any]] = {}
    for line in lines:
        found.setdefault(key(line), []).append(line)
    for events in found.values():
        yield {}, events


def _claude_code(root: Path) -> Iterator[Live]:
    for lines in _files_of_lines(root):
        yield from _apart(lines, lambda line: line.get("agentId"))


def _openai_agents(root: Path) -> Iterator[Live]:
    for lines in _files_of_lines(root):
        yield from _apart(lines, lambda line: line.get("trace_id") or line["id"])


def _openai_responses(root: Path) -> Iterator[Live]:
    yield from _run_objects(root, "items", "output")


def _mcp(root: Path) -> Iterator[Live]:
    for lines in _files_of_lines(root):
        yield {}, lines


def _smolagents(root: Path) -> Iterator[Live]:
    yield from _run_objects(root, "steps")


def _inspect_log(root: Path) -> Iterator[Live]:
    for log in _documents(root, "*.json"):
        for sample in log["samples"]:
            yield {}, sample["messages"]


def _openhands(root: Path) -> Iterator[Live]:
    yield from _run_objects(root, "history")


def _spans(export: Any) -> list[Any]:
    return [s for resource in export["resourceSpans"] for scope in resource["scopeSpans"] for s in scope["spans"]]


def _otlp(root: Path) -> Iterator[Live]:
    """Spans in the order in which they were exported, a trace for itself."""
    exports = [*_documents(root, "*.json"), *itertools.chain.from_iterable(_files_of_lines(root))]
    yield from _apart([span for export in exports for span in _spans(export)], lambda span: span["traceId"])


def _span_events(root: Path) -> Iterator[Live]:
    for header, spans in _otlp(root):
        yield header, [event for span in spans for event in span["events"]]


_LIVE: dict[str, Callable[[Path], Iterator[Live]]] = {
    "openai_chat": _openai_chat, "tau_bench": _tau_bench, "tau2": _tau2,
    "sweagent": _sweagent, "mini_swe_agent": _mini_swe_agent, "terminal_log": _terminal_log,
    "webshop_react": _webshop_react, "online_mind2web": _online_mind2web,
    "intercode": _intercode, "react_log": _react_log, "whoandwhen": _whoandwhen,
    "a2a": _a2a, "anthropic_messages": _messages, "atif": _atif, "autogen": _messages,
    "claude_code": _claude_code, "inspect_log": _inspect_log, "langgraph": _messages, "mcp": _mcp,
    "openai_agents": _openai_agents, "openai_responses": _openai_responses, "openhands": _openhands,
    "openinference": _otlp, "otel_genai": _otlp, "otel_genai_old": _span_events, "smolagents": _smolagents,
    "whoandwhen_turns": _whoandwhen, "aftraj": _aftraj, "tracertraj": _tracertraj, "aegis": _aegis, "mast": _mast,
}  # fmt: skip


@pytest.fixture(scope="session")
def live_runs() -> dict[str, Callable[[Path], Iterator[Live]]]:
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
