"""Worlds and models that are down: what was finished before is never replaced by less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prefixguard.errors import PrefixGuardError, ReplayError
from prefixguard.factory.labelled import LabelledRun, read_corpus, write_corpus
from prefixguard.factory.skips import Skips

#: Failures in a row with the same cause until a command gives up.
IN_A_ROW = 5


@dataclass(slots=True)
class Outages:
    """Counts what a command asked of a world or a model, and what was not answered.

    out: what is written at the end. error: that is raised where nothing can be written. settled: questions that were
    answered, whatever the answer was. left: runs that had no answer. cause: of the first of them.
    """

    out: Path
    error: Callable[[str], PrefixGuardError] = ReplayError
    settled: int = 0
    left: int = 0
    cause: str = ""
    _newest: str = ""
    _in_a_row: int = 0

    def count(self, cause: str, *, first: bool = True) -> None:
        """Count a question. cause: why it was not answered; "" where it was. first: the first time for its run. Raises
        `error` where the cause is the same `IN_A_ROW` times in a row."""
        if not cause:
            self.settled, self._in_a_row = self.settled + 1, 0
            return
        self.left, self.cause = self.left + first, self.cause or cause
        self._in_a_row, self._newest = self._in_a_row + 1 if cause == self._newest else 1, cause
        if self._in_a_row >= IN_A_ROW:
            raise self._given_up(f"{IN_A_ROW} failures in a row: {cause}")

    def write(self, runs: Sequence[LabelledRun]) -> tuple[str, ...]:
        """Write the corpus, and give the notes. Raises `error`, and leaves `out` as it was, where nothing was answered,
        or where runs are left and `out` has more runs than there are now."""
        if self.left and not self.settled:
            raise self._given_up(f"nothing was answered: {self.cause}")
        if self.left and (before := _count(self.out)) > len(runs):
            less = f"{self.left} runs were left, and {self.out} has {before} runs, more than {len(runs)}"
            raise self._given_up(f"{less}: {self.cause}")
        write_corpus(self.out, runs)
        if not self.left:
            return ()
        return (f"{self.left} runs were left without an answer. The same command asks only them again. {self.cause}",)

    def _given_up(self, why: str) -> PrefixGuardError:
        end = "" if why.endswith((".", "?", "!")) else "."
        return self.error(f"{why}{end} {self.out} is as it was. What was done is kept: the same command goes on.")


def _count(path: Path) -> int:
    """Runs of a corpus that is there already."""
    return sum(1 for _ in read_corpus(path, Skips())) if path.is_file() else 0
