"""From heads, runs, roles and ends to a spec of the trace language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.names import Meaning, affinity, polarity
from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.status import infer_status
from prefixguard.induce.offline.text_ends import Ends, find_ends
from prefixguard.induce.offline.text_heads import HeadSet, Lines, Mark, marks
from prefixguard.induce.offline.text_lines import Head, Token, literal, regex_of, tokens_of
from prefixguard.induce.offline.text_roles import Event, Roles, assign_roles, role_of_name
from prefixguard.induce.offline.text_runs import RunPlan, plan_runs
from prefixguard.induce.offline.text_source import TextSource
from prefixguard.induce.offline.text_words import is_prose, reads_as_prose
from prefixguard.induce.proposal import Choice, LeftOut, Mapped, Option

BUDGETS = {"observation": [1200, 800], "action": [1200, 800], "arguments": [1500, 500], "result": [1200, 800]}


@dataclass(slots=True)
class Draft:
    """A spec, and what led to it. sure: in [0, 1]."""

    spec: dict[str, Any]
    plan: RunPlan
    roles: Roles
    ends: Ends
    sure: float
    mapped: list[Mapped] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def apply(self, spec: dict[str, Any], name: str, value: Any) -> None:
        """Puts the answer to a choice into the spec: `outcome`, `task` or another part of `run`."""
        run = {key: part for key, part in spec["run"].items() if key != name}
        spec["run"] = {**run, name: value} if value is not None else run


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
    plan = plan_runs(lines, found, heads.keys) if not source.of else _one_a_file(lines, found)
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
    roles = assign_roles(events, {key: lines.heads[key].name for key in keys}, prompts)
    if not set(roles.of.values()) & {"action", "step", "thought"}:
        return None
    draft = Draft({}, plan, roles, ends, min(roles.sure, 0.95))
    text_of = source.of or ("$.text" if plan.from_text or not plan.head else "$.body")
    told_in = source.of or ("$.body" if text_of == "$.text" else "$.text")
    split: dict[str, Any] = {"of": text_of, "head": regex}
    if cuts:
        split["cut"] = cuts if len(cuts) > 1 else cuts[0]
    run: dict[str, Any] = {}
    _task(draft, source, lines, run, text_of, hints)
    _outcome(draft, source, run, told_in, hints)
    numbered = any("(?P<number" in regex for _ in (0,))
    rules = _rules(draft, events, tests, run, _preambles(source, plan, run))
    container = dict(source.container)
    if plan.head and not source.of:
        container["runs"] = {"split": {"head": plan.head}}
        if plan.sections:
            container["runs"]["section"] = plan.sections if len(plan.sections) > 1 else plan.sections[0]
    hidden: list[Any] = []
    if plan.sections:
        hidden.append("$.section")
    hidden.extend(_hidden_members(source, run))
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
    spec.update(rules=rules, status=_status(draft, events, hints), budgets=BUDGETS, hidden=hidden, waived=[])
    draft.spec = spec
    draft.notes.extend(roles.why)
    draft.notes.extend(ends.why)
    return draft


def _one_a_file(lines: Lines, found: Sequence[Mark]) -> RunPlan:
    from prefixguard.induce.offline.text_runs import Span

    first: dict[int, int] = {}
    for mark in found:
        first.setdefault(mark.doc, mark.line)
    spans = [Span(doc, 0, at, len(lines.docs[doc])) for doc, at in sorted(first.items())]
    return RunPlan("", spans, "one run a folder")


# --- heads as one expression


def _events_head(lines: Lines, keys: Sequence[str]) -> tuple[str, dict[str, _HeadRule]]:
    """One RE2 for all heads, and the test by which each is told."""
    shapes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for key in sorted(keys, key=lambda one: (-len(one), one)):
        head = lines.heads[key]
        before, kind, after = _parted(head)
        shapes.setdefault((before, after), []).append((key, kind))
    parts = []
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
    acting = {kind for kind, role in roles.of.items() if role in ("thought", "action")}
    return all(lines.heads[mark.head].numbers for mark in found if mark.head in acting)


# --- events of the samples


def _events(lines: Lines, found: Sequence[Mark], plan: RunPlan, cuts: Sequence[str]) -> list[Event]:
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
            events.append(Event(mark.head, body.strip(), run))
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
    events: Sequence[Event],
    tests: Mapping[str, _HeadRule],
    run: Mapping[str, Any],
    preambles: Sequence[str],
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
    kinds = sorted(roles.of, key=lambda kind: (order.get(roles.of[kind], 9), tests[kind].name, kind))
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
            rules.append({"when": {**rule.test, "open_call": True}, "emit": "result", "result": "@.body"})
            if _says_task_again(draft, events, kind, preambles):
                rules.append({"when": rule.test, "emit": "skip", "comment": "the task once more"})
            else:
                rules.append({"when": rule.test, "emit": "observe", "observation": "@.body"})
            draft.mapped.append(Mapped(rule.name, "result", 1.0, 0.85, "what follows a call"))
        else:
            rules.append({"when": rule.test, "emit": "observe", "observation": "@.body"})
            draft.mapped.append(Mapped(rule.name, "observation", 1.0, 0.7, "what arrives between the agent's steps"))
    rules.append({"emit": "skip", "comment": "text before the first event"})
    return rules


def _preambles(source: TextSource, plan: RunPlan, run: Mapping[str, Any]) -> list[str]:
    """What each run of the samples is asked to do, where a file beside the log says it."""
    path = run.get("preamble")
    if not source.member or not isinstance(path, str):
        return []
    asked = [str(_flat(record, f"$.{source.member}").get(path, "")) for record in source.records]
    return [asked[span.doc] for span in plan.spans]


def _says_task_again(draft: Draft, events: Sequence[Event], kind: str, preambles: Sequence[str]) -> bool:
    """Does the first text of this kind, before any call, say what the run is asked to do?"""
    first: dict[int, Event] = {}
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
        when = {**rule.test, **({"@.body": variant.when} if variant.when is not None else {})}
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


def _harness_action(draft: Draft, events: Sequence[Event]) -> tuple[str, str] | None:
    """A first action that is the same in nearly every run and never comes later: the harness's."""
    first: dict[int, Event] = {}
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


