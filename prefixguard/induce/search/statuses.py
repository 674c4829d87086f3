"""Whether a step went well: from flags beside its result, or from what results say, for each rule that reads one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.induce.search.columns import Node
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.status import infer_status
from prefixguard.stepview import Adapter
from prefixguard.stepview.parser import Parser

#: Values that a flag may have, and characters of an element that are looked at.
_MOST_VALUES, _LONGEST = 30, 60_000
#: What is said calls nothing, so nothing can fail.
_SAID = {"when": {"tool": "respond", "result": {"present": False}}, "is": "ok"}


def with_status(
    spec: Mapping[str, Any], evidence: Evidence
) -> tuple[dict[str, Any], tuple[Mapped, ...], tuple[LeftOut, ...]]:
    """The spec with a status on every rule that reads results; what tells it, and what looked as if it did."""
    rules: list[Any] = list(spec["rules"])
    of_text = isinstance(spec["events"], dict) and "split" in spec["events"]  # what an event of text has is its head
    said = str(evidence.hints.get("status", ""))
    mapped: list[Mapped] = []
    left_out: list[LeftOut] = []
    texts: list[str] = []  # of the rules beside whose results nothing tells it
    for i, rule in enumerate(rules):
        if "result" not in rule or "status" in rule:
            continue
        rows = read_by_rule(spec, i, rule["result"], evidence)
        results = [text for row in rows for text, _ in row]
        if not any(results):
            continue
        flags = {} if of_text else _flags([element for row in rows for _, element in row])
        flags = {said: flags[said]} if said in flags else flags
        form = infer_status(results, flags, [n for n, row in enumerate(rows) for _ in row], said)
        left_out += form.left_out
        if any(key.startswith("@") for one in form.rules for key in one.get("when", {})):
            mapped += form.mapped
            rules[i] = {**rule, "status": list(form.rules)}
        else:
            texts += results
    told = {**spec, "rules": rules}
    if "status" not in spec:
        emitted = {rule["emit"] for rule in rules}
        called = emitted & {"call", "step"} and not any("result" in rule for rule in rules)
        told["status"] = "unknown" if called else [{"is": "ok"}]
        if texts:
            form = infer_status(texts)
            mapped += form.mapped
            told["status"] = [*([_SAID] if {"say", "call"} <= emitted else []), *form.rules]
    return told, tuple(mapped), tuple(left_out)


def read_by_rule(spec: Mapping[str, Any], number: int, value: Any, evidence: Evidence) -> list[list[tuple[str, Any]]]:
    """What a value is in the events that this rule takes, a list for each run: its text, and the element it is read
    from. Events in which it is nothing are left out. PrefixGuardError where the value is none."""
    rules: list[Any] = []
    for rule in spec["rules"][: number + 1]:
        kept = {key: rule[key] for key in ("when", "then") if key in rule}
        if "open_call" in kept.get("when", {}):  # no call is open here: those rules are skipped
            kept["when"] = {key: test for key, test in kept["when"].items() if key != "open_call"}
        rules.append({**kept, "emit": "skip"})
    each = {"each": rule["each"]} if "each" in (rule := spec["rules"][number]) else {}
    held = {"emit": "say", "action": value, "arguments": {"object": {"element": "@"}}}
    rules[-1:] = [{**rules[-1], **each, **held}, {"emit": "skip"}]
    bare = {key: spec[key] for key in spec if key not in ("turn", "status", "hidden", "waived", "run", "join")}
    budgets = {"arguments": [_LONGEST, 0], "action": [1200, 800]}
    adapter = Adapter({**bare, "run": {}, "rules": rules, "budgets": budgets})
    found = []
    for run in evidence.runs(adapter):
        parser = Parser(adapter.program, run.scope, live=False)
        records = [r for event in evidence.events(adapter, run) for r in parser.observe(event)] + parser.end()
        found.append([(record.action, _element(record.arguments)) for record in records])
    return found


def _element(text: str) -> Any:
    try:
        return json.loads(text)["element"]
    except (ValueError, KeyError, TypeError):  # too long, and cut
        return None


def _flags(elements: Sequence[Any]) -> dict[str, list[Any]]:
    """Fields of the elements with few values, by their path; None where an element has none."""
    node = Node("", [e if isinstance(e, dict | list) else {} for e in elements], list(range(len(elements))), [])
    return {
        one.name: [v if isinstance(v := one.values.get(i), str | int | float) else None for i in range(len(elements))]
        for one in node.fields.values()
        if one.kind in ("flag", "number", "word", "text") and one.distinct <= _MOST_VALUES
    }
