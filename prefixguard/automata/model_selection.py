"""Which learner, alphabet and size: tried on the pool itself, by task-grouped folds, and shown as a table.

Every candidate learns from two thirds of the pool's tasks and is scored on the others, in turn, by imminent AUPRC, a
step being as much of a positive as the mean of its label and of the teacher's out-of-fold risk: labels alone are so few
that chance would choose. Calibration, alarm and test runs are not looked at.

The rule. Candidates within 0.03 of the best score, or within a tenth of it where that is less, whose alarm can sound
within the budget are near. Each is worth the mean of five figures: the score, rank correlation of both risks with the
teacher's, kappa of alarms with the teacher's, and how close the coverage of the states' 90 % intervals is to 0.9. From
that goes 0.01 each time the description (states, symbols that occur, transitions) doubles. The one that is worth most
is best, ties go to the shorter description. Where candidates over behaviours have nine tenths of that one's imminent
AUPRC or more, and alarms that can sound if that one's can, the best of these is chosen: a picture whose symbols nobody
understands is of little use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from itertools import product, starmap
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets import ALPHABETS, Alphabet, fit_alphabet
from prefixguard.automata.build import Walked, build, walk_training
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of, fit_clock, training_risk
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.alarms import cohens_kappa, interval_coverage
from prefixguard.automata.summary.fidelity import AUPRC_SHARE, rank_correlation
from prefixguard.errors import ConfigError
from prefixguard.metrics import Ranking
from prefixguard.trace import task_hash

_FOLDS = 3
#: How much score an alarm that can sound is worth: so much, and at most such a share of the best score.
_NEARLY, _NEARLY_SHARE = 0.03, 0.1
#: What a description of twice the length must be worth.
_DOUBLED = 0.01
_COVERED = 0.9
_BEHAVIOURS = "behaviours"
#: What the default choice is made among: symbols that mean something, learners that take seconds.
DEFAULT_ALPHABETS = (_BEHAVIOURS, "tree-context", "steps", "typed")
DEFAULT_LEARNERS = ("memoryless", "grid")


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

    soft: imminent AUPRC against the mean of labels and teacher. auprc, rem: imminent AUPRC
    and outcome AUROC at matched remaining steps, against labels. top_share: of successful runs, those that reach the
    highest outcome risk there is: an alarm that may sound in fewer of them can never sound.
    imminent, outcome: rank correlation of a risk with the teacher's. kappa: Cohen's, of steps that alarm with the
    teacher's, each at the budget. coverage: share of cells of a state and a span of the clock whose failure rate lies
    in the 90 % interval; risks are calibrated on half of a fold's other tasks and looked at on the rest. length:
    states, symbols that occur and transitions. NaN where a figure is not defined.
    """

    choice: Candidate
    states: int
    symbols: int
    soft: float
    auprc: float
    rem: float
    unseen_share: float
    top_share: float = 0.0
    imminent: float = math.nan
    outcome: float = math.nan
    kappa: float = math.nan
    coverage: float = math.nan
    length: float = 1.0

    @property
    def worth(self) -> float:
        """What the choice is made by among those that are near; a figure that is not defined counts as 0."""
        close = 1 - abs(self.coverage - _COVERED)
        figures = [self.soft, self.imminent, self.outcome, self.kappa, close]
        return sum(x for x in figures if x == x) / len(figures) - _DOUBLED * math.log2(self.length)

    @property
    def score(self) -> float:
        """What tells those that are near the best; -1 where it does not exist."""
        return self.soft if self.soft == self.soft else -1.0


