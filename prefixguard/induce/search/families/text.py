"""Family of logs: text whose lines begin with heads, or JSON records that hold such a text.

Heads and the beginnings of runs are found by repetition (`heads`, `text_logs`, `text_events`); what a head is (a
thought, a call, a result, what a user says, noise) is weighed in `text_roles`; here both become specs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.families.heads import LogLines
from prefixguard.induce.search.families.text_events import TextEvent, events_of, head_sets, inner_heads
from prefixguard.induce.search.families.text_logs import LogSource, RunSplit, log_sources, run_splits
from prefixguard.induce.search.families.text_roles import HeadRoles, roles_of
from prefixguard.induce.search.spoken_calls import SpokenCall, placed
from prefixguard.induce.search.spoken_names import quoted, role_of
from prefixguard.lexicon import polarity
from prefixguard.stepview.schema import NEWEST, schema_of

#: Candidates of one source, and how far behind the likeliest one may be.
MOST_CANDIDATES, NEAR = 48, 0.12
#: Rules are tried in this order.
_ORDER = (
    "noise", "user", "thought", "arguments", "call", "step", "both", "agent", "result", "observe", "parted", "noted",
)  # fmt: skip


def propose(evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Of every log the candidates, likeliest first."""
    for source in log_sources(evidence):
        made = sorted(islice(_candidates(source, evidence.names), MOST_CANDIDATES), key=lambda one: -one.prior)
        yield iter([one for one in made if one.prior >= made[0].prior - NEAR])


def _candidates(source: LogSource, names: bool) -> Iterator[Candidate]:
    lines = LogLines(source.texts, names)
    marks = lines.found()
    splits = [RunSplit(None, tuple((doc, 0) for doc in range(len(lines.docs))))]
    if source.container["format"] in ("text", "notebook"):
        splits = run_splits(lines, marks)
    for split in splits:
        for rank, heads in enumerate(head_sets(lines, marks, split, names)):
            kept = frozenset(heads) - {split.own}
            events = events_of(lines, marks, kept, split)
            inner = inner_heads(events)
            if inner:
                kept -= inner
                events = events_of(lines, marks, kept, split)
            if len(events) < 2 * len(split.starts):
                continue
            closers = _closers(events)
            if closers:
                events = [replace(event, body=re.sub(closers, "", event.body)) for event in events]
            for roles in roles_of(lines, events, names):
                prior = 0.4 * split.sure + 0.4 * min(1.0, roles.score) + 0.2 * 0.7**rank
                told = ", ".join(f"{lines.heads[kind].words!r} {role}" for kind, role in roles.of.items())
                why = f"heads of lines: {told}; {len(split.starts)} runs"
                yield Candidate(_spec(source, lines, split, roles, events, closers), "text", prior, why)


def _spec(
    source: LogSource, lines: LogLines, split: RunSplit, roles: HeadRoles, events: Sequence[TextEvent], closers: str
) -> dict[str, Any]:
    order = sorted(roles.of, key=lambda kind: (-len(kind), kind))
    slugs: dict[str, str] = {}
    for kind in order:
        words = re.findall("[a-z0-9]+", lines.heads[kind].words.lower())
        slug = "_".join(words)[-24:].strip("_") or "mark"
        slug = f"h_{slug}" if slug == "body" or slug[0].isdigit() else slug
        slugs[kind] = slug if slug not in slugs.values() else f"{slug}_{len(slugs)}"
    bodies: dict[str, list[str]] = {}
    for event in events:
        bodies.setdefault(event.kind, []).append(event.body)
    coded = [kind for kind in order if roles.of[kind] == "result" and _codes(kind, events)][:1]
    heads = [f"(?P<{slugs[kind]}>{lines.heads[kind].regex(num='number' * (kind in coded))})" for kind in order]
    part: dict[str, Any] = {"of": source.of or ("$.body" if split.own else "$.text"), "head": "|".join(heads)}
    cut = [*([closers] if closers else []), *_cuts(events, roles)]
    if cut:
        part["cut"] = cut
    rules: list[dict[str, Any]] = []
    for kind, text in _of_harness(events, roles):
        rules.append({"when": {f"@.{slugs[kind]}": {"present": True}, "@.body": text}, "emit": "skip"})
    for kind in sorted(order, key=lambda kind: (_ORDER.index(roles.of[kind]), kind)):
        rules += _rules(kind, {f"@.{slugs[kind]}": {"present": True}}, roles, bodies[kind])
    return {
        "schema": schema_of(NEWEST),
        "name": "candidate",
        "version": "1.0.0",
        "description": "",
        "run": {},
        "container": {**source.container, "runs": split.runs} if split.runs is not None else dict(source.container),
        "events": {"split": part},
        "join": {"by": "order"} | ({"scope": "run"} if _side_by_side(events, roles) else {}),
        "rules": [*rules, {"emit": "skip", "comment": "text before the first head"}],
    } | ({"status": _CODED} if coded else {})


