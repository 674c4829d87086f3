"""Automata learned from lab runs by the real parts, small; and corpora of records made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet, fit_typed
from prefixguard.automata.build import build, walk_training
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.doing import deed_names, deeds
from prefixguard.automata.summary.entries import Entry, make_entries
from prefixguard.bundle import Automaton
from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, featurise, labels, out_of_fold, sparse_matrix
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run, Side, split_tasks

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


def entries_of(
    alphabet: Alphabet, material: Material, automaton: Automaton, states: NDArray[np.int32], *, examples: bool = True
) -> tuple[Entry, ...]:
    """The entries of an automaton, steps being named by what the material's training runs have in common."""
    names = deed_names(material, examples=examples)
    return make_entries(alphabet, material, automaton, states, names, deeds(material, names), examples=examples)


@cache
def lab_material(path: Path) -> Material:
    """The simulation's runs of this file; made once, never changed."""
    return material_of(read_runs(path, load_adapter("openai_chat")))


def typed(material: Material) -> Alphabet:
    return fit_typed(material, material.pool)


def wordless(alphabet: Alphabet) -> Alphabet:
    """The same symbols, of which no words are known, as of an alphabet that a network learned."""
    none = ("",) * len(alphabet.glosses)
    return Alphabet("gumbel", alphabet.map, alphabet.symbols, none, none, alphabet.reads_history)


def learned(
    material: Material, learner: str, *, clock: tuple[int, ...] = (), alphabet: Alphabet | None = None
) -> Learned:
    """From material to an automaton of at most 12 states."""
    alphabet = alphabet or typed(material)
    pool, held_out, test = (alphabet.strings(material, r) for r in (material.pool, material.held_out, material.test))
    walked = walk_training(LEARNERS[learner](pool, max_states=12, seed=0), pool)
    automaton = build(walked, pool, held_out, clock)
    test_states, unseen = walked.walk(test)
    risks = automaton.risk[test_states, columns_of(clock, test)]
    return Learned(material, alphabet, automaton, pool, walked.states, test, test_states, unseen, risks)


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