def choices(
    alphabets: Iterable[str], learners: Iterable[str], max_states: int, clocks: Iterable[bool]
) -> tuple[Candidate, ...]:
    """All combinations, each at a third of the budget of states and at all of it; a name given twice counts once.

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
    budget: float = 0.1,
    on_trial: Callable[[str], None] | None = None,
) -> tuple[CandidateTrial, ...]:
    """Every candidate's figures, best score first; ties by fewer states, then by order. None where the pool cannot be
    folded: too few tasks, or only one outcome outside of each fold.

    given: alphabets whose symbols a model has given (see `fit_alphabet`). budget: share of successful runs that may
    alarm. on_trial: called with what is tried next.
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
            trial = _trial(choice, strings, walked, alphabet.strings(material, test), budget)
            found.setdefault(choice, []).append(trial)
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
    """The candidate that the rule at the head of this file chooses.

    trials: best score first, at least one. budget: share of successful runs that may alarm.
    """

    def can_alarm(trial: CandidateTrial) -> bool:
        return trial.top_share <= budget / 2

    def best(of: Sequence[CandidateTrial]) -> CandidateTrial:
        least = of[0].score - min(_NEARLY, _NEARLY_SHARE * of[0].score)
        near = [t for t in of if t.score >= least and can_alarm(t)] or of
        return max(near, key=lambda t: (round(t.worth, 6), -t.length))

    first = best(trials)
    if first.choice.alphabet == _BEHAVIOURS:
        return first.choice
    over = [t for t in trials if t.choice.alphabet == _BEHAVIOURS and t.auprc >= AUPRC_SHARE * first.auprc]
    over = [t for t in over if can_alarm(t) >= can_alarm(first)]
    return best(over or [first]).choice


