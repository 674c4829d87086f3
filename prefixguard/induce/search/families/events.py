"""The family of events of several kinds: messages with roles, typed events, spans. Each kind gets a part (the agent's,
a user's, a result, a call, nothing), and the rules follow from the parts and from what stands in its elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from prefixguard.induce.search.columns import MOST_KINDS, Field, KindSplit, Node, by_type, kinds_of, written
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.forms import (
    CallForm,
    TextForm,
    calls_of,
    complement,
    joins_of,
    objects_of,
    texts_of,
    together,
)
from prefixguard.induce.search.layouts import Layout, layouts
from prefixguard.induce.search.places import Place
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.lexicon import Meaning, affinity, words
from prefixguard.stepview import canonical

Rule = dict[str, Any]
#: Calls below this worth are no calls; ways to tell kinds apart that are tried; second guesses of a split.
_LEAST_WORTH, _MOST_SPLITS, _MOST_GUESSES = 0.75, 3, 4
#: Calls of this worth are calls: what tells two such forms apart is how many events hold one.
_SURE = 1.2
#: Kinds with names that say nothing, from which on they are a team.
_LEAST_TEAM = 3
#: Elements of a list that are compared with calls.
_MOST_TOLD = 200
_PARTS = {Part.SAY: "agent", Part.USER: "user", Part.RESULT: "result", Part.CALL: "call", Part.SYSTEM: "skip",
          Part.THOUGHT: "thought", Part.NOISE: "skip", Part.STEP: "agent"}  # fmt: skip


@dataclass(slots=True, eq=False)
class EventKind:
    """Events of one kind. calls: ways to read calls, of the events themselves or of lists in them. results: lists in
    them that name calls by id. heard: values of what arrived, from histories. parts: how much speaks for each part."""

    node: Node
    texts: list[TextForm]
    calls: list[CallForm] = field(default_factory=list)
    results: list[tuple[Node, Any]] = field(default_factory=list)
    answers: Any = None
    heard: list[Any] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def ranked(self) -> list[str]:
        return sorted(self.parts, key=lambda part: -self.parts[part])


def propose(evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Of every layout the candidates by every way to tell the kinds of its events apart, likeliest first."""
    for layout in layouts(evidence):
        if all(isinstance(e, dict | list) for run in layout.events_of for e in run[:50]):
            yield _of_layout(layout, evidence)


def _of_layout(layout: Layout, evidence: Evidence) -> Iterator[Candidate]:
    node = layout.node()
    splits: list[KindSplit | None] = list(kinds_of(node)[:_MOST_SPLITS])
    splits += [deep for split in splits if split is not None and (deep := _finer(split, evidence.names)) is not None]
    pooled = [one for split in splits if split is not None for one in (_pooled(split), split) if one is not None]
    for split in [*pooled, None]:
        nodes = [part for one in (split.nodes if split is not None else [node]) for part in by_type(one)]
        by = split.by if split is not None else "nothing"
        why = f"events at {layout.events}, {layout.why}, kinds by {by}"
        for spec, blocks in islice(_specs(layout, nodes, evidence), 1 + _MOST_GUESSES):
            yield Candidate(spec, "events", layout.likely, why, blocks)


def _finer(split: KindSplit, names: bool) -> KindSplit | None:
    """The split with those of its kinds divided once more that have two speakers, or two sets of keys; None where none
    has. What names the tool of calls tells no kinds."""
    nodes: list[Node] = []
    by = split.by
    for node in split.nodes:
        tools = {form.tool for form in calls_of(node, names) if form.worth >= _LEAST_WORTH
                 and isinstance(form.tool, str)}  # fmt: skip
        inner = [one for one in kinds_of(node) if one.by not in tools][:1] if len(node.elements) >= 4 else []
        speakers = names and any(len({p[0] for one in k.nodes if (p := part_of(one.label))}) >= 2 for k in inner)
        if inner and (speakers or inner[0].gain >= 0.6) and not inner[0].by.startswith("keys"):
            nodes += inner[0].nodes
            by = f"{split.by} and {inner[0].by}"
        else:
            nodes.append(node)
    return KindSplit(nodes, split.gain, by) if by != split.by and len(nodes) <= MOST_KINDS else None


