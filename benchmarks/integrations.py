"""What the hooks of frameworks see: every step, every field, live and in the file, and whether stop and nudge work.

    python benchmarks/integrations.py                        all frameworks that are installed
    python benchmarks/integrations.py --only langchain openai_agents      these; other rows stay as they are

A scripted model on a loopback port (`examples/model/scripted_model.py`) plays the same scenarios through every
framework. What is true is known from both sides: the script says what the model does, and the requests that the model
received say what its tools returned. A cell compares that with the records of the file that the guard wrote, and the
file's readings with the live ones. Writes benchmarks/results/integrations.json and .md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "examples" / "model"), str(ROOT / "tests" / "support"), str(ROOT / "benchmarks")]

import tiny_monitor
from integration_players import PLAYERS, Player
from other_players import OTHERS
from scripted_model import Reply, calls, says, serve
from telemetry_players import TELEMETRY
from tool_players import TOOLS

from prefixguard.bundle import write_bundle
from prefixguard.integrations import Guard
from prefixguard.runtime import Monitor, load, score
from prefixguard.stepview import StepRecord, load_adapter

#: (role, text) of what a request says that the agent heard: user, and tool
Hear = Callable[[dict[str, Any]], list[tuple[str, str]]]
PLAYERS |= OTHERS | TELEMETRY | TOOLS
OUT = ROOT / "benchmarks" / "results" / "integrations"
TASK = "Where is order A1?"
#: Counters that tell of nothing that went wrong.
HARMLESS = ("events", "readings", "alarms", "late_results")
#: How a nudge begins (`prefixguard.escalate.nudge`).
NUDGED = "Automatic check after step"
FIELDS = ("tool", "arguments", "observation", "action", "result", "status")


@dataclass(frozen=True)
class Scenario:
    """scripts : of the model, by agent. broken : ids of orders whose tool raises. nested : agents that are tools."""

    scripts: dict[str, list[Reply]]
    is_streamed: bool = False
    nested: tuple[str, ...] = ()
    handoff: bool = False


_LOOK = calls(("find", {"id": "A1"}), text="I look.")
SCENARIOS: dict[str, Scenario] = {
    "plain": Scenario({"clerk": [_LOOK, calls(("find", {"id": "A2", "n": 1})), says("It is in Bern.")]}),
    "streaming": Scenario(
        {"clerk": [_LOOK, calls(("find", {"id": "A2", "n": 1})), says("It is in Bern.")]}, is_streamed=True
    ),
    "error": Scenario({"clerk": [_LOOK, calls(("find", {"id": "BROKEN"})), says("There is none.")]}),
    "parallel": Scenario(
        {"clerk": [calls(*(("find", {"id": f"A{n}"}) for n in range(4)), text="All at once."), says("Done, all four.")]}
    ),
    "nested": Scenario(
        {
            "clerk": [_LOOK, calls(("research", {"input": "deep"})), says("It is in Bern.")],
            "researcher": [calls(("find", {"id": "R1"})), says("It was moved.")],
        },
        nested=("researcher",),
    ),
    "nested, parallel": Scenario(
        {
            "clerk": [
                calls(("research", {"input": "one"}), ("research", {"input": "two"})),
                says("Both said so."),
            ],
            "researcher": [calls(("find", {"id": "R1"})), says("It was moved.")],
        },
        nested=("researcher",),
    ),
    "handoff": Scenario(
        {
            "clerk": [_LOOK, calls(("transfer_to_closer", {}))],
            "closer": [says(""), says(""), says("It is in Bern.")],
        },
        handoff=True,
    ),
}
#: A run that fails again and again, for stop and nudge.
LOOP = Scenario({"clerk": [*(calls(("find", {"id": "BROKEN"})) for _ in range(8)), says("I give up.")]})


@dataclass
class Cell:
    """true, recorded, live : steps. right : shares of the fields, in [0, 1]. same : live and file readings."""

    true: int = 0
    recorded: int = 0
    live: int = 0
    right: dict[str, float] = field(default_factory=dict)
    same: bool = False
    counters: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def truth_of(scenario: Scenario, requests: Sequence[dict[str, Any]], hear: Hear) -> list[list[tuple[str, ...]]]:
    """The steps of every agent, `FIELDS` of each: from the script, and results as the model was told them."""
    if scenario.handoff:  # one conversation, in which the second agent goes on where the first one left
        first, second = scenario.scripts.values()
        return [_steps([*first, *second[len(first) :]], hear(requests[-1]))]
    return [
        _steps(script, heard)
        for agent, script in scenario.scripts.items()
        for heard in _conversations(agent, requests, hear)
    ]


def _steps(script: Sequence[Reply], heard: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    rest = list(heard)
    steps: list[tuple[str, ...]] = []
    for reply in script:
        seen = ""
        while rest and rest[0][0] == "user":
            seen += f"{chr(10) if seen else ''}{rest.pop(0)[1]}"
        for k, (tool, arguments) in enumerate(reply["calls"]):
            is_text = isinstance(arguments, str)  # code, say
            spelled = arguments if is_text else json.dumps(arguments, sort_keys=True, separators=(",", ":"))
            status = "error" if "BROKEN" in spelled else "ok"
            if (text := reply.get("result")) is None:  # what no model is told any more
                text = arguments["answer"] if tool in ("final_answer", "submit") else rest.pop(0)[1]
            steps.append((tool, spelled, "" if k else seen, "" if k else reply["text"], text, status))
        if not reply["calls"]:
            steps.append(("respond", "", seen, reply["text"], "", "ok"))
    return steps


def _conversations(agent: str, requests: Sequence[dict[str, Any]], hear: Hear) -> list[list[tuple[str, str]]]:
    """Of every conversation of this agent, told apart by what it was asked, what it had heard at its last request."""
    last: dict[str, list[tuple[str, str]]] = {}
    for body in requests:
        if any(role == "system" and agent in text for role, text in _parts(body)):
            heard = hear(body)
            last[heard[0][1]] = heard
    return list(last.values())


def _heard(body: dict[str, Any]) -> list[tuple[str, str]]:
    """(role, text) of the user's messages and the tools' results."""
    return [(role, text) for role, text in _parts(body) if role != "system"]


def _parts(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "system", str(body.get("instructions") or body.get("system") or "")
    given = body.get("messages") or body.get("input") or []
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        role = str(item.get("role") or "")
        if item.get("type") == "function_call_output":
            yield "tool", _text(item.get("output"))
        elif role in ("system", "developer", "user", "tool"):
            yield "system" if role == "developer" else role, _text(item.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(str(part.get("text", "")) for part in content)


def cell_of(player: Player, scenario: Scenario, monitor: Monitor) -> Cell:
    """Play one scenario through one framework, and compare."""
    with tempfile.TemporaryDirectory() as folder, _served(scenario, player) as (url, requests):
        live: dict[str, list[Any]] = {}
        guard = Guard(monitor, record=folder)
        feed = guard._feed

        def keep(event: Any) -> Any:
            readings = feed(event)
            live.setdefault(event.agent_path, []).extend(readings)
            return readings

        guard._feed = keep  # type: ignore[method-assign]
        player.play(guard, url, scenario)
        files = {one.run.run_id: one for one in score(monitor, folder)}
        true = truth_of(scenario, requests, player.heard or _heard)
        recorded = [list(one.run.records) for one in files.values()]
        cell = Cell(sum(map(len, true)), sum(map(len, recorded)), sum(map(len, live.values())))
        cell.counters = {k: n for k, n in guard.counters.items() if k not in HARMLESS}
        _compare(cell, true, recorded)
        file_readings = sorted([[r.to_json() for r in one.readings] for one in files.values()], key=str)
        cell.same = file_readings == sorted([[r.to_json() for r in one] for one in live.values()], key=str)
        return cell


def _compare(cell: Cell, true: list[list[tuple[str, ...]]], recorded: list[list[StepRecord]]) -> None:
    """Every agent's steps against the recorded ones that are nearest."""
    rest = [[tuple(str(getattr(s, name)) for name in FIELDS) for s in steps] for steps in recorded]
    right = dict.fromkeys(FIELDS, 0)
    for steps in true:
        near = max(rest, key=lambda other: _alike(steps, other), default=[])
        if near in rest:
            rest.remove(near)
        for n, step in enumerate(steps):
            other = near[n] if n < len(near) else ("",) * len(FIELDS)
            for name, a, b in zip(FIELDS, step, other, strict=True):
                right[name] += a == b
                if a != b:
                    cell.wrong.append(f"step {n + 1}, {name}: {b[:80]!r}, and is {a[:80]!r}")
    cell.right = {name: n / cell.true if cell.true else 0.0 for name, n in right.items()}


