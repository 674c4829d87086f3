"""A spec, checked and compiled: everything the reader and the live parser need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.stepview.compiling import Base, DataPlace, PlaceReading, Readings, Site
from prefixguard.stepview.conditions import TYPES, compile_test
from prefixguard.stepview.containers import compile_container
from prefixguard.stepview.events import EventSource, compile_events
from prefixguard.stepview.found import Container
from prefixguard.stepview.labels import RunLabels, compile_labels
from prefixguard.stepview.live_state import Header, body_for, compile_header, room_for
from prefixguard.stepview.machine import CallJoin
from prefixguard.stepview.paths import MISSING, Getter, Scope, Step, parse_path
from prefixguard.stepview.record import FIELDS
from prefixguard.stepview.rules import EventRule, RuleSite, compile_rule, compile_status
from prefixguard.stepview.schema import check_bounds, lift
from prefixguard.stepview.signals import Figures, compile_signals
from prefixguard.stepview.text import DEFAULT_BUDGETS, cutter
from prefixguard.stepview.values import compile_text, compile_value
from prefixguard.trace import Outcome

#: What a record holds of a step: its fields apart, or all its text in one field, see `record.raw_record`.
VIEWS = ("steps", "raw")

_TOP = (
    "schema", "name", "version", "description", "container", "run", "events", "rules", "status", "join", "turn", "kind",
    "signals", "budgets", "view", "hidden", "waived", "comment", "$schema",
)  # fmt: skip
_RUN = ("id", "task", "groups", "preamble", "outcome", "labels", "comment")


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled spec."""

    name: str
    version: str
    description: str
    container: Container
    events: EventSource
    rules: tuple[EventRule, ...]
    join: CallJoin
    cut_observation: Callable[[str], str]
    preamble: Callable[[Scope], str] | None
    run_id: Getter | None
    task: Getter | None
    groups: tuple[tuple[str, Getter], ...]
    outcome: Callable[[Scope], Outcome]
    labels: RunLabels
    kind: Getter | None
    turn: Getter | None
    signals: Callable[[Scope], tuple[Figures | None, int]] | None  # what an event says that it took
    header: Callable[[Any], Header]  # what rules read of $, which a live session keeps
    room: int  # bytes for what waits in a run
    body: tuple[int, int]  # bytes kept of the text of an event, head and tail
    readings: Readings  # the places that it reads, and that it says are hidden or waived
    is_raw: bool = False  # view "raw": records are one text
    reads_scores: bool = False  # its events are scores, and no steps of an agent


def compile_program(spec: Any, where: str = "adapter") -> Program:
    """Checks and compiles a spec. AdapterError names the part that is wrong and what it should be."""
    if not isinstance(spec, dict):
        raise AdapterError(f"{where}: an adapter is a JSON object, not {type(spec).__name__}.")
    check_bounds(spec, where)
    spec = lift(spec, where)
    name = spec.get("name")
    top = Site(f"adapter {name}" if isinstance(name, str) else where, {})
    top.keys(spec, _TOP)
    for key in ("name", "version"):
        if not isinstance(spec.get(key), str) or not spec[key]:
            raise top.error(f"{key!r} is a text that is not empty.")
    for key in ("container", "events", "rules"):
        if key not in spec:
            raise top.error(f"{key!r} is missing.")
    try:
        return _compile(spec)
    except AdapterError as exc:
        text = str(exc)
        raise AdapterError(text if text.startswith("adapter ") else f"adapter {name}, {text}") from exc