def _pooled(split: KindSplit) -> KindSplit | None:
    """The split with the kinds whose names say nothing as one kind, that of others in a team: their names go on beyond
    the samples. None where fewer than three are such."""
    groups: dict[str, list[Node]] = {}
    for node in split.nodes:
        (*rest, (path, value)) = node.when.items() or [("", None)]
        if isinstance(value, str):
            groups.setdefault(canonical([rest, path]), []).append(node)
    nodes = list(split.nodes)
    for group in groups.values():
        unknown = [node for node in group if part_of(node.label) is None]
        if len(unknown) >= _LEAST_TEAM:
            first = unknown[0]
            *rest, (path, _) = first.when.items()
            known = sorted(node.label for node in group if node not in unknown)
            test: dict[str, Any] = {"present": True} | ({"not": {"in": known}} if known else {})
            rows = [row for one in unknown for row in zip(one.owner, one.elements, one.runs, strict=True)]
            rows.sort(key=lambda row: row[0])
            together = Node(first.each, [r[1] for r in rows], [r[0] for r in rows], [r[2] for r in rows])
            together.when, together.whole, together.speaker = {**dict(rest), path: test}, first.whole, path
            nodes = [together, *(node for node in nodes if node not in unknown)]
    return KindSplit(nodes, split.gain, f"{split.by}, a team") if len(nodes) < len(split.nodes) else None


Blocks = tuple[tuple[tuple[Rule, ...], ...], ...]


def _specs(layout: Layout, nodes: Sequence[Node], evidence: Evidence) -> Iterator[tuple[dict[str, Any], Blocks]]:
    kinds = [_kind(node, evidence) for node in nodes]
    _meet(kinds, evidence.names)
    _hear(kinds)
    _score(kinds, layout, evidence)
    if not any(kind.texts or kind.calls for kind in kinds):
        return
    parts = [kind.ranked[0] for kind in kinds]
    if "agent" not in parts and "call" not in parts:
        best = max(range(len(kinds)), key=lambda i: kinds[i].parts.get("agent", 0))
        parts[best] = "agent"
    if "call" in parts and any(k.calls for k, p in zip(kinds, parts, strict=True) if p == "agent"):  # told twice
        quiet = ["thinks" if p == "agent" and k.calls else p for k, p in zip(kinds, parts, strict=True)]
        yield _spec(layout, kinds, quiet)
    yield _spec(layout, kinds, parts)
    doubts = sorted(
        (kind.parts[kind.ranked[0]] - kind.parts[kind.ranked[1]], i)
        for i, kind in enumerate(kinds)
        if len(kind.ranked) > 1 and kind.node.elements
    )
    for gap, i in doubts:
        if gap < 0.8:
            other = list(parts)
            other[i] = kinds[i].ranked[1]
            yield _spec(layout, kinds, other)


def _kind(node: Node, evidence: Evidence) -> EventKind:
    names = evidence.names
    calls = [form for form in calls_of(node, names) if form.worth >= _LEAST_WORTH][:2]
    for inner in _below(node):
        calls += [form for form in calls_of(inner, names)[:1] if form.worth >= _LEAST_WORTH]
    most = max((_spread(form) for form in calls), default=1)
    calls = sorted(calls, key=lambda form: -min(form.worth, _SURE) - 0.6 * _spread(form) / most)
    own = next((form for form in calls if form.node is node and form.rest is None), None)
    without = own.places if own is not None else ()
    return EventKind(node, texts_of(node, without, names=names), calls)


def _spread(form: CallForm) -> int:
    """How many events hold such a call."""
    return len({form.node.owner[i] for i in form.covers})


def _apart(one: CallForm, other: CallForm) -> bool:
    """Do other events hold the calls of the other form: two ways of one set to write calls?"""
    mine, theirs = ({form.node.owner[i] for i in form.covers} for form in (one, other))
    return len(theirs & mine) <= 0.1 * len(theirs)


def _below(node: Node) -> Iterator[Node]:
    for inner in node.inner:
        yield inner
        yield from inner.inner


