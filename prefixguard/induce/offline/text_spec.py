"""From heads, runs, roles and ends to a spec of the trace language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.offline.text_draft import BUDGETS, Draft
from prefixguard.induce.offline.text_ends import find_ends
from prefixguard.induce.offline.text_fences import bare, unfenced
from prefixguard.induce.offline.text_heads import HeadSet, Lines, Mark, marks
from prefixguard.induce.offline.text_lines import Head, Token, literal, regex_of, tokens_of
from prefixguard.induce.offline.text_parts import Parts, divide_kinds
from prefixguard.induce.offline.text_roles import RoleEvent, Roles, assign_roles, role_of_name
from prefixguard.induce.offline.text_run_values import add_outcome, add_task, hidden_members
from prefixguard.induce.offline.text_runs import RunPlan, Span, plan_runs
from prefixguard.induce.offline.text_source import TextSource, flat_values
from prefixguard.induce.proposal import LeftOut, Mapped


@dataclass(frozen=True, slots=True)
class _HeadRule:
    """How the spec tells a kind of event. test: its condition. name: for people."""

    test: dict[str, Any]
    name: str


def draft_spec(source: TextSource, lines: Lines, heads: HeadSet, name: str, hints: Mapping[str, str]) -> Draft | None:
    """The spec that reads the samples with these heads; None where they yield no calls and no speech."""
    found = marks(lines, heads.keys)
    if len(found) < 3:
        return None
    plan = plan_runs(lines, found, heads.keys) if not source.of else _one_a_file(lines, found, source)
    keys = [key for key in heads.keys if key not in plan.used]
    if plan.used:
        found = marks(lines, keys)
    if not keys or not found:
        return None
    ends = find_ends(lines, found, plan.spans, {})
    regex, tests = _events_head(lines, keys)
    cuts = [*_noise(lines), *ends.cuts, *_rulers(lines, found)]
    events = _events(lines, found, plan, cuts)
    prompts = frozenset(
        key for key in keys if not lines.heads[key].whole and key.rstrip()[-1:] in ">$#%" and len(keys) == 1
    )
    names = {key: lines.heads[key].name for key in keys}
    parts = divide_kinds(events, names)
    events = parts.events
    for base, kind in parts.calls.items():
        names[base], names[kind] = "result", "call"
        tests[kind] = _HeadRule({**tests[base].test, "@.body": {"re": parts.regex[kind]}}, parts.word[kind])
    names.update(dict.fromkeys(parts.openings, "result"))
    roles = assign_roles(events, names, prompts)
    if not set(roles.of.values()) & {"action", "step", "thought"}:
        return None
    draft = Draft({}, plan, roles, ends, min(roles.sure, 0.95))
    text_of = source.of or ("$.text" if plan.from_text or not plan.head else "$.body")
    told_in = source.of or ("$.body" if text_of == "$.text" else "$.text")
    split: dict[str, Any] = {"of": text_of, "head": regex}
    if cuts:
        split["cut"] = cuts if len(cuts) > 1 else cuts[0]
    run: dict[str, Any] = {}
    add_task(draft, source, lines, run, text_of, hints)
    add_outcome(draft, source, lines, run, told_in, hints)
    numbered = "(?P<number" in regex
    failing = _failing(lines, roles)
    rules = _rules(draft, events, tests, run, _preambles(source, plan, run), failing, parts)
    container = dict(source.container)
    if plan.head and not source.of:
        container["runs"] = {"split": {"head": plan.head}}
        if plan.sections:
            container["runs"]["section"] = plan.sections if len(plan.sections) > 1 else plan.sections[0]
    hidden: list[Any] = []
    if plan.sections:
        hidden.append("$.section")
    hidden.extend(hidden_members(source, run))
    spec: dict[str, Any] = {
        "schema": "prefixguard/adapter/v1",
        "name": name,
        "version": "1.0.0",
        "description": "",
        "container": container,
        "run": run,
        "events": {"split": split},
        "join": {"by": "order"},
    }
    if "thought" in roles.of.values():
        spec["turn"] = "@.number" if numbered and _counters_agree(lines, found, roles) else {"const": "1"}
    spec.update(rules=rules, status=_status(draft, events, failing, parts), budgets=BUDGETS, hidden=hidden, waived=[])
    draft.spec = spec
    draft.notes.extend(roles.why)
    draft.notes.extend(ends.why)
    return draft


def _one_a_file(lines: Lines, found: Sequence[Mark], source: TextSource) -> RunPlan:
    first: dict[int, int] = {}
    for mark in found:
        first.setdefault(mark.doc, mark.line)
    spans = [Span(doc, 0, at, len(lines.docs[doc])) for doc, at in sorted(first.items())]
    return RunPlan("", spans, f"one run a {'record' if source.root == '$' else 'folder'}")


# --- heads as one expression


def _events_head(lines: Lines, keys: Sequence[str]) -> tuple[str, dict[str, _HeadRule]]:
    """One RE2 for all heads, and the test by which each is told."""
    shapes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key in sorted(keys, key=lambda one: (-len(one), one)):
        head = lines.heads[key]
        before, kind, after = _parted(head)
        shapes.setdefault((before, after), []).append((key, kind))
    parts: list[str] = []
    tests: dict[str, _HeadRule] = {}
    ordered = sorted(shapes.items(), key=lambda kv: (-max(len(k) for k, _ in kv[1]), kv[0]))
    for i, ((before, after), members) in enumerate(ordered):
        group = "kind" if i == 0 else f"kind{i + 1}"
        names = sorted({kind for _, kind in members}, key=lambda kind: (-len(kind), kind))
        alternatives = "|".join(map(literal, names))
        regex = f"{before}(?P<{group}>{alternatives}){after}"
        if i == 0 or "(?P<number" not in "".join(parts):
            regex = _numbered(regex)
        parts.append(regex)
        for key, kind in members:
            tests[key] = _HeadRule({f"@.{group}": kind}, lines.heads[key].name)
    whole = parts[0] if len(parts) == 1 else "(?:" + "|".join(parts) + ")"
    return whole, tests


def _numbered(regex: str) -> str:
    """The first number of a head, where it is a plain counter, becomes the group `number`."""
    number = regex_of((Token("num", "1"),))
    return regex.replace(number, f"(?P<number>{number})", 1) if number in regex else regex


def _parted(head: Head) -> tuple[str, str, str]:
    """RE2 before the words of a head, the words, RE2 after them. Numbers between words stay with what is after."""
    tokens = head.tokens
    at = [i for i, token in enumerate(tokens) if token.kind == "word"]
    named = [i for i in at if tokens[i].text in head.words]
    if not named:
        signs = [i for i, token in enumerate(tokens) if token.kind == "sign"]
        first = last = signs[0] if signs else 0
    else:
        last = named[-1]
        first = last
        for i in reversed(named[:-1]):
            if any(token.kind in ("num", "time") for token in tokens[i:first]):
                break
            first = i
        known = [i for i in named if role_of_name(tokens[i].text)]
        if known and not first <= known[-1] <= last:
            first = last = known[-1]
    kind = "".join(token.text for token in tokens[first : last + 1])
    after = regex_of(tokens[last + 1 :]) + (r"[ \t]*$" if head.whole else "")
    return regex_of(tokens[:first]), kind, after


def _counters_agree(lines: Lines, found: Sequence[Mark], roles: Roles) -> bool:
    """Have thoughts and actions counters in their heads, so that a turn is told by its number?"""
    acting = {kind.split("\x00")[0] for kind, role in roles.of.items() if role in ("thought", "action")}
    return all(lines.heads[mark.head].numbers for mark in found if mark.head in acting)


# --- events of the samples


def _events(lines: Lines, found: Sequence[Mark], plan: RunPlan, cuts: Sequence[str]) -> list[RoleEvent]:
    """The events of the samples as the spec will see them, up to a bound."""
    import re2

    patterns = [re2.compile(cut) for cut in cuts]
    by_doc: dict[int, list[Mark]] = {}
    for mark in found:
        by_doc.setdefault(mark.doc, []).append(mark)
    events = []
    for run, span in enumerate(plan.spans[:600]):
        own = [mark for mark in by_doc.get(span.doc, ()) if span.first <= mark.line < span.stop]
        for i, mark in enumerate(own[:400]):
            stop = own[i + 1].line if i + 1 < len(own) else span.stop
            all_lines = lines.docs[span.doc][mark.line : min(stop, mark.line + 400)]
            start = sum(len(token.text) for token in tokens_of(all_lines[0][:72])[: mark.length])
            body = "\n".join([all_lines[0][start:], *all_lines[1:]])[:20_000].encode("utf-8", "replace").decode("utf-8")
            for pattern in patterns:
                body = pattern.sub("", body)
            events.append(RoleEvent(mark.head, body.strip(), run))
    return events


def _noise(lines: Lines) -> list[str]:
    """RE2 for lines that spinners leave behind."""
    blocks = [block.regex for block in lines.blocks]
    return blocks + [rf"(?m)^[^\x00-\x7f][ \t]+{literal(said.strip())}[ \t]*$" for said in sorted(lines.spinners)[:6]]


_RULER = re.compile(r"([^\w\s])\1{7,}[ \t]*")


def _rulers(lines: Lines, found: Sequence[Mark]) -> list[str]:
    """RE2 for rulers that stand right before events: they end the text of the event before."""
    before: Counter[str] = Counter()
    for mark in found:
        at = mark.line - 1
        while at >= 0 and not lines.docs[mark.doc][at].strip():
            at -= 1
        if at >= 0 and _RULER.fullmatch(lines.docs[mark.doc][at]):
            before[lines.docs[mark.doc][at][0]] += 1
    return [rf"(?:^|\n){literal(sign)}{{8,}}\s*$" for sign, n in sorted(before.items()) if n >= 0.2 * len(found)]


# --- parts of the spec


def _rules(
    draft: Draft,
    events: Sequence[RoleEvent],
    tests: Mapping[str, _HeadRule],
    run: Mapping[str, Any],
    preambles: Sequence[str],
    failing: frozenset[str],
    parts: Parts,
) -> list[dict[str, Any]]:
    roles = draft.roles
    rules: list[dict[str, Any]] = []
    order = {
        "noise": 0,
        "end": 0,
        "task": 1,
        "thought": 2,
        "action": 3,
        "step": 3,
        "result": 4,
        "user": 5,
        "observe": 6,
    }
    kinds = sorted(
        roles.of, key=lambda kind: (kind not in parts.regex, order.get(roles.of[kind], 9), tests[kind].name, kind)
    )
    count = Counter(event.kind for event in events)
    total = max(1, len(events))
    harness = _harness_action(draft, events)
    for kind in kinds:
        role, rule = roles.of[kind], tests[kind]
        share = count[kind] / total
        if role in ("noise", "end"):
            rules.append({"when": rule.test, "emit": "skip"})
            draft.left_out.append(LeftOut(rule.name, _WHY_LEFT[role], share))
        elif role == "task":
            rules.append({"when": rule.test, **_task_event(draft, run)})
            draft.mapped.append(Mapped(rule.name, "observation", 1.0, 0.7, "what the run is about"))
        elif role == "thought":
            rules.append({"when": rule.test, "emit": "say", "action": "@.body"})
            draft.mapped.append(Mapped(rule.name, "action", 1.0, 0.85, "said before a call, and joined to it"))
        elif role == "arguments":
            rules.append({"when": rule.test, "emit": "update", "arguments": "@.body"})
            draft.mapped.append(Mapped(rule.name, "arguments", 1.0, 0.85, "what comes right after the name of a tool"))
        elif role in ("action", "step"):
            if "arguments" in roles.of.values():
                rules.append({"when": rule.test, "emit": "call", "tool": {"strip": "@.body"}})
                draft.mapped.append(Mapped(rule.name, "tool", 1.0, 0.85, "names that repeat"))
                continue
            if harness is not None and harness[0] == kind:
                rules.append({"when": {**rule.test, "@.body": harness[1]}, "emit": "skip"})
                draft.left_out.append(LeftOut(f"{rule.name} {harness[1]}", "the same first action in every run", 0.0))
            rules.extend(_act(draft, kind, rule, role))
        elif role == "result":
            value = unfenced([event.body for event in events if event.kind == kind])
            if kind in parts.openings:
                value = {"first": [{"re": f"(?s){parts.openings[kind]}(.*)$", "of": "@.body"}, value]}
            answer = {"when": {**rule.test, "open_call": True}, "emit": "result", "result": value}
            if kind in failing:
                answer["status"] = [{"is": "error"}]
                draft.mapped.append(Mapped(rule.name, "status", share, 0.85, "results under this head are errors"))
            rules.append(answer)
            if _says_task_again(draft, events, kind, preambles):
                rules.append({"when": rule.test, "emit": "skip", "comment": "the task once more"})
            else:
                rules.append({"when": rule.test, "emit": "observe", "observation": "@.body"})
            draft.mapped.append(Mapped(rule.name, "result", 1.0, 0.85, "what follows a call"))
        else:
            rules.append({"when": rule.test, "emit": "observe", "observation": "@.body"})
            draft.mapped.append(Mapped(rule.name, "observation", 1.0, 0.7, "what arrives between the agent's steps"))
    stated = _stated(run.get("task"))
    if stated:  # what stands above the first event reaches the agent only as far as it is the task
        value = {"strip": {"re": stated, "of": "@.body"}}
        rules.append({"when": {"@.body": {"re": stated}}, "emit": "observe", "observation": value})
    rules.append({"emit": "skip", "comment": "text before the first event"})
    return rules


def _stated(task: Any) -> str:
    """RE2 of the line of the run's text that says the task; empty where something else says it."""
    inner = task.get("strip") if isinstance(task, dict) else None
    return str(inner.get("re", "")) if isinstance(inner, dict) and inner.get("of") in ("$.text", "$.body") else ""


