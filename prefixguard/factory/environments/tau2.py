"""tau2-bench, retail and airline: real tasks, whose recorded runs can be executed again without a model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, ReplayError
from prefixguard.factory.environments.remote import RemoteEnvironment, shipped_world
from prefixguard.factory.labelled import LabelledRun
from prefixguard.factory.skips import Skips

DOMAINS = ("retail", "airline")
#: The environment variable that names the interpreter which has tau2.
PYTHON = "PREFIXGUARD_TAU2_PYTHON"
_INSTALL = (
    "It needs tau2-bench in a Python 3.12 or 3.13 of its own (the package tau2 on PyPI is another one): git clone "
    "https://github.com/sierra-research/tau2-bench, then pip install -e tau2-bench there, and name that interpreter "
    f"with --python or in {PYTHON}."
)
#: What is read of one file of results.
_LARGEST = 256 << 20


def tau2(domain: str, python: str = "") -> RemoteEnvironment:
    """tau2-bench in a process of its own. python: the interpreter that has it; "": that of `PREFIXGUARD_TAU2_PYTHON`.

    Its own agent makes the writes of the task's reference that were not made yet: so the value of an action is whether
    the goal can still be reached after it, and the step that is found is a point of no return, not a first thought.
    Raises ConfigError without an interpreter, ReplayError where tau2 does not begin in it.
    """
    if domain not in DOMAINS:
        raise ConfigError(f"tau2-bench has no domain {domain!r} here; there are: {', '.join(DOMAINS)}")
    return shipped_world(f"tau2-{domain}", "tau2_world", domain, python=python, variable=PYTHON, install=_INSTALL)


def recorded_runs(path: str | os.PathLike[str], world: RemoteEnvironment, skips: Skips) -> Iterator[LabelledRun]:
    """Runs of results files of tau2-bench (a file or a folder of .json) in the domain of `world`, without labels.

    Left out and counted: runs of other domains, runs without a reward, runs whose user calls tools, and files that are
    no results. A run is held against the reference that it was judged by, as its own record says: that of its task in
    tau2 may be another now, and there are files whose list of tasks is not that of their runs.
    """
    path = Path(path)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files or not path.exists():
        raise ReplayError(f"{path}: no results of tau2-bench, .json files, are there.")
    for file in files:
        try:
            if file.stat().st_size > _LARGEST:
                raise ValueError("too large")
            results = json.loads(file.read_bytes())
            domain = results["info"]["environment_info"]["domain_name"]
            runs, agent = results["simulations"], str(results["info"].get("agent_info", {}).get("llm") or "")
            references = {str(task["id"]): _of_task(task) for task in results["tasks"]}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            skips.add("no results of tau2-bench", str(file))
            continue
        name = "-".join((file.relative_to(path) if path.is_dir() else Path(file.name)).with_suffix("").parts)
        for number, run in enumerate(runs):
            where = f"{file.name}:{number + 1}"
            if f"tau2-{domain}" != world.name:
                skips.add("a run of another domain", where)
                continue
            try:
                yield _labelled(run, f"{name}-{number + 1}", agent, world, references)
            except (ValueError, KeyError, TypeError, AttributeError) as exc:
                skips.add(str(exc) if isinstance(exc, _Unusable) else "a run that is not in the form of tau2", where)


class _Unusable(ValueError):
    """Why a run is left out."""


def _of_task(task: dict[str, Any]) -> list[list[Any]]:
    return [[one["name"], one["arguments"]] for one in (task.get("evaluation_criteria") or {}).get("actions") or ()]


def _reference(reward: dict[str, Any], of_task: list[list[Any]]) -> list[list[Any]]:
    """What the run was judged by; where it does not say, what its file says of its task."""
    checks = reward.get("action_checks")
    return of_task if checks is None else [[one["action"]["name"], one["action"]["arguments"]] for one in checks]


def _labelled(
    run: dict[str, Any], name: str, agent: str, world: RemoteEnvironment, references: dict[str, list[list[Any]]]
) -> LabelledRun:
    judged = run.get("reward_info") or {}
    reward = judged.get("reward")
    if not isinstance(reward, int | float):
        raise _Unusable("a run without a reward")
    messages = list[dict[str, Any]]()
    for message in run["messages"]:
        role, calls = message["role"], message.get("tool_calls") or ()
        if role == "user" and calls:
            raise _Unusable("a run whose user calls tools")
        said: dict[str, Any] = {"role": role, "content": message.get("content")}
        if role == "tool":
            said["tool_call_id"] = message["id"]
        if calls:
            said["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
                }
                for call in calls
            ]
        messages.append(said)
    task = str(run["task_id"])
    outcome = "success" if reward >= 1 else "failure"
    fields = {"run_id": name, "task_id": task, "agent": agent, "outcome": outcome, "messages": messages}
    named = json.dumps({"id": task, "reference": _reference(judged, references[task])}, sort_keys=True)
    made = {"environment": world.spec, "task": named, "seed": "", "agent": ""}
    family = f"{world.name}:{task}"
    return LabelledRun(fields, "natural", family=family, provenance=made)
