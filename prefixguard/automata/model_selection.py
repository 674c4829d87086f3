"""Which learner, alphabet and size: tried on the pool itself, by task-grouped folds, and shown as a table.

Every candidate learns from two thirds of the pool's tasks and is scored on the others, in turn, by imminent AUPRC, a
step being as much of a positive as the mean of its label and of the teacher's out-of-fold risk: labels alone are so few
that chance would choose. Calibration, alarm and test runs are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product, starmap
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets import ALPHABETS, Alphabet, fit_alphabet
from prefixguard.automata.build import Walked, walk_training
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of, fit_clock, training_risk
from prefixguard.automata.strings import Strings
from prefixguard.errors import ConfigError
from prefixguard.metrics import Ranking
from prefixguard.trace import task_hash

_FOLDS = 3
#: How much a smaller automaton may lose in score and still be preferred.
_INDIFFERENT = 0.005
#: And how much in outcome AUROC: the score looks at the imminent risk, alarms go by the other.
_OUTCOME = 0.01
#: How much score an alarm that can sound is worth.
_NEARLY = 0.03
#: What the default choice is made among: symbols that mean something, learners that take seconds.
DEFAULT_ALPHABETS = ("tree", "tree-context", "steps", "typed")
DEFAULT_LEARNERS = ("memoryless", "ladder")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to make an automaton. clock: whether risks are read from state and coarse step index."""

    alphabet: str
    learner: str
    max_states: int
    clock: bool


@dataclass(frozen=True, slots=True)
class CandidateTrial:
    """What a choice was worth on the folds. states: greatest number.

    soft: imminent AUPRC against the mean of labels and teacher, which the choice is made by. auprc, rem: imminent AUPRC
    and outcome AUROC at matched remaining steps, against labels. top_share: of successful runs, those that reach the
    highest outcome risk there is: an alarm that may sound in fewer of them can never sound.
    """

    choice: Candidate
    states: int
    symbols: int
    soft: float
    auprc: float
    rem: float
    unseen_share: float
    top_share: float = 0.0

    @property
    def score(self) -> float:
        """What the choice is made by; -1 where it does not exist."""
        return self.soft if self.soft == self.soft else -1.0


def choices(
    alphabets: Iterable[str], learners: Iterable[str], max_states: int, clocks: Iterable[bool]
) -> tuple[Candidate, ...]:
    """All combinations, each at half of the budget of states and at all of it; a name given twice counts once.

    Raises ConfigError for an unknown name, and where there is none.
    """
    alphabets, learners = dict.fromkeys(alphabets), dict.fromkeys(learners)
    for what, names, known in (("alphabet", alphabets, ALPHABETS), ("learner", learners, LEARNERS)):
        if not names:
            raise ConfigError(f"no {what} is named: choose from {', '.join(known)}.")
        for name in names:
            if name not in known:
                raise ConfigError(f"{what} {name!r}: choose one of {', '.join(known)}.")
    return tuple(starmap(Candidate, product(alphabets, learners, sizes(max_states), tuple(clocks))))


def try_choices(
    material: Material,
    candidates: Sequence[Candidate],
    *,
    given: Mapping[str, Alphabet] = MappingProxyType({}),
    on_trial: Callable[[str], None] | None = None,
) -> tuple[CandidateTrial, ...]:
    """Every candidate's worth, best first; ties by fewer states, then by order. None where the pool cannot be folded:
    too few tasks, or only one outcome outside of each fold.

    given: alphabets whose symbols a model has given (see `fit_alphabet`). on_trial: called with what is tried next.
    """
    pool, task_ids = material.pool, material.corpus.task_ids
    tasks = sorted({task_ids[r] for r in pool.tolist()}, key=lambda t: task_hash(f"pick:{t}"))
    fold_of = {task: i % _FOLDS for i, task in enumerate(tasks)}
    fold = np.array([fold_of[task_ids[r]] for r in pool.tolist()])
    found: dict[Candidate, list[CandidateTrial]] = {}
    for f in range(_FOLDS):
        train, test = pool[fold != f], pool[fold == f]
        if len(train) == 0 or len(test) == 0 or len(set(material.corpus.failed[train].tolist())) < 2:
            continue
        fit = cache(partial(fit_alphabet, material=material, runs=train, given=given))
        learn = cache(partial(learn_from, material=material, runs=train))
        for choice in candidates:
            if on_trial:
                on_trial(f"fold {f + 1} of {_FOLDS}: {choice.alphabet}, {choice.learner}")
            alphabet = fit(choice.alphabet, max_states=choice.max_states)
            strings, walked = learn(alphabet, choice.learner, choice.max_states)
            found.setdefault(choice, []).append(_trial(choice, strings, walked, alphabet.strings(material, test)))
    trials = [_mean(choice, parts) for choice, parts in found.items()]
    order = {choice: i for i, choice in enumerate(candidates)}
    return tuple(sorted(trials, key=lambda t: (-round(t.score, 6), t.states, order[t.choice])))


