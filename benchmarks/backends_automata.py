"""The rows of `backends.py` that are automata: every learner on every alphabet, with and without a clock.

An automaton learns from the training runs of a fold and from the teacher's out-of-fold risks of them; its risks are
those of training steps (in use they are then calibrated on runs set aside, which leaves their order as it is but for
what cells met). The row called default is what `export` would choose by folds of the training runs alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets import Alphabet, fit_alphabet
from prefixguard.automata.alphabets.model_symbols import Intervals
from prefixguard.automata.build import walk_training
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.material import Material
from prefixguard.automata.model_selection import DEFAULT_ALPHABETS, DEFAULT_LEARNERS, choices, choose, try_choices
from prefixguard.automata.state_risk import columns_of, fit_clock, training_risk
from prefixguard.automata.summary.fidelity import rank_correlation
from prefixguard.learn import Corpus, labels, sparse_matrix, steps_of

HORIZON = 3
MAX_STATES = 64
#: alphabet -> learners that are tried on it.
ROWS = {
    "tree-context": ("memoryless", "ladder", "merge", "distilled", "rpni"),
    "steps": ("memoryless", "ladder", "merge", "clusters", "distilled", "rpni"),
    "typed": ("memoryless", "ladder", "merge", "clusters", "fsm", "distilled", "rpni"),
    "gumbel": ("memoryless", "ladder", "merge", "rpni"),
    "quantized": ("memoryless", "ladder"),
}


@dataclass
class Fold:
    """What the rows of one fold share."""

    material: Material
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    blend: NDArray[np.float64]
    gumbel: NDArray[np.int32]
    intervals: Intervals
    quantized: NDArray[np.int32]


def gather(
    corpus: Corpus,
    folder: Path,
    name: str,
    k: int,
    sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    taught: NDArray[np.float32],
    encoded: Callable[[], tuple],
    seed: int,
) -> Fold:
    """The material of a fold."""
    train, test = sides
    vocabulary, rows = encoded()
    codes = {task: number for number, task in enumerate(sorted(set(corpus.task_ids)))}
    none = np.empty(0, dtype=np.int64)
    material = Material(
        corpus=corpus, rows=rows, matrix=sparse_matrix(corpus, rows, np.arange(len(corpus))),
        vocabulary=vocabulary[0], tools=[corpus.tool(step) for step in range(int(corpus.first[-1]))],
        labels=labels(corpus, HORIZON), teacher=taught,
        tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
        pool=train, held_out=none, alarm=none, test=test, seed=seed,
    )  # fmt: skip
    scores = {}
    for backend in ("gru", "gbdt"):
        with np.load(folder / f"{name}-{k}-{backend}.npz") as data:
            scores[backend] = dict(data)
    blend = (scores["gru"]["scores"] + scores["gbdt"]["scores"]) / 2
    intervals = Intervals(material)
    p = np.clip(taught.astype(np.float64), 1e-4, 1 - 1e-4)
    quantized = intervals.of(np.log(p / (1 - p)))
    quantized[steps_of(corpus, test)] = intervals.of(blend)
    return Fold(material, train, test, blend, scores["gru"]["symbols"], intervals, quantized)


def automata_rows(*of_fold) -> Iterator[tuple[str, dict[str, NDArray]]]:
    """Name and figures of every row of a fold; kept beside the other rows as they are done."""
    _, folder, name, k = of_fold[:4]
    fold: list[Fold] = []

    def shared() -> Fold:
        if not fold:
            fold.append(gather(*of_fold))
        return fold[0]

    alphabets: dict[str, Alphabet] = {}
    wanted = [(a, m) for a, learners in ROWS.items() for m in learners if m in LEARNERS]
    for alphabet, learner in [("default", "default"), *wanted]:
        path = folder / f"{name}-{k}-{alphabet}-{learner}.npz"
        if path.exists():
            with np.load(path) as data:
                made = dict(data)
        else:
            made = default(shared()) if alphabet == "default" else row(shared(), alphabet, learner, alphabets)
            np.savez_compressed(path, **made)
            print(path.name, flush=True)
        for clock in (True, False):
            suffix = "clock" if clock else "no clock"
            if f"scores {suffix}" in made:
                facts = {n: v for n, v in made.items() if " " not in n}
                facts |= {"scores": made[f"scores {suffix}"], "fidelity": made[f"fidelity {suffix}"]}
                yield (
                    (f"automaton: {alphabet}, {learner}, {suffix}" if alphabet != "default" else "automaton: default"),
                    facts,
                )


def default(fold: Fold) -> dict[str, NDArray]:
    """What `export` would choose, learned on all training runs."""
    began = time.process_time()
    trials = try_choices(fold.material, choices(DEFAULT_ALPHABETS, DEFAULT_LEARNERS, MAX_STATES, (False, True)))
    choice = choose(trials)
    made = row(fold, choice.alphabet, choice.learner, {}, max_states=choice.max_states)
    suffix = "clock" if choice.clock else "no clock"
    kept = {n: v for n, v in made.items() if " " not in n or n.endswith(f" {suffix}")}
    if suffix == "clock":
        kept = {n: v for n, v in kept.items() if not n.endswith("no clock")}
    chosen = np.array(f"{choice.alphabet}, {choice.learner}, {choice.max_states} at most, {suffix}")
    return {**kept, "seconds": np.array(time.process_time() - began), "choice": chosen}


def row(
    fold: Fold, alphabet: str, learner: str, alphabets: dict[str, Alphabet], max_states: int = MAX_STATES
) -> dict[str, NDArray]:
    """Scores on the test runs with and without a clock, states, seconds of learning."""
    material = fold.material
    given = {
        "gumbel": Alphabet.of_model("gumbel", fold.gumbel, int(fold.gumbel.max()) + 1),
        "quantized": Alphabet.of_model("quantized", fold.quantized, fold.intervals.n_symbols),
    }
    began = time.process_time()
    key = f"{alphabet} {max_states}"
    if key not in alphabets:
        alphabets[key] = fit_alphabet(alphabet, material, fold.train, max_states, given)
    n_symbols = alphabets[key].map.n_symbols
    train, test = (alphabets[key].strings(material, side) for side in (fold.train, fold.test))
    walked = walk_training(LEARNERS[learner](train, max_states=max_states, seed=material.seed), train)
    n = walked.transitions.n_states
    states, unseen = walked.walk(test)
    made = {"states": np.array(n), "symbols": np.array(n_symbols), "unseen": np.array(unseen.mean())}
    for suffix, clock in (("clock", fit_clock(train)), ("no clock", ())):
        _, risk = training_risk(train, walked.states, n, clock)
        p = np.clip(risk[states, columns_of(clock, test)], 1e-6, 1 - 1e-6)
        scores = np.log(p / (1 - p))
        made[f"scores {suffix}"] = scores
        made[f"fidelity {suffix}"] = np.array(rank_correlation(scores[:, 0], fold.blend[:, 0]) or np.nan)
    made["seconds"] = np.array(time.process_time() - began)
    return made
