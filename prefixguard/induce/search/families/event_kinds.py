"""What events of one kind hold, and how much speaks for each part that they may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from prefixguard.induce.search.columns import Field, Node, kinds_of
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.forms import (
    CallForm,
    TextForm,
    calls_of,
    joins_of,
    texts_of,
)
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.places import Place
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.lexicon import words

#: Calls below this worth are none; of this one they are: what tells two such forms apart is how many events hold one.
LEAST_WORTH, _SURE = 0.75, 1.2
#: For leaving out what only says again; texts of this many characters, and kinds with this many, are compared.
_MIRRORED, _LONG, _FEW_TEXTS = 1.5, 12, 3
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


def kind_of(node: Node, evidence: Evidence) -> EventKind:
    names = evidence.names
    calls = [form for form in calls_of(node, names) if form.worth >= LEAST_WORTH][:2]
    for inner in below(node):
        calls += [form for form in calls_of(inner, names)[:1] if form.worth >= LEAST_WORTH]
    most = max((_spread(form) for form in calls), default=1)
    calls = sorted(calls, key=lambda form: -min(form.worth, _SURE) - 0.6 * _spread(form) / most)
    own = next((form for form in calls if form.node is node and form.rest is None), None)
    without = own.places if own is not None else ()
    return EventKind(node, texts_of(node, without, names=names), calls)


def _spread(form: CallForm) -> int:
    """How many events hold such a call."""
    return len({form.node.owner[i] for i in form.covers})


def apart(one: CallForm, other: CallForm) -> bool:
    """Do other events hold the calls of the other form: two ways of one set to write calls?"""
    mine, theirs = ({form.node.owner[i] for i in form.covers} for form in (one, other))
    return len(theirs & mine) <= 0.1 * len(theirs)


def below(node: Node) -> Iterator[Node]:
    for inner in node.inner:
        yield inner
        yield from inner.inner


def meet(kinds: Sequence[EventKind], names: bool) -> None:
    """Calls and results that share ids: which lists, and which kinds, hold results. The id of a call is the one that
    most results name."""
    for form in (form for kind in kinds for form in kind.calls):
        form.made = None
    for form in {id(form.node): form for kind in kinds for form in kind.calls[1::-1]}.values():
        met = []
        named: Counter[Place] = Counter()
        for kind in kinds:
            own = [one.node for one in kind.calls[:1]]
            for node in (kind.node, *below(kind.node)):
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
        kind.results = kind.results or list(_by_name(kind, kinds))
        kind.results = _narrowest(kind.results)
        if kind.answers is not None:
            kind.texts = texts_of(kind.node, names=names)


def _by_name(kind: EventKind, kinds: Sequence[EventKind]) -> Iterator[tuple[Node, Any]]:
    """Lists in the events of a kind that name the tools which the others call, about as often: what came back, in the
    order of the calls, where no id tells."""
    forms = [form for other in kinds for form in other.calls[:1] if isinstance(form.tool, str) and form.made is None]
    for form in forms if kind.answers is None and not kind.calls else ():
        tool = next((one for one in form.node.fields.values() if one.name == form.tool), None)
        tools = set(map(str, tool.values.values())) if tool is not None else set()
        for node in below(kind.node) if len(tools) > 1 else ():
            for one in node.fields.values():
                named = sum(str(value) in tools for value in one.values.values())
                if named >= 0.95 * len(node.elements) and 0.7 <= named / max(1, len(form.covers)) <= 1.1:
                    yield node, (None, one, 0.0, form)
                    break


def _tells_again(form: CallForm, node: Node, made: Field, brought: Field) -> bool:
    """Do the elements say the arguments of the calls whose ids they have, and so are these calls once more?"""
    given = form.node.fields.get(form.places[1]) if len(form.places) > 1 else None
    values = {} if given is None else given.values
    said = {(form.node.runs[i], made.values.get(i)): set(words(repr(v))) for i, v in values.items()}
    pairs = [(said.get((node.runs[i], v)), node.elements[i]) for i, v in islice(brought.values.items(), _MOST_TOLD)]
    again = [mine <= set(words(repr(element))) for mine, element in pairs if mine]
    return bool(again) and sum(again) >= 0.8 * len(again)


def hear(kinds: Sequence[EventKind]) -> None:
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


def score(kinds: Sequence[EventKind], layout: Layout, evidence: Evidence) -> None:
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
    for kind in _mirrors(kinds):
        kind.parts["skip"] += _MIRRORED


def _mirrors(kinds: Sequence[EventKind]) -> Iterator[EventKind]:
    """Kinds that only say what others say, word for word: a log's copy of a message. Of two that say the same the one
    of which less is known."""
    said = {id(kind): {v.strip() for t in kind.texts for v in t.values if isinstance(v, str) and len(v) >= _LONG}
            for kind in kinds}  # fmt: skip
    left = dict(said)
    for kind in sorted(kinds, key=lambda kind: max(kind.parts.values())):
        first = kind.texts[0].values if kind.texts else ()
        mine = {v.strip() for v in first if isinstance(v, str) and len(v) >= _LONG}
        others = set[str]().union(*(texts for one, texts in left.items() if one != id(kind)))
        is_speech = not kind.calls and kind.answers is None and not kind.results
        again = len(mine) >= max(_FEW_TEXTS, 0.5 * len(first)) and len(mine & others) >= 0.9 * len(mine)
        if is_speech and again:
            del left[id(kind)]
            yield kind


def _repeats(kind: EventKind) -> float:
    """Does the kind say the same in every run, as a system prompt does?"""
    values = kind.texts[0].values if kind.texts else ()
    return 1.0 if len(values) >= 4 and len(set(map(str, values))) <= 0.3 * len(values) else 0.0
