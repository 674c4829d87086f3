"""What a tool says in the course of a run, as against what a harness writes when the run is over.

"Refunded" in the result of the tool that refunds tells how a run ends, and a live monitor sees it too: worth a look,
and no leak. A verdict that a harness writes stands in whatever came last, or in few of a tool's results. So a text is
the tool's own where nearly all results that have it are of one tool, and many results of that tool have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set

from prefixguard.evaluation.leaks.features import WORDS
from prefixguard.stepview import StepRecord

#: Words for what judges a whole run; a tool's confirmation speaks of success and failure, and hardly of these.
_HARNESS = frozenset(
    (
        "reward", "rewards", "score", "scores", "scored", "grade", "graded", "grading", "verdict", "outcome",
        "evaluation", "evaluator", "judge", "judged", "judgement", "verifier",
    )
)  # fmt: skip
#: Share of the results with the text that must be of one tool, and share of that tool's results that must have it.
_ONE_TOOL = 0.95
_OFTEN = 0.25


def says_harness(feature: str) -> bool:
    """Does it speak as who judges a run?

    >>> says_harness("reward 1.0"), says_harness("refunded successfully")
    (True, False)
    """
    return any(part in _HARNESS for word in WORDS.findall(feature.lower()) for part in word.split("_"))


def own_results(
    runs: Iterable[Sequence[StepRecord]], wanted: Iterable[str], features: Callable[[str], Set[str]]
) -> frozenset[str]:
    """Which of these features of results are the own result of one tool. runs: the records of each; read once.

    features: of one result, at least those that are wanted and are there.
    """
    names = frozenset(wanted)
    calls: Counter[str] = Counter()
    said: dict[str, Counter[str]] = {name: Counter() for name in names}
    for records in runs:
        for record in records:
            if record.result:
                calls[record.tool] += 1
                for name in names & features(record.result):
                    said[name][record.tool] += 1
    return frozenset(name for name, by_tool in said.items() if _is_own(by_tool, calls))


def _is_own(said: Counter[str], calls: Counter[str]) -> bool:
    if not said:
        return False
    tool, n = said.most_common(1)[0]
    return tool not in ("", "respond") and n >= _ONE_TOOL * said.total() and n >= _OFTEN * calls[tool]