def sizes(max_states: int) -> tuple[int, ...]:
    """The sizes that are tried within a budget: a third of it and all of it."""
    return (max_states // 3, max_states) if max_states >= 16 else (max_states,)


def _trial(choice: Candidate, train: Strings, walked: Walked, test: Strings, budget: float) -> CandidateTrial:
    n = walked.transitions.n_states
    clock = fit_clock(train) if choice.clock else ()
    _, risk = training_risk(train, walked.states, n, clock)
    states, unseen = walked.walk(test)
    risks = risk[states, columns_of(clock, test)]
    auprc, rem = test.figures(risks)
    soft = soft_average_precision((test.labels[:, 0] + test.teacher[:, 0]) / 2, risks[:, 0])
    alike = [rank_correlation(risks[:, i], test.teacher[:, i].astype(np.float64)) for i in range(2)]
    alarms = [_alarms(score, test, budget) for score in (risks[:, 1], test.teacher[:, 1].astype(np.float64))]
    length = int(np.count_nonzero(walked.edges)) + int(np.count_nonzero(walked.edges.sum(axis=0))) + n
    coverage, top = _held_out(walked, train, test, clock)
    known = [math.nan if x is None else x for x in (*alike, cohens_kappa(*alarms), coverage, length)]
    return CandidateTrial(choice, n, test.n_symbols, soft, auprc, rem, float(unseen.mean()), top, *known)


def _alarms(outcome: NDArray[np.float64], strings: Strings, budget: float) -> NDArray[np.bool_]:
    """Steps with a risk that at most this share of the successful runs ever has."""
    if not len(outcome) or strings.failed.all():
        return np.zeros(len(outcome), dtype=np.bool_)
    highest = np.maximum.reduceat(outcome, strings.first[:-1])[~strings.failed]
    return outcome > float(np.quantile(highest, 1 - budget, method="higher"))


def _held_out(walked: Walked, train: Strings, test: Strings, clock: tuple[int, ...]) -> tuple[float | None, float]:
    """Coverage and top share of an automaton whose risks are calibrated on half of the tasks, on the other half."""
    tasks = np.unique(test.tasks)
    sets = np.isin(test.tasks, tasks[::2])
    automaton = build(walked, train, test.of(np.flatnonzero(sets)), clock)
    judged = test.of(np.flatnonzero(~sets))
    states = walked.walk(judged)[0]
    outcome = automaton.risk[states, columns_of(clock, judged), 1]
    return interval_coverage(automaton, judged, states)[0], _top_share(outcome, judged)


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
    names = [field.name for field in fields(CandidateTrial)[3:]]
    means = {name: mean(name) for name in names}
    return CandidateTrial(choice, states, symbols, **means)


#: Heading of each column of figures, and how a trial's is said.
_COLUMNS: tuple[tuple[str, Callable[[CandidateTrial], str]], ...] = (
    ("AUPRC against labels and teacher", lambda t: f"{t.soft:.3f}"),
    ("imminent AUPRC", lambda t: f"{t.auprc:.3f}"),
    ("outcome AUROC at matched remaining", lambda t: f"{t.rem:.3f}"),
    ("agreement, imminent", lambda t: f"{t.imminent:.2f}"),
    ("agreement, outcome", lambda t: f"{t.outcome:.2f}"),
    ("kappa of alarms", lambda t: f"{t.kappa:.2f}"),
    ("coverage", lambda t: f"{t.coverage:.0%}"),
    ("description", lambda t: f"{t.length:,.0f}"),
    ("overall", lambda t: f"{t.worth:.3f}"),
    ("unseen", lambda t: f"{t.unseen_share:.1%}"),
)


#: Heading of each column of `shown_trials`.
SHOWN_COLUMNS = ("alphabet, learner", "clock", "states", "score", "AUPRC", "agree", "κ", "CI", "size", "overall")
#: What they mean.
COLUMNS_MEAN = (
    "states: the most on one of the folds; the automaton itself is learned from all training runs, so it may have "
    "others; score: AUPRC against the mean of labels and teacher; AUPRC: against labels, imminent; agree: rank "
    "correlation of imminent and outcome risk with the teacher's; κ: Cohen's kappa of alarms with the teacher's; CI: "
    "90 % intervals that held; size: states, symbols and transitions; overall: the mean of score, agree (both), κ and "
    "how near CI is to 90 %, less .01 for each doubling of size"
)
#: By which the choice is made.
RULE = (
    f"The rule: of those whose score is within {_NEARLY} of the best (within a tenth of it where that is less) and "
    "whose alarm can sound within the budget, the one with the highest overall figure is first. If its symbols are "
    "behaviours, it is taken. If not, the same rule is put to those over behaviours that have "
    f"{AUPRC_SHARE * 100:.0f} % of its AUPRC or more (and whose alarm can sound, if its alarm can); where there is "
    "none, the first is taken."
)


def shown_trials(
    trials: Sequence[CandidateTrial], chosen: Candidate, most: int = 5
) -> tuple[tuple[bool, tuple[str, ...]], ...]:
    """The best by score and the chosen one, which is marked: the cells of each row. Equal rows, as of half of the
    budget of states and all of it, are one."""
    rows: dict[tuple[str, ...], bool] = {}
    for t in trials:
        cells = (
            f"{t.choice.alphabet}, {t.choice.learner}", "yes" if t.choice.clock else "no", str(t.states),
            f"{t.soft:.3f}", f"{t.auprc:.3f}", f"{t.imminent:.2f} {t.outcome:.2f}".replace("0.", "."),
            f"{t.kappa:.2f}".replace("0.", "."), f"{t.coverage:.0%}", f"{t.length:.0f}", f"{t.worth:.3f}",
        )  # fmt: skip
        rows[cells] = rows.get(cells, False) or t.choice == chosen
    return tuple((marked, cells) for place, (cells, marked) in enumerate(rows.items()) if place < most or marked)


def table(trials: Sequence[CandidateTrial], chosen: Candidate) -> str:
    """The trials as a Markdown table, the chosen one marked."""
    names = " | ".join(name for name, _ in _COLUMNS)
    lines = [
        f"| | alphabet | learner | clock | at most | symbols | states | {names} |",
        f"| --- | --- | --- | --- | ---: | ---: | ---: {'| ---: ' * len(_COLUMNS)}|",
    ]
    for t in trials:
        first = "**chosen**" if t.choice == chosen else ""
        figures = " | ".join(say(t) for _, say in _COLUMNS)
        lines.append(
            f"| {first} | {t.choice.alphabet} | {t.choice.learner} | {'yes' if t.choice.clock else 'no'} "
            f"| {t.choice.max_states} | {t.symbols} | {t.states} | {figures} |"
        )
    return "\n".join(lines)
