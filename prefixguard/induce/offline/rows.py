"""Events that are whole steps: a row with what the agent thought, did and saw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.call_forms import CallForm, infer_call_form
from prefixguard.induce.offline.hints import column_at, named_calls
from prefixguard.induce.offline.shapes import CallShape, arguments_value, call_shape
from prefixguard.induce.offline.text_words import prose_share
from prefixguard.induce.offline.units import Column, Unit
from prefixguard.lexicon import Meaning, affinity, words

_DOES = frozenset("action actions act command commands cmd call move operation code move do click".split())  # noqa: SIM905
_WORD = re.compile(r"[A-Za-z0-9]{3,}")


@dataclass(slots=True)
class RowPlan:
    """action: column of what was done, None where the call is objects (shape). form: how the call stands in its text.
    result, thought: columns. before: the row holds what the agent saw before it acted, not what came back. repeated:
    columns that say again what others say. sure: in [0, 1]. other: what stands where a result is missing (an error)."""

    unit: Unit
    action: Column | None
    shape: CallShape | None
    form: CallForm | None
    result: Column | None
    thought: Column | None
    before: bool
    repeated: list[Column]
    sure: float
    other: Column | None = None


def plan_rows(unit: Unit, hints: Mapping[str, str]) -> RowPlan | None:
    """Are the events whole steps, and which column is what? None where they are not."""
    texts = [column for column in unit.columns.values() if _is_text(unit, column)]
    repeated = [column for column in texts if _repeats(column, texts)]
    texts = [column for column in texts if column not in repeated]
    by_hint = {name: column_at(unit, hints.get(name)) for name in ("action", "result")}
    shape = call_shape(unit, **named_calls(unit, hints))
    structured = shape if shape.tool is not None and shape.arguments is not None and shape.weight >= 0.35 else None
    if column_at(unit, hints.get("tool")) is not None:
        structured = shape
    if structured is not None and structured.arguments is not None and structured.arguments.present < 0.6:
        return None  # some events are calls and others are not
    taken = [structured.tool, structured.arguments] if structured else []
    texts = [c for c in texts if not any(t is not None and (c.place[: len(t.place)] == t.place) for t in taken)]
    forms: dict[int, CallForm | None] = {}

    def form_of(column: Column) -> CallForm | None:
        if id(column) not in forms:
            forms[id(column)] = infer_call_form([text for text in column.texts if text], column.name)
        return forms[id(column)]

    def does(column: Column) -> float:
        named = 1.0 if set(words(column.place[-1] or "")) & _DOES else 0.0
        form = form_of(column)
        shaped = form.share * form.confidence if form is not None else 0.0
        if form is not None and form.by_chance and not named:
            return 0.0  # all begin alike: no choice of what to do
        saw = affinity(column.name, Meaning.RESULT)
        who = max(affinity(column.name, Meaning.ROLE), affinity(column.name, Meaning.AGENT))
        if not named and (who >= 0.8 or column.distinct < min(20, 0.05 * len(column.values))):
            return 0.0
        return 1.2 * named + 0.7 * shaped - 0.6 * (saw >= 0.9) - 0.6 * (affinity(column.name, Meaning.THOUGHT) >= 0.9)

    action = by_hint["action"]
    sure = 0.0
    if structured is None and action is None:
        ranked = sorted(texts, key=lambda c: (-does(c), c.name))
        if not ranked or does(ranked[0]) < 0.3:
            return None
        action, sure = ranked[0], min(1.0, does(ranked[0]))
        if action.present < 0.6:
            return None
    elif structured is not None:
        sure = structured.weight
    rest = [column for column in texts if column is not action]
    thought = by_hint["action"] if structured is not None else None
    thought = thought or max(
        (c for c in rest if affinity(c.name, Meaning.THOUGHT) >= 0.6),
        key=lambda c: (affinity(c.name, Meaning.THOUGHT), c.size),
        default=None,
    )
    result = by_hint["result"]
    if result is None:
        left = [c for c in rest if c is not thought]
        named = [c for c in left if affinity(c.name, Meaning.RESULT) >= 0.6]
        result = max(named, key=lambda c: (affinity(c.name, Meaning.RESULT), c.size), default=None)
        # What stands beside the tool, inside the same object, is why it was called, not what came back.
        tool = structured.tool if structured is not None else None
        with_it = [c for c in left if tool is not None and len(tool.place) > 1 and c.place[:-1] == tool.place[:-1]]
        if result is None and structured is not None and len(with_it) == len(left):
            result = _object_back(unit, [*taken, thought])
        left = [c for c in left if c not in with_it] or left
        if result is None and left:
            unnamed = [c for c in left if prose_share([t for t in c.texts if t]) < 0.8]
            if not unnamed and (thought is not None or len(left) > 1):
                unnamed = _behind(unit, action, left) or left
            result = max(unnamed, key=lambda c: (c.size, c.name), default=None)
            sure -= 0.2
        if result is None and structured is not None:
            result = _object_back(unit, [*taken, thought])
        left = [c for c in {id(c): c for c in (*left, *with_it)}.values() if c is not result]
        if thought is None and left:
            prose = [c for c in left if prose_share([t for t in c.texts if t]) >= 0.6]
            thought = max(prose, key=lambda c: (c.size, c.name), default=None)
    if result is not None:
        result = _after(unit, result, [c for c in rest if c is not thought])
    if result is None and thought is None:
        return None
    other = _instead(unit, result, [action, thought, *taken]) if result is not None else None
    form = form_of(action) if action is not None and structured is None else None
    if (form is None or form.by_chance) and structured is None and action is not None and action is by_hint["action"]:
        return None  # a person named what is said, and no call stands in it
    before = result is not None and _before(unit, action or (structured.arguments if structured else None), result)
    return RowPlan(
        unit, action if structured is None else None, structured, form, result, thought, before, repeated, sure, other
    )


def _behind(unit: Unit, action: Column | None, columns: Sequence[Column]) -> list[Column]:
    """Columns that stand behind the action in the events, as what came back does where events are written in order."""
    order = list(unit.elements[0]) if unit.elements and isinstance(unit.elements[0], dict) else []
    at = order.index(action.place[0]) if action is not None and action.place[0] in order else len(order)
    return [column for column in columns if column.place[0] in order[at + 1 :]]


def _is_text(unit: Unit, column: Column) -> bool:
    least = 0.02 if affinity(column.name, Meaning.THOUGHT) >= 0.9 else 0.2
    if column.whole or not column.place or column.present < least:
        return False
    texts = [text for text in column.texts if text]
    if not any(isinstance(value, str) for value in column.values):
        return False
    if column.distinct < 3 and len(texts) > 6:
        return False
    named = max(affinity(column.name, Meaning.RESULT), 1.0 if set(words(column.place[-1] or "")) & _DOES else 0.0)
    if column.is_id and named < 0.6 and sum(map(_numbered, texts)) >= 0.8 * len(texts):
        return False
    if len({(run, text) for run, text in zip(unit.runs, column.texts, strict=True) if text}) < 0.2 * len(texts):
        return False  # the same all through a run
    mean = sum(map(len, texts)) / len(texts)
    return mean >= 3 and not all(re.fullmatch(r"[\d:.TZ+-]+", text) for text in texts[:20])


def _after(unit: Unit, result: Column, others: Sequence[Column]) -> Column:
    """Of two pages of a row, the one that came back: what the next row has as the page before."""
    for other in others:
        if other is result or other.size < 0.3 * result.size:
            continue
        pairs = [
            (result.texts[i + 1], other.texts[i])
            for i in range(len(unit.elements) - 1)
            if unit.runs[i] == unit.runs[i + 1] and other.texts[i]
        ]
        if len(pairs) >= 3 and sum(a == b for a, b in pairs) >= 0.8 * len(pairs):
            return other
    return result


def _object_back(unit: Unit, taken: Sequence[Column | None]) -> Column | None:
    """An object that came back, where no text did."""
    used = [column.place for column in taken if column is not None]
    found = [
        (affinity(column.name, Meaning.RESULT), -len(column.place), column.name, column)
        for column in unit.columns.values()
        if column.whole
        and column.size
        and column.present >= 0.3
        and not any(a.place[: len(p)] == p or p[: len(a.place)] == a.place for a in (column,) for p in used)
    ]
    best = max(found, key=lambda one: one[:3], default=None)
    return best[3] if best is not None and best[0] >= 0.4 else None


def _instead(unit: Unit, result: Column, taken: Sequence[Column | None]) -> Column | None:
    """The text that stands where the result is missing: what an error says."""
    missing = [i for i, text in enumerate(result.texts) if not text]
    if len(missing) < max(2, 0.02 * len(result.texts)):
        return None
    used = [column.place for column in (result, *taken) if column is not None]
    found: list[tuple[float, int, str, Column]] = []
    for column in unit.columns.values():
        if not column.place or any(column.place == place or column.place[: len(place)] == place for place in used):
            continue
        filled = sum(bool(column.texts[i]) for i in missing)
        if filled < 0.6 * len(missing) or filled < 0.9 * sum(map(bool, column.texts)) or column.is_name:
            continue
        if column.whole and any(isinstance(value, list) for value in column.values):
            continue
        found.append((affinity(column.name, Meaning.ERROR), -len(column.place), column.name, column))
    return max(found, key=lambda one: one[:3], default=(0.0, 0, "", None))[3]


def _numbered(text: str) -> bool:
    return len(text) >= 6 and any(character.isdigit() for character in text)


def _repeats(column: Column, others: Sequence[Column]) -> bool:
    """Does the text hold two others of the row, or another one that is shorter word for word?"""
    inside = 0
    for other in others:
        if other is column or other.size >= column.size:
            continue
        pairs = [(a, b.strip()) for a, b in zip(column.texts, other.texts, strict=True) if a and len(b.strip()) >= 6]
        if len(pairs) >= 3 and sum(b in a for a, b in pairs) >= 0.7 * len(pairs):
            inside += 1
    return inside >= 2


def _before(unit: Unit, action: Column | None, seen: Column) -> bool:
    """Does the row hold what the agent saw before it acted? By where the words of the action come from: out of this
    row's text, which stands before the action in the row and is not there after it."""
    if action is None or (
        affinity(seen.name, Meaning.RESULT) >= 0.95 and words(seen.place[-1] or "")[-1:] != ("observation",)
    ):
        return False
    order = list(unit.elements[0]) if unit.elements and isinstance(unit.elements[0], dict) else []
    if (
        seen.place[0] in order
        and action.place[0] in order
        and order.index(seen.place[0]) > order.index(action.place[0])
    ):
        return False
    here = after = 0.0
    n = 0
    for i in range(1, len(unit.elements)):
        if unit.runs[i] != unit.runs[i - 1]:
            continue
        said = set(_WORD.findall(action.texts[i][:2000].lower()))
        if not said:
            continue
        now = set(_WORD.findall(seen.texts[i][:20000].lower()))
        then = set(_WORD.findall(seen.texts[i - 1][:20000].lower()))
        here += len(said & (now - then)) / len(said)
        after += len(said & (then - now)) / len(said)
        n += 1
    first = [seen.texts[i] for i in range(len(unit.elements)) if i == 0 or unit.runs[i] != unit.runs[i - 1]]
    last = [
        seen.texts[i]
        for i in range(len(unit.elements))
        if i + 1 == len(unit.elements) or unit.runs[i] != unit.runs[i + 1]
    ]
    empties = sum(not text for text in last) - sum(not text for text in first)
    return n > 0 and here > 1.3 * after and empties <= 0