def _preambles(source: TextSource, plan: RunPlan, run: Mapping[str, Any]) -> list[str]:
    """What each run of the samples is asked to do, where a file beside the log says it."""
    path = run.get("preamble")
    if not source.root or not isinstance(path, str):
        return []
    asked = [str(flat_values(record, source.root).get(path, "")) for record in source.records]
    return [asked[span.doc] for span in plan.spans]


def _says_task_again(draft: Draft, events: Sequence[RoleEvent], kind: str, preambles: Sequence[str]) -> bool:
    """Does the first text of this kind, before any call, say what the run is asked to do?"""
    first: dict[int, RoleEvent] = {}
    acted: set[int] = set()
    for event in events:
        if draft.roles.of.get(event.kind) in ("action", "thought"):
            acted.add(event.run)
        elif event.kind == kind and event.run not in acted:
            first.setdefault(event.run, event)
    if not preambles or not first:
        return False
    same = 0
    for run, event in first.items():
        asked = " ".join(preambles[run].split())[:48] if run < len(preambles) else ""
        same += bool(asked) and asked in " ".join(event.body.split())
    return same >= 0.5 * len(first)


_WHY_LEFT = {
    "noise": "what the harness logs, by its name",
    "end": "said when the run is over, by its name",
}


def _task_event(draft: Draft, run: Mapping[str, Any]) -> dict[str, Any]:
    if "preamble" in run:
        return {"emit": "skip"}
    return {"emit": "observe", "observation": "@.body"}


