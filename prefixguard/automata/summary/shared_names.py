"""What names share: the values of a group, such as agents, that have a part of their name in common, and short names.

A name falls into tokens: runs of letters, digits and points. Tokens with a letter that several names have and others
have not make a family, as one model's runs under several settings; nothing is known of what a token means, and where
names share none there is no family. Numbers and dates are no names: a number is said only with the token that it is
hyphenated to ("gpt-4", not "4"), or where nothing else tells two names apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Names of so many letters are short enough; in longer ones tokens that more than this share of all names have are
#: left out.
SHORT = 20
COMMON = 1 / 3
_TOKEN = re.compile(r"[^\W_]+(?:\.[^\W_]+)*")
_MOST = 400  # letters of a name that are looked at


@dataclass(frozen=True, slots=True)
class Family:
    """One value of a group, or several whose names share what no other's do. what: the short name, or the tokens that
    are shared. share: of everything."""

    what: str
    values: frozenset[str]
    share: float

    def said(self, group: str) -> str:
        """In words.

        >>> Family("gpt-4o", frozenset({"gpt-4o"}), 0.2).said("agent")
        'agent gpt-4o'
        """
        return f'{group}s whose names share "{self.what}"' if len(self.values) > 1 else f"{group} {self.what}"


def short_names(values: Iterable[str]) -> dict[str, str]:
    """For each distinct value a short name: without the tokens that many of the names share, and that are told twice.

    Values are told apart by their short names; what cannot be is its own.

    >>> names = (f"multiturn_{model}_10_turns" for model in ("gpt-3.5", "text-bison-001", "chat-bison-001", "gpt-40"))
    >>> list(short_names([*names, "react_10_turns"]).values())
    ['gpt-3.5', 'text-bison-001', 'chat-bison-001', 'gpt-40', 'react_10_turns']
    >>> list(short_names(f"results__calling-{of}" for of in ("Qwen_range_0--1_2024", "phi-2_0--1_2025")).values())
    ['Qwen_range', 'phi-2']
    """
    known = list(dict.fromkeys(values))
    common = Counter(token for value in known for token in _tokens(value))
    most = max(min(2, len(known) - 1), COMMON * len(known))
    left_out = {token for token, n in common.items() if n > most}
    found = {value: value for value in known}
    numbers = {token for token in common if _is_number(token)}
    for rare in (numbers, {token for token in numbers if common[token] == 1}, set[str]()):
        short = {value: _short(value, left_out, rare) for value in known}
        often = Counter(short.values())
        found |= {value: one for value, one in short.items() if often[one] == 1}
    return found


def _tokens(value: str) -> dict[str, None]:
    """Each token once, in order."""
    return dict.fromkeys(_TOKEN.findall(value[:_MOST]))


def _short(value: str, left_out: set[str], numbers: set[str]) -> str:
    """numbers: those that count though they are hyphenated to no name."""
    if len(value) <= SHORT:
        return value
    found, seen = list(_TOKEN.finditer(value[:_MOST])), set(left_out)
    kept: list[int] = []
    for place, token in enumerate(found):
        if token[0] not in seen:
            is_number = _is_number(token[0])
            follows = bool(is_number and place) and value[found[place - 1].end() : token.start()] == "-"
            follows = follows and not _is_number(found[place - 1][0])
            if follows or not is_number or token[0] in numbers:
                kept += [at for at in (place - 1, place) if (follows or at == place) and at not in kept]
                seen.add(token[0])
    said, last = "", -1
    for place in kept:
        between = value[found[last].end() : found[place].start()] if last == place - 1 else ", "
        said, last = said + (between if said else "") + found[place][0], place
    return said or value


def _is_number(token: str) -> bool:
    return token.replace(".", "").isdigit()


def _named(tokens: Sequence[str], values: Collection[str]) -> str:
    """Tokens that all of these values have; a number only with the token that it is hyphenated to in all of them."""
    said = []
    for token in tokens:
        before = {f[0] for value in values if (f := re.search(rf"[^\W_]+-(?={re.escape(token)}(?![^\W_]))", value))}
        if not _is_number(token):  # a setting with its value, as in `range_0` of all, names nobody
            setting = re.compile(rf"(?<![^\W_]){re.escape(token)}_\d+(?![^\W_])")
            found = [setting.search(value) for value in values]
            said += [token] * (None in found or len({one and one[0] for one in found}) > 1)
        elif len(before) == 1 and not _is_number((one := before.pop())[:-1]):
            said.append(one + token)
    return " ".join(said)


def families(everywhere: Mapping[str, int], most: float) -> tuple[Family, ...]:
    """Each value, and each set of several values that share a token which no other value has, with less than this share
    of everything; single values first, then those with the least of everything.

    everywhere: each value with how often it is there at all. A set is named by all tokens that it alone has.
    """
    short, total = short_names(everywhere), max(sum(everywhere.values()), 1)
    has: dict[str, list[str]] = {}
    for value in sorted(everywhere):
        for token in _tokens(value):
            has.setdefault(token, []).append(value)
    named: dict[frozenset[str], list[str]] = {}
    for token, values in has.items():
        if 1 < len(values) < len(everywhere):
            named.setdefault(frozenset(values), []).append(token)
    found = [Family(short[value], frozenset([value]), n / total) for value, n in everywhere.items()]
    for several, tokens in named.items():
        if said := _named(tokens, several):
            found.append(Family(said, several, sum(everywhere[value] for value in several) / total))
    kept = (family for family in found if family.share < most)
    return tuple(sorted(kept, key=lambda one: (len(one.values) > 1, one.share, one.what)))


def owner(here: Sequence[str], among: Iterable[Family], most: float) -> tuple[Family, int] | None:
    """The first of these that has more than this share of `here`, values, and how many; None where none has.

    >>> among = families({"run-gpt-4": 4, "x-llama2-7b": 2, "y-llama2-70b": 2}, 0.6)
    >>> family, n = owner(["x-llama2-7b", "y-llama2-70b"], among, 0.8)
    >>> family.said("agent"), n, owner(["x-llama2-7b", "run-gpt-4"], among, 0.8)
    ('agents whose names share "llama2"', 2, None)
    """
    counts = Counter(here)
    for family in among:
        n = sum(counts[value] for value in family.values)
        if n > most * len(here):
            return family, n
    return None