def learn_from(
    alphabet: Alphabet, learner: str, max_states: int, material: Material, runs: NDArray[np.int64]
) -> tuple[Strings, Walked]:
    """These runs as strings of an alphabet, and the transitions that a learner makes of them."""
    strings = alphabet.strings(material, runs)
    found = LEARNERS[learner](strings, max_states=max_states, seed=material.seed)
    return strings, walk_training(found, strings)


def choose(trials: Sequence[CandidateTrial], budget: float = 0.1) -> Candidate:
    """The candidate with the fewest states among those that are as good as the best, and tell outcomes as well; ties to
    the better one.

    trials: best first, at least one. budget: share of successful runs that may alarm. Candidates that could hardly ever
    alarm within it stand back behind those that are nearly as good and can.
    """
    near = [t for t in trials if t.score >= trials[0].score - _NEARLY and t.top_share <= budget / 2]
    left = near or trials
    best = left[0]
    good = [t for t in left if t.score >= best.score - _INDIFFERENT and not t.rem < best.rem - _OUTCOME]
    return min(good, key=lambda t: (t.states, -t.score)).choice


def sizes(max_states: int) -> tuple[int, ...]:
    """The sizes that are tried within a budget: half of it and all of it."""
    return (max_states // 2, max_states) if max_states >= 16 else (max_states,)


def _trial(choice: Candidate, train: Strings, walked: Walked, test: Strings) -> CandidateTrial:
    n = walked.transitions.n_states
    clock = fit_clock(train) if choice.clock else ()
    _, risk = training_risk(train, walked.states, n, clock)
    states, unseen = walked.walk(test)
    risks = risk[states, columns_of(clock, test)]
    auprc, rem = test.figures(risks)
    soft = soft_average_precision((test.labels[:, 0] + test.teacher[:, 0]) / 2, risks[:, 0])
    top = _top_share(risks[:, 1], test)
    return CandidateTrial(choice, n, test.n_symbols, soft, auprc, rem, float(unseen.mean()), top)


def _top_share(outcome: NDArray[np.float64], strings: Strings) -> float:
    """Share of successful runs that reach the highest risk that any run reaches; 0 without a successful run."""
    if not len(outcome):
        return 0.0
    reached = np.maximum.reduceat(outcome, strings.first[:-1]) >= outcome.max()
    succeeded = ~strings.failed
    return float(reached[succeeded].mean()) if succeeded.any() else 0.0


def soft_average_precision(positive: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """AUPRC where every step is positive to a degree, in [0, 1]; for degrees of 0 and 1 it is AUPRC. NaN if void.

    >>> soft_average_precision(np.array([1.0, 0.0]), np.array([0.9, 0.2]))
    1.0
    """
    n = len(scores)
    ranking = Ranking(np.repeat([1, 0], n), np.tile(scores, 2))
    return float(ranking.average_precision(np.concatenate((positive, 1 - positive))))


def _mean(choice: Candidate, parts: Sequence[CandidateTrial]) -> CandidateTrial:
    def mean(name: str) -> float:
        known = [x for x in (getattr(part, name) for part in parts) if x == x]
        return float(np.mean(known)) if known else float("nan")

    states, symbols = max(part.states for part in parts), max(part.symbols for part in parts)
    means = {name: mean(name) for name in ("soft", "auprc", "rem", "unseen_share", "top_share")}
    return CandidateTrial(choice, states, symbols, **means)


def table(trials: Sequence[CandidateTrial], chosen: Candidate) -> str:
    """The trials as a Markdown table, the chosen one marked."""
    lines = [
        "| | alphabet | learner | clock | at most | symbols | states | AUPRC against labels and teacher "
        "| imminent AUPRC | outcome AUROC at matched remaining | unseen |",
        "| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for t in trials:
        first = "**chosen**" if t.choice == chosen else ""
        lines.append(
            f"| {first} | {t.choice.alphabet} | {t.choice.learner} | {'yes' if t.choice.clock else 'no'} "
            f"| {t.choice.max_states} | {t.symbols} | {t.states} | {t.soft:.3f} | {t.auprc:.3f} | {t.rem:.3f} "
            f"| {t.unseen_share:.1%} |"
        )
    return "\n".join(lines)