def _act(draft: Draft, kind: str, rule: _HeadRule, role: str) -> list[dict[str, Any]]:
    form = draft.roles.form if role == "step" else draft.roles.forms.get(kind)
    if role == "step":
        first = {"re": r"^([^\n]*)", "of": "@.body"}
        step: dict[str, Any] = {"when": rule.test, "emit": "step", "arguments": first}
        if form is not None and form.name in ("first word", "name(arguments)", "name[arguments]"):
            step["tool"] = form.tool
        else:
            step["tool"] = {"const": "execute"}
        step["result"] = {"re": r"(?s)^[^\n]*\n(.*)$", "of": "@.body"}
        draft.mapped.append(Mapped(rule.name, "arguments and result", 1.0, 0.7, "a line typed, and what came back"))
        return [step]
    if form is None:
        answered = "result" in draft.roles.of.values()
        draft.mapped.append(Mapped(rule.name, "action", 1.0, 0.6, "what the agent says; no form of calls in it"))
        emit = "call" if answered and role_of_name(rule.name) == "action" else "say"
        if emit == "call":
            return [{"when": rule.test, "emit": "call", "arguments": "@.body"}]
        return [{"when": rule.test, "emit": "say", "action": "@.body"}]
    rules = []
    for variant in form.variants():
        when = dict(rule.test)
        if variant.when is not None:
            when = {**when, ("value" if "@.body" in when else "@.body"): variant.when}
            if "value" in when:  # the text must pass two tests
                when = {**when, "value": "@.body", "is": variant.when}
        made: dict[str, Any] = {"when": when, "emit": variant.emits}
        for part, value in (("tool", variant.tool), ("arguments", variant.arguments), ("action", variant.action)):
            if value is not None:
                made[part] = value
        rules.append(made)
        if variant.when is None:
            break
    else:
        rules.append({"when": rule.test, "emit": "say", "action": "@.body"})
    draft.mapped.append(Mapped(rule.name, "tool and arguments", form.share, form.confidence, form.why))
    draft.sure = min(draft.sure, max(0.5, form.confidence))
    return rules


