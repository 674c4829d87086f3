"""Test runs to replay on an automaton: few, and each of another kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.automata.material import Material
from prefixguard.automata.summary.entries import step_line
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.bundle import Calibration
from prefixguard.errors import DataError
from prefixguard.results import finite
from prefixguard.runtime import plain

MOST = 12
_ID = 120  # code points of a run's id
_LONG, _SHORT = 300, 3  # steps; other runs go before longer and before shorter ones


class ReplayKind(IntEnum):
    """What a run shows, in the order in which runs are drawn and shown."""

    EARLY = 0  # fails, caught with more than the horizon left
    LATE = 1  # fails, caught within the horizon
    MISSED = 2
    FALSE_ALARM = 3
    QUIET = 4  # succeeds, and nothing sounds


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step of a run on the automaton. text: the step in one line, from the run. teacher: its outcome risk."""

    symbol: int
    state: int
    unseen: bool
    imminent: float
    outcome: float
    level: str
    text: str
    teacher: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that the page replays. failed: None where the outcome is not known."""

    run_id: str
    failed: bool | None
    steps: tuple[ReplayStep, ...]


def choose_replays(
    material: Material, walks: Walks, calibration: Calibration, *, horizon: int, examples: bool = True
) -> tuple[Replay, ...]:
    """At most twelve test runs, failed first: caught early, caught late, missed; then false alarms and quiet ones.

    The kinds take turns, so that each is there if any run is of it, and runs of tasks not yet shown go first. Of
    failures and false alarms those come first whose outcome risk moves most, of quiet ones those whose peak is lowest;
    runs of extreme lengths come last. Without an alarm threshold a run counts as caught where it reaches WATCH.
    horizon: steps from the end within which an alarm is late. examples: False leaves out the texts of steps, and ids
    of runs become numbers. Raises DataError where the walks are of other runs than the material's test side.
    """
    corpus, test, first, levels = material.corpus, material.test, walks.strings.first, walks.levels
    if walks.strings.lengths.tolist() != corpus.lengths[test].tolist():
        raise DataError(
            f"walks of {len(walks.strings):,} runs for {len(test):,} test runs: give those of the test side."
        )
    sounds = {Level.ALARM} if calibration.thresholds.alarm is not None else {Level.WATCH}
    queues: dict[ReplayKind, list[tuple[tuple[bool, bool, float, str, int], int]]] = {kind: [] for kind in ReplayKind}
    for i, r in enumerate(test.tolist()):
        a, b = int(first[i]), int(first[i + 1])
        kind = _kind(bool(corpus.failed[r]), levels[a:b], sounds, horizon)
        risk = walks.risks[a:b, 1]
        worth = float(risk.max()) if kind is ReplayKind.QUIET else -float(np.ptp(risk))
        queues[kind].append(((b - a > _LONG, b - a < _SHORT, round(worth, 6), corpus.run_ids[r], i), i))
    chosen = _take_turns([[i for _, i in sorted(queues[kind])] for kind in ReplayKind], material.tasks[test])
    replays = []
    for number, i in enumerate(chosen, 1):
        r, at = int(test[i]), slice(int(first[i]), int(first[i + 1]))
        documents = corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1])) if examples else ()
        columns = (
            walks.strings.symbols[at].tolist(),
            walks.states[at].tolist(),
            walks.unseen[at].tolist(),
            *walks.risks[at].T.tolist(),
            [level.value for level in levels[at]],
            [step_line(document) for document in documents] or [""] * (at.stop - at.start),
            map(finite, walks.teacher_risks[at, 1].tolist()),
        )
        run_id = plain(corpus.run_ids[r], _ID) if examples else str(number)
        replays.append(Replay(run_id, bool(corpus.failed[r]), tuple(map(ReplayStep, *columns))))
    return tuple(replays)


def _kind(failed: bool, levels: Sequence[Level], sounds: set[Level], horizon: int) -> ReplayKind:
    alert = next((t for t, level in enumerate(levels, 1) if level in sounds), None)
    if not failed:
        return ReplayKind.QUIET if alert is None else ReplayKind.FALSE_ALARM
    if alert is None:
        return ReplayKind.MISSED
    return ReplayKind.EARLY if len(levels) - alert > horizon else ReplayKind.LATE


def _take_turns(queues: list[list[int]], tasks: NDArray[np.int64]) -> list[int]:
    """Up to `MOST` entries, one of each queue in turn, preferring tasks not yet taken; then queue by queue."""
    taken: list[list[int]] = [[] for _ in queues]
    waiting = [list(queue) for queue in queues]
    seen: set[int] = set()
    left = MOST
    while left and any(waiting):
        for queue, out in zip(waiting, taken, strict=True):
            if not queue or not left:
                continue
            place = next((p for p, i in enumerate(queue) if int(tasks[i]) not in seen), 0)
            out.append(queue.pop(place))
            seen.add(int(tasks[out[-1]]))
            left -= 1
    return [i for out in taken for i in out]
