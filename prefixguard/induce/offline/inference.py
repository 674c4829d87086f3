"""From samples to a proposal: every way to find runs and events is tried, and what reads best is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.induce.offline.chat_rules import chat_rules, join_spec, turn_of
from prefixguard.induce.offline.draft import Draft
from prefixguard.induce.offline.explanations import mapped_of
from prefixguard.induce.offline.hints import OF_EVENTS, column_at, not_followed, status_by
from prefixguard.induce.offline.kinds import Kind, divide
from prefixguard.induce.offline.listings import listings_of
from prefixguard.induce.offline.plan_types import Plans
from prefixguard.induce.offline.plans import plan
from prefixguard.induce.offline.quality import left_behind, quality_of, told
from prefixguard.induce.offline.rows import RowPlan, plan_rows, row_rules
from prefixguard.induce.offline.run_fields import infer_run_fields
from prefixguard.induce.offline.source import Source
from prefixguard.induce.offline.sources import sources
from prefixguard.induce.offline.speakers import Part, part_of
from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.offline.units import Column, Table, Unit, columns_of, table_of, units_of
from prefixguard.induce.proposal import Asker, LeftOut, Mapped, Proposal, take_first
from prefixguard.induce.samples import Samples
from prefixguard.induce.search.explanations import left_out_of
from prefixguard.stepview import Adapter

#: Ways to find runs and events that are tried to the end.
MOST_TRIED = 6
#: Records of something else (packages, places, users) come to 0.2 to 0.28 in trials; speech alone, the worst-read runs
#: of agents, to 0.32.
LEAST = 0.3
SCHEMA = "prefixguard/adapter/v1"
BUDGETS = {"observation": [1200, 800], "action": [1200, 800], "arguments": [1500, 500], "result": [1200, 800]}


def propose_offline(
    samples: Samples, *, name: str, hints: Mapping[str, str] | None = None, ask: Asker = take_first
) -> Proposal:
    """An adapter inferred from samples alone. TraceError where nothing in them looks like runs of an agent.

    hints: what a person knows, as paths of the spec (`outcome`, `task`, `id`, `runs`, `events`, `role`, `tool`,
    `arguments`, `call_id`, `result`, `action`, `status`); what cannot be followed is noted. ask: is asked what the
    samples do not decide.
    """
    hints = dict(hints or {})
    drafts = []
    for source in sources(samples, hints)[:MOST_TRIED]:
        draft = _draft(source, samples, name, hints)
        if draft is not None:
            drafts.append(draft)
    for draft in drafts:
        draft.quality *= left_behind(draft, drafts)
    best = max(drafts, key=lambda draft: _rank(draft, hints), default=None)
    if best is None or (not hints and _is_chance(best)):
        raise TraceError(
            f"{samples.source}: nothing in {len(samples.files)} file(s) looks like the events of an agent's runs. Give "
            "more samples, or say where they are: --hint events='$.messages[*]'."
        )
    return _finish(best, samples, name, hints, ask)


def _is_chance(draft: Draft) -> bool:
    """Do the events only look like those of runs because anything does: nothing calls, answers, or names who speaks?"""
    if draft.plans is None:
        return draft.quality < LEAST
    kinds = draft.plans.kinds
    if draft.plans.joins or any(
        made.calls or (made.form is not None and made.form.name != "first word") for made in kinds
    ):
        return False
    speaking = [made for made in kinds if made.said is not None]
    named = any(made.sure >= 0.6 for made in speaking)  # what order alone tells is less sure
    sides = len({made.part for made in speaking}) >= 2
    several = sum(len(view.events) >= 3 for view in draft.source.views) >= 2
    return not (draft.quality >= LEAST and (named or sides)) and not (sides and (named or several))


def _rank(draft: Draft, hints: Mapping[str, str]) -> tuple[int, float]:
    """Hints that the draft can follow, then how well it reads; of what reads alike the source that was likelier."""
    followed = sum(key in hints for key in OF_EVENTS) - len(not_followed(draft.units, hints))
    return followed, draft.quality + 0.05 * draft.source.prior


def _draft(source: Source, samples: Samples, name: str, hints: Mapping[str, str]) -> Draft | None:
    listings, events = listings_of(source)
    table = table_of(listings)
    if not table.events:
        return None
    flat = isinstance(events, dict) and "unflatten" in events
    kinds = divide(table.events, table.runs, hint=hints.get("role"), reach=5 if flat else 2)
    units = units_of(table, kinds)
    rows, plans = None, None
    spoken = sum(len(u.elements) for u in units if u.each is None and any(map(_speaks, u.words)))
    divided = any(column_at(unit, hints.get("role")) is not None for unit in units)
    if (spoken < 0.5 * len(table.events) or source.columns) and not divided:
        rows = plan_rows(_whole(table), hints)
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
        results, result_unit = _results_of(plans, hints.get("status"))
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
    spec["status"], mapped, left_out = _status(rows, result_unit, results, hints.get("status"))
    spec["budgets"] = BUDGETS
    quality = quality_of(spec, source, table) * (0.7 + 0.3 * told(plans, rows))
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


def _results_of(plans: Plans, status: str | None) -> tuple[list[str], Unit | None]:
    """Texts that came back, and the unit with the most of them. status: path that a person named; one that has it goes
    before."""
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
    _, texts, unit = max(found, key=lambda one: (column_at(one[2], status) is not None, one[0]))
    return texts, unit if len(texts) == len(unit.elements) else None


def _status(
    rows: RowPlan | None, unit: Unit | None, results: list[str], hint: str | None
) -> tuple[Any, list[Mapped], list[LeftOut]]:
    """The `status` of the spec, from the texts that came back and from flags beside them. hint: path of the flag that a
    person named: then no other and no text is asked."""
    flag = column_at(unit, hint) if unit is not None else None
    if flag is not None and len(flag.values) == len(results):
        form = infer_status(results, {flag.name: _plain(flag)})
        rules = [rule for rule in form.rules if flag.name in rule.get("when", {flag.name: None})]
        if len(rules) > 1:
            told = [one for one in form.mapped if one.raw == flag.name]
            return [*rules[:-1], {"is": "ok"}], told, list(form.left_out)
        if guessed := status_by(flag):
            return guessed, [Mapped(flag.name, "status", flag.present, 0.6, "named by a hint")], []
    if not any(results):
        return ("unknown" if rows is not None else "ok"), [], []
    flags: dict[str, list[Any]] = {}
    if unit is not None and len(unit.elements) == len(results):
        for column in unit.columns.values():
            if not column.whole and not column.json and column.distinct <= 30 and None not in column.place:
                flags[column.name] = _plain(column)
    form = infer_status(results, flags, unit.runs if unit is not None and len(unit.runs) == len(results) else None)
    return list(form.rules), list(form.mapped), list(form.left_out)


def _plain(column: Column) -> list[Any]:
    return [value if isinstance(value, str | int | float | bool) else None for value in column.values]


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
    mapped = [*mapped_of(draft), *draft.mapped, *fields.mapped]
    left_out = [*left_out_of(draft.spec, draft.table.events), *draft.left_out, *fields.left_out]
    notes = [
        f"Runs and events: {source.container.get('runs', 'a document')} and {source.events}: {source.why}.",
        *not_followed(draft.units, hints),
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
            elif "outcome" in spec.get("run", {}) and "the outcome is read from" in text:
                # What tells the outcome stands in what a record reads: the steps are worth more, a hint can name it.
                spec = {**spec, "run": {key: value for key, value in spec["run"].items() if key != "outcome"}}
            else:
                return spec
    return spec
