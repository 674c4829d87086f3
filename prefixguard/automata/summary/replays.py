"""Runs to replay on an automaton: test runs, few and each of another kind, and runs of one's choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import Level
from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import group_names
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.shared_names import short_names
from prefixguard.automata.summary.wording import both_ends, count_text, share_text
from prefixguard.bundle import Calibration
from prefixguard.errors import DataError
from prefixguard.learn import Corpus
from prefixguard.results import finite
from prefixguard.runtime import plain
from prefixguard.stepview import FIELDS

MOST = 60
#: Code points kept of a field of a record; a page may keep fewer.
TEXT_LETTERS = 20_000
_ID = 120  # code points of a run's id, and of a value of a group
_LONG, _SHORT = 300, 3  # steps; other runs go before longer and before shorter ones
_TAGS = re.compile(b"[%b]" % bytes(range(1, len(FIELDS) + 1)))


class ReplayKind(StrEnum):
    """What a run shows, in the order in which runs are drawn and shown."""

    EARLY = "failed, caught early"  # with more than the horizon left
    LATE = "failed, caught late"  # within the horizon
    MISSED = "failed, missed"
    FALSE_ALARM = "succeeded, false alarm"
    QUIET = "succeeded, no alarm"


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step of a run on the automaton.

    texts: what its record holds, by name, in the order in which it happened; text from the run. teacher: its outcome
    risk.
    """

    symbol: int
    state: int
    unseen: bool
    imminent: float
    outcome: float
    level: str
    texts: tuple[tuple[str, str], ...]
    teacher: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that the page replays. groups: what the run is said to be of, as its agent. note: why it is shown, where it
    was asked for, and whether the automaton learned from it."""

    run_id: str
    failed: bool | None
    kind: str
    groups: tuple[tuple[str, str], ...]
    note: str
    steps: tuple[ReplayStep, ...]


@dataclass(frozen=True, slots=True)
class ReplayChoice:
    """Which test runs are shown. places: on the test side, int64. said: how they were chosen, for people."""

    places: NDArray[np.int64]
    said: str


def asked_runs(corpus: Corpus, ids: Iterable[str], where: str) -> NDArray[np.int64]:
    """The runs of these ids, int64. where: what to call the runs. Raises DataError for an id that none has."""
    numbers: dict[str, list[int]] = {}
    for r, run_id in enumerate(corpus.run_ids):
        numbers.setdefault(run_id, []).append(r)
    wanted = list(dict.fromkeys(ids))
    if missing := [one for one in wanted if one not in numbers]:
        few = ", ".join(repr(one) for one in corpus.run_ids[:3])
        raise DataError(
            f"{where}: no run with an outcome has the id {missing[0]!r}, which --replay names. Ids there are such as "
            f"{few}."
        )
    return np.array([r for one in wanted for r in numbers[one]], dtype=np.int64)


def choose_replays(
    material: Material, walks: Walks, calibration: Calibration, *, horizon: int, quoted: Sequence[int] = ()
) -> ReplayChoice:
    """At most 60 test runs, failed first: caught early, caught late, missed; then false alarms and quiet ones.

    Of each kind those that are quoted go first, and of the missed ones one of each value of each group, as each agent,
    that has any, those with most first. Then the kinds take turns, so that each is there if any run is of it, and runs
    of tasks not yet shown go first. Of failures and false alarms those come first whose outcome risk moves most, of
    quiet ones those whose peak is lowest; runs of extreme lengths come last. Without an alarm threshold a run counts as
    caught where it reaches WATCH. horizon: steps from the end within which an alarm is late. quoted: numbers of runs
    that are quoted. Raises DataError where the walks are of other runs than the material's test side.
    """
    corpus, test, first = material.corpus, material.test, walks.strings.first
    if walks.strings.lengths.tolist() != corpus.lengths[test].tolist():
        raise DataError(
            f"walks of {len(walks.strings):,} runs for {len(test):,} test runs: give those of the test side."
        )
    kinds = replay_kinds(walks, calibration, horizon)
    queues: dict[ReplayKind, list[tuple[tuple[bool, bool, float, str, int], int]]] = {kind: [] for kind in ReplayKind}
    for i, (r, kind) in enumerate(zip(test.tolist(), kinds, strict=True)):
        a, b = int(first[i]), int(first[i + 1])
        risk = walks.risks[a:b, 1]
        worth = float(risk.max()) if kind is ReplayKind.QUIET else -float(np.ptp(risk))
        queues[kind].append(((b - a > _LONG, b - a < _SHORT, round(worth, 6), corpus.run_ids[r], i), i))
    order = {kind: [i for _, i in sorted(queues[kind])] for kind in ReplayKind}
    wanted = [*np.flatnonzero(np.isin(test, quoted)).tolist(), *_one_of_each(material, order[ReplayKind.MISSED])]
    chosen = _take_turns(list(order.values()), material.tasks[test], wanted)
    there, shown = Counter(kinds), Counter(kinds[i] for i in chosen)
    of = "; ".join(f"{kind}: {shown[kind]:,} of {there[kind]:,}" for kind in ReplayKind if there[kind])
    said = (
        f"{len(chosen):,} of {count_text(len(test), 'test run')} are shown: those quoted above, a failure without an "
        f"alarm of each agent or other group that has one, then by kind in turn ({of}), those first whose risk moves "
        f"most, of quiet ones those whose risk stays lowest; not by how well they look.{_more_caught(there, shown)}"
    )
    return ReplayChoice(np.array(chosen, dtype=np.int64), said if len(test) else "There was no test run.")


def replay_kinds(walks: Walks, calibration: Calibration, horizon: int) -> list[ReplayKind]:
    """What each run of the walks shows."""
    sounds = Level.WATCH if calibration.thresholds.alarm is None else Level.ALARM
    ends = walks.strings.first.tolist()
    runs = zip(walks.strings.failed.tolist(), ends, ends[1:], strict=False)
    return [_kind(failed, walks.levels[a:b], sounds, horizon) for failed, a, b in runs]


def make_replays(
    material: Material,
    runs: NDArray[np.int64],
    walks: Walks,
    kinds: Sequence[ReplayKind],
    *,
    asked: bool = False,
    examples: bool = True,
) -> tuple[Replay, ...]:
    """These runs, step by step.

    runs, walks, kinds: of the same runs, in one order. asked: whether they were asked for. examples: False leaves out
    the texts of steps and values of groups, and ids of runs become numbers.
    """
    corpus, first, test = material.corpus, walks.strings.first, set(material.test.tolist())
    names = sorted({name for of in corpus.groups for name in of})
    short = {name: short_names(of[name] for of in corpus.groups if name in of) for name in names}
    replays = []
    for i, r in enumerate(runs.tolist()):
        at = slice(int(first[i]), int(first[i + 1]))
        documents = corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1])) if examples else ()
        columns = (
            walks.strings.symbols[at].tolist(),
            walks.states[at].tolist(),
            walks.unseen[at].tolist(),
            *walks.risks[at].T.tolist(),
            [level.value for level in walks.levels[at]],
            [step_texts(document) for document in documents] or [()] * (at.stop - at.start),
            map(finite, walks.teacher_risks[at, 1].tolist()),
        )
        groups = sorted(corpus.groups[r].items()) if examples else []
        known = "" if r in test else ": no test run, so it may have been learned from"
        replays.append(
            Replay(
                run_id=plain(both_ends(corpus.run_ids[r], _ID), _ID) if examples else str(i + 1),
                failed=bool(corpus.failed[r]),
                kind=kinds[i].value,
                groups=tuple((name, plain(short[name][of], _ID)) for name, of in groups),
                note=f"asked for{known}" if asked else "",
                steps=tuple(map(ReplayStep, *columns)),
            )
        )
    return tuple(replays)


def step_texts(document: bytes) -> tuple[tuple[str, str], ...]:
    r"""What a serialised record holds, by name; absent texts are left out, long ones are cut.

    >>> step_texts(b"\x01agent\x02ls\x03{}\x04Hi!\x05look\x06a\n b\x07ok")
    (('arrived since the last step', 'Hi!'), ('agent says', 'look'), ('calls', 'ls({})'), ('result, ok', 'a\n b'))
    """
    texts = (part[: 4 * TEXT_LETTERS].decode("utf-8", "ignore") for part in _TAGS.split(document)[1:])
    of = dict(zip(FIELDS, texts, strict=True))
    speaks = of["tool"] == "respond"
    said = of["action"] or (of["arguments"] if speaks else "")
    found = (
        ("arrived since the last step", of["observation"]),
        (f"{plain(of['actor'], _ID) or 'agent'} says", said),
        ("calls", f"{of['tool']}({of['arguments']})" if of["tool"] and not speaks else ""),
        (f"result, {plain(of['status'], _ID)}", of["result"] or (of["status"] if of["status"] == "error" else "")),
    )
    return tuple((name, text[:TEXT_LETTERS]) for name, text in found if text.strip())


def _kind(failed: bool, levels: Sequence[Level], sounds: Level, horizon: int) -> ReplayKind:
    alert = next((t for t, level in enumerate(levels, 1) if level is sounds), None)
    if not failed:
        return ReplayKind.QUIET if alert is None else ReplayKind.FALSE_ALARM
    if alert is None:
        return ReplayKind.MISSED
    return ReplayKind.EARLY if len(levels) - alert > horizon else ReplayKind.LATE


def _one_of_each(material: Material, missed: Sequence[int]) -> list[int]:
    """The first missed run of each value of each group, of the value with most of them first."""
    found = list[int]()
    for name in group_names(material):
        values = [material.corpus.groups[run].get(name, "") for run in material.test[list(missed)].tolist()]
        found += [missed[values.index(value)] for value, _ in Counter(values).most_common()]
    return found


def _more_caught(there: Counter[ReplayKind], shown: Counter[ReplayKind]) -> str:
    """Which share of the failures that are shown raises an alarm, and which of all: a sentence; "" where all are."""
    failed = (ReplayKind.EARLY, ReplayKind.LATE, ReplayKind.MISSED)
    (caught, among), (all_caught, all_failed) = (
        (sum(of[kind] for kind in failed[:2]), sum(of[kind] for kind in failed)) for of in (shown, there)
    )
    if caught * all_failed == all_caught * among:
        return ""
    often = "more" if caught * all_failed > all_caught * among else "less"
    return (
        f" Runs with an alarm are shown {often} often than they come: {caught:,} of the {count_text(among, 'failure')} "
        f"shown raise one ({share_text(caught / max(among, 1))}), {all_caught:,} of all {all_failed:,} "
        f"({share_text(all_caught / all_failed)})."
    )


def _take_turns(queues: list[list[int]], tasks: NDArray[np.int64], wanted: Sequence[int]) -> list[int]:
    """Up to `MOST` entries, the wanted ones first, then one of each queue in turn, preferring tasks not yet taken; then
    queue by queue."""
    taken: list[list[int]] = [[] for _ in queues]
    waiting = [list(queue) for queue in queues]
    seen: set[int] = set()
    left = MOST
    for i in list(dict.fromkeys(wanted))[:MOST]:
        place = next(place for place, queue in enumerate(waiting) if i in queue)
        waiting[place].remove(i)
        taken[place].append(i)
        seen.add(int(tasks[i]))
        left -= 1
    while left and any(waiting):
        for queue, out in zip(waiting, taken, strict=True):
            if not queue or not left:
                continue
            place = next((p for p, i in enumerate(queue) if int(tasks[i]) not in seen), 0)
            out.append(queue.pop(place))
            seen.add(int(tasks[out[-1]]))
            left -= 1
    return [i for out in taken for i in out]
