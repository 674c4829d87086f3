"""What records read of the raw events and what they leave out, for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.places import leaves, spell
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import Adapter, canonical, parse_path
from prefixguard.stepview.events import expand
from prefixguard.stepview.parser import Parser

#: Events of all samples that are looked at.
MOST_EVENTS = 3000
#: Names from an event to a place.
Names = tuple[str, ...]
_FIELDS = ("tool", "arguments", "call_id", "result", "action", "observation")


def steps_told(
    spec: Mapping[str, Any], evidence: Evidence, sure: float, why: str
) -> tuple[list[Mapped], list[LeftOut]]:
    """What the rules read for each field of the records, with the share of records that have it, and what they leave.

    sure: how well the spec reads the samples, in [0, 1]. why: a sentence on the reading."""
    adapter = Adapter({**spec, "run": {}, "hidden": [], "waived": []})
    filled: Counter[str] = Counter()
    total = 0
    raw: list[Any] = []
    for run in evidence.runs(adapter):
        try:
            parser = Parser(adapter.program, run.scope, live=False)
            events = evidence.events(adapter, run)
            records = [record for event in events for record in parser.observe(event)] + parser.end()
        except TraceError:
            continue
        for event in events:
            raw += [inner for inner, *_ in expand(adapter.program.events, run.scope, event)]
        total += len(records)
        filled.update(field for record in records for field in _FIELDS if getattr(record, field, ""))
    filled["call_id"] = filled["tool"]
    mapped: dict[tuple[str, str], Mapped] = {}
    for rule in spec["rules"]:
        where = rule.get("when")
        told = f" when {canonical(where)}" if isinstance(where, Mapping) and where else ""
        for field in _FIELDS:
            for path in _paths(rule.get(field)):
                one = Mapped(f"{path}{told}", field, filled[field] / max(1, total), round(min(1.0, sure), 3), why)
                mapped.setdefault((one.raw, field), one)
    of_text = isinstance(spec["events"], dict) and "split" in spec["events"]
    return list(mapped.values()), [] if of_text else left_out_of(spec, raw)


def _paths(value: Any) -> Iterator[str]:
    """Paths of the events in a value of a spec."""
    if isinstance(value, str) and value.startswith(("@", "^")):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _paths(inner)


def _read(spec: Mapping[str, Any]) -> tuple[set[Names], set[Names]]:
    """Names of the events that rules, joins or the status read, and those that only tell events apart (`when`), both
    without positions in lists. Inside `each`, a path starts at the element."""
    read: set[Names] = set()
    asked: set[Names] = set()

    def walk(value: Any, above: Names, kept: set[Names]) -> None:
        if isinstance(value, dict):
            inner = _plain(value["each"]) if isinstance(value.get("each"), str) else above
            for name, one in value.items():
                if name == "when":
                    walk(one, (), asked)
                elif name not in ("each", "comment"):
                    walk([name, one], inner, kept)
        elif isinstance(value, list):
            for one in value:
                walk(one, above, kept)
        elif isinstance(value, str) and (value == "@" or value.startswith(("@.", "@[", "^.", "^["))):
            kept.add((*above, *_plain(value)) if value[0] == "@" else _plain(value))

    walk([spec.get(part) for part in ("rules", "join", "turn", "status")], (), read)
    return read, asked


def _plain(path: str) -> Names:
    """A path's names; what is no path has none that an event has."""
    try:
        steps = parse_path(path, "path")[1]
    except AdapterError:
        return (path,)
    return tuple(str(step[1]) for step in steps if step[0] == "name")


def left_out_of(spec: Mapping[str, Any], events: Sequence[Any]) -> list[LeftOut]:
    """Places of these raw events that no record reads, by their share of the text."""
    read, asked = _read(spec)
    sizes: Counter[str] = Counter()
    echoes: Counter[str] = Counter()
    total = 0
    for event in events[:MOST_EVENTS]:
        found = [(spell("@", place), value) for place, value in leaves(event) if isinstance(value, str)]
        said = {value for path, value in found if any(_plain(path)[: len(one)] == one for one in read)}
        for path, value in found:
            sizes[path] += len(value)
            echoes[path] += len(value) * (value in said)
            total += len(value)
    out = []
    for path, size in sizes.most_common(60):
        place = _plain(path)
        if place in asked or any(place[: len(one)] == one for one in read):
            continue
        if size < 0.002 * total:
            break
        why = "nothing says that the agent said or saw it"
        if echoes[path] >= 0.8 * size:
            why = "says again, word for word, what is read"
        elif affinity(path, Meaning.TIME) + affinity(path, Meaning.CALL_ID) > 0.6:
            why = "an id, a time or a name"
        out.append(LeftOut(path, why, size / max(1, total)))
    return out