#: Status by the number in a head: an exit code.
_CODED = [{"when": {"@.number": {"re": "^-?0*[1-9]"}}, "is": "error"}, {"is": "ok"}]


def _side_by_side(events: Sequence[TextEvent], roles: HeadRoles) -> bool:
    """Do several calls in a row stand before as many results?"""
    pairs = Counter((roles.of.get(a.kind), roles.of.get(b.kind)) for a, b in pairwise(events) if a.run == b.run)
    calls, results = pairs["call", "call"], pairs["result", "result"]
    return min(calls, results) >= max(2, 0.7 * max(calls, results))


def _of_harness(events: Sequence[TextEvent], roles: HeadRoles) -> list[tuple[str, str]]:
    """The call that begins every run and never comes later: the harness makes it."""
    first: dict[int, TextEvent] = {}
    later: set[str] = set()
    for event in events:
        if roles.of.get(event.kind) != "call":
            continue
        if event.run in first:
            later.add(event.body)
        first.setdefault(event.run, event)
    counts = Counter((event.kind, event.body) for event in first.values())
    least = max(3, 0.95 * len(first))
    return [one for one, n in counts.items() if n >= least and one[1] not in later and len(one[1]) < 80]


def _codes(kind: str, events: Sequence[TextEvent]) -> bool:
    """Are the numbers in a head exit codes: mostly 0, or 0 and a few others?"""
    numbers = [event.number for event in events if event.kind == kind]
    zeros = sum(number == "0" for number in numbers)
    return 0.3 * len(numbers) <= zeros and len(set(numbers)) <= max(2, 0.2 * len(numbers))


def _rules(kind: str, when: dict[str, Any], roles: HeadRoles, bodies: Sequence[str]) -> list[dict[str, Any]]:
    role = roles.of[kind]
    form = roles.forms.get(kind)
    if role == "noise":
        return [{"when": when, "emit": "skip"}]
    if role in ("thought", "agent"):
        test = {**when, "@.body": {"present": True}} if role == "agent" else when
        return [{"when": test, "emit": "say", "hold": True, "action": _unwrapped(bodies)}]
    if role == "arguments":
        return [{"when": when, "emit": "update", "arguments": "@.body"}]
    if role in ("parted", "noted"):  # a line, and behind a blank line what the agent says
        rest = {"re": r"(?s)\n[ \t]*\n(.*)$", "of": "@.body"}
        line = {"re": r"(?s)\A(.*?)(?:\n[ \t]*\n|\z)", "of": "@.body"}
        heard = {"when": when, "then": "continue", "emit": "observe", "observation": line}
        return [heard] * (role == "parted") + [
            {"when": {**when, "value": rest, "is": {"present": True}}, "emit": "say", "hold": True, "action": rest},
            {"when": when, "emit": "skip"},
        ]
    if role == "call":
        if "arguments" in roles.of.values():
            return [{"when": when, "emit": "call", "tool": {"strip": "@.body"}}]
        if form is None:
            return [{"when": when, "emit": "call", "arguments": "@.body"}]
        said = {"when": when, "emit": "say", "hold": True, "action": "@.body"}
        return [*_thinking(form, when), form.rule(when), *([said] if form.share < 1 else [])]
    if role == "step":
        first = {"re": r"^([^\n]*)", "of": "@.body"}
        rule: dict[str, Any] = {"when": when, "emit": "step", "arguments": first}
        if form is not None:
            rule |= {"tool": placed(form.tool, first, "@.body"), "arguments": placed(form.arguments, first, "@.body")}
        return [{**rule, "result": {"re": r"(?s)^[^\n]*\n(.*)$", "of": "@.body"}}]
    if role == "both" and form is not None:
        names = "|".join(quoted(name) for name, _ in form.tools)  # `search returned`, `search failed`
        value = {"re": rf"(?s)^(?:(?:{names})\b[ \t:]*)?(.*)$", "of": "@.body"}
        return [form.rule(when), *_result_rules(when, value)]
    if role == "result":
        return _result_rules(when, _unwrapped(bodies))
    return [{"when": when, "emit": "observe", "observation": _unwrapped(bodies)}]


