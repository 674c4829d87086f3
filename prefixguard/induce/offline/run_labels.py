"""Labels of attribution sets: which step was the decisive mistake, and whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.run_places import Column, Places, RunView
from prefixguard.lexicon import Meaning, affinity, words


@dataclass(frozen=True)
class Labels:
    """The spec's `labels`, and how sure it is."""

    spec: dict[str, Any]
    label: str
    coverage: float
    confidence: float
    why: str


def find_labels(views: Sequence[RunView], places: Places) -> Labels | None:
    """A place that counts events and one that names who acts in them, telling the same event; None where there is
    none. The pair is found by its values; a single place only by its name."""
    steps = [column for column in places.columns if column.near == "run" and _counts_events(views, column)]
    agents = [column for column in places.columns if column.near == "run" and _names_actors(views, column)]
    best: tuple[float, Column, Column, int, float] | None = None
    for step in steps:
        for agent in agents:
            for base in (0, 1):
                share = _agree(views, step, agent, base)
                named = max(affinity(step.name, Meaning.MISTAKE), affinity(agent.name, Meaning.MISTAKE))
                if share < (0.5 if named >= 0.6 else 0.9) or (named < 0.6 and agent.distinct < 3):
                    continue
                if best is None or share + named - 0.01 * base > best[0]:
                    best = (share + named - 0.01 * base, step, agent, base, share)
    if best is not None:
        worth, step, agent, base, share = best
        why = f"at {step.spec} (counted from {base}) acts who {agent.spec} names, in {share:.0%} of the runs"
        return Labels(
            {"mistake_step": step.spec, "step_base": base, "mistake_agent": agent.spec},
            f"{step.spec}, {agent.spec}",
            step.coverage,
            min(0.95, 0.3 + 0.35 * worth),
            why,
        )
    spec: dict[str, Any] = {}
    for column in places.columns:
        if column.near != "run" or affinity(column.name, Meaning.MISTAKE) < 0.9:
            continue
        last = set(words(str(column.place[-1]))) if column.place else set()
        if "step" in last and column in steps:
            spec.setdefault("mistake_step", column.spec)
            spec.setdefault("step_base", 0)
        elif "agent" in last:
            spec.setdefault("mistake_agent", column.spec)
    if not spec:
        return None
    return Labels(spec, ", ".join(str(v) for k, v in spec.items() if k != "step_base"), 1.0, 0.6, "by name")


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 7 else None


def _counts_events(views: Sequence[RunView], column: Column) -> bool:
    found = [(_number(value), len(view.events)) for value, view in zip(column.values, views, strict=True)]
    told = [(number, n) for number, n in found if number is not None]
    if len(told) < max(2, 0.5 * len(views)):
        return False
    return sum(1 for number, n in told if 0 <= number <= n) >= 0.98 * len(told)


def _actors(event: Any) -> list[str]:
    if not isinstance(event, Mapping):
        return []
    return [value for value in event.values() if isinstance(value, str) and 0 < len(value) <= 60]


def _names_actors(views: Sequence[RunView], column: Column) -> bool:
    if column.coverage < 0.5 or not column.is_text or column.length > 60:
        return False
    hits = seen = 0
    for view, text in zip(views, column.texts, strict=True):
        if text is None:
            continue
        seen += 1
        hits += any(_called(text, actor) for event in view.events for actor in _actors(event))
    return seen >= 2 and hits >= 0.8 * seen


def _called(name: str, actor: str) -> bool:
    """An actor's name, or it with something after it: "Orchestrator (-> WebSurfer)"."""
    return actor == name or actor.startswith(name + " (")


def _agree(views: Sequence[RunView], step: Column, agent: Column, base: int) -> float:
    hits = seen = 0
    for view, value, text in zip(views, step.values, agent.texts, strict=True):
        number = _number(value)
        if number is None or text is None:
            continue
        seen += 1
        at = number - base
        hits += 0 <= at < len(view.events) and any(_called(text, actor) for actor in _actors(view.events[at]))
    return hits / seen if seen else 0.0
