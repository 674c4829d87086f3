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
    "intercode": "intercode", "react_log": "reflexion", "whoandwhen": "whoandwhen",
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


_LIVE: dict[str, Callable[[Path], Iterator[Live]]] = {
    "openai_chat": _openai_chat, "tau_bench": _tau_bench, "tau2": _tau2,
    "sweagent": _sweagent, "mini_swe_agent": _mini_swe_agent, "terminal_log": _terminal_log,
    "webshop_react": _webshop_react, "online_mind2web": _online_mind2web,
    "intercode": _intercode, "react_log": _react_log, "whoandwhen": _whoandwhen,
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
