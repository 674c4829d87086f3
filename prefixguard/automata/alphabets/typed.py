"""Typed: tool x error x repeated call. No text, and nothing learned but which tools are frequent: the natural alphabet
for an audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.bundle import TypedMap
from prefixguard.context import FEATURES

_TOOLS = 11
_AT = {feature.name: place for place, feature in enumerate(FEATURES)}


def fit_typed(tools: Sequence[str], context: NDArray[np.float32], train: NDArray[np.int64]) -> Alphabet:
    """The most frequent tools of the training steps have symbols of their own.

    tools: of every step of the corpus. context: float32 (steps, d). train: int64, positions of training steps.
    """
    counts = Counter(tools[i] for i in train.tolist())
    named = tuple(sorted(counts, key=lambda tool: (-counts[tool], tool))[:_TOOLS])
    found = TypedMap(named)
    error = context[:, _AT["is_error"]] > 0
    repeat = (context[:, _AT["call_seen"]] > 0) | (context[:, _AT["message_seen"]] > 0)
    place = {tool: 4 * i for i, tool in enumerate(named)}
    base = np.array([place.get(tool, 4 * len(named)) for tool in tools], dtype=np.int32)
    symbols = (base + 2 * error + repeat).astype(np.int32)
    glosses, conditions, history = [], [], []
    for tool, failed, again in product((*named, None), (False, True), (False, True)):
        said = "other tool" if tool is None else "speaks" if tool == "respond" else tool or "no tool"
        glosses.append(said + (" fails" if failed else "") + (", again" if again else ""))
        what = "a tool that is rare in training" if tool is None else f"tool `{tool}`"
        conditions.append(
            f"{what}; the step {'failed' if failed else 'did not fail'}; "
            f"the call or message was {'' if again else 'not '}made before in the run"
        )
        history.append(again)
    return Alphabet("typed", found, symbols, tuple(glosses), tuple(conditions), tuple(history))
