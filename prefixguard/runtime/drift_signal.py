"""When not to trust the alarm's guarantee: are finished runs still like those that set its threshold?

The guarantee assumes that new runs are exchangeable with the calibration runs. This watches that assumption, run by
run, with a stated false-signal rate: if all runs, of the reference and of the stream, are exchangeable, the chance that
the signal is ever given, over the whole life of the monitor, is at most `rate`.

How. Every run is a handful of shares (`RunSummary`), each watched alone:

1. Rank. With n values known and U uniform, p = (how many are larger + U (1 + how many are equal)) / (n + 1); then the
   value joins the known ones. Under exchangeability these p are independent and uniform, ties and all (Vovk,
   Nouretdinov and Gammerman 2003). U comes from a hash of the seed, so the same runs give the same signal.
2. Bet. For a bet f >= 0 with integral 1 over p, the product of f(p) is a martingale: a fair game, in which growing rich
   is evidence against exchangeability. The bets e p^(e-1) win where p is small; on 1 - p, where it is large.
3. Start anew at every run. The stake 1 is cut into 1/(k (k+1)), k = 1, 2, ...; piece k waits until run k. What waits
   never falls below 1/(k+1), so a change after k runs needs k times the evidence, not exp(k) times.
4. Signal. A martingale that starts at 1 ever reaches K / rate with probability at most rate / K (Ville 1939), and there
   are K series (Bonferroni: the series hang together, so a mean of their martingales need not be one).

Values are compared in cells of 1/1024, fixed beforehand, so that the memory is fixed too and nothing of a run is kept.
A signal stands until the monitor is calibrated again. No signal is no proof: a small change takes many runs to show,
and runs that differ in what no series sees are never noticed. Above all, every finished run counts alike,
however it ended, for how a live run ends is not known. The guarantee is about runs that will succeed; a change of those
alone shows only as far as it moves the shares of all runs, and where most runs fail it may never show. Where outcomes
become known later, calibrate anew on them.

Runs of one task are not exchangeable with runs of others: take one run a task for the reference; a stream that repeats
a task much may signal for that reason.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.errors import BundleError, ConfigError, DataError
from prefixguard.runtime.drift import RunSummary

#: Cells that [0, 1] is cut into.
CELLS = 1024
#: Finished runs whose mean a report quotes.
RECENT = 20
_POWERS = np.array([0.2, 0.5, 0.8])  # of the bets; near 0: few p far below 1/n, near 1: many a little small
_RICHEST = 1e300


@dataclass(frozen=True, slots=True)
class Series:
    """What is watched: a field of `RunSummary`, what it is called, and which changes matter."""

    name: str
    text: str
    up: bool = True
    down: bool = False


#: Every series, in the order of `RunSummary`.
SERIES = (
    Series("largest_risk", "the largest risk of a run", down=True),
    Series("mean_risk", "the mean risk of a run", down=True),
    Series("known_terms", "known terms a word", up=False, down=True),
    Series("unknown_steps", "steps without a known term"),
    Series("unseen_transitions", "transitions that no training run took"),
    Series("unread_events", "events that could not be read"),
    Series("skipped_events", "events that no rule of the adapter takes"),
    Series("unjudged_steps", "steps that could not be judged"),
)


@dataclass(frozen=True, slots=True)
class DriftReference:
    """How calibration runs look. Counts only: nothing of a run's text, name or task.

    runs: how many. cells: by name of a series, how many runs' values lie in each cell, int64 (1024,); a series that no
    run has is not there, and is not watched.
    """

    runs: int
    cells: Mapping[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, summaries: Iterable[RunSummary]) -> DriftReference:
        """From calibration runs that nothing was fitted on: one run a task, whatever its outcome, read as later runs
        will be (events live, or records). Raises DataError where there is no run, or no value."""
        cells: dict[str, npt.NDArray[np.int64]] = {}
        runs = 0
        for summary in summaries:
            runs += 1
            for series in SERIES:
                value = getattr(summary, series.name)
                if value is not None:
                    cells.setdefault(series.name, np.zeros(CELLS, dtype=np.int64))[_cell(value)] += 1
        if not cells:
            raise DataError(f"{runs} runs give no reference for drift: give calibration runs that have steps.")
        return cls(runs, cells)

    def to_json(self) -> dict[str, Any]:
        """What a manifest keeps: `runs`, and by series pairs of cell and count, cells that are empty left out."""
        return {
            "runs": self.runs,
            "cells": {s.name: _sparse(self.cells[s.name]) for s in SERIES if s.name in self.cells},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any], where: str = "manifest.json") -> DriftReference:
        """What `to_json` wrote. Raises BundleError, naming `where`, for anything else."""
        try:
            names = {series.name for series in SERIES}
            cells = {str(name): _dense(pairs) for name, pairs in found["cells"].items() if name in names}
            runs = int(found["runs"])
            if not cells or runs < 1:
                raise ValueError("it counts no run")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as exc:
            raise BundleError(
                f"{where}: its reference for drift cannot be read ({type(exc).__name__}: {exc}). "
                "Calibrate the monitor again."
            ) from exc
        return cls(runs, cells)


@dataclass(frozen=True, slots=True)
class Drifted:
    """One series that changed.

    name, text: of the series. higher: whether it went up. since: number of the run, from 1, that gave the signal.
    reference, recent: mean in calibration; mean over the last runs, at most `RECENT`.
    """

    name: str
    text: str
    higher: bool
    since: int
    reference: float
    recent: float


@dataclass(frozen=True, slots=True)
class DriftReport:
    """The signal: runs are no longer like the calibration runs, so the false-alarm budget is not to be relied on.

    run: number of the run just finished, from 1. rate: the chance of ever getting here without a change.
    drifted: the series that changed, in the order in which they did.
    """

    run: int
    rate: float
    drifted: tuple[Drifted, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "drifted": [asdict(one) for one in self.drifted]}

    def to_text(self) -> str:
        """A sentence a series, and what to do."""
        said = [
            f"{one.text}: {one.recent:.3g} of late, {one.reference:.3g} in calibration (since run {one.since})"
            for one in self.drifted
        ]
        return (
            f"runs are no longer like the calibration runs, so the false-alarm budget is not to be relied on: "
            f"{'; '.join(said)}. Calibrate the monitor on new runs."
        )


class DriftSignal:
    """Watches finished runs, one after the other; a few KB a series, not thread-safe.

    reference: of the calibration runs. rate: chance of ever signalling while runs stay exchangeable with them, in
    (0, 1). seed: of the tie-breaking numbers.
    Raises ConfigError for a rate out of range.
    """

    def __init__(self, reference: DriftReference, rate: float = 0.01, *, seed: int = 13) -> None:
        if not 0.0 < rate < 1.0:
            raise ConfigError(f"drift rate {rate:g} is no probability: use a number between 0 and 1, such as 0.01.")
        self.reference = reference
        self.rate = rate
        #: Finished runs observed.
        self.runs = 0
        self._seed = seed
        self._watched = {s.name: _Watch(s, reference.cells[s.name].copy()) for s in SERIES if s.name in reference.cells}
        self._drifted: dict[str, tuple[int, bool]] = {}

    @property
    def evidence(self) -> dict[str, float]:
        """Of each series, how much its bets have won, starting at 1; `needed` or more is a signal."""
        return {name: watch.wealth for name, watch in self._watched.items()}

    @property
    def needed(self) -> float:
        """K / rate."""
        return len(self._watched) / self.rate

    def observe_run(self, summary: RunSummary) -> DriftReport | None:
        """Take one finished run. The report once the signal is given, from then on after every run; None before."""
        self.runs += 1
        for name, watch in self._watched.items():
            value = getattr(summary, name)
            if value is None:
                continue
            watch.observe(value, self._uniform(name))
            if name not in self._drifted and watch.wealth >= self.needed:
                self._drifted[name] = (self.runs, watch.higher)
        return self.report

    @property
    def report(self) -> DriftReport | None:
        """As the last `observe_run` gave it."""
        if not self._drifted:
            return None
        drifted = []
        for name, (since, higher) in self._drifted.items():
            watch, cells = self._watched[name], self.reference.cells[name]
            before = float(cells @ _MIDDLES / cells.sum())
            now = float(np.mean(watch.recent))
            drifted.append(Drifted(name, watch.series.text, higher, since, before, now))
        return DriftReport(self.runs, self.rate, tuple(drifted))

    def to_json(self) -> dict[str, Any]:
        """All that was taken in, so that a host that restarts can go on (`resume`)."""
        return {
            "runs": self.runs,
            "rate": self.rate,
            "seed": self._seed,
            "drifted": {name: list(found) for name, found in self._drifted.items()},
            "series": {name: watch.to_json() for name, watch in self._watched.items()},
        }

    @classmethod
    def resume(cls, reference: DriftReference, found: Mapping[str, Any]) -> DriftSignal:
        """The signal that `to_json` described, over the same reference. Raises DataError for anything else."""
        try:
            signal = cls(reference, float(found["rate"]), seed=int(found["seed"]))
            signal.runs = int(found["runs"])
            for name, watch in signal._watched.items():
                watch.take_up(found["series"][name])
            for name, (since, higher) in found["drifted"].items():
                if name not in signal._watched:
                    raise ValueError(f"{name} is not watched")
                signal._drifted[name] = (int(since), bool(higher))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ConfigError) as exc:
            raise DataError(
                f"the kept state of the drift signal cannot be read ({type(exc).__name__}: {exc}). Start a new one."
            ) from exc
        return signal

    def _uniform(self, name: str) -> float:
        """In (0, 1], from seed, run and series alone."""
        digest = hashlib.sha256(f"{self._seed}\x1f{self.runs}\x1f{name}".encode()).digest()
        return ((int.from_bytes(digest[:8], "big") >> 11) + 1) / 2.0**53


class _Watch:
    """One series: the values known so far, and its bets."""

    def __init__(self, series: Series, cells: npt.NDArray[np.int64]) -> None:
        self.series = series
        self.recent: deque[float] = deque(maxlen=RECENT)
        self._cells = cells
        self._bets = 0
        # Stakes in play: a row a direction (up, down), a column a power.
        self._stakes = np.zeros((2, len(_POWERS)))
        self._weights = np.array([[series.up], [series.down]]) / (len(_POWERS) * (series.up + series.down))

    @property
    def wealth(self) -> float:
        """In play and waiting."""
        return float(self._stakes.sum()) + 1.0 / (self._bets + 1)

    @property
    def higher(self) -> bool:
        """Whether the bets on larger values have won more than those on smaller ones."""
        return bool(self._stakes[0].sum() >= self._stakes[1].sum())

    def observe(self, value: float, uniform: float) -> None:
        """Rank it, settle the bets, and let it join the known ones."""
        cell = _cell(value)
        n = int(self._cells.sum())
        larger, equal = int(self._cells[cell + 1 :].sum()), int(self._cells[cell])
        p = (larger + uniform * (equal + 1)) / (n + 1)
        self._bets += 1
        started = self._stakes + self._weights / (self._bets * (self._bets + 1))
        # 1 - p is 0 where U is 1 and all others are smaller; half a step of U keeps the bet finite and changes nothing.
        places = np.array([[p], [max(1.0 - p, 2.0**-54)]])
        self._stakes = np.minimum(started * _POWERS * places ** (_POWERS - 1.0), _RICHEST)
        self._cells[cell] += 1
        self.recent.append(value)

    def to_json(self) -> dict[str, Any]:
        return {
            "bets": self._bets,
            "cells": _sparse(self._cells),
            "stakes": self._stakes.tolist(),
            "recent": list(self.recent),
        }

    def take_up(self, found: Mapping[str, Any]) -> None:
        stakes = np.array(found["stakes"], dtype=np.float64)
        if stakes.shape != self._stakes.shape or not (stakes >= 0).all():
            raise ValueError("stakes of another shape")
        self._bets, self._stakes, self._cells = int(found["bets"]), stakes, _dense(found["cells"])
        self.recent.extend(float(value) for value in found["recent"])


_MIDDLES = (np.arange(CELLS) + 0.5) / CELLS


def _cell(value: float) -> int:
    return min(int(value * CELLS), CELLS - 1)


def _sparse(cells: npt.NDArray[np.int64]) -> list[list[int]]:
    return [[i, int(cells[i])] for i in np.flatnonzero(cells).tolist()]


def _dense(pairs: Iterable[Any]) -> npt.NDArray[np.int64]:
    cells = np.zeros(CELLS, dtype=np.int64)
    for cell, count in pairs:
        if not 0 <= cell < CELLS or count < 0:
            raise ValueError(f"cell {cell} with count {count}")
        cells[int(cell)] = int(count)
    return cells
