"""Small runs written by hand, and offline inference over them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prefixguard.induce import Proposal, open_samples
from prefixguard.induce.proposal import Choice, take_first
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import Adapter, StepRecord, read_runs
from prefixguard.trace import Run

TOWNS = ("Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Cork", "Nice", "Graz")


def folder(root: Path, files: Mapping[str, Any]) -> Path:
    """The files in a folder of their own. A value that is no text and no bytes is written as JSON; for `.jsonl` a list
    is written line by line."""
    for name, content in files.items():
        path = root / "samples" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(line) + "\n" for line in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return root / "samples"


def propose(
    root: Path,
    files: Mapping[str, Any],
    hints: Mapping[str, str] | None = None,
    ask: Callable[[Choice], int] = take_first,
) -> tuple[Proposal, list[Run[StepRecord]]]:
    """What inference makes of the files, and how it reads them."""
    samples = folder(root, files)
    proposal = propose_by_search(open_samples(samples), name="mine", hints=hints, ask=ask)
    return proposal, list(read_runs(samples, Adapter(proposal.spec)))


def steps(run: Run[StepRecord]) -> list[tuple[str, str, str]]:
    """Tool, arguments and result of the records."""
    return [(one.tool, one.arguments, one.result) for one in run.records]


def chats(n: int = 6, calls: int = 3, **more: Any) -> list[dict[str, Any]]:
    """Runs as chat histories with calls that carry ids."""
    return [_chat(i, calls, more) for i in range(n)]


def _chat(i: int, calls: int, more: Mapping[str, Any]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You book trains and do as the traveller says."},
        {"role": "user", "content": f"A seat to {TOWNS[i % 8]} on day {i}, please."},
    ]
    for j in range(calls):
        name, arguments = ("book", {"train": i + j, "seat": f"{j}a"}) if j % 2 else ("search", {"to": TOWNS[i % 8]})
        call = {"id": f"c{i}_{j}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": f"Let me {name} as number {j} of {i}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}_{j}", "content": f"{name} gave {i * 10 + j} back"})
    messages.append({"role": "assistant", "content": f"All is done for traveller {i}."})
    return {"run_id": f"run-{i}", "task_id": f"trip-{i % 3}", "reward": float(i % 2), "messages": messages, **more}


def wanted(i: int, calls: int = 3) -> list[tuple[str, str, str]]:
    """What the records of `chats()[i]` hold."""
    found = []
    for j in range(calls):
        name, given = (
            ("book", f'{{"seat":"{j}a","train":{i + j}}}') if j % 2 else ("search", f'{{"to":"{TOWNS[i % 8]}"}}')
        )
        found.append((name, given, f"{name} gave {i * 10 + j} back"))
    return [*found, ("respond", "", "")]
