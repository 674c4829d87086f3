"""What the heads of a log are: who thinks, calls, answers, asks. Weighed by what their texts look like, what follows
them, and their names; several readings where they are near."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from prefixguard.induce.search.families.heads import LogLines, is_prompt
from prefixguard.induce.search.families.text_events import TextEvent
from prefixguard.induce.search.spoken_calls import SpokenCall, placed, spoken_calls
from prefixguard.induce.search.spoken_names import NAME, names_share, prose_share, role_of, value_of
from prefixguard.stepview import MISSING

#: How much a name speaks for a kind that calls, and for one that answers.
_CALLS = {"call": 0.9, "agent": 0.4, "tool": 0.4, "thought": -0.6, "result": -1.0, "user": -1.0, "noise": -1.2}
_ANSWERS = {"result": 0.6, "tool": 0.3, "user": -0.1, "agent": -0.3, "noise": -0.4, "call": -0.5, "thought": -0.6}
#: The kind that calls says what it thinks, too, where it holds fewer calls than this; who speaks before it is another.
_MOST_CALLS = 0.85


@dataclass(frozen=True, slots=True)
class HeadRoles:
    """of: role by kind: thought, call, arguments, step, agent, result, user, observe, noise; both: calls, and what does
    not hold one is a result; parted: a line that
    arrived and behind a blank line what the agent says; noted: noise, and behind a blank line what it says. forms: of
    calls by kind. score: how much speaks for it."""

    of: Mapping[str, str]
    forms: Mapping[str, SpokenCall]
    score: float


class Kinds:
    """The events of the samples by kind: their texts, what follows what, what their names say."""

    def __init__(self, lines: LogLines, events: Sequence[TextEvent], names: bool) -> None:
        self.events = events
        self.bodies: dict[str, list[str]] = {}
        for event in events:
            self.bodies.setdefault(event.kind, []).append(event.body)
        self.words = {kind: lines.heads[kind].words for kind in self.bodies}
        self.said = {kind: role_of(self.words[kind]) if names else "" for kind in self.bodies}
        self.forms = {kind: _forms(tuple(filter(None, texts))) for kind, texts in self.bodies.items()}
        self.prose = {kind: prose_share(texts) for kind, texts in self.bodies.items()}
        self.usual = max(map(len, self.bodies.values()))
        self.follow: dict[str, Counter[str]] = {kind: Counter() for kind in self.bodies}
        for one, two in pairwise(events):
            if one.run == two.run:
                self.follow[one.kind][two.kind] += 1

    def calls(self, kind: str) -> float:
        """How much speaks for a kind that calls tools."""
        form = self.forms[kind][0] if self.forms[kind] else None
        formed = 0.0 if form is None else form.score * (1.2 if form.share > 0.5 else 0.6)
        return _CALLS.get(self.said[kind], 0.0) + formed - 0.6 * self.prose[kind]

    def answers(self, kind: str, acting: str, last: str) -> float:
        """How much speaks for a kind that answers the acting one. last: the one after which answers come."""
        after = sum(self.follow[one][kind] for one in {acting, last})
        return after / len(self.bodies[acting]) + _ANSWERS.get(self.said[kind], 0.0)

    def arguments(self, tool: str) -> str | None:
        """The kind that says the arguments, where this one says only names that repeat."""
        n = len(self.bodies[tool])
        if not self.follow[tool] or sum(bool(re.fullmatch(NAME, body)) for body in self.bodies[tool]) < 0.9 * n:
            return None
        after, times = self.follow[tool].most_common(1)[0]
        fits = times >= 0.8 * n and len(self.bodies[after]) <= 1.1 * n and names_share(self.bodies[tool]) > 0.6
        return after if fits and after != tool else None


@lru_cache(maxsize=128)
def _forms(texts: tuple[str, ...]) -> list[SpokenCall]:
    return spoken_calls(texts, most=2)


def roles_of(lines: LogLines, events: Sequence[TextEvent], names: bool) -> Iterator[HeadRoles]:
    """Readings of the kinds, the likeliest first."""
    kinds = Kinds(lines, events, names)
    ranked = sorted(kinds.bodies, key=lambda kind: (-kinds.calls(kind), kind))
    chosen = [kind for kind in ranked[:3] if kinds.calls(kind) > 0.1]
    made = [*_typed(kinds), *_shared(kinds)]
    for kind in chosen:
        made += _answered(kinds, kind)
    if not made:
        made = [_filled(kinds, {}, {}, 0.2)]
    made.sort(key=lambda one: -one.score)
    yield from (one for one in made[:6] if one.score >= made[0].score - 0.25)


def _typed(kinds: Kinds) -> Iterator[HeadRoles]:
    """Behind a prompt stands what was typed, and under it what came back."""
    for kind, texts in kinds.bodies.items():
        several = sum("\n" in text for text in texts) / len(texts)
        if is_prompt(kinds.words[kind]) and several >= 0.5 and len(texts) >= 0.3 * kinds.usual:
            typed = spoken_calls([text.split("\n", 1)[0] for text in texts if text], most=1)
            yield _filled(kinds, {kind: "step"}, {kind: typed[0]} if typed else {}, 0.6 * several)


def _shared(kinds: Kinds) -> Iterator[HeadRoles]:
    """One kind has the calls and what comes back: those that hold a call, and others behind them."""
    for kind in kinds.bodies:
        for form in kinds.forms[kind]:
            if not 0.25 <= form.share <= 0.75:
                continue
            test = value_of(placed(form.test, "@.text", "@.body"))
            here = [event for event in kinds.events if event.kind == kind]
            mine = [(event.run, test(event.body) not in (None, MISSING)) for event in here]
            calls = sum(called for _, called in mine)
            behind = sum(one[1] and not two[1] and one[0] == two[0] for one, two in pairwise(mine))
            if calls and behind >= 0.8 * calls and behind >= 0.8 * (len(mine) - calls):
                yield _filled(kinds, {kind: "both"}, {kind: form}, 0.5 + 0.5 * form.sure)


def _answered(kinds: Kinds, acting: str) -> Iterator[HeadRoles]:
    """Readings in which this kind calls, by the form of its calls, with the kind that answers it."""
    roles = {acting: "call"}
    worth = min(1.0, max(0.0, kinds.calls(acting) / 2))
    arguments = kinds.arguments(acting)
    if arguments is not None:
        roles[arguments] = "arguments"
    fits = {kind: kinds.answers(kind, acting, arguments or acting) for kind in kinds.bodies if kind not in roles}
    results = sorted((kind for kind in fits if fits[kind] > 0.3), key=lambda kind: (-fits[kind], kind))
    forms = [{acting: form} for form in kinds.forms[acting]] or [{}]
    if not results:
        yield _filled(kinds, roles, forms[0], 0.3 * worth)
        return
    roles |= {kind: "result" for kind in results if kind == results[0] or kinds.said[kind] == "result"}
    score = 0.6 * worth + 0.4 * min(1.0, fits[results[0]] / 1.6)
    for i, form in enumerate(forms):
        yield _filled(kinds, roles, form, score * (0.9 if i else 1.0))


def _filled(kinds: Kinds, given: Mapping[str, str], forms: Mapping[str, SpokenCall], score: float) -> HeadRoles:
    """Roles for the kinds that have none yet."""
    roles = dict(given)
    acting = [kind for kind, role in roles.items() if role in ("call", "step", "both")]
    begun: set[int] = set()
    before: Counter[str] = Counter()
    for event in kinds.events:
        if event.kind in acting:
            begun.add(event.run)
        elif event.run not in begun:
            before[event.kind] += 1
    talks = any(kinds.forms[kind] and kinds.forms[kind][0].share < _MOST_CALLS for kind in acting)
    per_run: Counter[str] = Counter(kind for kind, _ in {(event.kind, event.run) for event in kinds.events})
    runs = len({event.run for event in kinds.events})
    for kind, texts in kinds.bodies.items():
        if kind in roles:
            continue
        n, role, prose = len(texts), kinds.said[kind], kinds.prose[kind]
        to_call = sum(kinds.follow[kind][one] for one in acting) / n
        blank = sum(not text for text in texts) / n
        apart = sum(re.search(r"\n[ \t]*\n", text) is not None for text in texts) / n
        rare = (n < 0.25 * kinds.usual and per_run[kind] < 0.8 * runs) or kind == "@"
        again = n > 1.2 * per_run[kind]
        if blank < 0.9 and apart >= 0.25 and role in ("user", "", "noise") and again:
            roles[kind] = "noted" if role == "noise" else "parted"
        elif not role and rare:
            roles[kind] = "noise"
        elif role != "user" and n > 2 and not again and len({re.sub(r"\d+", "0", text) for text in texts}) == 1:
            roles[kind] = "noise"  # once a run, and always the same
        elif role in ("user", "thought", "noise"):
            roles[kind] = role
        elif role in ("agent", "call") or (
            to_call >= 0.5 and prose >= 0.3 and not (talks and before[kind] >= 0.8 * runs)
        ):
            roles[kind] = "agent"
        elif prose < 0.3 and before[kind] < 0.7 * n:
            roles[kind] = "noise" if prose < 0.15 and blank < 1 and n <= 1.2 * per_run[kind] else "agent"
        else:
            roles[kind] = "user"
    return HeadRoles(roles, forms, score)