def _compile(spec: dict[str, Any]) -> Program:
    readings = Readings()
    whole = Base(DataPlace("document"))
    container = compile_container(spec["container"], Site("container", {"%": whole, "$": whole}))
    roots = {"$": container.run} | ({} if container.document is None else {"%": container.document})
    record = Site("", roots, readings.record, in_record=True)
    events = compile_events(spec["events"], record.at("events"))
    above = {} if events.grandparent is None else {"^^": events.grandparent}
    inner = record.with_roots({"@": events.base, "^": events.parent, **above})
    budgets = _budgets(spec.get("budgets", {}), record.at("budgets"))
    room = room_for(budgets)
    join = _join(spec.get("join", {}), record.at("join"))
    judge = compile_status(spec.get("status", []), inner.at("status"))
    turn = inner.optional(spec, "turn", compile_value)
    signals = inner.optional(spec, "signals", compile_signals)
    if not isinstance(spec["rules"], list) or not spec["rules"]:
        raise record.error("rules: a list of at least one rule.")
    shared = RuleSite(inner, budgets, judge, join.parallel)
    rules = tuple(compile_rule(rule, i, shared) for i, rule in enumerate(spec["rules"]))
    kind_site = replace(inner, sink=[])
    kind = kind_site.optional(spec, "kind", compile_value)
    said = '"steps" (fields apart, the default) or "raw" (all text of a step in one).'
    view = record.choice(spec, "view", VIEWS, said)
    run = spec.get("run", {})
    if not isinstance(run, dict):
        raise record.error("run: an object with id, task, groups, preamble, outcome.")
    of_run = record.at("run")
    of_run.keys(run, _RUN)
    cut = cutter(budgets["observation"])
    text = of_run.optional(run, "preamble", compile_text)
    judged = Site("run", roots, readings.outcome)
    names = Site("run", roots, all_parts=True)
    groups = run.get("groups", {})
    if not isinstance(groups, dict):
        raise record.error("run.groups: names and their values.")
    secret = Site("run.labels", roots)
    labels = compile_labels(run.get("labels", {}), secret, events)
    outcome = judged.optional(run, "outcome", compile_outcome)
    _visibility(spec, inner, readings)
    readings.hidden.extend(secret.sink)
    readings.refuse_hidden(spec["name"])
    return Program(
        name=spec["name"],
        version=spec["version"],
        description=str(spec.get("description", "")),
        container=container,
        events=events,
        rules=rules,
        join=join,
        cut_observation=cut,
        preamble=None if text is None else lambda scope: cut(text(scope)),
        run_id=names.optional(run, "id", compile_value),
        task=names.optional(run, "task", compile_value),
        groups=tuple((key, compile_value(value, names.at(f"groups.{key}"))) for key, value in groups.items()),
        outcome=outcome or (lambda scope: Outcome.UNKNOWN),
        labels=labels,
        kind=kind,
        turn=turn,
        signals=signals,
        header=compile_header(_of_run(readings.record + kind_site.sink)),
        room=room,
        body=body_for(budgets, room),
        readings=readings,
        is_raw=view == "raw",
        reads_scores=all(rule["emit"] == "score" for rule in spec["rules"]),
    )


def _of_run(readings: list[PlaceReading]) -> list[tuple[Step, ...]]:
    """Paths from the run that an event of a live run can need. Its events and its preamble are read before."""
    before = ("events.path", "events.zip", "events.split", "events.flatten", "run.preamble")
    found = [one for one in readings if one.of_run and not one.where.startswith(before)]
    return [parse_path(one.spelled, one.where)[1] for one in found]


def _budgets(spec: Any, site: Site) -> dict[str, tuple[int, int]]:
    budgets = dict(DEFAULT_BUDGETS)
    for name, pair in site.keys(spec, tuple(DEFAULT_BUDGETS), 'an object such as {"result": [1200, 800]}.').items():
        whole = isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and 0 <= n <= 100_000 for n in pair)
        if not whole or sum(pair) == 0:
            raise site.at(name).error(f"head and tail in code points, such as [1200, 800], not {pair!r}.")
        budgets[name] = (pair[0], pair[1])
    return budgets


