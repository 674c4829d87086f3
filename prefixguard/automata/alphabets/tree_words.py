"""A leaf of a symbol tree in words: the tests on the way to it, those on one feature joined.

Two ways to say a test: in full, for definitions, and short, for names. Numbers a person cannot picture are said
beside what they come to: a share below one per cent is next to none, texts whose typical length is below one character
are mostly empty.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from prefixguard.bundle import TreeMap
from prefixguard.context import FEATURES, N_FEATURES, Feature
from prefixguard.runtime import say_term

#: Features of the step itself; and those of which a step knows whether it repeats, not how often.
OF_STEP = ("is_message", "is_error", "size_arguments", "size_action", "size_result", "size_observation")
ONCE = ("call_seen", "message_seen")
_NOT = {"is_message": "this step is no message", "is_error": "this step did not fail"}
_UNITS = (", in characters", ", in bits")
_FEW = 0.01  # of a share
#: A feature in a name, its value after it.
SHORT = {
    "step": "step",
    "log_step": "step",
    "calls": "tool calls so far",
    "messages": "messages so far",
    "is_message": "this step is a message",
    "is_error": "this step failed",
    "errors": "failed steps so far",
    "error_rate": "share of failed steps so far",
    "errors_in_a_row": "failed in a row",
    "steps_since_error": "steps since a failure",
    "tools": "tools used so far",
    "failed_tools": "tools that failed so far",
    "tool_entropy": "spread over tools",
    "same_tool_in_a_row": "same tool in a row",
    "steps_since_call": "steps since a call",
    "messages_in_a_row": "messages since a call",
    "tool_seen": "tool used before",
    "tool_failures": "failures of this tool so far",
    "call_seen": "same call before",
    "same_call_in_a_row": "same call in a row",
    "most_repeated_call": "most repeated call so far",
    "repeated_calls": "repeated calls so far",
    "message_seen": "same message before",
    "result_seen": "same result before",
    "call_and_result_seen": "same call and result",
    "repeat_rate": "share of repeats so far",
    "size_arguments": "length of arguments",
    "mean_size_arguments": "typical arguments so far",
    "largest_arguments": "longest arguments so far",
    "size_action": "length of agent text",
    "mean_size_action": "typical agent text so far",
    "largest_action": "longest agent text so far",
    "size_result": "length of result",
    "mean_size_result": "typical result so far",
    "largest_result": "longest result so far",
    "size_observation": "observation's length",
    "mean_size_observation": "typical observation so far",
    "largest_observation": "longest observation so far",
    "ungrounded": "new identifiers",
    "ungrounded_average": "new identifiers lately",
    "ungrounded_calls": "calls with new identifiers so far",
    "new_words_action": "new words in text",
    "new_words_result": "new words in result",
    "new_words_action_average": "new words in texts lately",
    "new_words_result_average": "new words in results lately",
    "log_vocabulary": "different words so far",
}


@dataclass(frozen=True, slots=True)
class SplitTest:
    """low < value <= high. feature: as in `TreeMap.feature`; of a vocabulary column the value is 1 where it is
    present."""

    feature: int
    low: float
    high: float


def ways(tree: TreeMap) -> list[tuple[SplitTest, ...]]:
    """For each symbol, the tests that lead to its leaf; the feature asked last comes last."""
    found: list[tuple[SplitTest, ...]] = [()] * tree.n_symbols
    waiting: list[tuple[int, dict[int, SplitTest]]] = [(0 if len(tree.feature) else -1, {})]
    while waiting:
        at, tests = waiting.pop()
        if at < 0:
            found[-1 - at] = tuple(tests.values())
            continue
        feature, threshold = int(tree.feature[at]), 0.5 if tree.feature[at] < 0 else float(tree.threshold[at])
        old = tests.get(feature, SplitTest(feature, -math.inf, math.inf))
        others = {f: test for f, test in tests.items() if f != feature}
        waiting += [
            (int(tree.left[at]), {**others, feature: SplitTest(feature, old.low, min(old.high, threshold))}),
            (int(tree.right[at]), {**others, feature: SplitTest(feature, max(old.low, threshold), old.high)}),
        ]
    return found


def reads_history(test: SplitTest) -> bool:
    """Whether a test asks for more than the step itself."""
    return 0 <= test.feature < N_FEATURES and FEATURES[test.feature].name not in OF_STEP


def repeats(test: SplitTest) -> bool:
    """Whether a test finds that the step's call or message was made before: all that a step alone knows of the past."""
    return 0 <= test.feature < N_FEATURES and FEATURES[test.feature].name in ONCE and test.low >= 0


