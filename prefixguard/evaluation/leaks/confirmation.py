"""What a tool or the agent says in the course of a run, as against what a harness writes when the run is over.

"Refunded" in the result of the tool that refunds tells how a run ends, and a live monitor sees it too: worth a look,
and no leak. A verdict that a harness writes stands in whatever came last, most often behind it. So a text is the
tool's own where nearly all results that have it are of one tool, and either many results of that tool have it, or it
is a part of the tool's answer: a word, or a value that a word names, and not in a line that was put behind the answer.

What the agent writes, or copies from what it was shown, is seen live as well: there only a judge's words are a leak,
and only where nothing before them says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set

from prefixguard.evaluation.leaks.features import WORDS, cut, words
from prefixguard.stepview import StepRecord

#: Words for what judges a whole run; a tool's confirmation speaks of success and failure, and hardly of these.
_HARNESS = frozenset(
    (
        "reward", "rewards", "score", "scores", "scored", "grade", "graded", "grading", "verdict", "outcome",
        "evaluation", "evaluator", "judge", "judged", "judgement", "verifier",
    )
)  # fmt: skip
#: Words that are values: they say nothing unless another word names them.
_VALUES = frozenset(("true", "false", "none", "null", "yes", "no"))
#: Words that mark what somebody did: a tool that does something confirms it in others.
_MARKS = frozenset(("pass", "fail", "correct", "incorrect", "wrong"))
#: Share of the results with the text that must be of one tool, and share of that tool's results from which it is the
#: tool's own wherever it stands.
_ONE_TOOL = 0.95
_OFTEN = 0.25
#: Share of the results with a text in which it must be a part of the answer; share of the tool's other results whose
#: last line must begin like one, for that line to be none that was put behind the answer.
_PART = 0.5
_SAME_LINE = 0.5


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
    said: dict[str, _OwnAnswers] = {name: _OwnAnswers() for name in names}
    last_lines: Counter[tuple[str, str]] = Counter()  # results by tool and first word of their last line
    for records in runs:
        for record in records:
            if record.result:
                calls[record.tool] += 1
                last_lines[record.tool, _first_word(_lines(record.result)[-1])] += 1
                for name in names & features(record.result):
                    said[name].count(name, record)
    return frozenset(name for name, one in said.items() if one.is_own(calls, last_lines))


class _OwnAnswers:
    """Results that have a feature. placed: how many of a tool have it in the answer itself; behind: how many have it in
    their last line, by the line's first word."""

    def __init__(self) -> None:
        self._by_tool: Counter[str] = Counter()
        self._placed: Counter[str] = Counter()
        self._behind: dict[str, Counter[str]] = {}

    def count(self, feature: str, record: StepRecord) -> None:
        self._by_tool[record.tool] += 1
        *earlier, last = _lines(record.result)
        if _is_part(feature, earlier or [last]):
            self._placed[record.tool] += 1
        elif _is_part(feature, [last]):
            self._behind.setdefault(record.tool, Counter())[_first_word(last)] += 1

    def is_own(self, calls: Counter[str], last_lines: Counter[tuple[str, str]]) -> bool:
        if not self._by_tool:
            return False
        tool, n = self._by_tool.most_common(1)[0]
        if tool in ("", "respond") or n < _ONE_TOOL * self._by_tool.total():
            return False
        if n >= _OFTEN * calls[tool]:
            return True
        placed = self._placed[tool]
        for word, here in self._behind.get(tool, Counter()).items():
            if last_lines[tool, word] - here >= _SAME_LINE * (calls[tool] - n):
                placed += here
        return placed > _PART * n


def _lines(text: str) -> list[str]:
    """Its lines, without empty ones at its end; at least one."""
    return cut(text).lower().rstrip().splitlines() or [""]


def _first_word(line: str) -> str:
    found = WORDS.search(line)
    return found[0] if found else ""


def _is_part(feature: str, lines: Sequence[str]) -> bool:
    """Does it stand there as a word, or as a value that a word on its line names, where no judge speaks?

    >>> _is_part("refunded", ["refunded"]), _is_part("true", ["refunded: true"]), _is_part("true", ["true"])
    (True, True, False)
    >>> _is_part("0.0", ['{"reward": 0.0}'])
    False
    """
    wanted, found = words(feature), [(word, line) for line, text in enumerate(lines) for word in words(text)]
    n = len(wanted)
    if not n or any(word in _MARKS or says_harness(word) for word, _ in found):
        return False
    for at in range(len(found) - n + 1):
        if [word for word, _ in found[at : at + n]] == wanted:
            named = [word for word, line in found[max(at - 1, 0) : at] if line == found[at][1]]
            return any(map(_is_word, (*named, *wanted)))
    return False


def _is_word(word: str) -> bool:
    return word not in _VALUES and not any(c.isdigit() for c in word)


def repeated(
    runs: Iterable[Sequence[StepRecord]], feature: str, field: str, features: Callable[[str], Set[str]]
) -> bool:
    """Had most records that have this feature in a field been shown its words before, in the same run?

    runs: the records of each. features: as for `own_results`. What the agent sees before it acts counts.
    """
    wanted = frozenset(words(feature))
    has = was_shown = 0
    for records in runs:
        shown: set[str] = set()
        for record in records:
            shown |= wanted.intersection(words(record.observation))
            if feature in features(getattr(record, field)):
                has += 1
                was_shown += wanted <= shown
            shown |= wanted.intersection(words(record.result))
    return was_shown > _PART * has