def _meet(kinds: Sequence[EventKind], names: bool) -> None:
    """Calls and results that share ids: which lists, and which kinds, hold results. The id of a call is the one that
    most results name."""
    for form in (form for kind in kinds for form in kind.calls):
        form.made = None
    for form in {id(form.node): form for kind in kinds for form in kind.calls[1::-1]}.values():
        met = []
        named: Counter[Place] = Counter()
        for kind in kinds:
            own = [one.node for one in kind.calls[:1]]
            for node in (kind.node, *_below(kind.node)):
                if node is not form.node and not (node in own and node is not kind.node):
                    joins = joins_of(form.node, node)
                    if node is not kind.node:
                        joins = {at: one for at, one in joins.items() if not _tells_again(form, node, *one[:2])}
                    met.append((kind, node, joins))
                    named.update({place: one[2] * len(one[1].values) for place, one in joins.items()})
        if not named:
            continue
        ((place, _),) = named.most_common(1)
        for kind, node, joins in met:
            if place not in joins:
                continue
            made, brought, share = joins[place]
            if node is kind.node and (kind.answers is None or share > kind.answers[2]):
                kind.answers = (made, brought, share, form)
            elif node is not kind.node and share >= 0.7:
                kind.results.append((node, (made, brought, share, form)))
            for one in (one for other in kinds for one in other.calls if one.node is form.node):
                one.made = made
    for kind in kinds:
        kind.results = _narrowest(kind.results)
        if kind.answers is not None:
            kind.texts = texts_of(kind.node, names=names)


def _tells_again(form: CallForm, node: Node, made: Field, brought: Field) -> bool:
    """Do the elements say the arguments of the calls whose ids they have, and so are these calls once more?"""
    given = form.node.fields.get(form.places[1]) if len(form.places) > 1 else None
    values = {} if given is None else given.values
    said = {(form.node.runs[i], made.values.get(i)): set(words(repr(v))) for i, v in values.items()}
    pairs = [(said.get((node.runs[i], v)), node.elements[i]) for i, v in islice(brought.values.items(), _MOST_TOLD)]
    again = [mine <= set(words(repr(element))) for mine, element in pairs if mine]
    return bool(again) and sum(again) >= 0.8 * len(again)


def _hear(kinds: Sequence[EventKind]) -> None:
    """What arrived, where an event repeats the whole history: behind the last that the agent said there, what nobody
    else says."""
    own = {id(kind): {str(v) for text in kind.texts for v in text.values} for kind in kinds}
    told = set[str]().union(*own.values())
    for kind in kinds:
        for history in kind.node.histories:
            split = next((one for one in kinds_of(history) if not one.by.startswith("keys")), None)
            said, heard, paths = [], [], []
            for node in split.nodes if split is not None else ():
                texts = texts_of(node)[:1]
                values = {str(v) for text in texts for v in text.values}
                if len(values & own[id(kind)]) > 0.5 * len(values):
                    said.append(node.label)
                elif texts and isinstance(texts[0].value, str) and len(values & told) < 0.3 * len(values):
                    if len(values) == 1 and len(set(history.runs)) >= 4:
                        continue  # the same in every run: no news
                    heard.append(node.label)
                    paths.append(texts[0].value)
            if split is None or not said or not heard:
                continue
            for path in dict.fromkeys(paths):
                kind.heard.append({"text": {
                    "elements": history.each.removesuffix("[*]"), "behind": {split.by: {"in": said}},
                    "when": {split.by: {"in": heard}}, "path": f"$[*]{path[1:]}",
                }})  # fmt: skip


def _narrowest(results: list[tuple[Node, Any]]) -> list[tuple[Node, Any]]:
    """One node a list: the surest, and of those the one told apart."""
    ranked = sorted(results, key=lambda one: (-round(one[1][2], 2), len(one[0].elements), -len(one[0].each)))
    out: list[tuple[Node, Any]] = []
    for node, found in ranked:
        if not any(set(node.owner) & set(other.owner) for other, _ in out):
            out.append((node, found))
    return out[:2]


