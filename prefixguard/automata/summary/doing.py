"""What the agent does in the steps of a symbol or state, in a sentence: its calls by tool, and whether it asks or says.

Counted on training steps, from the records alone; the example is text from a run, as such untrusted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.material import Material
from prefixguard.automata.summary.wording import one_line, share_text
from prefixguard.runtime import plain
from prefixguard.stepview import FIELDS

#: Things done that a sentence names, each at this share of the steps or more; the most frequent is named in any case.
NAMED = 3
OFTEN = 0.1
_TOOL, _EXAMPLE = 60, 120
_FAILS = ", which fails"
_TAGS = re.compile(b"[%b]" % bytes(range(1, len(FIELDS) + 1)))


def deed(document: bytes) -> str:
    r"""What is done in a step, from its serialised record: a call by its tool, or whether a message asks.

    >>> deed(b"\x01agent\x02ls\x03{}\x04\x05look\x06a\x07error")
    'calls ls, which fails'
    >>> deed(b"\x01agent\x02respond\x03\x04\x05Who?\x06\x07ok")
    'asks'
    """
    fields = dict(zip(FIELDS, _TAGS.split(document)[1:], strict=True))
    tool = fields["tool"]
    if tool and tool != b"respond":
        called = f"calls {plain(tool.decode('utf-8', 'replace'), _TOOL)}"
        return called + _FAILS if fields["status"] == b"error" else called
    said = fields["action"] or fields["arguments"]
    if not said.strip():
        return "says nothing"
    return "asks" if b"?" in said or "？".encode() in said else "says something"


def deeds(material: Material) -> NDArray[np.object_]:
    """What is done in every step of the pool's runs, run by run in the pool's order."""
    corpus = material.corpus
    found = [
        deed(document)
        for r in material.pool.tolist()
        for document in corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1]))
    ]
    return np.array(found, dtype=object)


def doing(done: NDArray[np.object_], groups: NDArray[np.int32], examples: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """For each group of steps a sentence on what is done there, with its first example; "" for one without steps.

    done: of every step, as `deeds` gives it. groups: of every step. examples: of each group, lines.

    >>> doing(np.array(["asks", "asks", "calls ls"], dtype=object), np.array([0, 0, 1]), [["agent: Who?"], []])
    ('Asks. As in: agent: Who?', 'Calls ls.')
    """
    return tuple(_sentence(Counter(done[groups == group].tolist()), shown) for group, shown in enumerate(examples))


def _sentence(counts: Counter[str], shown: Sequence[str]) -> str:
    total = counts.total()
    if not total:
        return ""
    whole: Counter[str] = Counter()
    for what, n in counts.items():
        whole[what.removesuffix(_FAILS)] += n
    order = sorted(whole, key=lambda what: (-whole[what], what))
    top = [order[0], *(what for what in order[1:NAMED] if whole[what] >= OFTEN * total)]
    parts = [_part(what, whole[what], counts[what + _FAILS], total) for what in top]
    said = " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    example = f" As in: {one_line(shown[0], _EXAMPLE)}" if shown else ""
    return f"{said[0].upper()}{said[1:]}.{example}"


def _part(what: str, n: int, failing: int, total: int) -> str:
    """One thing done in n of so many steps, with how many of the n fail."""
    said = [share_text(n / total)] * (n < total)
    said += [f"{share_text(failing / n)} of these fail"] * (0 < failing < n)
    return what + _FAILS * (failing == n) + (f" ({'; '.join(said)})" if said else "")
