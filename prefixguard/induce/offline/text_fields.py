"""Logs whose lines are `key=value` pairs: which key names the kind of event, which hold tool, arguments and result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prefixguard.induce.offline.call_forms import vocabulary
from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.offline.text_draft import BUDGETS, Draft
from prefixguard.induce.offline.text_ends import Ends
from prefixguard.induce.offline.text_heads import order_of
from prefixguard.induce.offline.text_lines import literal
from prefixguard.induce.offline.text_roles import Roles, role_of_name
from prefixguard.induce.offline.text_runs import RunPlan, Span
from prefixguard.induce.offline.text_source import TextSource
from prefixguard.induce.offline.text_words import is_prose
from prefixguard.induce.proposal import LeftOut, Mapped
from prefixguard.lexicon import Meaning, affinity, polarity

_PAIR = re.compile(r'([A-Za-z_][\w.-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
_KIND_NAMES = frozenset(
    ["event", "type", "kind", "msg", "message", "action", "role", "step", "name", "op", "phase", "stage"]
)
#: Lines that are looked at.
MOST_ROWS = 40_000


@dataclass(frozen=True, slots=True)
class _Row:
    doc: int
    line: int
    values: Mapping[str, str]


def fields_draft(source: TextSource, name: str, hints: Mapping[str, str]) -> Draft | None:
    """A draft for `key=value` lines; None where the lines are none."""
    rows, total = _rows(source.texts)
    if len(rows) < 6 or len(rows) < 0.7 * total:
        return None
    kind = _kind_key(rows)
    if kind is None:
        return None
    kinds = Counter(row.values[kind] for row in rows if kind in row.values)
    plan = _runs(rows, kind, source)
    runs = max(1, len(plan.spans))
    once = {value for value, n in kinds.items() if n <= 1.1 * runs and len(kinds) > 2}
    roles = _roles(rows, kind, kinds, once)
    if "action" not in roles.values():
        return None
    draft = Draft({}, plan, Roles(roles, None, 0.8, (), {}), Ends((), (), ()), 0.8)
    text_of, told_in = ("$.body", "$.text") if plan.head and not plan.from_text else ("$.text", "$.body")
    text_of, told_in = (source.of, source.of) if source.of else (text_of, told_in)
    run: dict[str, Any] = {}
    _run_values(draft, rows, kind, once, run, told_in, text_of, hints)
    head = rf'(?P<fields>(?:\S.*[ \t])?{literal(kind)}="?(?P<kind>[^\s"]+)"?(?:[ \t].*)?)$'
    container = dict(source.container)
    if plan.head and not source.of:
        container["runs"] = {"split": {"head": plan.head}}
    draft.spec = {
        "schema": "prefixguard/adapter/v1",
        "name": name,
        "version": "1.0.0",
        "description": "",
        "container": container,
        "run": run,
        "events": {"split": {"of": text_of, "head": head}},
        "join": {"by": "order"},
        "turn": {"const": "1"},
        "rules": _rules(draft, rows, kind, roles),
        "status": _status(draft, rows, kind, roles),
        "budgets": BUDGETS,
        "hidden": [],
        "waived": [],
    }
    if "thought" not in roles.values():
        del draft.spec["turn"]
    return draft


def _rows(texts: Sequence[str]) -> tuple[list[_Row], int]:
    rows: list[_Row] = []
    total = 0
    for doc, text in enumerate(texts):
        for at, line in enumerate(text.split("\n")):
            if not line.strip():
                continue
            total += 1
            if total > MOST_ROWS:
                return rows, total
            pairs = _PAIR.findall(line[:4000])
            if len(pairs) >= 2:
                values: dict[str, str] = {}
                for key, value in pairs:
                    values.setdefault(key, value[1:-1] if value[:1] == '"' else value)
                rows.append(_Row(doc, at, values))
    return rows, total


def _kind_key(rows: Sequence[_Row]) -> str | None:
    keys = Counter(key for row in rows for key in row.values)
    best: tuple[float, str] | None = None
    for key, n in sorted(keys.items()):
        if n < 0.9 * len(rows):
            continue
        values = [row.values[key] for row in rows if key in row.values]
        counts = Counter(values)
        if not 2 <= len(counts) <= 16 or not all(re.fullmatch(r"[A-Za-z][\w.:-]*", value) for value in counts):
            continue
        spread = 1 - counts.most_common(1)[0][1] / n
        roles = sum(m for value, m in counts.items() if role_of_name(value)) / n
        score = order_of(values) + 0.6 * roles + 0.4 * (key.lower() in _KIND_NAMES) + 0.3 * spread
        if best is None or score > best[0]:
            best = (score, key)
    return best[1] if best is not None else None


def _runs(rows: Sequence[_Row], kind: str, source: TextSource) -> RunPlan:
    """Runs begin where a kind stands that opens the texts and every block of some key's values."""
    first: dict[int, str] = {}
    for row in rows:
        first.setdefault(row.doc, row.values.get(kind, ""))
    opening = Counter(first.values()).most_common(1)[0]
    starts = [row for row in rows if row.values.get(kind) == opening[0]]
    total = Counter(row.values.get(kind) for row in rows)
    most = total.most_common(1)[0][1]
    docs = len(first)
    last = {row.doc: row.line + 1 for row in rows}
    if opening[1] < 0.9 * docs or len(starts) <= docs or len(starts) > 0.6 * most or source.of:
        spans = [Span(doc, 0, 0, last[doc]) for doc in sorted(first)]
        return RunPlan("", spans, "one run a file")
    spans = []
    for i, row in enumerate(starts):
        stop = starts[i + 1].line if i + 1 < len(starts) and starts[i + 1].doc == row.doc else last[row.doc]
        spans.append(Span(row.doc, row.line, row.line, stop))
    head = rf'(?m)^(?:\S.*[ \t])?{literal(kind)}="?{literal(opening[0])}"?(?P<about>(?:[ \t].*)?)$'
    return RunPlan(head, spans, f"a run begins at {kind}={opening[0]}, {len(starts)} times")


