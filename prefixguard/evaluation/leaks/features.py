"""What the probes see of a field: words, pairs of neighbouring words, the whole value if it is short, emptiness.

Only expressions fixed here are run over the data, none of them backtracks, and every text is cut first.
"""

from __future__ import annotations

import re
from itertools import pairwise

#: Characters of a field that are looked at, half from each end.
MOST_CHARACTERS = 20_000
#: Characters up to which a value is a feature as a whole.
SHORT = 40
EMPTY = "(empty)"

WORDS = re.compile(r"\d+\.\d+|\w+")
#: Signs that are no words and no usual punctuation: emoji, ticks, rows of # or *.
_SIGNS = re.compile(r"[^\w\s\x00-\x7f\u2010-\u2027\u2030-\u205e\u00a0-\u00bf\u3000-\u303f]|#{3,}|\*{3,}|={3,}")
#: Parts of words by which verdicts are told.
_VERDICT = frozenset(
    (
        "success", "successful", "successfully", "succeed", "succeeded", "failure", "failures", "fail", "failed",
        "pass", "passed", "correct", "incorrect", "correctly", "wrong", "resolved", "unresolved", "solved",
        "unsolved", "accomplished", "reward", "rewards", "score", "scores", "scored", "grade", "graded", "grading",
        "verdict", "outcome", "evaluation", "evaluator", "judge", "judged", "judgement", "win", "won", "lost",
        "lose", "verifier", "accepted", "rejected",
    )
)  # fmt: skip


def cut(text: str) -> str:
    """The text, or its two ends where it is long."""
    if len(text) <= MOST_CHARACTERS:
        return text
    half = MOST_CHARACTERS // 2
    return f"{text[:half]} {text[-half:]}"


def words(text: str) -> list[str]:
    """Its words in order, lower case; decimal numbers stay whole.

    >>> words('{"reward": 1.0, "is_done": true}')
    ['reward', '1.0', 'is_done', 'true']
    """
    return WORDS.findall(cut(text).lower())


def features(text: str) -> set[str]:
    """Everything that is seen of a field.

    >>> sorted(features("Reward: 1.0"))
    ['1.0', '= Reward: 1.0', 'reward', 'reward 1.0']
    >>> sorted(features("### ok"))
    ['###', '= ### ok', 'ok']
    """
    if not text:
        return {EMPTY}
    found = words(text)
    seen = set(found)
    seen.update(f"{a} {b}" for a, b in pairwise(found))
    seen.update(_SIGNS.findall(cut(text)))
    if len(text) <= SHORT:
        seen.add(f"= {text}")
    return seen


def is_verdict_like(feature: str) -> bool:
    """Does it speak of how something ended?

    >>> is_verdict_like("reward 1.0"), is_verdict_like("= is_resolved"), is_verdict_like("traceback")
    (True, True, False)
    """
    return any(part in _VERDICT for word in WORDS.findall(feature.lower()) for part in word.split("_"))
