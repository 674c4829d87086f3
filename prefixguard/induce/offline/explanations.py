"""What a draft reads and what it leaves out, for the report."""

from __future__ import annotations

import json
from collections import Counter

from prefixguard.induce.names import Meaning, affinity
from prefixguard.induce.offline.draft import Draft
from prefixguard.induce.offline.places import leaves, spell
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.proposal import LeftOut, Mapped


def mapped_of(draft: Draft) -> list[Mapped]:
    out: list[Mapped] = []
    if draft.rows is not None:
        row = draft.rows
        for column, field in (
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
    return out


def left_out_of(draft: Draft) -> list[LeftOut]:
    """Places of the events that no record reads, by their share of the text."""
    spelled = json.dumps(draft.spec["rules"])
    sizes: Counter[str] = Counter()
    total = 0
    for event in draft.table.events[:3000]:
        for place, value in leaves(event):
            if isinstance(value, str):
                sizes[spell("@", place)] += len(value)
                total += len(value)
    out = []
    for path, size in sizes.most_common(60):
        last = path.rpartition(".")[2].replace("[*]", "")
        if path.replace("[*]", "") in spelled or (last and f".{last}" in spelled):
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
        out.append(LeftOut(path, why, size / max(1, total)))
    return out