def say(test: SplitTest, terms: Sequence[str], *, short: bool = False) -> str:
    """A test in words; short: as a name has it.

    >>> say(SplitTest(6, 1.5, math.inf), ()), say(SplitTest(6, 1.5, 4.5), ()), say(SplitTest(5, -math.inf, 0.5), ())
    ('failed steps so far >= 2', 'failed steps so far 2 to 4', 'this step did not fail')
    >>> say(SplitTest(7, 0.0007, math.inf), ()), say(SplitTest(7, -math.inf, 0.25), (), short=True)
    ('share of steps so far that failed: any (> 0.07 %)', 'share of failed steps so far <= 25 %')
    """
    low, high = test.low, test.high
    if test.feature < 0:
        term = say_term(terms[-1 - test.feature])
        if short:
            return ("" if low > 0 else "no ") + term.partition(" ")[2]
        return ("has " if low > 0 else "lacks ") + term
    feature = FEATURES[test.feature]
    if feature.kind == "yes":
        return feature.text if low >= 0 else _NOT[feature.name]
    if feature.kind == "logarithm":
        low, high = (math.expm1(x) if math.isfinite(x) else x for x in (low, high))
    if feature.name in _SHARES:
        return _say_share(feature, 100 * low, 100 * high, short=short)
    unit = next((unit for unit in _UNITS if feature.text.endswith(unit)), "")
    name = SHORT[feature.name] if short else feature.text.removesuffix(unit)
    span = _range(low, high) if feature.name in _AVERAGES else _whole_range(low, high)
    of = unit.removeprefix(", in").removesuffix("s" if span.endswith(" 1") else "")
    said = f"{name} {span}" if short else f"{name} {span}{of}"
    if feature.name.startswith("mean_size_") and (low < high < 1 or (low < 1 and high == math.inf)):
        empty = "mostly empty" if high < 1 else "not mostly empty"
        what = feature.text.removesuffix(unit).removeprefix("typical length of ")
        return f"{what}: {empty}" if short else f"{said} ({empty})"
    return said


_SHARES = {f.name for f in FEATURES if f.text.startswith("share ")}
_AVERAGES = {f.name for f in FEATURES if f.name.startswith("mean_")} | {"tool_entropy"}


def _say_share(feature: Feature, low: float, high: float, *, short: bool) -> str:
    """A share's interval, in per cent."""
    name = SHORT[feature.name] if short else feature.text
    span = _range(low, high) + " %"
    few = 100 * _FEW
    if high < few and low == -math.inf:
        return f"{name}: next to none" if short else f"{name}: next to none ({span})"
    if low < few and high == math.inf:
        return f"{name}: any" if short else f"{name}: any ({span})"
    return f"{name} {span}"


def _whole_range(low: float, high: float) -> str:
    """What whole numbers lie above low and not above high."""
    first = math.floor(low) + 1 if math.isfinite(low) else low
    last = math.floor(high) if math.isfinite(high) else high
    if first == last or (last == 0 and low < 0):
        return f"= {last}"
    if not math.isfinite(low):
        return f"<= {last}"
    return f">= {first}" if not math.isfinite(high) else f"{first} to {last}"


def _range(low: float, high: float) -> str:
    """An interval, its upper end included."""
    if not math.isfinite(low):
        return f"<= {_number(high)}"
    return f"> {_number(low)}" if not math.isfinite(high) else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return (
        f"{value:.0f}" if value >= 100 else np.format_float_positional(value, precision=3, fractional=False, trim="-")
    )


