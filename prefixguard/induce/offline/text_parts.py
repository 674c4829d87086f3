"""One head for calls and for what comes back: divided by a word that the calls say and the answers do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from prefixguard.induce.offline.text_lines import literal, regex_of, tokens_of
from prefixguard.induce.offline.text_roles import RoleEvent

_WORD = re.compile(r"[A-Za-z_][\w.-]*")
#: Words at the start of a text that are looked at.
_MOST_WORDS = 4
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Parts:
    """events: with kinds divided. calls: kind of the calls by the kind it was cut from. regex: RE2 that the texts of
    calls match and answers do not, by kind of the calls. openings: RE2 of what answers begin with, by kind, where it
    says no more than that they are answers. word: that tells calls, by kind of the calls."""

    events: list[RoleEvent]
    calls: Mapping[str, str]
    regex: Mapping[str, str]
    openings: Mapping[str, str]
    word: Mapping[str, str]


def divide_kinds(events: Sequence[RoleEvent], names: Mapping[str, str]) -> Parts:
    """The events, those of one name divided into calls and answers where these follow each other. names: by kind."""
    groups: dict[str, set[str]] = {}
    for event in events:
        groups.setdefault(names[event.kind], set()).add(event.kind)
    divided = list(events)
    calls: dict[str, str] = {}
    regexes: dict[str, str] = {}
    openings: dict[str, str] = {}
    words: dict[str, str] = {}
    for name, kinds in sorted(groups.items()):
        found = _telling(divided, kinds)
        if found is None:
            continue
        regex, word = found
        pattern = re.compile(regex)
        for at, event in enumerate(divided):
            if event.kind in kinds and pattern.search(event.body):
                kind = f"{event.kind}\x00{word}"
                calls[event.kind], regexes[kind], words[kind] = kind, regex, f"{name} {word}"
                divided[at] = replace(event, kind=kind)
        for kind in sorted(kinds):
            opening = _opening([event.body for event in divided if event.kind == kind])
            if opening:
                openings[kind] = opening
    return Parts(divided, calls, regexes, openings, words)


def _telling(events: Sequence[RoleEvent], kinds: set[str]) -> tuple[str, str] | None:
    """The word, and where it stands, of texts that are always followed by another of these kinds without it, while
    those are not."""
    own = [at for at, event in enumerate(events) if event.kind in kinds]
    said: dict[tuple[int, str], set[int]] = {}
    for at in own:
        for i, word in enumerate(_WORD.findall(events[at].body.split("\n", 1)[0][:100])[:_MOST_WORDS]):
            if word.isalpha():
                said.setdefault((i, word), set()).add(at)
    best: tuple[float, int, str] | None = None
    for (i, word), places in sorted(said.items()):
        if len(places) < _LEAST or not 0.35 * len(own) <= len(places) <= 0.65 * len(own):
            continue
        answered = asked = loose = 0
        for at in own:
            after = events[at + 1] if at + 1 < len(events) and events[at + 1].run == events[at].run else None
            answers = after is not None and after.kind in kinds and at + 1 not in places
            if at in places:
                asked += 1
                answered += answers
            else:
                loose += answers
        score = answered / asked - loose / max(1, len(own) - asked)
        if answered < 0.85 * asked or loose > 0.1 * (len(own) - asked):
            continue
        if best is None or score > best[0] + 1e-9 or (score > best[0] - 1e-9 and i < best[1]):
            best = (score, i, word)
    if best is None:
        return None
    _, i, word = best
    return rf"^[^A-Za-z_]*(?:[A-Za-z_][\w.-]*[^\w.-]+){{{i}}}{literal(word)}\b", word


def _opening(bodies: Sequence[str]) -> str:
    """RE2 of what stands before the first colon of nearly all texts, if a word of it never changes."""
    rows = []
    for body in bodies:
        before, colon, _ = body.split("\n", 1)[0][:72].partition(": ")
        if colon:
            rows.append(tokens_of(before))
    shapes = Counter(tuple(token.kind for token in row) for row in rows)
    shape, n = shapes.most_common(1)[0] if shapes else ((), 0)
    if n < max(3, 0.9 * len(bodies)):
        return ""
    rows = [row for row in rows if tuple(token.kind for token in row) == shape]
    parts = []
    steady = 0
    for column in zip(*rows, strict=True):
        same = len({token.text for token in column}) == 1
        steady += same and column[0].kind == "word" and len(column[0].text) > 2
        parts.append(r"[\w.'’-]+" if column[0].kind == "word" and not same else regex_of((column[0],)))
        if column[0].kind == "sign" and not same:
            return ""
    return "^" + "".join(parts) + ":[ \\t]*" if steady else ""
