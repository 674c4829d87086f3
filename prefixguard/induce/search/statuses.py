"""Whether a step went well: from flags beside its result, or from what results say, for each rule that reads one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.status import StatusForm, infer_status
from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.induce.search.columns import Node
from prefixguard.induce.search.evidence import Evidence
from prefixguard.stepview import Adapter
from prefixguard.stepview.parser import Parser

#: Values that a flag may have, and characters of an element that are looked at.
_MOST_VALUES, _LONGEST = 30, 60_000


def with_status(
    spec: Mapping[str, Any], evidence: Evidence
) -> tuple[dict[str, Any], tuple[Mapped, ...], tuple[LeftOut, ...]]:
    """The spec with a status on every rule that reads results; what tells it, and what looked as if it did."""
    rules: list[Any] = list(spec["rules"])
    mapped: list[Mapped] = []
    left_out: list[LeftOut] = []
    default: list[Mapping[str, Any]] = [{"is": "ok"}]
    for i, rule in enumerate(rules):
        if "result" not in rule or "status" in rule:
            continue
        form = _status(spec, i, evidence)
        if form is None:
            continue
        mapped += form.mapped
        left_out += form.left_out
        if any(key.startswith("@") for one in form.rules for key in one.get("when", {})):
            rules[i] = {**rule, "status": list(form.rules)}
        elif len(form.rules) > len(default):
            default = list(form.rules)
    told = {**spec, "rules": rules}
    if "status" not in spec:
        told["status"] = default
    return told, tuple(mapped), tuple(left_out)


def _status(spec: Mapping[str, Any], number: int, evidence: Evidence) -> StatusForm | None:
    """What tells the status of the steps that this rule completes."""
    results: list[str] = []
    elements: list[Any] = []
    runs: list[int] = []
    adapter = Adapter(_probe(spec, number))
    for n, run in enumerate(evidence.runs(adapter)):
        parser = Parser(adapter.program, run.scope, live=False)
        records = [r for event in evidence.events(adapter, run) for r in parser.observe(event)] + parser.end()
        for record in records:
            results.append(record.action)
            elements.append(_element(record.arguments))
            runs.append(n)
    if not any(results):
        return None
    return infer_status(results, _flags(elements), runs)


def _probe(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A spec in which this rule alone makes records: the result as action, the element as arguments."""
    rules = []
    for i, rule in enumerate(spec["rules"][: number + 1]):
        kept = {key: rule[key] for key in ("when", "each", "then") if key in rule}
        if i < number:
            kept.pop("each", None)
            rules.append({**kept, "emit": "skip"})
        else:
            held = {"object": {"element": "@"}}
            rules.append({**kept, "emit": "say", "action": rule["result"], "arguments": held})
    bare = {
        key: value for key, value in spec.items() if key not in ("turn", "status", "hidden", "waived", "run", "join")
    }
    budgets = {"arguments": [_LONGEST, 0], "action": [1200, 800]}
    return {**bare, "run": {}, "rules": [*rules, {"emit": "skip"}], "budgets": budgets}


def _element(text: str) -> Any:
    try:
        return json.loads(text)["element"]
    except (ValueError, KeyError, TypeError):
        return None


def _flags(elements: Sequence[Any]) -> dict[str, list[Any]]:
    """Fields of the elements with few values, by their path; None where an element has none."""
    node = Node("", [e if isinstance(e, dict | list) else {} for e in elements], list(range(len(elements))), [])
    found = {}
    for one in node.fields.values():
        if one.kind in ("flag", "number", "word", "text") and one.distinct <= _MOST_VALUES:
            found[one.name] = [_plain(one.values.get(i)) for i in range(len(elements))]
    return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else None
