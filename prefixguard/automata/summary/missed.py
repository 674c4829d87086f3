"""What the automaton cannot see: failed test runs that raise no alarm, and what they have in common with successes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, fisher_exact

from prefixguard.alarm import Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.entries import step_line
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.wording import both_ends
from prefixguard.behaviours import BY_NAME, CATALOGUE, PLACES
from prefixguard.runtime import plain

#: Of the behaviours that are said to be more frequent on missed failures, so many at most are expected to be by chance.
_BY_CHANCE = 0.05
_ENDS, _NAME = 3, 80
_ADVISED = tuple(one.name for one in CATALOGUE if one.advice)


@dataclass(frozen=True, slots=True)
class MoreOften:
    """A behaviour of the catalogue that holds somewhere in so many missed failures, and in so many successful runs."""

    name: str
    missed: int
    successful: int


@dataclass(frozen=True, slots=True)
class TwinRuns:
    """A missed failure and a success on one path: their names, and of each step the state, and a line of either run,
    text from the runs. same_task: whether both are of one task."""

    failed: str
    succeeded: str
    same_task: bool
    steps: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class MissedFailures:
    """Failed test runs that raise no alarm.

    failed, successful: test runs. missed: failed ones without an alarm. alike: those of them whose path of states, from
    the first step to the last, a successful run of the test or the training side has too. twins: two such runs; None
    where there are none on the test side, or texts are left out. ends: the symbol of the last step of missed failures,
    in words, with how many end so and how many successful runs do; the most frequent first. behaviours: those with an
    advice that missed failures have more often than successes, tasks counted once, beyond chance. lengths: steps of the
    failed test runs, ascending.
    """

    failed: int
    successful: int
    missed: int
    alike: int
    twins: TwinRuns | None
    ends: tuple[tuple[str, int, int], ...]
    behaviours: tuple[MoreOften, ...]
    lengths: tuple[int, ...]


def find_missed(
    material: Material,
    states: NDArray[np.int32],
    walks: Walks,
    thresholds: Thresholds,
    glosses: Sequence[str],
    *,
    examples: bool = True,
) -> MissedFailures:
    """What failed test runs without an alarm are.

    states: int32, after each step of the pool's runs. walks: of the test side. thresholds: without one of the alarm,
    WATCH counts as an alarm. glosses: of the symbols. examples: False leaves texts out.
    """
    corpus, failed = material.corpus, walks.strings.failed
    sound = Level.WATCH if thresholds.alarm is None else Level.ALARM
    ends = list(pairwise(walks.strings.first.tolist()))
    missed = [i for i, (a, b) in enumerate(ends) if failed[i] and sound not in walks.levels[a:b]]
    good = np.flatnonzero(~failed).tolist()
    paths = [tuple(walks.states[a:b].tolist()) for a, b in ends]
    taught = np.split(states, np.cumsum(corpus.lengths[material.pool])[:-1]) if len(material.pool) else []
    of_success = {paths[i] for i in good} | {
        tuple(path.tolist()) for r, path in zip(material.pool.tolist(), taught, strict=True) if not corpus.failed[r]
    }
    return MissedFailures(
        failed=int(np.count_nonzero(failed)),
        successful=len(good),
        missed=len(missed),
        alike=sum(paths[i] in of_success for i in missed),
        twins=_twins(material, paths, missed, good) if examples else None,
        ends=ends_of(walks.strings, missed, good, glosses),
        behaviours=more_often(material, missed, good),
        lengths=tuple(sorted(walks.strings.lengths[failed].tolist())),
    )


def _twins(
    material: Material, paths: Sequence[tuple[int, ...]], missed: Sequence[int], good: Sequence[int]
) -> TwinRuns | None:
    """Of one task if there are such, else on the path that most missed failures take; ties by the names of runs."""
    corpus, often = material.corpus, Counter(paths[i] for i in missed)

    def order(pair: tuple[int, int]) -> tuple[bool, int, str, str]:
        one, other = (int(material.test[i]) for i in pair)
        same = bool(material.tasks[one] == material.tasks[other])
        return not same, -often[paths[pair[0]]], corpus.run_ids[one], corpus.run_ids[other]

    pairs = [(i, j) for i in missed for j in good if paths[i] == paths[j]]
    if not pairs:
        return None
    found = min(pairs, key=order)
    one, other = (int(material.test[i]) for i in found)
    names = [plain(both_ends(corpus.run_ids[r], _NAME), _NAME) for r in (one, other)]
    lines = (
        [step_line(document) for document in corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1]))]
        for r in (one, other)
    )
    same_task = bool(material.tasks[one] == material.tasks[other])
    return TwinRuns(names[0], names[1], same_task, tuple(zip(paths[found[0]], *lines, strict=True)))


def ends_of(
    strings: Strings, missed: Sequence[int], good: Sequence[int], glosses: Sequence[str]
) -> tuple[tuple[str, int, int], ...]:
    """The symbols that the last steps of missed failures are, in words, each with how many they are and how many of the
    successful runs `good` end so; the most frequent first. strings: the test runs; missed, good: places among them."""
    last = strings.symbols[strings.first[1:] - 1].tolist()
    ends, others = Counter(last[i] for i in missed), Counter(last[i] for i in good)
    order = sorted(ends.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((glosses[symbol], n, others[symbol]) for symbol, n in order[:_ENDS])


def more_often(material: Material, missed: Sequence[int], good: Sequence[int]) -> tuple[MoreOften, ...]:
    """By Fisher's exact test, one-sided; runs of one task and outcome count as one, which has a behaviour if half of
    them have.

    Source: Benjamini, Hochberg 1995.
    """
    corpus, held = material.corpus, material.corpus.held
    if held is None or not missed or not good:
        return ()
    places = [PLACES[name] for name in _ADVISED]
    first = corpus.first

    def of(runs: Sequence[int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of each run, and of each task, which behaviours hold."""
        numbers = material.test[list(runs)]
        there = np.array([(held[first[r] : first[r + 1], places] > 0).any(axis=0) for r in numbers.tolist()])
        _, task = np.unique(material.tasks[numbers], return_inverse=True)
        n = np.bincount(task)
        shares = np.stack([np.bincount(task, column) / n for column in there.T.astype(np.float64)], axis=1)
        return there, shares >= 0.5

    (ours, our_tasks), (theirs, their_tasks) = of(missed), of(good)
    a, b = our_tasks.sum(axis=0), their_tasks.sum(axis=0)
    m, n = len(our_tasks), len(their_tasks)
    tables = ([[x, m - x], [y, n - y]] for x, y in zip(a, b, strict=True))
    chances = [float(fisher_exact(table, alternative="greater").pvalue) for table in tables]
    sure = false_discovery_control(chances) <= _BY_CHANCE
    order = sorted(np.flatnonzero(sure).tolist(), key=lambda k: (BY_NAME[_ADVISED[k]].kind == "neutral", chances[k], k))
    return tuple(MoreOften(_ADVISED[k], int(ours[:, k].sum()), int(theirs[:, k].sum())) for k in order)
