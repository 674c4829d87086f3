"""What names say of a spec: whether what its container takes for a run has an id, a task or an outcome of its own, and
whether its rules read kinds of events and fields as what they are called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.lexicon import Meaning, affinity, path_names
from prefixguard.stepview import Adapter

_WANTED = (Meaning.RUN_ID, Meaning.TASK_ID, Meaning.OUTCOME, Meaning.TASK_TEXT)


def named_runs(adapter: Adapter, evidence: Evidence) -> float:
    """How much the names of the runs' own fields, or of what groups them, speak for runs, in [0, 1]."""
    container = json.loads(adapter.to_bytes())["container"]
    group = container.get("group_by") if isinstance(container, dict) else None
    if group is not None:
        group = group.get("first", [""])[0] if isinstance(group, dict) else group
        return affinity(group, Meaning.RUN_ID) if group else 0.0
    runs = [run.found.run for run in evidence.runs(adapter)]
    keys = Counter(name for run in runs for name in _own_names(run, 0))
    often = [name for name, n in keys.items() if n >= 0.5 * len(runs)]
    return max((affinity(name, meaning) for name in often for meaning in _WANTED), default=0.0)


def _own_names(value: Any, depth: int) -> Iterator[str]:
    for key, item in islice(value.items(), 60) if isinstance(value, dict) else ():
        if isinstance(item, dict):
            if depth < 2 and not str(key).isdecimal():
                yield from _own_names(item, depth + 1)
        elif not isinstance(item, list):
            yield str(key)


#: What a kind of this name may be found to do.
_SPEAKS = {"say", "call", "step", "skip"}
_MAY = {
    Part.SAY: _SPEAKS, Part.THOUGHT: _SPEAKS, Part.STEP: _SPEAKS, Part.CALL: {*_SPEAKS, "update"},
    Part.USER: {"observe", "result", "skip"}, Part.RESULT: {"result", "observe", "step", "skip"},
    Part.SYSTEM: {"observe", "skip"}, Part.NOISE: {"observe", "say", "skip"},
}  # fmt: skip
#: Meanings that the name of a field has, for it and against it.
_HOLDS = {
    "tool": (Meaning.TOOL, Meaning.ROLE), "arguments": (Meaning.ARGUMENTS, Meaning.RESULT),
    "action": (Meaning.THOUGHT, Meaning.TOOL), "result": (Meaning.RESULT, Meaning.THOUGHT),
    "observation": (Meaning.RESULT, Meaning.THOUGHT),
}  # fmt: skip
#: Names of fields that say less than this say nothing.
_CLEAR = 0.6


def named_parts(spec: Mapping[str, Any]) -> float:
    """How much names of kinds of events and of fields say that the rules read them as what they are not, in [-1, 0];
    0 where no name does."""
    said: list[float] = []
    for rule in spec["rules"]:
        if any(path.startswith("$") for path in rule.get("when", {})):
            continue  # in such runs the sides are turned
        brought = "each" in rule and rule["emit"] == "result"  # along with the call, in its event
        for path, test in ({} if brought else rule.get("when", {})).items():
            names = path_names(path) if test == {"present": True} else (test,) if isinstance(test, str) else ()
            part = part_of(names[-1]) if names else None
            if part is not None and part[1] > _CLEAR:
                said.append(-part[1] * (rule["emit"] not in _MAY[part[0]]))
        for name, (good, bad) in _HOLDS.items():
            for path in (text for text in _texts(rule.get(name)) if text[:2] in ("@.", "^.", "$.")):
                mine, other = affinity(path, good), affinity(path, bad)
                if max(mine, other) >= _CLEAR and mine != other:
                    said.append(-other * (other > mine))
    return sum(said) / len(said) if said else 0.0


#: Agents of one set at most, and of their events that must say who speaks.
MOST_AGENTS, LEAST_NAMED = 40, 0.5


def with_agents(spec: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    """The spec whose rules read the name of who speaks, where a field of events is called so and has a few values."""
    adapter = Adapter({**spec, "run": {}, "hidden": [], "waived": []})
    events = [e for run in evidence.runs(adapter) for e in evidence.events(adapter, run) if isinstance(e, dict)]
    named = Counter(key for event in events for key in event if isinstance(event[key], str) and key.isidentifier())
    read = {text for rule in spec["rules"] for key in ("tool", "when", "arguments") for text in _texts(rule.get(key))}
    likely = []
    for key, n in named.items():
        says = {event[key] for event in events if isinstance(event.get(key), str)}
        few = 2 <= len(says) <= min(MOST_AGENTS, max(2, 0.5 * n))
        if few and n >= LEAST_NAMED * len(events) and f"@.{key}" not in read:
            likely.append((affinity(key, Meaning.AGENT), key))
    best, key = max(likely, default=(0.0, ""))
    if best < LEAST_NAMED or any("agent" in rule for rule in spec["rules"]):
        return dict(spec)
    acting = ("say", "call", "step")
    rules = [
        {**rule, "agent": f"^.{key}" if "each" in rule else f"@.{key}"} if rule["emit"] in acting else rule
        for rule in spec["rules"]
    ]
    return {**spec, "rules": rules}


def _texts(value: Any) -> Iterator[str]:
    """Names and texts in a value of the spec."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