def _join(spec: Any, site: Site) -> CallJoin:
    example = 'an object such as {"by": "id", "scope": "run", "else": "next"}.'
    site.keys(spec, ("by", "scope", "else", "parallel", "mismatch", "comment"), example)
    by = site.choice(spec, "by", ("id", "order"))
    scope = site.choice(spec, "scope", ("message", "run"))
    said = '"late" (a result whose id no open call has is late) or "else" (it goes by order).'
    mismatch = site.choice(spec, "mismatch", ("late", "else"), said)
    fallbacks = spec.get("else", "next")
    fallbacks = fallbacks if isinstance(fallbacks, list) else [fallbacks]
    if not all(one in ("next", "last", "position", "none") for one in fallbacks):
        raise site.at("else").error('"next", "last", "position" or "none".')
    parallel = site.choice(spec, "parallel", (False, True), "true or false.")
    return CallJoin(
        by_id=by == "id",
        fallbacks=tuple(one for one in fallbacks if one != "none"),
        parallel=parallel or scope == "run",
        any_id=mismatch == "else",
    )


def _visibility(spec: dict[str, Any], site: Site, readings: Readings) -> None:
    unseen = replace(site, sink=[])
    hidden, waived = spec.get("hidden", []), spec.get("waived", [])
    if not isinstance(hidden, list):
        raise site.error('hidden: a list of paths (or {"sibling": ..., "path": ...}).')
    for i, entry in enumerate(hidden):
        readings.hidden.extend(_places(entry, unseen.at(f"hidden[{i}]")))
    if not isinstance(waived, list):
        raise site.error('waived: a list of {"path": ..., "reason": ...}.')
    for i, entry in enumerate(waived):
        here = unseen.at(f"waived[{i}]")
        if not isinstance(entry, dict) or not isinstance(entry.get("reason"), str) or not entry["reason"].strip():
            raise here.error('{"path": ..., "reason": ...}: why is it harmless that a record reads it?')
        here.keys(entry, ("path", "reason"))
        if entry.get("path") not in FIELDS:  # else: what a search for leaks found in that field; it allows no reading
            readings.waived.extend(reading.place for reading in _places(entry.get("path"), here))


def _places(entry: Any, site: Site) -> list[PlaceReading]:
    if isinstance(entry, dict) and "sibling" in entry:
        probe = replace(site, sink=[])
        compile_value(entry, probe)
        return probe.sink
    root, steps = parse_path(entry, site.where)
    return [PlaceReading(place, site.where, spelled=entry) for place in site.resolve(root, steps)]


def compile_outcome(spec: Any, site: Site) -> Callable[[Scope], Outcome]:
    """How a run ended. What neither side covers, or both do, is UNKNOWN, and so is whatever a file that is missing
    would have said."""
    example = '{"of": value, "type": "number", "success": test, "failure": test}.'
    for name in ("of", "success", "failure"):
        if name not in site.keys(spec, ("of", "type", "success", "failure", "comment"), example):
            raise site.error(f"{name!r} is missing.")
    get = compile_value(spec["of"], site.at("of"))
    kind = spec.get("type")
    if kind is not None and kind not in tuple(TYPES):
        raise site.at("type").error(f"{kind!r}; it is one of {', '.join(TYPES)}.")
    of_kind = TYPES[kind] if kind is not None else lambda value: value is not None
    sides = {}
    for name in ("success", "failure"):
        if spec[name] != "else":
            sides[name] = compile_test(spec[name], site.at(name))
        elif "type" not in spec:
            raise site.at(name).error('"else" needs a "type": it covers present values of that type only.')
    if not sides:
        raise site.error('"else" can be one side only.')
    success, failure = sides.get("success"), sides.get("failure")

    def judge(scope: Scope) -> Outcome:
        scope.companion_missing = False
        value = get(scope)
        if isinstance(value, list) and len(value) == 1 and kind != "array":
            value = value[0]  # what a filter in a path finds
        if value is MISSING or value is None or not of_kind(value):
            return Outcome.UNKNOWN
        won = success is not None and success(value, scope)
        lost = not won if failure is None else failure(value, scope)
        if success is None:
            won = not lost
        if scope.companion_missing or won is lost:
            return Outcome.UNKNOWN
        return Outcome.SUCCESS if won else Outcome.FAILURE

    return judge
