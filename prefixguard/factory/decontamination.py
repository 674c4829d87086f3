"""Runs that stand in a test set, too: found by their tasks and by the words they share, and kept out of training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prefixguard.factory.labelled import LabelledRun
from prefixguard.stepview import StepRecord

#: Words in a row that two texts share by chance or quotation only.
GRAM = 13
#: Share of a run's sequences in the test set from which it is a copy.
COPY = 0.5
_WORD = re.compile(r"\w+")


def grams(text: str) -> set[int]:
    """Hashes of all sequences of `GRAM` words, case and marks aside. They are of this process alone.

    >>> len(grams("a b c")), len(grams("w " * 20)), len(grams(" ".join(map(str, range(14)))))
    (0, 1, 2)
    """
    words = _WORD.findall(text.lower())
    return {hash(tuple(words[i : i + GRAM])) for i in range(len(words) - GRAM + 1)}


def texts_of(records: Iterable[StepRecord]) -> Iterator[str]:
    """All texts of a run, one after the other."""
    for record in records:
        yield from filter(None, (record.observation, record.action, record.arguments, record.result))


class HeldOutTexts:
    """What is known of runs that are tested on."""

    def __init__(self) -> None:
        self._tasks: set[str] = set()
        self._families: dict[str, int] = {}
        self._first: dict[int, int] = {}  # sequence to the family that had it first
        self._second: dict[int, int] = {}
        self._boilerplate: set[int] = set()
        self.runs = 0

    def add(self, run: LabelledRun, records: Iterable[StepRecord]) -> None:
        """Take in one run of the test side."""
        self.runs += 1
        if task := run.run.get("task_id"):
            self._tasks.add(str(task))
        family = self._families.setdefault(run.family or run.run_id, len(self._families))
        for text in texts_of(records):
            for gram in grams(text):
                if self._first.setdefault(gram, family) != family and self._second.setdefault(gram, family) != family:
                    self._boilerplate.add(gram)

    def meets(self, run: LabelledRun, records: tuple[StepRecord, ...]) -> str:
        """Why a run may not be trained on, a clause; "" where it may.

        It is of a task of the test side; or its request, what its first step saw, shares a sequence with it; or half of
        all its sequences stand there. Sequences that three families of the test side
        have are what its makers tell all agents, and count for nothing.
        """
        if str(run.run.get("task_id") or "") in self._tasks:
            return "its task is one of the test side"
        if not self._first:
            return ""
        if records and any(self._tells(gram) for gram in grams(records[0].observation)):
            return f"its request shares {GRAM} words in a row with the test side"
        found = set[int]().union(*(grams(text) for text in texts_of(records)))
        if found and sum(map(self._tells, found)) >= COPY * len(found):
            return f"half of its sequences of {GRAM} words stand in the test side"
        return ""

    def _tells(self, gram: int) -> bool:
        return gram in self._first and gram not in self._boilerplate
