"""Whether a step went well: from flags beside its result, or from what results say, for each rule that reads one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.induce.search.columns import Node
from prefixguard.induce.search.evidence import Evidence
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
    mapped: list[Mapped] = []
    left_out: list[LeftOut] = []
    texts: list[str] = []  # of the rules beside whose results nothing tells it
    of_runs: list[int] = []
    for i, rule in enumerate(rules):
        if "result" not in rule or "status" in rule:
            continue
        results, elements, runs = _results(spec, i, evidence)
        if not any(results):
            continue
        form = infer_status(results, {} if of_text else _flags(elements), runs)
        left_out += form.left_out
        if any(key.startswith("@") for one in form.rules for key in one.get("when", {})):
            mapped += form.mapped
            rules[i] = {**rule, "status": list(form.rules)}
        else:
            texts += results
            of_runs += runs
    told = {**spec, "rules": rules}
    if "status" not in spec:
        called = any(rule["emit"] in ("call", "step") for rule in rules)
        told["status"] = "unknown" if called and not any("result" in rule for rule in rules) else [{"is": "ok"}]
        if texts:
            form = infer_status(texts, {}, of_runs)
            mapped += form.mapped
            told["status"] = [_SAID, *form.rules] if {"say", "call"} <= {r["emit"] for r in rules} else list(form.rules)
    return told, tuple(mapped), tuple(left_out)


def _results(spec: Mapping[str, Any], number: int, evidence: Evidence) -> tuple[list[str], list[Any], list[int]]:
    """What this rule reads as results, with the element of each and the number of its run."""
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
    return results, elements, runs


def _probe(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A spec in which this rule alone makes records: the result as action, the element as arguments."""
    rules = []
    for i, rule in enumerate(spec["rules"][: number + 1]):
        kept = {key: rule[key] for key in ("when", "each", "then") if key in rule}
        if "open_call" in kept.get("when", {}):  # no call is open here: those rules are skipped
            kept["when"] = {key: test for key, test in kept["when"].items() if key != "open_call"}
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