def _score(kinds: Sequence[EventKind], layout: Layout, evidence: Evidence) -> None:
    """How much speaks for each part of each kind: names, what stands in it, and its place among the others."""
    of = {owner: i for i, kind in enumerate(kinds) for owner in kind.node.owner}
    firsts: list[int] = []
    lasts: list[int] = []
    before: dict[int, list[int]] = {i: [] for i in range(len(kinds))}
    at = 0
    for run in layout.events_of:
        known = [of[at + k] for k in range(len(run)) if at + k in of]
        texts = [i for i in known if kinds[i].texts]
        firsts += texts[:1]
        lasts += texts[-1:]
        for a, b in pairwise(known):
            before[b].append(a)
        at += len(run)
    made = [bool(kind.calls) and kind.answers is None for kind in kinds]
    for i, kind in enumerate(kinds):
        parts = dict.fromkeys(("agent", "user", "result", "call", "thought", "skip"), 0.0)
        said = part_of(kind.node.label) if evidence.names and kind.node.label else None
        if said is not None:
            parts[_PARTS[said[0]]] += 1.2 * said[1]
        own = [form for form in kind.calls if form.node is kind.node]
        inner = [form for form in kind.calls if form.node is not kind.node]
        if inner or kind.node.speaker:
            parts["agent"] += 0.9
        if own:
            parts["call"] += 0.6 * own[0].worth
            if kind.answers is None and kind.texts and own[0].worth >= 1.0:
                parts["call"], parts["result"] = parts["call"] + parts["result"], 0.0
        if kind.answers is not None:
            parts["result"] += 1.2
            parts["call"] -= 1.0
        elif before[i] and sum(made[a] for a in before[i]) >= 0.8 * len(before[i]):
            parts["result"] += 0.4
        parts["user"] += 0.5 * (firsts.count(i) / max(1, len(firsts)))
        parts["agent"] += 0.5 * (lasts.count(i) / max(1, len(lasts)))
        if not kind.texts and not kind.calls and not kind.results:
            parts["skip"] += 1.0
        parts["skip"] += _repeats(kind)
        kind.parts = parts


def _repeats(kind: EventKind) -> float:
    """Does the kind say the same in every run, as a system prompt does?"""
    values = kind.texts[0].values if kind.texts else ()
    return 1.0 if len(values) >= 4 and len(set(map(str, values))) <= 0.3 * len(values) else 0.0


def _spec(layout: Layout, kinds: Sequence[EventKind], parts: Sequence[str]) -> tuple[dict[str, Any], Blocks]:
    more_parts = ("says", "thinks") if any(kind.calls for kind in kinds) else ()
    blocks = tuple(_readings(kind, part, more_parts) for kind, part in zip(kinds, parts, strict=True))
    rules = [*(dict(rule) for block in blocks for rule in block[0]), {"emit": "skip"}]
    more: dict[str, Any] = {}
    joined = any(kind.answers or kind.results for kind in kinds)
    apart = any(part == "call" for part in parts)
    more["join"] = {"by": "id" if joined else "order", "scope": "run" if apart and joined else "message"}
    return layout.spec(rules, **more), blocks


def _readings(kind: EventKind, part: str, more: Sequence[str]) -> tuple[tuple[Rule, ...], ...]:
    """Ways to read a kind: as this part first, then as others, and with another of its texts."""
    found: dict[str, list[Rule]] = {}
    for each in (part, *(other for other in kind.ranked if other != part), *more):
        if each == "thought" and not more:
            continue  # nothing that speech could wait for
        for text in (None, *kind.texts[:4]):
            rules = written(_rules(kind, each, text))
            found.setdefault(repr(rules), rules)
    for form in kind.calls[:3] if len(kind.calls) > 1 else ():
        for each in ("agent", "call"):
            rules = written(_rules(replace(kind, calls=[form]), each))
            found.setdefault(repr(rules), rules)
    return tuple(tuple(rules) for rules in found.values())


def _rules(kind: EventKind, part: str, text: TextForm | None = None) -> list[Rule]:
    """The rules of a kind, with who speaks where that is one of a team. text: as in `_bare_rules`."""
    rules = _bare_rules(kind, part, text)
    for rule in rules:
        if kind.node.speaker and rule["emit"] in ("say", "call", "step"):
            rule["agent"] = ("^" if "each" in rule else "@") + kind.node.speaker[1:]
    return rules


