"""A leaf of a symbol tree in words: the tests on the way to it, those on one feature joined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import TreeMap
from prefixguard.context import FEATURES, N_FEATURES
from prefixguard.runtime import say_term

#: What the scores of words are called, in their order.
SCORES = ("words of runs about to fail", "words of runs that fail")
_OF_STEP = {"is_message", "is_error", "size_arguments", "size_action", "size_result", "size_observation"}
_ONCE = {"call_seen", "message_seen"}
_GLOSS_TESTS = 2
_GLOSS_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Test:
    """low < value <= high. feature: as in `TreeMap.feature`; of a vocabulary column the value is 1 where it is
    present."""

    feature: int
    low: float
    high: float


def ways(tree: TreeMap) -> list[tuple[Test, ...]]:
    """For each symbol, the tests that lead to its leaf; the feature asked last comes last."""
    found: list[tuple[Test, ...]] = [()] * tree.n_symbols
    waiting: list[tuple[int, dict[int, Test]]] = [(0 if len(tree.feature) else -1, {})]
    while waiting:
        at, tests = waiting.pop()
        if at < 0:
            found[-1 - at] = tuple(tests.values())
            continue
        feature, threshold = int(tree.feature[at]), 0.5 if tree.feature[at] < 0 else float(tree.threshold[at])
        old = tests.get(feature, Test(feature, -math.inf, math.inf))
        others = {f: test for f, test in tests.items() if f != feature}
        waiting += [
            (int(tree.left[at]), {**others, feature: Test(feature, old.low, min(old.high, threshold))}),
            (int(tree.right[at]), {**others, feature: Test(feature, max(old.low, threshold), old.high)}),
        ]
    return found


def reads_history(test: Test) -> bool:
    """Whether a test asks for more than the step itself."""
    return 0 <= test.feature < N_FEATURES and FEATURES[test.feature].name not in _OF_STEP


def repeats(test: Test) -> bool:
    """Whether a test finds that the step's call or message was made before: all that a step alone knows of the past."""
    return 0 <= test.feature < N_FEATURES and FEATURES[test.feature].name in _ONCE and test.low >= 0


#: Training values of each score of words, ascending: a score means nothing but where it stands among them.
Scores = Sequence[NDArray[np.float64]]


def gloss(way: Sequence[Test], terms: Sequence[str], scores: Scores = ()) -> str:
    """The tests asked last, which tell a leaf from its neighbours, in a few words."""
    tests = [say(test, terms, scores) for test in reversed(way)][:_GLOSS_TESTS]
    both = ", ".join(tests)
    return both if len(both) <= _GLOSS_LENGTH else tests[0]


def say(test: Test, terms: Sequence[str], scores: Scores = ()) -> str:
    """A test in words.

    >>> say(Test(6, 1.5, math.inf), ()), say(Test(6, 1.5, 4.5), ()), say(Test(5, -math.inf, 0.5), ())
    ('failed steps so far >= 2', 'failed steps so far 2 to 4', 'not the case: this step failed')
    """
    if test.feature < 0:
        return ("has " if test.low > 0 else "lacks ") + say_term(terms[-1 - test.feature])
    if test.feature >= N_FEATURES:
        place = test.feature - N_FEATURES
        return f"{SCORES[place]}: {_standing(test, scores[place])}"
    feature = FEATURES[test.feature]
    low, high = test.low, test.high
    if feature.kind == "yes":
        return feature.text if low >= 0 else f"not the case: {feature.text}"
    whole = feature.name not in _SHARES
    if feature.kind == "logarithm":
        low, high = (math.expm1(x) if math.isfinite(x) else x for x in (low, high))
    return f"{feature.text} {_range(low, high, whole=whole)}"


_SHARES = {f.name for f in FEATURES if "share" in f.text or "spread" in f.text or f.name.startswith("mean_")}


def _standing(test: Test, values: NDArray[np.float64]) -> str:
    """Where an interval of a score stands among the training steps, in per cent of them."""
    low, high = (
        round(100 * float(np.searchsorted(values, x, side="right")) / len(values)) for x in (test.low, test.high)
    )
    if not math.isfinite(test.low):
        return f"the lowest {high} % of steps"
    return (
        f"the highest {100 - low} % of steps" if not math.isfinite(test.high) else f"from {low} % to {high} % of steps"
    )


def _range(low: float, high: float, *, whole: bool) -> str:
    if whole:
        first, last = (
            math.floor(low) + 1 if math.isfinite(low) else low,
            math.floor(high) if high < math.inf else high,
        )
        if first == last:
            return f"= {first}"
        if not math.isfinite(low):
            return f"<= {last}"
        return f">= {first}" if not math.isfinite(high) else f"{first} to {last}"
    if not math.isfinite(low):
        return f"<= {high:.3g}"
    return f"> {low:.3g}" if not math.isfinite(high) else f"in ({low:.3g}, {high:.3g}]"
