"""Learners: symbol strings to the transitions of an automaton, one algorithm a file."""

from collections.abc import Mapping
from typing import Protocol

from prefixguard.automata.learners import clusters, distilled, fsm, ladder, memoryless, merge, rpni
from prefixguard.automata.strings import Strings, Transitions


class Learner(Protocol):
    """What a learner offers: strings in, transitions of at most `max_states` states out; the same for the same seed."""

    def __call__(self, strings: Strings, *, max_states: int, seed: int) -> Transitions: ...


#: By name, in the order in which tables show them.
LEARNERS: Mapping[str, Learner] = {
    "memoryless": memoryless.learn,
    "ladder": ladder.learn,
    "merge": merge.learn,
    "distilled": distilled.learn,
    "rpni": rpni.learn,
    "clusters": clusters.learn,
    "fsm": fsm.learn,
}

__all__ = ["LEARNERS", "Learner"]
