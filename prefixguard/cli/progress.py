"""Work that takes a while, as a person sees it go on."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from prefixguard.cli.console import people, say

if TYPE_CHECKING:
    from prefixguard.learn import LearnListener
else:
    LearnListener = object  # slow to import, and all its hooks are here

_STAGES = {
    "reading": "Reading runs",
    "vocabulary": "Choosing terms",
    "encoding": "Encoding steps",
    "teacher": "Fitting the teacher",
    "trees": "Fitting",
    "network": "Fitting network",
    "symbols": "Fitting the symbols",
    "compiling": "Compiling",
    "trying": "Trying",
    "learning": "Learning the automaton",
    "drawing": "Drawing",
    "calibrating": "Calibrating",
    "writing": "Writing",
}


#: Seconds between two lines about one stage, where there is no terminal.
_QUIET = 20.0


class Activity(LearnListener):
    """Shows on a terminal what is being done, how far it is, and for how long. It has the hooks of a training and of
    all functions that take long. Elsewhere: warnings, and a line for each tenth of work that counts its pieces.

    Use as a context manager.
    what : the name of the work; "" where its stages say it.
    pieces : what is counted, in the plural.
    bar : show how many epochs of how many are done.
    plain : without a terminal, a line for every stage, and one every 20 seconds while it goes on.
    """

    def __init__(self, what: str = "", pieces: str = "runs", *, bar: bool = False, plain: bool = False) -> None:
        self._console = people()
        self._what, self._pieces = what, pieces
        self._plain = plain and not self._console.is_terminal
        columns = (BarColumn(bar_width=24), MofNCompleteColumn()) if bar else ()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            *columns,
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(what or "Starting", total=None)
        self._stage = ""
        self._said = time.monotonic()
        self.shown: set[str] = set()  #: warnings that were shown, as notes of a result say them

    def __enter__(self) -> Activity:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_stage(self, name: str, detail: str = "") -> None:
        """What is being done now."""
        self._stage = f"{_STAGES.get(name, name)}{f' ({detail})' if detail else ''}"
        self._progress.reset(self._task, total=None, description=": ".join(filter(None, (self._what, self._stage))))
        if self._plain:
            self._tell(f"  {self._stage} ...")

    def on_warning(self, text: str) -> None:
        """A line, at once, which is not said again at the end."""
        self.shown.add(f"warning: {text}")
        say(f"warning: {text}", style="yellow")

    def on_runs(self, count: int) -> None:
        """So many were read or scored so far."""
        self._progress.update(self._task, description=f"{self._what or self._stage}: {count:,} {self._pieces}")

    def on_epoch(self, network: str, number: int, epochs: int, loss: float, score: float | None) -> None:
        """How far fitting is."""
        shown = "" if score is None or math.isnan(score) else f", validation {score:.3f}"
        description = f"{self._stage}: loss {loss:.3f}{shown}"
        self._progress.update(self._task, completed=number, total=epochs, description=description)

    def on_progress(self, done: int, total: int) -> None:
        """So many pieces are done, of so many."""
        line = f"{self._what or self._stage}: {done} of {total} {self._pieces} done".replace("  ", " ")
        self._progress.update(self._task, description=line)
        if self._plain:
            if time.monotonic() - self._said >= _QUIET:
                self._tell(f"  {line}")
        elif not self._console.is_terminal and done % max(1, total // 10) == 0:
            say(line)

    def _tell(self, line: str) -> None:
        self._said = time.monotonic()
        say(line)
