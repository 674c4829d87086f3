"""What a draft reads, for the report."""

from __future__ import annotations

from prefixguard.induce.offline.draft import Draft
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.proposal import Mapped


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