def _roles(rows: Sequence[_Row], kind: str, kinds: Mapping[str, int], once: set[str]) -> dict[str, str]:
    follow: dict[str, Counter[str]] = {}
    for one, two in pairwise(rows):
        if one.doc == two.doc:
            follow.setdefault(one.values.get(kind, ""), Counter())[two.values.get(kind, "")] += 1
    roles: dict[str, str] = {}
    for value in kinds:
        role = role_of_name(value)
        if value in once:
            roles[value] = "once"
        elif role == "agent":
            roles[value] = "action" if _tool_key(rows, kind, value) else "thought"
        elif role in ("thought", "action", "result", "noise"):
            roles[value] = role
    if "action" not in roles.values():
        open_ = [value for value in sorted(kinds, key=lambda v: (-kinds[v], v)) if value not in roles]
        best = next((value for value in open_ if _tool_key(rows, kind, value)), None)
        if best is not None:
            roles[best] = "action"
    for value in sorted(kinds, key=lambda v: (-kinds[v], v)):
        if value in roles:
            continue
        before = [one for one, role in roles.items() if role == "action" and follow.get(one, Counter())[value]]
        roles[value] = "result" if before and "result" not in roles.values() else "observe"
    return roles


def _columns(rows: Sequence[_Row], kind: str, value: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.values.get(kind) == value:
            for key, one in row.values.items():
                if key != kind:
                    found.setdefault(key, []).append(one)
    return found


def _tool_key(rows: Sequence[_Row], kind: str, value: str) -> str | None:
    """The key whose values are names of tools: few, repeating, more than one, changing from line to line."""
    best: tuple[float, str] | None = None
    n = sum(row.values.get(kind) == value for row in rows)
    for key, values in sorted(_columns(rows, kind, value).items()):
        names = vocabulary([one for one in values if re.fullmatch(r"[A-Za-z_][\w.:/-]*", one)], len(values))
        named = affinity(key, Meaning.TOOL)
        if len(values) < 0.8 * n or sum(names.values()) < 0.9 * len(values) or (len(names) < 2 and named < 0.5):
            continue
        changes = sum(a != b for a, b in pairwise(values)) / max(1, len(values) - 1)
        score = changes + named
        if best is None or score > best[0]:
            best = (score, key)
    return best[1] if best is not None else None


def _text_key(rows: Sequence[_Row], kind: str, value: str, besides: set[str]) -> str | None:
    """The key that holds the most text."""
    sizes = {
        key: sum(map(len, values)) * (1.5 if affinity(key, Meaning.RESULT) or affinity(key, Meaning.TEXT) else 1.0)
        for key, values in _columns(rows, kind, value).items()
        if key not in besides and len(set(values)) > 1 and not _is_clock(values)
    }
    return max(sorted(sizes), key=lambda key: sizes[key], default=None)


def _is_clock(values: Sequence[str]) -> bool:
    return all(re.match(r"\d{4}-\d\d-\d\d|\d\d:\d\d|\d{9,}", value) for value in values[:20])


def _value(key: str, of: str = "@.fields") -> dict[str, Any]:
    return {
        "first": [
            {"re": rf'(?:^|[ \t]){literal(key)}="((?:[^"\\]|\\.)*)"', "of": of},
            {"re": rf'(?:^|[ \t]){literal(key)}=([^\s"]+)', "of": of},
        ]
    }


def _rules(draft: Draft, rows: Sequence[_Row], kind: str, roles: Mapping[str, str]) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    constant = _constant(rows, kind)
    for value in sorted(roles):
        role = roles[value]
        when = {"@.kind": value}
        if role == "action":
            tool = _tool_key(rows, kind, value)
            columns = _columns(rows, kind, value)
            left = [
                key
                for key, values in sorted(columns.items())
                if key not in constant and key != tool and not _is_clock(values)
            ]
            left.sort(key=lambda key: (-affinity(key, Meaning.ARGUMENTS), -sum(map(len, columns[key])), key))
            rule: dict[str, Any] = {"when": when, "emit": "call"}
            if tool is not None:
                rule["tool"] = _value(tool)
                draft.mapped.append(Mapped(f"{kind}={value} {tool}", "tool", 1.0, 0.85, "names that repeat"))
            else:
                rule["tool"] = {"const": value}
            named = [key for key in left if affinity(key, Meaning.ARGUMENTS) >= 0.4]
            if named or len(left) == 1:
                rule["arguments"] = _value((named or left)[0])
            elif left:
                rule["arguments"] = {"object": {key: _value(key) for key in sorted(left)[:12]}}
            draft.mapped.append(Mapped(f"{kind}={value}", "arguments", 1.0, 0.7, ", ".join(left[:12]) or "none"))
            rules.append(rule)
        elif role in ("result", "thought", "observe"):
            text = _text_key(rows, kind, value, constant)
            if text is None:
                rules.append({"when": when, "emit": "skip"})
                continue
            emit = {"result": "result", "thought": "say", "observe": "observe"}[role]
            part = {"result": "result", "thought": "action", "observe": "observation"}[role]
            rules.append({"when": when, "emit": emit, part: _value(text)})
            draft.mapped.append(Mapped(f"{kind}={value} {text}", part, 1.0, 0.75, "the key that holds the most text"))
        else:
            rules.append({"when": when, "emit": "skip"})
            draft.left_out.append(LeftOut(f"{kind}={value}", "once a run, or what the harness logs"))
    rules.append({"emit": "skip", "comment": "lines of other kinds"})
    return rules


def _constant(rows: Sequence[_Row], kind: str) -> set[str]:
    """Keys that say the run, the time or the level: the same over stretches of lines of several kinds."""
    found = set()
    kinds = {row.values.get(kind) for row in rows}
    for key in sorted({key for row in rows for key in row.values}):
        having = [row for row in rows if key in row.values]
        if len({row.values.get(kind) for row in having}) < max(2, 0.6 * len(kinds)):
            continue
        same = sum(a.values[key] == b.values[key] for a, b in pairwise(having))
        if same >= 0.7 * max(1, len(having) - 1) or _is_clock([row.values[key] for row in having]):
            found.add(key)
    return found


def _status(draft: Draft, rows: Sequence[_Row], kind: str, roles: Mapping[str, str]) -> list[Any]:
    results: list[str] = []
    for value in sorted(roles):
        if roles[value] == "result":
            text = _text_key(rows, kind, value, _constant(rows, kind))
            results += _columns(rows, kind, value).get(text or "", [])
    form = infer_status(results)
    draft.mapped.extend(form.mapped)
    draft.notes.append(f"Status: {form.why}")
    return list(form.rules)


def _run_values(
    draft: Draft,
    rows: Sequence[_Row],
    kind: str,
    once: set[str],
    run: dict[str, Any],
    told_in: str,
    text_of: str,
    hints: Mapping[str, str],
) -> None:
    ends = []
    for value in sorted(once):
        for key, values in _columns(rows, kind, value).items():
            typed = [{"true": True, "false": False}.get(one.lower(), _numeric(one)) for one in values]
            if all(isinstance(one, str) for one in typed) and is_prose(values, least=1):
                if affinity(key, Meaning.TASK_TEXT) >= 0.4 or affinity(key, Meaning.TASK_ID) >= 0.4:
                    task = {
                        "re": rf'(?m){literal(kind)}="?{literal(value)}"?[ \t].*?\b{literal(key)}="((?:[^"\\]|\\.)*)"'
                    }
                    of = "$.about" if draft.plan.head and draft.plan.head.endswith("(?P<about>(?:[ \\t].*)?)$") else ""
                    found = _value(key, of) if of else {**task, "of": text_of}
                    run["task"] = found
                    if of:  # a run that is still going on has no whole text
                        run["preamble"] = found
                    draft.mapped.append(Mapped(f"{kind}={value} {key}", "task", 1.0, 0.8, "said once a run"))
                continue
            for form in judge_values(typed, key)[:1]:
                ends.append((form.confidence, value, key, form, values, typed))
    if "task" in hints:
        run["task"] = hints["task"]
    if "outcome" in hints:
        run["outcome"] = {"of": hints["outcome"], "type": "string", "success": "true", "failure": "else"}
        return
    if not ends:
        draft.notes.append("Nothing says how runs ended: name it with --hint outcome=PATH, or give labels.")
        return
    confidence, value, key, form, values, typed = max(ends, key=lambda one: (one[0], one[1], one[2]))
    good = sorted({text for text, one in zip(values, typed, strict=True) if _side(form.success, one, text)})
    regex = rf'(?m)\b{literal(kind)}="?{literal(value)}"?[ \t](?:.*[ \t])?{literal(key)}="?([^\s"]+)'
    success = good[0] if len(good) == 1 else {"in": good}
    run["outcome"] = {"of": {"re": regex, "of": told_in}, "type": "string", "success": success, "failure": "else"}
    draft.mapped.append(Mapped(f"{kind}={value} {key}", "outcome", 1.0, confidence, form.why))


def _numeric(text: str) -> Any:
    if re.fullmatch(r"-?\d+", text):
        return int(text[:15])
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def _side(test: Any, value: Any, text: str) -> bool:
    if isinstance(test, dict):
        if "ge" in test:
            return isinstance(value, int | float) and not isinstance(value, bool) and value >= test["ge"]
        if "in" in test:
            return value in test["in"] or text in test["in"]
        return polarity(text) > 0
    return bool(value == test)
