"""What a draft reads and what it leaves out, for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.offline.draft import Draft
from prefixguard.induce.offline.places import leaves, spell
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import parse_path

#: Names from an event to a place.
Place = tuple[str, ...]


def mapped_of(draft: Draft) -> list[Mapped]:
    """What records read from events, by the plan of the draft."""
    out: list[Mapped] = []
    if draft.rows is not None:
        row = draft.rows
        for column, field in (
            (row.shape.tool if row.shape is not None else None, "tool"),
            (row.shape.arguments if row.shape is not None else None, "arguments"),
            (row.action, "arguments"),
            (row.result, "observation" if row.before else "result"),
            (row.thought, "action"),
        ):
            if column is not None:
                out.append(Mapped(column.name, field, column.present, row.sure, "a whole step in one event"))
        if row.form is not None:
            out.append(
                Mapped(
                    row.action.name if row.action else "@", "tool", row.form.share, row.form.confidence, row.form.why
                )
            )
        return out
    for made in draft.plans.kinds if draft.plans is not None else []:
        where = f" when {made.own.label}" if made.own.kind.when else ""
        for call in made.calls:
            for field, column in (
                ("call_id", call.call_id),
                ("tool", call.shape.tool),
                ("arguments", call.shape.arguments),
                ("result", call.inline),
            ):
                if column is not None:
                    out.append(
                        Mapped(f"{column.name} of {call.unit.label}", field, column.present, call.weight, made.why)
                    )
        for result in made.results:
            out.append(
                Mapped(
                    f"{result.text.path or result.text.value} of {result.unit.label}",
                    "result",
                    1.0,
                    result.weight,
                    made.why,
                )
            )
        if made.said is not None:
            field = {Part.USER: "observation", Part.RESULT: "result"}.get(made.part, "action")
            filled = sum(bool(text) for text in made.said.texts) / max(1, len(made.own.elements))
            out.append(
                Mapped(f"{made.said.path or made.said.value}{where}", field, min(1.0, filled), made.sure, made.why)
            )
            if made.form is not None:
                form = made.form
                shown = f"{made.said.path}{where}"
                out.append(Mapped(shown, "tool and arguments", form.share, form.confidence, form.why))
    return out


def _read(spec: Mapping[str, Any]) -> tuple[set[Place], set[Place]]:
    """Places of the events that rules, joins or the status read, and those that only tell events apart (`when`), both
    without positions in lists. Inside `each`, a path starts at the element."""
    read: set[Place] = set()
    asked: set[Place] = set()

    def walk(value: Any, above: Place, kept: set[Place]) -> None:
        if isinstance(value, dict):
            inner = _plain(value["each"]) if isinstance(value.get("each"), str) else above
            for name, one in value.items():
                if name == "when":
                    walk(one, (), asked)
                    continue
                if name == "each":
                    continue
                walk(name, inner, kept)
                if name != "comment":
                    walk(one, inner, kept)
        elif isinstance(value, list):
            for one in value:
                walk(one, above, kept)
        elif isinstance(value, str) and (value == "@" or value.startswith(("@.", "@[", "^.", "^["))):
            kept.add((*above, *_plain(value)) if value[0] == "@" else _plain(value))

    walk([spec.get(part) for part in ("rules", "join", "turn", "status")], (), read)
    return read, asked


def _plain(path: str) -> Place:
    """A path's names; what is no path has none that an event has."""
    try:
        steps = parse_path(path, "path")[1]
    except AdapterError:
        return (path,)
    return tuple(str(step[1]) for step in steps if step[0] == "name")


def left_out_of(draft: Draft) -> list[LeftOut]:
    """Places of the events that no record reads, by their share of the text."""
    read, asked = _read(draft.spec)
    sizes: Counter[str] = Counter()
    echoes: Counter[str] = Counter()
    total = 0
    for event in draft.table.events[:3000]:
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
        why = (
            "an id, a time or a name"
            if affinity(path, Meaning.TIME) + affinity(path, Meaning.CALL_ID) > 0.6
            else "nothing says that the agent said or saw it"
        )
        if affinity(path, Meaning.THOUGHT) >= 0.9:
            why = "reasoning, not said"
        if echoes[path] >= 0.8 * size:
            why = "says again, word for word, what is read"
        out.append(LeftOut(path, why, size / max(1, total)))
    return out
