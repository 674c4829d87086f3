"""What a form of calls is, and the small things all recognisers of forms share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.offline.text_words import word_set

#: More names than this are no vocabulary of tools.
MOST_NAMES = 64
NAME = r"[A-Za-z_][\w.-]*"
IDENTIFIER = re.compile(r"[A-Za-z_][\w.:/-]{0,60}")
THOUGHT_NAMES = word_set(
    """
    think thinking thought thoughts reason reasoning reflect reflection plan analysis scratchpad
    """
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Some of the texts. when: a test for use under the path of the text; None: whatever is left.

    tool, arguments, action: values of the spec, None where there is none. emits: "call" or "say".
    """

    when: Any
    tool: Any
    arguments: Any
    action: Any
    emits: str = "call"


@dataclass(frozen=True, slots=True)
class CallForm:
    """How tool and arguments stand in a text.

    when: a test of the spec ("this text is such a call") to use under the key `at`; None if all texts are.
    tool, arguments, action: values of the spec (action: the rest of the text, None where there is none). share: of the
    texts that have the form, in [0, 1]. confidence: in [0, 1]. name: of the form. extra: exceptions, to be tried before
    this form. after: what to do with texts that are not of this form; empty: they are speech. tools: names found, the
    most frequent first.
    """

    when: Any
    tool: Any
    arguments: Any
    action: Any
    share: float
    confidence: float
    name: str
    why: str
    example: str
    extra: tuple[Variant, ...] = ()
    after: tuple[Variant, ...] = ()
    tools: tuple[tuple[str, int], ...] = ()

    @property
    def by_chance(self) -> bool:
        """Only a first word, and the same in all texts: speech that begins alike does that too."""
        return self.name == "first word" and len(self.tools) < 2

    def variants(self) -> tuple[Variant, ...]:
        """Exceptions, the form itself, and the rest, in the order in which rules should try them."""
        return (*self.extra, Variant(self.when, self.tool, self.arguments, self.action), *self.after)


def vocabulary(names: Sequence[str], of: int) -> dict[str, int]:
    """Names that repeat, most frequent first; empty if they are too many for a set of tools.

    A name counts if it occurs twice or makes up a tenth; names that do not repeat may be a tenth of all occurrences.
    """
    counts = Counter(names)
    total = len(names)
    kept = {
        name: n
        for name, n in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
        if n >= 2 or n >= 0.1 * max(total, 1)
    }
    if not kept or len(kept) > MOST_NAMES or sum(kept.values()) < 0.9 * total:
        return {}
    if total >= 12 and len(kept) > 0.5 * total:
        return {}
    return kept


def of_text(regex: str, at: str) -> dict[str, Any]:
    return {"re": regex, "of": at}


def rest_of(regex: str, at: str) -> dict[str, Any]:
    return {"strip": {"cut": regex, "of": at}}


def share_of(regex: str, texts: Sequence[str]) -> float:
    pattern = re2.compile(regex)
    return sum(1 for text in texts if pattern.search(text)) / len(texts)


def example_of(regex: str, texts: Sequence[str]) -> str:
    pattern = re2.compile(regex)
    return next((text[:200] for text in texts if pattern.search(text)), texts[0][:200])


def ranked(names: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(names.items(), key=lambda kv: (-kv[1], kv[0])))


def first_word(text: str) -> str:
    parts = text.split(None, 1)
    return parts[0] if parts else ""
