"""Conversations in traces of spans: which model calls are of one agent.

Of model calls that stand side by side in a trace, one that repeats what another was asked, and what that answered, goes
on with its conversation. Conversations that overlap in time are of several agents: the one that lasts longest is the
caller, and each of the others is a delegate. Conversations that follow each other are one run, as a handoff is.

A trace may be a model call alone, where nobody put a span around the agent's loop. Such traces are one run where they
bear one session, or where the next repeats the conversation of the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.delegates import Delegates, Place, apart
from prefixguard.stepview.identity import fingerprint
from prefixguard.stepview.jsontext import canonical
from prefixguard.stepview.paths import Getter, Scope
from prefixguard.stepview.reorder import Key, sort_key
from prefixguard.stepview.values import as_id, compile_value

_NEEDED = ("when", "begins", "ends", "heard", "said")


@dataclass(slots=True, eq=False)
class TracedEvent:
    """An event in its trace. is_turn: it is a call of a model. messages: that the model was asked with. heard: a hash
    of the messages up to each of them. single: of each of them. said: texts and ids of the answer. session: what it
    bears, if it bears one."""

    event: Any
    place: Place | str | None
    begins: Key
    ends: Key
    is_turn: bool
    session: str | None = None
    messages: list[Any] = field(default_factory=list)
    heard: list[int] = field(default_factory=list)
    single: list[int] = field(default_factory=list)
    said: frozenset[str] = frozenset()

    @property
    def id(self) -> str | None:
        return self.place.id if isinstance(self.place, Place) else None

    @property
    def parent(self) -> str | None:
        return self.place.parent if isinstance(self.place, Place) else None

    @property
    def is_call(self) -> bool:
        """May a delegate stand below it?"""
        return isinstance(self.place, Place) and self.place.begins


@dataclass(frozen=True, slots=True)
class Conversations:
    """The compiled `conversations` of a container."""

    when: Condition
    delegates: Delegates
    values: Mapping[str, Getter]

    def goes_on(self, scope: Scope) -> bool:
        """May the event be of a run that other traces are of too: a call of a model with no span above it?"""
        return self.when(scope) and as_id(self.delegates.parent(scope)) is None

    def read(self, scope: Scope, place: Place | str | None, last: Key) -> TracedEvent:
        """The event in the scope. last: when the event before it began, which counts where it does not say."""
        begins = sort_key(self.values["begins"](scope), last)
        ends = max(begins, sort_key(self.values["ends"](scope), begins))
        found = TracedEvent(scope.event, place, begins, ends, self.when(scope))
        if "session" in self.values:
            found.session = as_id(self.values["session"](scope))
        if found.is_turn:
            heard, at = self.values["heard"](scope), 0
            found.messages = heard if isinstance(heard, list) else []
            for message in found.messages:
                found.single.append(fingerprint(canonical(message)))
                at = fingerprint(f"{at} {found.single[-1]}")
                found.heard.append(at)
            found.said = frozenset(_texts(self.values["said"](scope)))
        return found


def compile_conversations(spec: Any, delegates: Any, site: Site) -> Conversations:
    """delegates: compiled. AdapterError if it is wrong."""
    if not isinstance(delegates, Delegates):
        raise site.error('it goes with "delegates" that have id, parent and when.')
    example = f"an object with {', '.join(_NEEDED)}; and session, where traces of one run bear one."
    site.keys(spec, (*_NEEDED, "session", "comment"), example, needs=_NEEDED)
    values = {name: compile_value(spec[name], site.at(name)) for name in spec if name not in ("when", "comment")}
    return Conversations(compile_when(spec["when"], site.at("when")), delegates, values)


@dataclass(slots=True, eq=False)
class _Conversation:
    """Turns of which each repeats the one before. name: of the trace that it began in."""

    turns: list[TracedEvent]
    ends: Key
    name: str = ""


#: Of conversations that are the same so far, as many as are looked at: the latest.
_LATEST = 16
#: By text of an answer ("" where there was none): the conversations that it is the last of.
_Answers = dict[str, dict[int, _Conversation]]


class _Talks:
    """Conversations, by all that was heard last, and by the last message of it; and by what was answered."""

    def __init__(self) -> None:
        self._whole: dict[int, _Answers] = {}
        self._last: dict[int, _Answers] = {}

    def take(self, turn: TracedEvent) -> _Conversation:
        """The conversation that the turn goes on with, or a new one."""
        found = self._before(turn, self._whole, turn.heard) or self._before(turn, self._last, turn.single, is_cut=True)
        if found is None:
            found = _Conversation([], turn.ends)
        else:
            for answers, text in self._places(found.turns[-1]):
                del answers[text][id(found)]
                if not answers[text]:
                    del answers[text]
        found.turns.append(turn)
        found.ends = max(found.ends, turn.ends)
        for answers, text in self._places(turn):
            answers.setdefault(text, {})[id(found)] = found
        return found

    def _places(self, turn: TracedEvent) -> Iterator[tuple[_Answers, str]]:
        for known, keys in ((self._whole, turn.heard), (self._last, turn.single)):
            for text in (turn.said or ("",)) if keys else ():
                yield known.setdefault(keys[-1], {}), text

    def _before(
        self, turn: TracedEvent, known: dict[int, _Answers], keys: list[int], *, is_cut: bool = False
    ) -> _Conversation | None:
        """The one whose last question and answer this repeats; of several the one whose answer it repeats most of, and
        of these the latest. An answer may be repeated in other words, where no other conversation came as far. is_cut:
        the beginning may have been left out, so that the answer has to be there."""
        for n in range(len(keys), 0, -1):
            answers = known.get(keys[n - 1])
            if not answers:
                continue
            texts = set(_texts(turn.messages[n:])) | ({""} if not is_cut else set())
            near: dict[int, tuple[int, Key, _Conversation]] = {}
            for text in sorted(texts):
                for key, one in islice(reversed(answers.get(text, {}).items()), _LATEST):
                    near[key] = (near[key][0] + 1 if key in near else 1, one.turns[-1].begins, one)
            if not near and not is_cut and n < len(keys):
                only = {key: one for inside in islice(answers.values(), 2) for key, one in islice(inside.items(), 2)}
                near = {key: (0, one.ends, one) for key, one in only.items()} if len(only) == 1 else near
            if near:
                return max(near.values(), key=lambda one: one[:2])[2]
        return None


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if one:
                yield one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def joined(traces: Mapping[str, list[TracedEvent]]) -> dict[str, list[TracedEvent]]:
    """The events of every run, by name of its first trace: traces in which each call of a model stands alone are put
    together."""
    runs, alone = {name: list(events) for name, events in traces.items()}, []
    for name, events in traces.items():
        turns = [event for event in events if event.is_turn]
        if turns and all(turn.parent is None for turn in turns):
            alone.append((min(turn.begins for turn in turns), name, turns))
    talks, sessions = _Talks(), dict[str, str]()
    for _, name, turns in sorted(alone, key=lambda one: one[0]):
        session = next((event.session for event in traces[name] if event.session is not None), None)
        if session is not None:
            whole = sessions.setdefault(session, name)
        else:
            found = [talks.take(turn) for turn in turns]
            for one in found:
                one.name = one.name or name
            whole = found[0].name
        if whole != name:
            runs[whole].extend(runs.pop(name))
    return runs


def agents(events: Sequence[TracedEvent]) -> list[tuple[str | None, list[TracedEvent]]]:
    """The events of every agent of a run: of the caller first, under None, then of each delegate, under the id of the
    event that it began with. A call of a model that another one below it tells again is left out."""
    runs = dict(apart(events, [event.place for event in events]))
    home = {event.id: name for name, inside in runs.items() for event in inside}
    for call in [name for name, inside in runs.items() if name and not any(event.is_turn for event in inside)]:
        quiet = runs.pop(call)  # no agent acts below it
        seen: set[str | None] = {call}
        above = home.get(call)
        while above not in runs and above not in seen:
            seen.add(above)
            above = home.get(above)
        runs.setdefault(above if above in runs else None, []).extend(quiet)
    order = {id(event): n for n, event in enumerate(events)}
    told = _told_below(events)
    found: list[tuple[str | None, list[TracedEvent]]] = []
    for name, inside in runs.items():
        kept = sorted((one for one in inside if id(one) not in told), key=lambda one: order[id(one)])
        found += _parted(name, kept)
    return found


def _told_below(events: Sequence[TracedEvent]) -> set[int]:
    """Turns with a turn below them, and no delegate between: the same call, told by two packages."""
    of_id: dict[str | None, TracedEvent] = {one.id: one for one in events if one.id is not None}
    told: set[int] = set()
    looked: set[int] = set()
    for event in events:
        at = of_id.get(event.parent) if event.is_turn else None
        while at is not None and not at.is_call and id(at) not in looked:
            looked.add(id(at))
            if at.is_turn:
                told.add(id(at))
            at = of_id.get(at.parent)
    return told


def _parted(name: str | None, events: list[TracedEvent]) -> list[tuple[str | None, list[TracedEvent]]]:
    """The events that stand below one call, or below none, by conversation."""
    turns = sorted((event for event in events if event.is_turn), key=lambda turn: turn.begins)
    order = {id(event): n for n, event in enumerate(events)}
    talks, known, of_turn = _Talks(), list[_Conversation](), dict[int, str | None]()
    for turn in turns:
        talk = talks.take(turn)
        if len(talk.turns) == 1:
            known.append(talk)
    main: list[_Conversation] = []  # one after the other
    for talk in sorted(known, key=_longest_first):
        begins = talk.turns[0].begins
        at = bisect_right(main, begins, key=lambda one: one.turns[0].begins)
        is_main = (not at or main[at - 1].ends <= begins) and (at == len(main) or talk.ends <= main[at].turns[0].begins)
        if is_main:
            main.insert(at, talk)
        for turn in talk.turns:
            of_turn[id(turn)] = name if is_main else talk.turns[0].id or f"{name or 'turn'} {begins[1]}"
    if len(main) == len(known):
        return [(name, events)]
    found: dict[str | None, list[TracedEvent]] = {name: []}
    last: dict[str | None, str | None] = {}  # id of the event above -> the agent of the last turn below it
    latest = name
    for event in sorted(events, key=lambda one: (one.begins, not one.is_turn)):
        if event.is_turn:
            latest = last[event.parent] = of_turn[id(event)]
        own = latest if event.is_turn else last.get(event.parent, latest)
        found.setdefault(own, []).append(event)
    return [(own, sorted(inside, key=lambda one: order[id(one)])) for own, inside in found.items()]


def _longest_first(talk: _Conversation) -> tuple[Any, ...]:
    begins, ends = talk.turns[0].begins, talk.ends
    length = ends[1] - begins[1] if begins[0] == ends[0] == 0 else 0
    return (-length, begins)