def _alike(steps: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> int:
    return sum(a == b for one, two in zip(steps, other, strict=False) for a, b in zip(one, two, strict=True))


def acts(player: Player, monitor: Monitor, on_alarm: str) -> bool:
    """Does `stop` end the loop early, does a `nudge` reach the model?"""
    with tempfile.TemporaryDirectory() as folder, _served(player.adapted(LOOP), player) as (url, requests):
        guard = Guard(monitor, on_alarm=on_alarm, record=folder)  # type: ignore[arg-type]
        try:
            player.play(guard, url, LOOP)
        except Exception as exc:
            if not any(word in repr(exc) for word in ("AgentStopped", "stopped at", "interrupted")):
                raise
        if on_alarm == "stop":
            return len(requests) < len(LOOP.scripts["clerk"])
        return any(NUDGED in text for body in requests for _, text in _parts(body))


@contextmanager
def _served(scenario: Scenario, player: Player) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    requests: list[dict[str, Any]] = []
    with (player.serve or serve)(scenario.scripts, requests.append, by_requests=player.by_requests) as url:
        yield url, requests


def measure(names: Sequence[str], report: Callable[[str], None] = print) -> dict[str, Any]:
    """All cells of these players."""
    logging.getLogger("prefixguard").setLevel(logging.ERROR)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "m", tiny_monitor.parts(adapter=load_adapter("events").to_bytes()))
        monitor = load(Path(folder) / "m")
        for name in names:
            player = PLAYERS[name]
            versions = {package: importlib.metadata.version(package) for package in player.packages}
            cells = {}
            for scenario_name, scenario in SCENARIOS.items():
                why = player.unobservable.get(scenario_name)
                if why is not None:
                    cells[scenario_name] = {"not": why}
                    continue
                cell = cell_of(player, player.adapted(scenario), monitor)
                cells[scenario_name] = vars(cell)
                seen = f"{cell.recorded}/{cell.true} steps, {_share(cell.right)}"
                report(f"{name}, {scenario_name}: {seen}, live as file: {cell.same} {cell.wrong[:2]}")
            can = {action: player.can.get(action) or acts(player, monitor, action) for action in ("stop", "nudge")}
            report(f"{name}: {can}")
            found[name] = {"versions": versions, "cells": cells, "can": can, "lines": player.lines}
    return found