def _thinking(form: SpokenCall, when: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls of a tool that only thinks: what it is given is what the agent says."""
    names = [name for name, _ in form.tools if role_of(name) == "thought"]
    if not names or form.result is not None:
        return []
    rule = {"when": {**when, "value": form.tool, "is": {"in": names}}, "emit": "call", "tool": form.tool}
    return [{**rule, "action": form.arguments}]


def _result_rules(when: dict[str, Any], value: Any) -> list[dict[str, Any]]:
    return [
        {"when": {**when, "open_call": True}, "emit": "result", "result": value},
        {"when": {**when, "@.body": {"present": True}}, "emit": "observe", "observation": "@.body"},
        {"when": when, "emit": "skip"},
    ]


def _unwrapped(bodies: Sequence[str]) -> Any:
    """Value of the text that bodies hold: out of a fence, or of `key=value key="text"`."""
    kept = [body for body in bodies if body]
    for wrap in (r"(?s)^```\w*\n(.*?)\n?```$", r"(?s)^(?:[\w.]+=[^\s\"]+ )*[\w.]+=\"(.*)\"\s*$"):
        if kept and sum(re.match(wrap, body) is not None for body in kept) >= 0.9 * len(kept):
            return {"re": wrap, "of": "@.body"}
    return "@.body"


def _cuts(events: Sequence[TextEvent], roles: HeadRoles) -> list[str]:
    """RE2 of what belongs to no text: what lines that go on begin with, rulers and signs at its end, and notes that
    something was left out."""
    out: list[str] = []
    more = [line for event in events for line in event.body.split("\n")[1:] if line.strip()]
    begun = Counter(match[0] for line in more if (match := re.match(r"[ \t]*[|>:][ \t]?|[ \t]+", line)))
    for prefix, n in begun.most_common(1):
        if n >= max(4, 0.8 * len(more)):
            out.append(f"(?m)^{quoted(prefix)}")
    notes: Counter[str] = Counter()
    lasts: Counter[str] = Counter()
    for event in events:
        lasts.update(_closing(event.body))
        note = re.search(r"(?:\.\.\.|…)[ \t]*[\[(<][^\[\]()<>\n]{0,12}\d+[^\[\]()<>\n]{1,24}[\])>]$", event.body)
        if note and roles.of.get(event.kind) == "result":
            notes[re.sub(r"\d+", "0", note[0])] += 1
    least = max(2, 0.02 * len(events))
    closing = [last for last, n in lasts.items() if n >= 5 * least]
    if closing:
        out.append(rf"(?:\n\s*(?:{'|'.join(closing)})[ \t]*)+\s*$")
    out += [re.sub("0", r"\\d+", quoted(note)) + r"\s*$" for note, n in notes.items() if n >= least]
    return out + _verdicts(events, roles)


def _closers(events: Sequence[TextEvent]) -> str:
    """Of tags at the end of texts that close what a head opens, and of marks such as <|im_end|>; "" where none are."""
    opened = {f"</{event.kind[1:].rstrip()}" for event in events if re.fullmatch(r"<\w[\w:-]*>\n?", event.kind)}
    seen: Counter[str] = Counter()
    for event in events:
        end = re.search(r"(?:\s*(?:</[\w:-]{1,30}>|<\|\w{1,30}\|>))+\Z", event.body)
        seen.update(set(re.findall(r"<[^<>]+>", end[0])) if end is not None else ())
    tags = [tag for tag, n in sorted(seen.items()) if n >= 2 and (tag in opened or tag[1] == "|")]
    return rf"(?:\s*(?:{'|'.join(map(quoted, tags))}))+\s*$" if tags else ""


def _closing(body: str) -> Iterator[str]:
    """RE2 of lines at the end of a text that are no part of it, the last first: rulers of four signs, and words behind
    a sign that is no letter and differs, a spinner."""
    for line in body.split("\n")[1:][:-5:-1]:
        last = line.strip()
        if ruler := re.fullmatch("([-=#*_~\u2500-\u257f])\\1{3,}", last):
            yield quoted(ruler[1]) + "{4,}"
        elif re.fullmatch(r"[^\x00-\x7f\w]\s+\w[^\n]{3,60}", last):
            yield r"[^\x00-\x7f]" + quoted(last[1:])
        elif last:
            return


def _verdicts(events: Sequence[TextEvent], roles: HeadRoles) -> list[str]:
    """RE2 of results that end runs, say how it went, and come nowhere else: no agent sees them."""
    answers = [event for event in events if roles.of.get(event.kind) == "result"]
    last = {id(event) for event in {event.run: event for event in answers}.values()}
    final = Counter(event.body for event in answers if id(event) in last)
    earlier = Counter(event.body for event in answers if id(event) not in last)
    told = [text for text, n in final.items() if n > 1 and earlier[text] <= 0.1 * n and 0 < len(text) < 80]
    told = [text for text in told if any(polarity(word) for word in re.findall(r"[A-Za-z]+", text))]
    if len(told) < 2 or sum(final[text] for text in told) < 0.2 * len(last):
        return []
    return [rf"\A\s*(?:{'|'.join(quoted(text) for text in sorted(told)[:6])})\s*\z"]
