"""Outcomes in a file for many runs: lists of ids that went well or did not, rows with an id and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.run_beside import Beside
from prefixguard.induce.offline.run_outcome import OutcomeCandidate
from prefixguard.induce.offline.run_places import Column, Node, inner_places
from prefixguard.induce.samples import Kind, SampleFile
from prefixguard.lexicon import Meaning, affinity, path_names, polarity
from prefixguard.stepview import MISSING


def from_lists(beside: Beside, sources: Sequence[Column]) -> list[OutcomeCandidate]:
    """From a file for many runs: lists of ids, or of objects with an id and a verdict."""
    documents: dict[str, SampleFile] = {file.path: file for file in beside.files if file is not None}
    lists: dict[Place, dict[str, list[Any]]] = {}
    for path, file in documents.items():
        if file.kind != Kind.JSON:
            continue
        if isinstance(file.value, list):
            lists.setdefault((), {})[path] = file.value
            continue
        for place, value in inner_places(file.value, Node()):
            if isinstance(value, list):
                lists.setdefault(place, {})[path] = value
    found: list[OutcomeCandidate] = []
    ids = {place: by for place, by in lists.items() if all(_is_ids(one) for one in by.values())}
    for source in sources:
        found.extend(_id_lists(beside, source, ids))
        for place, by in lists.items():
            if any(isinstance(item, Mapping) for one in by.values() for item in one[:20]):
                found.extend(_rows(beside, source, place, by))
    return found


def _is_ids(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)


def _raw(source: Column, value: Any) -> Any:
    return value if isinstance(value, str | int) else None


def _id_lists(
    beside: Beside, source: Column, lists: Mapping[Place, Mapping[str, Sequence[Any]]]
) -> list[OutcomeCandidate]:
    """`{"of": id, "success": {"in": list}, "failure": "else"}`."""
    members = {place: {path: set(ids) for path, ids in by.items()} for place, by in lists.items()}
    keys = [_raw(source, value) for value in source.values]
    if any(key is None for key in keys):
        return []
    known = [
        any(key in by.get(file.path, ()) for by in members.values()) if file is not None else False
        for key, file in zip(keys, beside.files, strict=True)
    ]
    share = sum(known) / max(1, len(known))
    if share < 0.5:
        return []
    kind = "string" if isinstance(keys[0], str) else "number"
    found = _pairs(beside, source, kind, keys, members)
    for order, (place, by) in enumerate(members.items()):
        names = path_names(spell("$", place))
        sign = polarity(names[-1]) if names else 0
        inside = [
            (key in by.get(file.path, ())) if file is not None else None
            for key, file in zip(keys, beside.files, strict=True)
        ]
        n = sum(1 for one in inside if one)
        m = sum(1 for one in inside if one is False)
        named = affinity(names[-1] if names else "", Meaning.OUTCOME)
        if (not n or (not m and len(keys) > 3)) and named < 0.8:
            continue  # none or all of the samples stand in it, and it is not called after an outcome
        test = {"in": {"sibling": beside.template, "path": spell("$", place)}}
        good = sign >= 0
        confidence = 0.3 + 0.5 * named
        confidence -= 0.15 if sign == 0 else 0.1 if sign < 0 else 0.0
        confidence = confidence * (0.3 + 0.7 * share) - 0.01 * beside.template.count("..")
        outcome = {
            "of": source.spec,
            "type": kind,
            "success": test if good else "else",
            "failure": "else" if good else test,
        }
        sides = tuple(0 if one is None else (1 if one == good else -1) for one in inside)
        label = "the list of a neighbouring file"
        why = f"{n} of {n + m} runs stand in the list {spell('$', place)} of {beside.template}"
        found.append(
            OutcomeCandidate(outcome, sides, confidence, why, label, str(keys[0]), 6000 + order, shows_both=True)
        )
    return found


def _pairs(
    beside: Beside, source: Column, kind: str, keys: Sequence[Any], members: Mapping[Place, Mapping[str, set[Any]]]
) -> list[OutcomeCandidate]:
    """A list of what went well and one of what did not, if every run stands in one of them."""

    def listed(place: Place) -> list[bool]:
        by = members[place]
        return [f is not None and key in by.get(f.path, ()) for key, f in zip(keys, beside.files, strict=True)]

    signs = {place: polarity(str(place[-1])) if place else 0 for place in members}
    found = []
    for good in (place for place, sign in signs.items() if sign > 0):
        for bad in (place for place, sign in signs.items() if sign < 0):
            sides = [won - lost for won, lost in zip(listed(good), listed(bad), strict=True)]
            if sum(1 for side in sides if side) < 0.99 * len(sides):
                continue
            named = max(affinity(str(place[-1]), Meaning.OUTCOME) for place in (good, bad))
            tests = [{"in": {"sibling": beside.template, "path": spell("$", place)}} for place in (good, bad)]
            outcome = {"of": source.spec, "type": kind, "success": tests[0], "failure": tests[1]}
            why = f"every run stands in {spell('$', good)} or in {spell('$', bad)} of {beside.template}"
            confidence = 0.45 + 0.5 * named - 0.01 * beside.template.count("..")
            found.append(
                OutcomeCandidate(
                    outcome, tuple(sides), confidence, why, "the lists of a neighbouring file", str(keys[0]), 5900
                )
            )
    return found


def _rows(beside: Beside, source: Column, place: Place, by: Mapping[str, Sequence[Any]]) -> list[OutcomeCandidate]:
    """Objects with an id and a verdict, chosen by the filter of a path."""
    names: dict[str, None] = {}
    for rows in by.values():
        for row in rows[:50]:
            if isinstance(row, Mapping):
                names.update(dict.fromkeys(str(name) for name in row))
    plain = [name for name in names if name and not set(name) & set("[]=.'\"")][:40]
    keys = [_raw(source, value) for value in source.values]
    found: list[OutcomeCandidate] = []
    for id_name in plain:
        tables = {
            path: {row[id_name]: row for row in rows if isinstance(row, Mapping) and _is_id(row.get(id_name))}
            for path, rows in by.items()
        }
        rows_of = [
            tables.get(file.path, {}).get(key) if file is not None and key is not None else None
            for key, file in zip(keys, beside.files, strict=True)
        ]
        if sum(1 for row in rows_of if row is not None) < 0.5 * len(keys):
            continue
        for name in plain:
            if name == id_name:
                continue
            values = [row.get(name, MISSING) if row is not None else MISSING for row in rows_of]
            if any(isinstance(value, list | Mapping) for value in values):
                continue
            for form in judge_values(values, name)[:1]:
                one = _row_candidate(beside, source, place, id_name, name, form, values)
                if one is not None:
                    found.append(one)
        break
    return found


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _row_candidate(
    beside: Beside, source: Column, place: Place, id_name: str, name: str, form: OutcomeForm, values: Sequence[Any]
) -> OutcomeCandidate | None:
    spelled: dict[int, set[str]] = {1: set(), -1: set(), 0: set()}
    for value in values:
        if isinstance(value, str | int | float):
            spelled[form.side(value)].add(_spelled(value))
    if any(set(text) & set("[]'\"") or not text for side in (1, -1) for text in spelled[side]):
        return None

    def those(value: str) -> dict[str, Any]:
        return {"in": {"sibling": beside.template, "path": f"{spell('$', place)}[{name}={value}].{id_name}"}}

    everyone = {"in": {"sibling": beside.template, "path": f"{spell('$', place)}[*].{id_name}"}}
    success: Any
    failure: Any
    if len(spelled[1]) <= 1 and len(spelled[-1]) == 1 and spelled[1]:
        success, failure = those(min(spelled[1])), those(min(spelled[-1]))
    elif len(spelled[1]) == 1 and not spelled[0]:
        success = those(min(spelled[1]))
        failure = {**everyone, "not": success}
    elif len(spelled[-1]) == 1 and not spelled[0]:
        failure = those(min(spelled[-1]))
        success = {**everyone, "not": failure}
    else:
        return None
    sides = tuple(form.side(value) for value in values)
    share = sum(1 for side in sides if side) / max(1, len(sides))
    kind = "string" if isinstance(source.values[0], str) else "number"
    label = f"{name} of {spell('$', place)}[*] in {beside.template}"
    confidence = form.confidence * (0.3 + 0.7 * share) - 0.03 - 0.01 * beside.template.count("..")
    outcome = {"of": source.spec, "type": kind, "success": success, "failure": failure}
    return OutcomeCandidate(outcome, sides, confidence, f"{form.why}; a row a run", label, "", 7000)


def _spelled(value: str | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
