"""What an automaton is of: the runs that it was made from, who ran them, its teacher, and what it was chosen from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prefixguard.automata.material import Material
from prefixguard.automata.summary.alarms import group_names
from prefixguard.automata.summary.failed_means import failed_means
from prefixguard.automata.summary.parts import task_kinds
from prefixguard.automata.summary.shared_names import short_names
from prefixguard.automata.summary.wording import both_ends, one_line
from prefixguard.bundle import Bundle
from prefixguard.runtime import plain

#: Values of a group, tools and kinds of task that are named, and letters of each.
NAMED = 6
_LETTERS = 48

Shares = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an automaton comes from.

    source: name of the file or folder of the runs. adapter: name and version of what they were read through. runs,
    tasks, failed: how many. failed_means: what "failed" is, a sentence. sides: runs that symbols and states were
    learned from, that risks were set on, thresholds, and figures; failed_of: the share of each that failed. groups: of
    each group, such as agent, how many values it has and the most frequent with their shares of the runs; kinds: the
    same of what stands before the first colon of task ids, if tasks have it in common; tools: of the steps. teacher,
    automaton: the teacher's id, and the SHA-256 of automaton.json. backend: the teacher's. tried: how many combinations
    the choice was among; best: the best of them and the choice, which is marked, as cells. muted: whether better ones
    were passed over because they can never alarm.
    """

    source: str
    adapter: str
    runs: int
    tasks: int
    failed: int
    failed_means: str
    sides: tuple[int, int, int, int]
    failed_of: tuple[float, float, float, float]
    groups: tuple[tuple[str, int, Shares], ...]
    kinds: Shares
    tools: tuple[int, Shares]
    teacher: str
    backend: str
    automaton: str
    tried: int
    best: tuple[tuple[bool, tuple[str, ...]], ...]
    muted: bool


def origin_of(
    material: Material,
    bundle: Bundle,
    source: str,
    automaton: str,
    tried: int,
    best: tuple[tuple[bool, tuple[str, ...]], ...],
    *,
    muted: bool,
    examples: bool = True,
) -> Origin:
    """Counted on the runs of the material. bundle: the teacher. examples: False leaves out the values of groups and the
    kinds of task. All else as `Origin` has it."""
    corpus = material.corpus
    used = [material.pool, material.held_out, material.alarm, material.test]
    every = sorted(run for side in used for run in side.tolist())
    shares = [float(corpus.failed[side].mean()) if len(side) else math.nan for side in used]
    kinds = Counter(task_kinds(material).values())
    groups = []
    for name in group_names(material):
        short = short_names(corpus.groups[run].get(name, "") for run in every)
        counts = Counter(short[corpus.groups[run].get(name, "")] for run in every)
        groups.append((one_line(name, _LETTERS), len(counts), _shares(counts) if examples else ()))
    tools = Counter(material.tools)
    tools.pop("respond", None)
    tools.pop("", None)
    return Origin(
        source=one_line(source, 120),
        adapter=one_line(f"{bundle.adapter.name} {bundle.adapter.version}", 80),
        runs=len(every),
        tasks=len({corpus.task_ids[run] for run in every}),
        failed=int(corpus.failed[every].sum()),
        failed_means=failed_means(bundle.adapter),
        sides=(len(used[0]), len(used[1]), len(used[2]), len(used[3])),
        failed_of=(shares[0], shares[1], shares[2], shares[3]),
        groups=tuple(groups),
        kinds=_shares(kinds) if examples else (),
        tools=(len(tools), _shares(tools)),
        teacher=bundle.id,
        backend=one_line(str(bundle.manifest.get("backend", "")), 40),
        automaton=automaton,
        tried=tried,
        best=best,
        muted=muted,
    )


def _shares(counts: Counter[str]) -> Shares:
    """The most frequent, ties by name."""
    total = max(counts.total(), 1)
    top: Iterable[str] = sorted(counts, key=lambda value: (-counts[value], value))[:NAMED]
    return tuple((plain(both_ends(value, _LETTERS), _LETTERS) or "not named", counts[value] / total) for value in top)