def _harness_action(draft: Draft, events: Sequence[RoleEvent]) -> tuple[str, str] | None:
    """A first action that is the same in nearly every run and never comes later: the harness's."""
    first: dict[int, RoleEvent] = {}
    later: Counter[str] = Counter()
    for event in events:
        if draft.roles.of.get(event.kind) != "action":
            continue
        if event.run not in first:
            first[event.run] = event
        else:
            later[event.body] += 1
    if len(first) < 3:
        return None
    counts = Counter((event.kind, event.body) for event in first.values())
    (kind, body), n = counts.most_common(1)[0]
    if n < 0.95 * len(first) or later[body] or not body or len(body) > 80:
        return None
    return kind, body


_ERRORS = frozenset(["error", "errors", "err", "exception", "failure", "failed", "fatal", "critical", "traceback"])


def _failing(lines: Lines, roles: Roles) -> frozenset[str]:
    """Kinds of results whose head says that something went wrong, where other kinds of results say no such thing."""
    results = [kind for kind, role in roles.of.items() if role == "result"]
    bad = {
        kind
        for kind in results
        if kind in lines.heads
        and _ERRORS & {token.text.lower() for token in lines.heads[kind].tokens if token.kind == "word"}
    }
    return frozenset(bad) if len(bad) < len(results) else frozenset()