def row_rules(row: RowPlan, kinds: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """The rules of rows."""
    base: dict[str, Any] = {"emit": "step"}
    if row.result is not None:
        text: dict[str, Any] = {"text": row.result.name}
        if row.other is not None:
            text = {"first": [text, {"text": row.other.name}]}
        base["observation" if row.before else "result"] = text
    thought = {"text": row.thought.name} if row.thought is not None else None
    if row.shape is not None:
        rule = dict(base)
        if row.shape.tool is not None:
            rule["tool"] = row.shape.tool.name
        if row.shape.arguments is not None:
            arguments = row.shape.arguments
            rule["arguments"] = arguments_value(arguments)
        if thought is not None:
            rule["action"] = thought
        return [rule]
    if row.action is None:
        return [base]
    at = row.action.name
    if row.form is None:
        rule = dict(base)
        rule["arguments"] = at
        if thought is not None:
            rule["action"] = thought
        return [rule]
    rules = []
    for variant in row.form.variants():
        rule = {"when": {at: variant.when}, **base} if variant.when is not None else dict(base)
        if variant.tool is not None:
            rule["tool"] = variant.tool
        if variant.arguments is not None:
            rule["arguments"] = variant.arguments
        if thought is not None and variant.action is not None:
            rule["action"] = {"join": [thought, variant.action]}
        elif thought is not None or variant.action is not None:
            rule["action"] = thought if thought is not None else variant.action
        rules.append(rule)
    if "when" in rules[-1]:
        rules.append({**base, "action": {"join": [thought, {"text": at}]} if thought is not None else {"text": at}})
    return rules