def _bare_rules(kind: EventKind, part: str, text: TextForm | None) -> list[Rule]:
    """The rules of a kind. text: what it says, if that is not the text with the most in it."""
    when: dict[str, Any] = dict(kind.node.when)
    if part == "skip":
        return [_if(when, {"emit": "skip"})]
    rules: list[Rule] = [
        _if(when, {"then": "continue", "emit": "observe", "observation": value}) for value in kind.heard[:1]
    ]
    behind: list[Rule] = []
    for node, found in kind.results:
        here = found[3].node in tuple(_below(kind.node))  # the calls stand in the same events
        (behind if here else rules).append(_result_list(kind, node, found, when))
    own = next((form for form in kind.calls if form.node is kind.node), None)
    inner = next((form for form in kind.calls if form.node is not kind.node), None)
    without = [place for form in (own,) if form is not None for place in form.places]
    texts = [t for t in kind.texts if not _is_result(t, kind)] if text is None else [text]
    if part == "result":
        if kind.results and not texts:
            return [*rules, _if(when, {"emit": "skip"})] if rules else rules
        rule: Rule = {"emit": "result", "result": _result_text(kind.node, texts)}
        if kind.answers is not None:
            rule["call_id"] = kind.answers[1].name
        elif own is not None and own.test is None:
            rule |= {"tool": own.tool} | ({"arguments": own.arguments} if own.arguments is not None else {})
        return [*rules, _if(when, rule)]
    if inner is not None and inner.made is None and part in ("agent", "thought") and text is None:
        back = _back(kind)
        texts = [t for t in texts if t not in back]
    spoken = _speech(texts)
    if part == "call" and own is not None and own.rest is None and not any(_of_thought(t) for t in spoken):
        return [*rules, _step(own, when, texts)]
    if part in ("call", "agent", "thought") and (own is not None or inner is not None):
        first = own is not None and inner is not None and kind.calls.index(own) < kind.calls.index(inner)
        form = own if own is not None and (part == "call" or inner is None or first) else inner
        other = inner if form is own else own
        if form is not None:
            rules.append(_call(kind, form, when, spoken, without))
            if other is not None and _apart(form, other):
                rules.append(_call(kind, other, when, spoken, without))
            elif behind and form is inner:
                rules[-1]["then"] = "continue"
                rules += behind
                when[form.node.each] = {"present": False}
    if not spoken:
        return rules
    value = together(spoken)
    test = _test(spoken)
    if part == "user":
        rules.append(_if(_both(when, test), {"emit": "observe", "observation": value}))
    else:
        rule = {"emit": "say", "action": value}
        if part in ("thought", "thinks"):
            rule["hold"] = True
        rules.append(_if(_both(when, test), rule))
    return rules


def _of_thought(text: TextForm) -> bool:
    return affinity(text.name, Meaning.THOUGHT) >= 0.6


def _step(form: CallForm, when: Mapping[str, Any], texts: Sequence[TextForm]) -> Rule:
    """A call with what came back beside it; a call alone where nothing did."""
    rule: Rule = {"emit": "call", "tool": form.tool}
    if form.arguments is not None:
        rule["arguments"] = form.arguments
    objects = [text for text in objects_of(form.node) if not any(text.place[: len(p)] == p for p in form.places)]
    back = complement([*texts, *(text for text in objects if affinity(text.name, Meaning.RESULT) >= 0.5)])[:4]
    if form.made is not None:
        rule["call_id"] = form.made.name
    elif back:
        rule |= {"emit": "step", "result": together(back)}
    return _if(when, rule)


def _if(when: Mapping[str, Any], rule: Rule) -> Rule:
    return {"when": dict(when), **rule} if when else rule