#: What stands in a condition, and a sentence on what it means.
_MEANINGS = {
    "typical length": 'Typical length (in names: "typical result" and the like): the geometric mean over all steps so '
    "far, those without such a text counted as empty; below one character, most were empty.",
    "identifiers": "Identifiers: words with a digit in a call's arguments. Nowhere before (in names: new): neither "
    "earlier in the run nor in what the agent was shown at this step.",
    "new words": "New words: words that stood nowhere earlier in the run.",
    "recent": "Recent (in names: lately): an average in which each step counts half as much as the next one of its "
    "kind.",
    "this very": "This very call (message, result): the same words, and of a call the same tool.",
    "were repeats": "Repeats: calls and messages that were made before in the run, in the same words.",
    "observation": "Observation: what the agent was shown before it acted.",
    "bits": "Spread over tools: 0 bits where all calls went to one tool, 1 where two had half each, 2 with four.",
    ": any": "Any: more than next to none; the threshold between the two, less than 1 %, is given with it.",
    ": next to none": "Next to none: not above a threshold of less than 1 %, which is given with it.",
}
_QUOTED = re.compile("`[^`]*`")


def explain(conditions: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each expression in these conditions that does not explain itself.

    >>> explain(["share of new words in the result <= 12 %"])[0]
    'New words: words that stood nowhere earlier in the run.'
    """
    said = "\n".join(_QUOTED.sub("", condition) for condition in conditions)
    return tuple(meaning for phrase, meaning in _MEANINGS.items() if phrase in said)


_DIGITS = re.compile(r"[\d.]+")
#: Letters of a name: up to the first number it says two tests unasked, beyond the second it has a number instead.
_SHORT, _LONG = 64, 120


def name_leaves(ways: Sequence[Sequence[SplitTest]], terms: Sequence[str]) -> tuple[str, ...]:
    """A name for each leaf: the two tests asked last, and of the others as many as tell it apart.

    ways: of each leaf the tests that lead to it. terms: as `say` takes them. Names that rounding makes alike, or that
    would grow too long, have the symbol's number in front.
    """
    # Last first: that test tells a leaf from its neighbour.
    said = [[say(test, terms, short=True) for test in reversed(way)] for way in ways]
    first = [{0, 1} if len(tests) > 1 and len(f"{tests[0]}, {tests[1]}") <= _SHORT else {0} for tests in said]
    places, growing = [set(of) for of in first], True
    while growing:
        growing, names = False, [_join(*pair) for pair in zip(said, places, strict=True)]
        asked = [[way[-1 - p] for p in of if p < len(way)] for way, of in zip(ways, places, strict=True)]
        for group in _groups(names, asked):
            shared = set.intersection(*(set(said[leaf]) for leaf in group))
            for leaf in group:
                apart = (p for p, test in enumerate(said[leaf]) if p not in places[leaf] and test not in shared)
                if (new := next(apart, None)) is not None:
                    places[leaf].add(new)
                    growing = True
    often = Counter(names)
    return tuple(
        name if often[name] == 1 and len(name) <= _LONG else f"{leaf}: {_join(said[leaf], first[leaf])}"
        for leaf, name in enumerate(names)
    )


def _groups(names: Sequence[str], asked: Sequence[Sequence[SplitTest]]) -> list[list[int]]:
    """Leaves whose names differ in numbers at most, and do not tell them apart: equal ones, and ranges that overlap.

    asked: of each leaf the tests that its name says.
    """
    kinds: dict[str, list[int]] = {}
    for leaf, name in enumerate(names):
        kinds.setdefault(_DIGITS.sub("0", name), []).append(leaf)

    def apart(one: int, other: int) -> bool:
        pairs = product(asked[one], asked[other])
        return names[one] != names[other] and any(
            a.feature == b.feature and (a.high <= b.low or b.high <= a.low) for a, b in pairs
        )

    found = [[leaf for leaf in kind if not all(leaf == o or apart(leaf, o) for o in kind)] for kind in kinds.values()]
    return [group for group in found if group]


def _join(tests: Sequence[str], places: set[int]) -> str:
    return ", ".join(tests[p] for p in sorted(places) if p < len(tests)) or "any step"