def _status(draft: Draft, events: Sequence[Event], hints: Mapping[str, str]) -> list[Any]:
    results = [
        event.body
        for before, event in zip(events, events[1:], strict=False)
        if draft.roles.of.get(event.kind) == "result"
        and event.body
        and before.run == event.run
        and draft.roles.of.get(before.kind) in ("action", "arguments")
    ]
    if "step" in draft.roles.of.values():
        results = [event.body.partition("\n")[2] for event in events if "\n" in event.body]
    form = infer_status(results)
    draft.mapped.extend(form.mapped)
    draft.notes.append(f"Status: {form.why}")
    return list(form.rules)


# --- run values


def _task(
    draft: Draft, source: TextSource, lines: Lines, run: dict[str, Any], text_of: str, hints: Mapping[str, str]
) -> None:
    plan = draft.plan
    if "id" in hints:
        run["id"] = hints["id"]
    titles = [title for title in plan.groups.get("title", ()) if title]
    asked = any(reads_as_prose(title) for title in titles[:50]) or any(len(t.split()) >= 5 for t in titles[:50])
    title: Any = {"strip": "$.title"}
    if titles:
        again = _repeated_tail(titles)
        if again:
            title = {"strip": {"re": rf"^(.*?)(?:{literal(again)}.*)?$", "of": "$.title"}}
            draft.notes.append(f"What follows {again!r} in the line of a run tells of earlier attempts: cut.")
    if source.member:
        _member_task(draft, source, run)
    elif titles:
        run["task"] = title
        if asked:
            run["preamble"] = title
            draft.mapped.append(Mapped("$.title", "preamble", len(titles) / len(plan.spans), 0.8, "the question"))
        draft.mapped.append(Mapped("$.title", "task", len(titles) / len(plan.spans), 0.8, "the line a run begins with"))
    else:
        stated = _headed_task(draft, lines) or _stated_task(draft, lines)
        if stated:
            run["task"] = run["preamble"] = {"strip": {"re": stated, "of": text_of}}
        elif "number" in plan.groups:
            run["task"] = "$.number"
            draft.mapped.append(Mapped("$.number", "task", 1.0, 0.5, "the number of the run"))
        elif not plan.head:
            run["task"] = {"file": "stem"}
    if "task" in hints:
        run["task"] = hints["task"]


def _repeated_tail(titles: Sequence[str]) -> str:
    """What follows a title where others are that title and more."""
    known = set(titles)
    rests: Counter[str] = Counter()
    for title in sorted(known):
        if len(title) < 20:
            continue
        for other in sorted(known):
            if other is not title and other.startswith(title) and len(other) > len(title) + 12:
                rests[other[len(title) :].strip()[:40]] += 1
    if not rests:
        return ""
    rest, n = rests.most_common(1)[0]
    return rest.rsplit(" ", 1)[0] if n >= 3 else ""