def _both(when: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    """Both conditions; of a path that both test, both tests, and its value where the first names one."""
    out = dict(when)
    for path, other in test.items():
        mine = out.get(path)
        out[path] = {**mine, **other} if isinstance(mine, dict) and isinstance(other, dict) else out.get(path, other)
    return out


def _test(texts: Sequence[TextForm]) -> dict[str, Any]:
    if len(texts) == 1 and isinstance(texts[0].value, str):
        return {texts[0].value: {"present": True}}
    return {"value": {"first": [t.value for t in texts]}, "is": {"present": True}}


def _is_result(text: TextForm, kind: EventKind) -> bool:
    """Does the text stand in a list of results or calls, and so is none of the event's own?"""
    if text.inner is None:
        return False
    lists = [node for node, _ in kind.results] + [form.node for form in kind.calls]
    return any(text.inner is node or text.inner.each.startswith(node.each + ".") or text.inner.each.startswith(
        node.each + "[") for node in lists if node.each)  # fmt: skip


def _speech(texts: Sequence[TextForm]) -> list[TextForm]:
    """The texts that are what the event says: the one with the most in it, or those of which an event has one."""
    named = sorted(texts, key=lambda t: -(t.mass * (1 + 3 * max(_of_text(t), 0))))
    return complement(named)[:3]


def _of_text(text: TextForm) -> float:
    return max(affinity(text.name, Meaning.TEXT), affinity(text.name, Meaning.THOUGHT))


def _call(
    kind: EventKind, form: CallForm, when: Mapping[str, Any], spoken: Sequence[TextForm], without: Sequence[Any]
) -> Rule:
    """The rule of a call, or of a whole step where the result stands beside it."""
    own = form.node is kind.node
    rule: Rule = {"emit": "call", "tool": form.tool}
    if form.arguments is not None:
        rule["arguments"] = form.arguments
    if form.made is not None:
        rule["call_id"] = form.made.name
    said = {repr(t.value) for t in spoken} if own else ()
    beside = [t for t in texts_of(form.node, form.places) if repr(t.value) not in said]
    results = [t for t in beside if affinity(t.name, Meaning.RESULT) >= 0.5 or t.inner is not None]
    if results and not kind.results and form.test is None:
        rule["emit"] = "step"
        rule.pop("call_id", None)
        rule["result"] = together(complement(sorted(results, key=lambda t: -t.mass))[:3])
    if own:
        if form.back is not None:
            rule |= {"emit": "step", "result": form.back}
        test = form.tool if isinstance(form.tool, str) else form.tool.get("of", form.tool.get("json"))
        present = {test: {"present": True}} if isinstance(test, str) else {"value": form.tool, "is": {"present": True}}
        if form.test is not None:
            present = {"value": form.test, "is": {"present": True}}
        if form.rest is not None:
            rule["action"] = form.rest
        elif spoken:
            rule["action"] = together(spoken)
        return _if(_both(when, present), rule)
    rule = {"each": form.node.each, **rule}
    back = _back(kind)
    if back and form.made is None and rule["emit"] == "call":  # what came back stands beside the list of calls
        rule |= {"emit": "step", "result": together([_up(t) for t in back])}
        spoken = [t for t in spoken if t not in back and t.inner is None][:1]
    if spoken:
        rule["action"] = together([_up(t) for t in spoken])
    del without
    return _if(_both(when, {form.node.each: {"present": True}}), rule)


def _back(kind: EventKind) -> list[TextForm]:
    """Texts of an event that came back for the calls in it: results, and what went wrong instead."""
    own = [text for text in kind.texts if text.inner is None]
    results = [text for text in own if affinity(text.name, Meaning.RESULT) >= 0.6]
    errors = [t for t in own if t not in results and affinity(t.name, Meaning.ERROR) >= 0.5]
    return complement([*results, *errors])[:3] if results else []


def _up(text: TextForm) -> TextForm:
    value = "^" + text.value[1:] if isinstance(text.value, str) else text.value
    return TextForm(value, text.covers, text.mass, text.name)


def _result_list(kind: EventKind, node: Node, found: Any, when: Mapping[str, Any]) -> Rule:
    rule: Rule = {"then": "continue", "emit": "result", "each": node.each, "call_id": found[1].name}
    rule["result"] = _result_text(node, texts_of(node, (found[1].place,)))
    return _if(_both(when, {node.each: {"present": True}}), rule)


def _result_text(node: Node, texts: Sequence[TextForm]) -> Any:
    """What came back: texts, and objects of elements that have none."""
    texts = [t for t in texts if t.inner is None or not t.inner.is_part]
    forms = complement(sorted(texts, key=lambda t: -t.mass * (1 + 3 * affinity(t.name, Meaning.RESULT))))
    forms = complement([*forms, *objects_of(node)])[:4]
    if not forms:
        return {"text": "@"}
    return together(forms)


__all__ = ["EventKind", "KindSplit", "propose"]
