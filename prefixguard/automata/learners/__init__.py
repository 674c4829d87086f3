"""Learners: symbol strings to the transitions of an automaton, one algorithm a file."""

from collections.abc import Mapping
from typing import Protocol

from prefixguard.automata.learners import ladder, memoryless, merge, rpni
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.learn import torch_part


class Learner(Protocol):
    """What a learner offers: strings in, transitions of at most `max_states` states out; the same for the same seed."""

    def __call__(self, strings: Strings, *, max_states: int, seed: int) -> Transitions: ...


def _with_torch(name: str) -> Learner:
    """A learner whose file needs torch: the file is imported when it is called."""

    def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
        found: Learner = torch_part(f"{__name__}.{name}", f"learner {name}").learn
        return found(strings, max_states=max_states, seed=seed)

    return learn


#: By name, in the order in which tables show them.
LEARNERS: Mapping[str, Learner] = {
    "memoryless": memoryless.learn,
    "ladder": ladder.learn,
    "merge": merge.learn,
    "distilled": rpni.learn_distilled,
    "rpni": rpni.learn,
    "clusters": _with_torch("clusters"),
    "fsm": _with_torch("fsm"),
}

__all__ = ["LEARNERS", "Learner"]