_TASK_LINE = re.compile(
    r"(?im)^[^\w\n]{0,6}((?:task|question|goal|instruction|objective|problem|query|intent)\w{0,4})\b[^\w\n:]{0,4}:[ \t]*(\S.*)$"
)


def _stated_task(draft: Draft, lines: Lines) -> str:
    """A line such as `Task: ...` that stands in every run, and differs."""
    labels: Counter[str] = Counter()
    values: dict[str, set[str]] = {}
    for span in draft.plan.spans:
        stop = min(span.stop, max(span.first, span.start) + 12)
        seen = set()
        for match in _TASK_LINE.finditer("\n".join(lines.docs[span.doc][span.start : stop])):
            line = match.group(0)[: match.start(2) - match.start()]
            if line not in seen:
                seen.add(line)
                labels[line] += 1
                values.setdefault(line, set()).add(match.group(2))
    for line, n in sorted(labels.items(), key=lambda kv: (-kv[1], kv[0])):
        if n >= 0.9 * len(draft.plan.spans) and (len(values[line]) > 1 or n == 1):
            draft.mapped.append(Mapped(line.strip(), "task", n / len(draft.plan.spans), 0.8, "a line of every run"))
            return rf"(?m)^{literal(line)}(.*)$"
    return ""


def _headed_task(draft: Draft, lines: Lines) -> str:
    """RE2 of the one line a run that begins as an event does and says what the run is about."""
    for kind, role in sorted(draft.roles.of.items()):
        if role == "task" and 0.9 * len(draft.plan.spans) <= lines.count(kind) <= 1.1 * len(draft.plan.spans):
            head = lines.heads[kind]
            draft.mapped.append(Mapped(head.name, "task", 1.0, 0.8, "once a run, before its first step"))
            return rf"(?m)^{regex_of(head.tokens)}[ \t]*" + (r"\n[ \t]*(.*)$" if head.whole else "(.*)$")
    return ""


def _flat(value: Any, path: str = "$", depth: int = 0) -> dict[str, Any]:
    """Plain values of a JSON document by path, as far as three levels in."""
    found: dict[str, Any] = {}
    if isinstance(value, dict) and depth < 3:
        for key, inner in list(value.items())[:200]:
            step = f".{key}" if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w*", key) else f'["{key}"]'
            found.update(_flat(inner, path + step, depth + 1))
    elif not isinstance(value, list | dict):
        found[path] = value
    return found


def _member_values(source: TextSource) -> dict[str, list[Any]]:
    rows = [_flat(record, f"$.{source.member}") for record in source.all_records]
    paths = sorted({path for row in rows for path in row})
    return {path: [row.get(path) for row in rows] for path in paths}


def _member_task(draft: Draft, source: TextSource, run: dict[str, Any]) -> None:
    values = _member_values(source)

    def best(meaning: Meaning, prose: bool) -> str | None:
        found = []
        for path, column in values.items():
            texts = [value for value in column if isinstance(value, str) and value]
            if len(texts) < 0.8 * len(column) or is_prose(texts) is not prose:
                continue
            weight = affinity(path, meaning)
            if weight >= 0.4 and len(set(texts)) > 1:
                found.append((weight, -len(path), path))
        return max(found)[2] if found else None

    task = best(Meaning.TASK_ID, False) or best(Meaning.TASK_TEXT, True)
    text = best(Meaning.TASK_TEXT, True)
    if task is not None:
        run["task"] = task
        draft.mapped.append(Mapped(task, "task", 1.0, 0.8, "by its name and by values that repeat"))
    if text is not None:
        run["preamble"] = text
        draft.mapped.append(Mapped(text, "preamble", 1.0, 0.8, "what the run is asked to do"))


