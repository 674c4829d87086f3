"""From samples to a proposal: every way to find runs and events is tried, and what reads best is taken."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError, TraceError
from prefixguard.induce.names import Meaning, affinity
from prefixguard.induce.offline.chat_rules import chat_rules, join_spec, turn_of
from prefixguard.induce.offline.kinds import Kind, divide
from prefixguard.induce.offline.places import leaves, spell, text_size
from prefixguard.induce.offline.plans import Plans, plan
from prefixguard.induce.offline.rows import RowPlan, plan_rows, row_rules
from prefixguard.induce.offline.run_fields import infer_run_fields
from prefixguard.induce.offline.sources import Source, sources
from prefixguard.induce.offline.speakers import Part, part_of
from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.offline.text_log import propose_text
from prefixguard.induce.offline.units import Table, Unit, columns_of, table_of, units_of
from prefixguard.induce.proposal import Asker, LeftOut, Mapped, Proposal, take_first
from prefixguard.induce.samples import Samples
from prefixguard.stepview import Adapter, read_runs, unflatten

#: Ways to find runs and events that are tried to the end.
MOST_TRIED = 6
SCHEMA = "prefixguard/adapter/v1"
BUDGETS = {"observation": [1200, 800], "action": [1200, 800], "arguments": [1500, 500], "result": [1200, 800]}


@dataclass(slots=True)
class Draft:
    """One way to read the samples, to the end. quality: in [0, 1], see `_quality`."""

    source: Source
    spec: dict[str, Any]
    quality: float
    table: Table
    units: list[Unit]
    plans: Plans | None
    rows: RowPlan | None
    mapped: list[Mapped]
    left_out: list[LeftOut]


def propose_offline(
    samples: Samples, *, name: str, hints: Mapping[str, str] | None = None, ask: Asker = take_first
) -> Proposal:
    """An adapter inferred from samples alone. TraceError where nothing in them looks like runs of an agent.

    hints: what a person knows, as paths of the spec (`outcome`, `task`, `id`, `runs`, `events`, `role`, `tool`,
    `arguments`, `call_id`, `result`, `action`). ask: is asked what the samples do not decide.
    """
    hints = dict(hints or {})
    drafts = []
    for source in sources(samples, hints)[:MOST_TRIED]:
        draft = _draft(source, samples, name, hints)
        if draft is not None:
            drafts.append(draft)
    for draft in drafts:
        draft.quality *= _left_behind(draft, drafts)
    best = max(drafts, key=lambda draft: draft.quality + 0.05 * draft.source.prior, default=None)
    if best is None or best.quality < 0.35:
        text = propose_text(samples, name=name, hints=hints, ask=ask)
        if text is not None:
            return text
    if best is None:
        raise TraceError(
            f"{samples.source}: nothing in {len(samples.files)} file(s) looks like the events of an agent's runs. Give "
            "more samples, or say where they are: --hint events='$.messages[*]'."
        )
    return _finish(best, samples, name, hints, ask)


def _draft(source: Source, samples: Samples, name: str, hints: Mapping[str, str]) -> Draft | None:
    listings, events = _unflattened(source)
    table = table_of(listings)
    if not table.events:
        return None
    flat = isinstance(events, dict) and "unflatten" in events
    kinds = divide(table.events, table.runs, hint=hints.get("role"), reach=5 if flat else 2)
    units = units_of(table, kinds)
    rows, plans = None, None
    spoken = sum(len(u.elements) for u in units if u.each is None and any(map(_speaks, u.words)))
    if spoken < 0.5 * len(table.events) or source.columns:
        whole = _whole(table)
        rows = plan_rows(whole, hints)
    if rows is not None:
        rules = row_rules(rows)
        join: dict[str, Any] | None = None
        turn = None
        results = rows.result.texts if rows.result is not None else []
        result_unit: Unit | None = rows.unit
    else:
        plans = plan(table, units, hints)
        if not any(made.calls or made.part is Part.SAY for made in plans.kinds):
            return None
        rules = chat_rules(table, plans)
        join = join_spec(table, plans)
        turn = turn_of(table, plans)
        results, result_unit = _results_of(plans)
    spec: dict[str, Any] = {
        "schema": SCHEMA,
        "name": name,
        "version": "1.0.0",
        "description": f"Induced without a model from {len(samples.files)} sample file(s).",
        "container": source.container,
        "events": events,
    }
    if join is not None:
        spec["join"] = join
    if turn is not None:
        spec["turn"] = turn
    spec["rules"] = rules
    spec["status"], mapped, left_out = _status(rows, result_unit, results)
    spec["budgets"] = BUDGETS
    quality = _quality(spec, source, table) * (0.7 + 0.3 * _told(plans, rows))
    return Draft(source, spec, quality, table, units, plans, rows, mapped, left_out)


def _speaks(word: str) -> bool:
    found = part_of(word)
    return found is not None and found[0] in (Part.SAY, Part.USER, Part.RESULT, Part.CALL)


def _whole(table: Table) -> Unit:
    """All events as one unit."""
    members = [i for i, event in enumerate(table.events) if isinstance(event, dict)]
    elements = [table.events[i] for i in members]
    unit = Unit(Kind((), tuple(members)), {}, None, (), elements, members, [table.runs[i] for i in members])
    unit.columns = columns_of(elements)
    return unit


def _unflattened(source: Source) -> tuple[list[list[Any]], Any]:
    """Events with typed or dotted attributes made plain, ordered in time; and the `events` of the spec."""
    sample = [event for view in source.views[:40] for event in view.events[:40] if isinstance(event, dict)]
    fields = _attributes(sample)
    events: Any = source.events
    listings = [list(view.events) for view in source.views]
    if fields:
        listings = [[_plain(event, fields) for event in listing] for listing in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "unflatten": [spell("@", (field,)) for field in fields]}
    again = _replayed(listings)
    if again is not None:
        listings = [list({str(_at(event, again)): event for event in reversed(one)}.values())[::-1] for one in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "drop_repeats": spell("@", (again,))}
    order = _order(listings)
    if order is not None:
        place, key = order
        listings = [sorted(listing, key=key) for listing in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "order_by": spell("@", place), "window": 256}
    return listings, events


def _attributes(sample: list[dict[str, Any]]) -> list[str]:
    """Fields that hold typed OpenTelemetry attributes or an object with dotted names."""
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for event in sample:
        for key, value in event.items():
            if (
                isinstance(value, list)
                and value
                and all(isinstance(v, dict) and set(v) >= {"key", "value"} for v in value)
            ) or (isinstance(value, dict) and value and sum("." in name for name in value) >= 0.5 * len(value)):
                found[key] += 1
            there[key] += value not in (None, [], {})
    return sorted(key for key, n in found.items() if n >= 0.6 * there[key])


def _plain(event: Any, fields: list[str]) -> Any:
    if not isinstance(event, dict):
        return event
    return {key: unflatten(value) if key in fields else value for key, value in event.items()}


def _at(event: Any, key: str) -> Any:
    return event.get(key) if isinstance(event, dict) else None


def _replayed(listings: list[list[Any]]) -> str | None:
    """The id of events that stand twice, word for word, in a run: a transcript that was resumed."""
    names = {str(key) for one in listings[:20] for event in one[:20] if isinstance(event, dict) for key in event}
    for key in sorted(names):
        n = there = again = 0
        for listing in listings[:60]:
            seen: dict[str, Any] = {}
            for event in listing:
                value = _at(event, key)
                n += 1
                if not isinstance(value, str) or len(value) < 6 or " " in value:
                    continue
                there += 1
                if value in seen:
                    again += 1
                    if seen[value] != event:
                        again = -(1 << 30)
                seen[value] = event
        if 0 < again <= 0.2 * there and there >= 0.7 * n:
            return key
    return None


def _order(listings: list[list[Any]]) -> tuple[tuple[str, ...], Any] | None:
    """The time by which events must be put in order, where the file has them otherwise."""
    best: tuple[float, str] | None = None
    for key in sorted(
        {key for listing in listings[:20] for event in listing[:5] if isinstance(event, dict) for key in event}
    ):
        named = affinity(key, Meaning.TIME)
        if named < 0.7:
            continue
        wrong = n = 0
        ok = True
        for listing in listings[:60]:
            values: list[Any] = [_at(event, key) for event in listing]
            if any(not isinstance(value, str | int | float) or isinstance(value, bool) for value in values):
                ok = False
                break
            if len({type(value) for value in values}) > 1:
                ok = False
                break
            wrong += sum(a > b for a, b in pairwise(values))
            n += max(0, len(values) - 1)
        if ok and n and wrong > 0.03 * n:
            start = 0.5 * ("start" in key.lower()) - 0.5 * ("end" in key.lower())
            if best is None or (-(named + start), key) < (-best[0], best[1]):
                best = named + start, key
    if best is None:
        return None
    key = best[1]
    return (key,), lambda event: event.get(key) if isinstance(event, dict) else ""


def _results_of(plans: Plans) -> tuple[list[str], Unit | None]:
    """Texts that came back, and the unit with the most of them."""
    found: list[tuple[int, list[str], Unit]] = []
    for made in plans.kinds:
        for result in made.results:
            found.append((len(result.unit.elements), result.text.texts, result.unit))
        if made.part is Part.RESULT and not made.results and made.said is not None:
            found.append((len(made.own.elements), made.said.texts, made.own))
        if made.part is Part.USER and made.said is not None and any(one.form is not None for one in plans.kinds):
            found.append((len(made.own.elements), made.said.texts, made.own))
        for call in made.calls:
            if call.inline is not None:
                found.append((len(call.unit.elements), call.inline.texts, call.unit))
    if not found:
        return [], None
    _, texts, unit = max(found, key=lambda one: one[0])
    return texts, unit if len(texts) == len(unit.elements) else None


def _status(rows: RowPlan | None, unit: Unit | None, results: list[str]) -> tuple[Any, list[Mapped], list[LeftOut]]:
    if not any(results):
        return ("unknown" if rows is not None else "ok"), [], []
    flags: dict[str, list[Any]] = {}
    if unit is not None and len(unit.elements) == len(results):
        for column in unit.columns.values():
            if not column.whole and not column.json and column.distinct <= 30 and None not in column.place:
                flags[column.name] = [v if isinstance(v, str | int | float | bool) else None for v in column.values]
    form = infer_status(results, flags, unit.runs if unit is not None and len(unit.runs) == len(results) else None)
    return list(form.rules), list(form.mapped), list(form.left_out)


def _left_behind(draft: Draft, drafts: list[Draft]) -> float:
    """Share of the text of a list that reads well which a list inside it has: what stands beside is lost."""
    path = f"{draft.source.runs or '$'}{draft.source.event_places[0][1:]}"
    share = 1.0
    for other in drafts:
        outer = f"{other.source.runs or '$'}{other.source.event_places[0][1:]}"
        if other is not draft and other.quality >= 0.6 and path.startswith(outer) and path != outer:
            share = min(share, draft.source.share / max(1e-9, other.source.share))
    return share


def _told(plans: Plans | None, rows: RowPlan | None) -> float:
    """Share of the events of which something other than their order says what they are, in [0, 1]."""
    if plans is None:
        return max(0.0, min(1.0, rows.sure)) if rows is not None else 0.0
    speaking = [made for made in plans.kinds if made.said is not None or made.calls or made.results]
    n = sum(len(made.own.elements) for made in speaking)
    return sum(len(made.own.elements) for made in speaking if made.sure >= 0.7) / max(1, n)


def _quality(spec: dict[str, Any], source: Source, table: Table) -> float:
    """How well a spec reads the samples, in [0, 1]: 0.3 for calls with a result, 0.2 for steps with a tool, 0.25 for
    text that reaches a record, 0.15 for records in most runs, 0.1 for runs of two steps or more."""
    try:
        adapter = Adapter(spec)
        runs = []
        for run in read_runs(source.root, adapter):
            runs.append(run)
            if len(runs) >= 40:
                break
    except PrefixGuardError:
        return 0.0
    records = [record for run in runs for record in run.records]
    if not records:
        return 0.0
    acts = [record for record in records if record.tool != "respond"]
    answered = sum(bool(record.result) for record in acts) / len(acts) if acts else 0.3
    tools = sum(bool(record.tool) for record in acts) / len(records) if acts else 0.0
    share = len(acts) / len(records)
    said = sum(len(r.action) + len(r.arguments) + len(r.result) + len(r.observation) for r in records)
    views = source.views[: len(runs)]
    raw = sum(min(text_size(list(view.events)), 2000 * max(1, len(view.events))) for view in views) or 1
    covered = min(1.0, said / raw)
    long = sum(len(run.records) >= 2 for run in runs) / len(runs)
    read = 0.3 * answered * min(1.0, share * 2) + 0.2 * tools + 0.25 * covered
    return (
        (read + 0.15 * min(1.0, len(runs) / 3) + 0.1 * long)
        * min(1.0, source.share / 0.3)
        * min(1.0, 0.4 + source.novelty)
        * (1 - 0.5 * source.inner)
    )


def _finish(draft: Draft, samples: Samples, name: str, hints: Mapping[str, str], ask: Asker) -> Proposal:
    source = draft.source
    spec = dict(draft.spec)
    fields = infer_run_fields(
        source.views,
        samples,
        runs_path=source.runs,
        events_paths=source.event_places,
        hints=hints,
        ask=ask,
    )
    spec["run"] = fields.run
    rules = [{"when": when, "emit": "skip", "comment": "after the end"} for when in fields.skip_events] + spec["rules"]
    spec["rules"] = rules
    spec["hidden"] = fields.hidden
    spec = {key: spec[key] for key in _ORDER if key in spec}
    if fields.waived:
        spec["waived"] = list(fields.waived)
    spec = _settled({key: spec[key] for key in _ORDER if key in spec})
    mapped = [*_mapped(draft), *draft.mapped, *fields.mapped]
    left_out = [*_left_out(draft), *draft.left_out, *fields.left_out]
    notes = [
        f"Runs and events: {source.container.get('runs', 'a document')} and {source.events}: {source.why}.",
        *fields.notes,
    ]
    return Proposal(spec, tuple(mapped), tuple(left_out), fields.choices, tuple(notes), "offline", None)


_ORDER = (
    "schema", "name", "version", "description", "container", "run", "events", "join", "turn", "rules", "status",
    "budgets", "hidden", "waived",
)  # fmt: skip


def _settled(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without parts that the interpreter refuses: what is hidden gives way to what records read."""
    for _ in range(40):
        try:
            Adapter(spec)
            return spec
        except AdapterError as exc:
            text = str(exc)
            hidden = [one for one in spec.get("hidden", []) if isinstance(one, str) and one in text]
            if hidden:
                longest = max(hidden, key=len)
                spec = {**spec, "hidden": [one for one in spec["hidden"] if one != longest]}
            elif spec.get("run", {}).get("preamble") is not None and "preamble" in text:
                run = {key: value for key, value in spec["run"].items() if key != "preamble"}
                spec = {**spec, "run": run}
            else:
                return spec
    return spec


def _mapped(draft: Draft) -> list[Mapped]:
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


def _left_out(draft: Draft) -> list[LeftOut]:
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
