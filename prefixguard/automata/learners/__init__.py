"""Learners: symbol strings to the transitions of an automaton."""

from collections.abc import Mapping
from typing import Protocol

from prefixguard.automata.learners import direct, merge, rpni
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.learn import torch_part


class Learner(Protocol):
    """What a learner offers: strings in, transitions of at most `max_states` states out; the same for the same seed."""

    def __call__(self, strings: Strings, *, max_states: int, seed: int) -> Transitions: ...


def _with_torch(name: str) -> Learner:
    """A learner of `networks`, which needs torch: the file is imported when it is called."""

    def learn(strings: Strings, *, max_states: int, seed: int) -> Transitions:
        found: Learner = getattr(torch_part(f"{__name__}.networks", f"learner {name}"), f"learn_{name}")
        return found(strings, max_states=max_states, seed=seed)

    return learn


#: By name, in the order in which tables show them.
LEARNERS: Mapping[str, Learner] = {
    "memoryless": direct.learn_memoryless,
    "ladder": direct.learn_ladder,
    "grid": direct.learn_grid,
    "merge": merge.learn,
    "distilled": rpni.learn_distilled,
    "rpni": rpni.learn,
    "clusters": _with_torch("clusters"),
    "fsm": _with_torch("fsm"),
}

#: Name to what its states are.
LEARNER_WORDS: Mapping[str, str] = {
    "memoryless": "the last symbol decides, and nothing before it",
    "ladder": "intervals of the teacher's imminent risk",
    "grid": "intervals of both risks of the teacher, redirected to what runs do next",
    "merge": "what is left of a tree of all training runs when states that go on alike are merged",
    "distilled": "the smallest machine found that tells levels of the teacher's risk apart",
    "rpni": "the smallest machine found that tells failed runs from successful ones",
    "clusters": "groups of the states of a network that read the symbols",
    "fsm": "those of a network that is itself a finite automaton",
}

__all__ = ["LEARNERS", "LEARNER_WORDS", "Learner"]
