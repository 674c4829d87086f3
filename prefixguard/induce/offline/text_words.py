"""Is a text prose? Told by function words and by how it ends, over many texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Texts that are looked at, spread over all; code points of each.
MOST_TEXTS = 3000
LONGEST = 60_000


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


FUNCTION_WORDS = word_set(
    """
    i you we he she it they me us them my your our their its the a an this that these those is are was were be
    been am have has had do does did will would can could should may might must not and but or so because if
    then which who what when how there here please let's i'm i'll i've it's don't of with need now yes no
    """
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_ENDS = (".", "!", "?", ":", ".)", '."', "…")


def sampled(texts: Sequence[str]) -> list[str]:
    """At most MOST_TEXTS of the texts, evenly spread, each cut to LONGEST and free of lone surrogates."""
    step = max(1, -(-len(texts) // MOST_TEXTS))
    return [text[:LONGEST].encode("utf-8", "replace").decode("utf-8") for text in texts[::step]]


def reads_as_prose(text: str) -> bool:
    """Has a text at least four words, of which more than a sixth are function words, or does it end as a sentence?"""
    words = _WORD.findall(text[:2000])
    if len(words) < 4:
        return False
    share = sum(word.lower() in FUNCTION_WORDS for word in words) / len(words)
    dense = sum(map(len, words)) / max(1, len(text[:2000].strip()))  # code is full of other signs
    if dense < 0.5:
        return False
    return share > 0.28 or (share > 0.12 and text.rstrip().endswith(_ENDS))


def prose_share(texts: Sequence[str]) -> float:
    """Share of the texts that read as prose, in [0, 1]; 0 for none."""
    some = texts[:: max(1, len(texts) // 400)]
    return sum(map(reads_as_prose, some)) / len(some) if some else 0.0


def is_prose(texts: Sequence[str], least: int = 2) -> bool:
    """Do at least half of the texts read as prose, and at least `least` of them?"""
    some = texts[:: max(1, len(texts) // 400)]
    n = sum(map(reads_as_prose, some))
    return n >= least and n >= 0.5 * len(some)
