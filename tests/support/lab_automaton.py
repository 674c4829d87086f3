"""Automata learned from lab runs by the real parts, small; and corpora of records made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet, fit_typed
from prefixguard.automata.learners import ladder, memoryless
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import calibrate, columns_of
from prefixguard.automata.strings import Strings, Transitions, before, fallback_of, walk
from prefixguard.bundle import Automaton
from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, featurise, labels, out_of_fold, sparse_matrix, steps_of
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run, Side, split_tasks

LEARNERS: dict[str, Callable[..., Transitions]] = {"memoryless": memoryless.learn, "ladder": ladder.learn}
SHARES = {Side.TRAIN: 0.45, Side.CALIBRATION: 0.25, Side.TEST: 0.3}


@dataclass(frozen=True)
class Learned:
    """An automaton, the alphabet and material it came from, and its walks over the pool and the test side."""

    material: Material
    alphabet: Alphabet
    automaton: Automaton
    pool: Strings
    states: NDArray[np.int32]
    test: Strings
    test_states: NDArray[np.int32]
    unseen: NDArray[np.bool_]
    risks: NDArray[np.float64]


def material_of(runs: Iterable[Run[StepRecord]], *, max_features: int = 300, teach: bool = True) -> Material:
    """Runs on three sides, by task; the alarm side is empty. teach: whether there is a teacher, else labels teach."""
    corpus = featurise(runs)
    sides = split_tasks(corpus.task_ids, seed=13, shares=SHARES)
    of = {side: np.flatnonzero([sides[task] is side for task in corpus.task_ids]).astype(np.int64) for side in Side}
    return lay_out(corpus, of, max_features=max_features, teach=teach)


def lay_out(
    corpus: Corpus, of: dict[Side, NDArray[np.int64]], *, max_features: int = 300, teach: bool = True
) -> Material:
    """Material of these sides."""
    pool = of[Side.TRAIN]
    vocabulary, _ = fit_vocabulary(corpus.texts(pool.tolist()), max_features=max_features, min_tasks=2)
    rows, targets = corpus.encode(vocabulary), labels(corpus, 3)
    codes = {task: number for number, task in enumerate(sorted(set(corpus.task_ids)))}
    return Material(
        corpus=corpus,
        rows=rows,
        matrix=sparse_matrix(corpus, rows, np.arange(len(corpus))),
        vocabulary=vocabulary,
        tools=[corpus.tool(step) for step in range(int(corpus.first[-1]))],
        labels=targets,
        teacher=out_of_fold(corpus, rows, pool, targets, 0) if teach else targets,
        tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
        pool=pool,
        held_out=of[Side.CALIBRATION],
        alarm=np.empty(0, np.int64),
        test=of[Side.TEST],
        seed=0,
    )


@cache
def lab_material(path: Path) -> Material:
    """The simulation's runs of this file; made once, never changed."""
    return material_of(read_runs(path, load_adapter("openai_chat")))


def typed(material: Material) -> Alphabet:
    return fit_typed(material.tools, material.corpus.context, steps_of(material.corpus, material.pool))


def wordless(alphabet: Alphabet) -> Alphabet:
    """The same symbols, of which no words are known, as of an alphabet that a network learned."""
    none = ("",) * len(alphabet.glosses)
    return Alphabet("gumbel", alphabet.map, alphabet.symbols, none, none, alphabet.reads_history)


def learned(
    material: Material, learner: str, *, clock: tuple[int, ...] = (), alphabet: Alphabet | None = None
) -> Learned:
    """From material to an automaton of at most 12 states."""
    alphabet = alphabet or typed(material)
    pool, held_out, test = (
        strings_of(material, alphabet, runs) for runs in (material.pool, material.held_out, material.test)
    )
    found = LEARNERS[learner](pool, max_states=12, seed=0)
    nowhere = np.full(pool.n_symbols, -1, dtype=np.int32)
    states, _ = walk(found.start, found.next, nowhere, pool)
    edges = np.zeros(found.next.shape, dtype=np.int64)
    np.add.at(edges, (before(pool, states, found.start), pool.symbols), 1)
    fallback = fallback_of(edges, found.next)
    held_out_states, _ = walk(found.start, found.next, fallback, held_out)
    told = calibrate(pool, states, held_out, held_out_states, found.n_states, clock)
    automaton = Automaton(
        start=found.start,
        transitions=found.next,
        fallback=fallback,
        clock=clock,
        risk=told.risk,
        interval=told.interval,
        edges=edges,
        visits=np.bincount(states, minlength=found.n_states).astype(np.int64),
        evidence=told.evidence,
        evidence_runs=told.evidence_runs,
        stand_in=told.stand_in,
    )
    test_states, unseen = walk(automaton.start, automaton.transitions, automaton.fallback, test)
    risks = automaton.risk[test_states, columns_of(clock, test)]
    return Learned(material, alphabet, automaton, pool, states, test, test_states, unseen, risks)


def strings_of(material: Material, alphabet: Alphabet, runs: NDArray[np.int64]) -> Strings:
    """`Material.strings`, for no run at all too."""
    every = material.strings(alphabet.symbols, alphabet.map.n_symbols, np.arange(len(material.corpus)))
    if len(runs):
        return every.of(runs)
    none = np.empty((0, 2), np.float32)
    return Strings(
        every.symbols[:0], every.n_symbols, np.zeros(1, np.int64), every.failed[:0], every.tasks[:0], none, none
    )


def run_of(name: str, records: Sequence[dict[str, str]], *, failed: bool, task: str | None = None) -> Run[StepRecord]:
    """A run of records of which only some fields are given."""
    fields = {"actor": "agent", "agent": "", "tool": "", "arguments": "", "observation": "", "action": "", "result": ""}
    full = [
        StepRecord(index=i, **(fields | {"status": "ok"} | record))  # type: ignore[arg-type]
        for i, record in enumerate(records, 1)
    ]
    return Run(
        run_id=name,
        task_id=task or name,
        records=tuple(full),
        outcome=Outcome.FAILURE if failed else Outcome.SUCCESS,
        source="by hand",
    )