def _share(right: dict[str, float]) -> str:
    return f"{100 * sum(right.values()) / max(len(right), 1):.0f} %"


def table(found: dict[str, Any]) -> str:
    """The measured cells in Markdown."""
    lines = [
        "# Hooks of frameworks: what they see",
        "",
        "Each cell: recorded of true steps; fields right (tool, arguments, observation, action, result, status); `=`",
        "where the readings of the file are those that came live. A dash: the framework has none, or does not show it.",
        "",
        "| framework | version | " + " | ".join(SCENARIOS) + " | stop | nudge | lines |",
        "| --- | --- |" + " --- |" * (len(SCENARIOS) + 3),
    ]
    for name, one in found.items():
        row = [name.replace("_", " "), ", ".join(f"{k} {v}" for k, v in one["versions"].items())]
        for scenario in SCENARIOS:
            cell = one["cells"][scenario]
            row.append(
                f"– ({cell['not']})" if "not" in cell
                else f"{cell['recorded']}/{cell['true']}, {_share(cell['right'])}{' =' if cell['same'] else ' ≠'}"
            )  # fmt: skip
        row += ["yes" if v is True else "no" if v is False else str(v) for v in one["can"].values()]
        lines.append("| " + " | ".join([*row, str(one["lines"])]) + " |")
    return "\n".join(lines) + "\n"


def beside(path: Path, found: dict[str, Any]) -> dict[str, Any]:
    """These rows, and those of the file that were not measured now, in the order of the players."""
    before = json.loads(path.read_text()) if path.exists() else {}
    rows = before | found
    return {name: rows[name] for name in PLAYERS if name in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PLAYERS), default=list(PLAYERS))
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    names = [name for name in given.only if all(map(importlib.util.find_spec, PLAYERS[name].modules))]
    for name in set(given.only) - set(names):
        print(f"{name}: not installed")
    found = beside(given.out.with_suffix(".json"), measure(names))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    given.out.with_suffix(".md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