def _status(draft: Draft, events: Sequence[RoleEvent], failing: frozenset[str], parts: Parts) -> list[Any]:
    answers = [
        event
        for before, event in pairwise(events)
        if draft.roles.of.get(event.kind) == "result"
        and event.body
        and before.run == event.run
        and draft.roles.of.get(before.kind) in ("action", "arguments")
    ]
    results = [bare(re.sub(parts.openings.get(event.kind, r"^(?!)"), "", event.body)) for event in answers]
    if "step" in draft.roles.of.values():
        results = [event.body.partition("\n")[2] for event in events if "\n" in event.body]
    if failing and any(event.kind in failing for event in answers):
        # The head tells errors; it is believed, and the rule of that head says so already.
        flags = {_FLAG: [event.kind in failing for event in answers]}
        form = infer_status(results, flags)
        rules = [rule for rule in form.rules if _FLAG not in rule.get("when", {})]
        draft.notes.append("Status: by the heads of what came back")
        draft.mapped.extend(one for one in form.mapped if one.raw != _FLAG)
        return list(rules)
    form = infer_status(results)
    draft.mapped.extend(form.mapped)
    draft.notes.append(f"Status: {form.why}")
    return list(form.rules)


#: How a head that tells errors is shown to the inference of the status.
_FLAG = "@.is_error"
