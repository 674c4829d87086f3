"""A training, as a person sees it go on."""

from __future__ import annotations

import math
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from prefixguard.cli.terminal_text import visible
from prefixguard.learn import LearnListener

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


class TrainingProgress(LearnListener):
    """Shows the stage, the epoch and the time on a terminal. Elsewhere nothing, or with `plain` a line a stage.

    Use as a context manager.
    """

    def __init__(self, console: Console, *, plain: bool = False) -> None:
        self._console = console
        self._plain = plain and not console.is_terminal
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("Starting", total=None)
        self._stage = ""
        self.told: set[str] = set()  #: warnings that were shown, as notes of a result say them

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_stage(self, name: str, detail: str = "") -> None:
        """A line, or the description of the bar."""
        self._stage = f"{_STAGES.get(name, name)}{f' ({detail})' if detail else ''}"
        self._progress.reset(self._task, total=None, description=self._stage)
        if self._plain:
            self._console.print(f"  {self._stage} ...", soft_wrap=True)

    def on_warning(self, text: str) -> None:
        """A line, at once, which is not said again at the end."""
        self.told.add(f"warning: {text}")
        self._console.print(Text(f"warning: {visible(text)}", style="yellow"), soft_wrap=True)

    def on_runs(self, count: int) -> None:
        """How far reading is."""
        self._progress.update(self._task, description=f"{self._stage}: {count:,} runs")

    def on_epoch(self, network: str, number: int, epochs: int, loss: float, score: float | None) -> None:
        """How far fitting is."""
        shown = "" if score is None or math.isnan(score) else f", validation {score:.3f}"
        description = f"{self._stage}: loss {loss:.3f}{shown}"
        self._progress.update(self._task, completed=number, total=epochs, description=description)
