"""A way to find runs and events: the container and the events of a spec, and what they find in the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.search.columns import Node, is_attributes, written
from prefixguard.induce.search.evidence import MOST_EVENTS, Evidence
from prefixguard.induce.search.places import spell
from prefixguard.stepview import Adapter, canonical
from prefixguard.stepview.events import expand, opened

SCHEMA = "prefixguard/adapter/v1"


@dataclass(slots=True, eq=False)
class Layout:
    """A way to find runs and events. container, events: of the spec. events_of: raw events of the runs that are looked
    at, as rules see them. prior: the higher, the sooner it is tried. why: a sentence. backwards: share of neighbouring
    events whose times are in the other order, where sorting would mend it. aside: what holds for events that are no
    part of the run."""

    container: dict[str, Any]
    events: Any
    prior: float
    why: str
    events_of: list[list[Any]] = field(default_factory=list)
    share: float = 0.0
    backwards: float = 0.0
    aside: Mapping[str, Any] | None = None
    _node: Node | None = field(default=None, init=False)

    def spec(self, rules: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """A spec of this layout with these rules."""
        return {
            "schema": SCHEMA, "name": "candidate", "version": "1.0.0", "description": "", "container": self.container,
            "run": {}, "events": self.events, **more, "rules": written(list(rules)),
        }  # fmt: skip

    @property
    def likely(self) -> float:
        """The prior of its candidates: less where the elements of a document that is a list make one run together, or
        elements are left out."""
        of = self.events if isinstance(self.events, dict) else {"path": self.events}
        path = next(iter((*of.get("flatten", ()), *of.get("zip", {}).values(), of.get("path"))))
        crossed = "runs" not in self.container and isinstance(path, str) and path.startswith("$[*]") and path != "$[*]"
        inner = isinstance(self.events, dict) and "flatten" in self.events and path == "$[*]"
        left = 1 - self.share if "group_by" in self.container else 0.0
        return (-1.5 if crossed or inner else 0.5 - 10 * left) - 3 * self.backwards

    @property
    def place(self) -> str:
        """Where the events are, as a person is told it."""
        flat = self.events.get("flatten") if isinstance(self.events, dict) else None
        paths = [one for one in flat if isinstance(one, str)] if flat else [self.events]
        if isinstance(self.events, dict) and "zip" in self.events:
            paths = [one["list"][0] if isinstance(one, dict) else one for one in self.events["zip"].values()]
        return ", ".join(one if isinstance(one, str) else canonical(one) for one in paths)

    @property
    def sight(self) -> str:
        """What is seen of the samples: the container, and the first events of its runs, in what and in which order."""
        events = [[hash(canonical(event)) for event in run[:60]] for run in self.events_of[:6]]
        nested = isinstance(self.events, dict) and "flatten" in self.events
        return repr((self.container, nested, [len(run) for run in self.events_of], events))

    def node(self) -> Node:
        """All events of all runs."""
        if self._node is not None:
            return self._node
        events = [e for run in self.events_of for e in run]
        runs = [i for i, run in enumerate(self.events_of) for _ in run]
        self._node = Node("", events, list(range(len(events))), runs)
        return self._node


def open_layout(layout: Layout, evidence: Evidence) -> bool:
    """Reads the events of the layout's runs by the interpreter; False where there are too few to be runs."""
    try:
        adapter = Adapter(layout.spec([{"emit": "skip"}]))
    except PrefixGuardError:
        return False
    layout.events_of = []
    source = adapter.program.events
    for run in evidence.runs(adapter):
        try:
            raw = evidence.events(adapter, run)
            inner = [e for element in raw for e, *_ in expand(source, run.scope, element)] if source.levels else raw
        except PrefixGuardError:
            continue
        inner = [opened(e, source) for e in inner[:MOST_EVENTS]]
        objects = [e for e in inner if isinstance(e, dict)]
        inner = objects if len(objects) >= 0.5 * len(inner) else inner  # a few of other types are no events
        if inner:
            layout.events_of.append(inner)
    lengths = [len(one) for one in layout.events_of]
    if not lengths or sum(lengths) < 3:
        return False
    flat = _flat([event for events in layout.events_of for event in events])
    if flat and not source.unflatten:
        base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
        layout.events = {**base, "unflatten": flat}
        return open_layout(layout, evidence)
    middle = median(lengths)
    layout.prior += 1.0 if middle >= 3 else 0.4 if middle >= 2 else 0.0
    layout.prior += 0.1 * min(5, len(lengths))
    return True


def _flat(events: Sequence[Any]) -> list[str]:
    """Fields of the events that spell an object flat: as pairs of key and value, or under names with dots in them."""
    found: Counter[str] = Counter()
    for event in events:
        for name, value in event.items() if isinstance(event, dict) else ():
            keys = list(value) if isinstance(value, dict) else []
            found[name] += is_attributes(value) or sum("." in key for key in keys) > 0.5 * max(1, len(keys))
    return [spell("@", (name,)) for name, n in found.items() if n >= 0.3 * len(events)]