def _hidden_members(source: TextSource, run: Mapping[str, Any]) -> list[str]:
    """Everything in the JSON beside a log but the task and what it is asked to do."""
    if not source.member:
        return []
    shown = {str(run.get("preamble", ""))}
    outcome = run.get("outcome", {}).get("of") if isinstance(run.get("outcome"), dict) else None
    keys = sorted({key for record in source.all_records if isinstance(record, dict) for key in record})
    found = []
    for key in keys:
        path = f"$.{source.member}" + (f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", key) else f'["{key}"]')
        if path != outcome and not any(one.startswith(path) for one in shown):
            found.append(path)
    return found


def _outcome(draft: Draft, source: TextSource, run: dict[str, Any], told_in: str, hints: Mapping[str, str]) -> None:
    options: list[Option] = []
    plan = draft.plan
    if source.member:
        for path, column in _member_values(source).items():
            for form in judge_values(column, path)[:1]:
                if form.confidence >= 0.35:
                    options.append(Option(path, form.spec(path), form.confidence, form.why, str(column[0])[:60]))
    told = [verdict for verdict in plan.verdicts if verdict is not None]
    if told:
        words = sorted(set(told))
        good = [word for word in words if polarity(word) > 0]
        bad = [word for word in words if polarity(word) < 0]
        if good and bad:
            value = {"of": "$.section.verdict", "type": "string", "success": _either(good), "failure": _either(bad)}
            share = len(told) / len(plan.spans)
            options.append(
                Option(
                    "the heading above the run", value, 0.6 + 0.38 * share, f"headings say {', '.join(words)}", told[0]
                )
            )
    for verdict in draft.ends.verdicts[:3]:
        of: Any = {"re": verdict.regex, "of": told_in}
        missing = [i for i, one in enumerate(verdict.values) if one is None]
        why = verdict.why
        if missing and verdict.failure == "else" and _ran_out(plan, verdict.values):
            of = {"first": [of, {"const": "none"}]}
            why += f"; {len(missing)} runs without it are longer than the others: they ran out of steps, and failed"
        value = {"of": of, "type": "string", "success": verdict.success, "failure": verdict.failure}
        example = next((one for one in verdict.values if one), "")
        options.append(Option("the last lines of a run", value, verdict.confidence * 0.97, why, example))
    options.extend(_from_path(source, plan))
    options.sort(key=lambda one: (-one.confidence, one.label))
    if "outcome" in hints:
        run["outcome"] = {"of": hints["outcome"], **_hinted(source, hints["outcome"])}
        return
    if not options:
        draft.notes.append("Nothing says how runs ended: name it with --hint outcome=PATH, or give labels.")
        return
    run["outcome"] = options[0].value
    draft.mapped.append(Mapped(options[0].label, "outcome", 1.0, options[0].confidence, options[0].why))
    if len(options) > 1 and options[1].confidence >= 0.4:
        draft.choices.append(Choice("outcome", tuple(options[:4]), 0, "the most confident place"))


def _hinted(source: TextSource, path: str) -> dict[str, Any]:
    values = _member_values(source).get(path, []) if source.member else []
    forms = judge_values(values, path)
    if forms:
        return {"type": forms[0].type, "success": forms[0].success, "failure": forms[0].failure}
    return {"type": "string", "success": {"in": ["success", "passed", "true"]}, "failure": "else"}


def _either(words: Sequence[str]) -> Any:
    return words[0] if len(words) == 1 else {"in": list(words)}


def _ran_out(plan: RunPlan, values: Sequence[str | None]) -> bool:
    """Are runs without a verdict few, and longer than the others?"""
    without = sorted(s.stop - s.first for s, v in zip(plan.spans, values, strict=True) if v is None)
    with_ = sorted(s.stop - s.first for s, v in zip(plan.spans, values, strict=True) if v is not None)
    if not without or not with_ or len(without) > 0.4 * len(values):
        return False
    return without[len(without) // 2] >= 1.2 * with_[len(with_) // 2]


def _from_path(source: TextSource, plan: RunPlan) -> list[Option]:
    """Folders or file names that say how runs went, where a file is a run."""
    if plan.head or source.member:
        return []
    options = []
    for part, regex in (("parent", r"([^/]+)/[^/]+$"), ("stem", r"([^/]+?)(?:\.[^./]*)?$")):
        names = [match.group(1) if (match := re.search(regex, file.path)) else "" for file in source.files]
        told: list[str] = []
        for one in names:
            told.extend(word for word in re.split(r"[^A-Za-z]+", one) if polarity(word))
        good = sorted({word for word in told if polarity(word) > 0})
        bad = sorted({word for word in told if polarity(word) < 0})
        if good and bad and len(told) >= 0.9 * len(names):
            either = "|".join(sorted({*good, *bad}, key=lambda word: (-len(word), word)))
            value = {
                "of": {"file": part, "re": rf"(?:^|[^A-Za-z])({either})(?:[^A-Za-z]|$)", "group": 1},
                "type": "string",
                "success": _either(good),
                "failure": _either(bad),
            }
            options.append(Option(f"the file's {part}", value, 0.8, f"names say {', '.join(good + bad)}", names[0]))
    return options
