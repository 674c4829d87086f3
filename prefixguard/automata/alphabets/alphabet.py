"""An alphabet, fitted: its map, and the symbols of every step of a corpus.

Typed is the simplest: tool x error x repeated call. It reads no text, and learns nothing but which tools are frequent:
the natural alphabet for an audit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.material import Material
from prefixguard.automata.strings import Strings
from prefixguard.bundle import ModelMap, SymbolMap, TypedMap
from prefixguard.context import FEATURES
from prefixguard.learn import steps_of

_TOOLS = 11
_AT = {feature.name: place for place, feature in enumerate(FEATURES)}


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """name: see `ALPHABETS`. map: from step and context to symbol, as the bundle keeps it.

    symbols: int32 (steps,), of every step of the corpus. They are the map's, except where they rest on a monitor's own
    risks: on the steps that it was fitted on they are those of a fit without the step's task, for learners are to see
    symbols as they fall on new runs.
    glosses: a few words a symbol; conditions: the full definition of each, "" where it has none in words.
    reads_history: for each symbol, whether it says something of earlier steps of the run.
    advice: for each symbol, what the agent's developers can do about it, "" where nothing; (): no symbol has any.
    model: where a monitor's model gives the symbols, the step that gives them at run time, ONNX; else None.
    """

    name: str
    map: SymbolMap
    symbols: NDArray[np.int32]
    glosses: tuple[str, ...]
    conditions: tuple[str, ...]
    reads_history: tuple[bool, ...]
    model: bytes | None = None
    advice: tuple[str, ...] = ()

    @classmethod
    def of_model(
        cls, name: str, symbols: NDArray[np.int32], n: int, glosses: tuple[str, ...] = (), model: bytes = b""
    ) -> Alphabet:
        """Of `n` symbols that a monitor's model gives, met or not. glosses: one a symbol; (): they have no words."""
        none = ("",) * n
        return cls(name, ModelMap(n), symbols, glosses or none, none, (True,) * n, model)

    def strings(self, material: Material, runs: NDArray[np.int64]) -> Strings:
        """These runs of the material as strings of its symbols."""
        corpus = material.corpus
        every = Strings(
            symbols=self.symbols,
            n_symbols=self.map.n_symbols,
            first=corpus.first,
            failed=corpus.failed,
            tasks=material.tasks,
            labels=material.labels,
            teacher=material.teacher,
        )
        return every.of(runs)


def fit_typed(material: Material, runs: NDArray[np.int64]) -> Alphabet:
    """The most frequent tools of the steps of these runs have symbols of their own."""
    tools, context = material.tools, material.corpus.context
    counts = Counter(tools[i] for i in steps_of(material.corpus, runs).tolist())
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
