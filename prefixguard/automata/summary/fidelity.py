"""How far an automaton agrees with its teacher, and in which cases it is to be audited with care.

The automaton explains itself, not its teacher. Where both part, or where too little was seen to tell, sentences say so;
the thresholds below which they do are stated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from prefixguard.alarm import AlarmState, Level
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.state_figures import state_figures
from prefixguard.automata.summary.wording import RiskWords, count_text, risk_text, share_text
from prefixguard.bundle import Automaton, Calibration, apply_map
from prefixguard.errors import DataError
from prefixguard.results import finite

#: Below: rank correlation of both's outcome risks; automaton's share of its teacher's imminent AUPRC; test runs.
AGREEMENT = 0.8
AUPRC_SHARE = 0.9
RUNS = 30
#: Above: how much lower the outcome AUROC at matched remaining steps is; share of test transitions that no training
#: run took; share of the steps that end in states of thin evidence.
REM_LOSS = 0.05
UNSEEN_SHARE = 0.05
THIN_SHARE = 0.25

Risks = NDArray[np.float64]
EMPTY: Mapping[str, Sequence[Risks]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How far the automaton agrees with its teacher, on test runs that neither learned from.

    agreement: Spearman correlation of both's outcome risks over steps. auprc, rem: imminent AUPRC, and outcome AUROC at
    matched remaining steps, of automaton and teacher; None where test runs have one outcome only. unseen_share: of
    transitions.
    runs, steps: what it was measured on. care: reasons to audit with care, a sentence each; empty where all
    thresholds are met. rem_interval: 95 %, over tasks, of `rem`; None where there is none. clock: `auprc` and `rem` of
    the number of the step alone, on the same steps. groups: by the name of a group, such as the agent, `rem` of its
    value alone; None where it is not defined.
    """

    agreement: float | None
    auprc: float | None
    teacher_auprc: float | None
    rem: float | None
    teacher_rem: float | None
    unseen_share: float
    runs: int
    steps: int
    care: tuple[str, ...]
    rem_interval: tuple[float, float] | None = None
    clock: tuple[float | None, float | None] = (None, None)
    groups: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """Test runs on an automaton and under its teacher; there may be none.

    strings: the runs. states: int32 (steps,), after each step. unseen: bool (steps,), transitions never taken in
    training. risks, teacher_risks: float64 (steps, 2): imminent and outcome, as readings of the automaton and of the
    monitor that it was learned from give them. levels, teacher_levels: one a step, as sessions say them.
    Raises DataError where lengths differ.
    """

    strings: Strings
    states: NDArray[np.int32]
    unseen: NDArray[np.bool_]
    risks: Risks
    levels: Sequence[Level]
    teacher_risks: Risks
    teacher_levels: Sequence[Level]

    def __post_init__(self) -> None:
        n = len(self.strings.symbols)
        given = [len(getattr(self, field.name)) for field in fields(self)[1:]]
        if set(given) != {n}:
            raise DataError(f"{n:,} steps of test runs with {given} states, flags, risks and levels: give one each.")

    def of(self, runs: NDArray[np.int64]) -> Walks:
        """These runs alone, in this order. runs: their places among the strings, int64."""
        first = self.strings.first
        steps = np.concatenate([np.empty(0, np.int64), *(np.arange(first[r], first[r + 1]) for r in runs.tolist())])
        levels, theirs = ([side[t] for t in steps.tolist()] for side in (self.levels, self.teacher_levels))
        parts = (self.states[steps], self.unseen[steps], self.risks[steps])
        return Walks(self.strings.of(runs), *parts, levels, self.teacher_risks[steps], theirs)


def rated(logits: Iterable[NDArray[np.float64]], calibration: Calibration) -> tuple[Risks, list[Level]]:
    """Both risks, float64 (steps, 2), and the level of every step, as sessions say them.

    logits: of each run, float64 (its steps, 2).
    """
    risks, levels = [np.empty((0, 2))], list[Level]()
    for of_run in logits:
        maps = enumerate((calibration.imminent, calibration.outcome))
        risks.append(np.stack([apply_map(one, of_run[:, i]) for i, one in maps], axis=1))
        alarm = AlarmState(calibration.policy, calibration.thresholds)
        levels += [alarm.step(risk) for risk in risks[-1][:, 1].tolist()]
    return np.concatenate(risks), levels


def measure_fidelity(automaton: Automaton, walks: Walks, groups: Mapping[str, Sequence[Risks]] = EMPTY) -> Fidelity:
    """Agreement, and what each is worth, on runs that neither was fitted to.

    groups: by name, a risk of every step of each run that knows the group's value alone.
    A figure that is not defined is None: with one outcome only, or where a risk is the same at every step.
    """
    n = len(walks.strings.symbols)
    auprc, rem = map(finite, walks.strings.figures(walks.risks))
    teacher_auprc, teacher_rem = map(finite, walks.strings.figures(walks.teacher_risks))
    steps = np.stack([walks.strings.index.astype(np.float64)] * 2, axis=1)
    clock_auprc, clock_rem = map(finite, walks.strings.figures(steps))
    measured = Fidelity(
        agreement=rank_correlation(walks.risks[:, 1], walks.teacher_risks[:, 1]),
        auprc=auprc,
        teacher_auprc=teacher_auprc,
        rem=rem,
        teacher_rem=teacher_rem,
        unseen_share=float(walks.unseen.mean()) if n else 0.0,
        runs=len(walks.strings),
        steps=n,
        care=(),
        rem_interval=walks.strings.matched_interval(walks.risks[:, 1]) if rem is not None else None,
        clock=(clock_auprc, clock_rem),
        groups=tuple((name, _rem(walks, np.concatenate(scores))) for name, scores in groups.items() if scores),
    )
    return replace(measured, care=tuple(_care(measured, automaton)))


def _rem(walks: Walks, outcome: Risks) -> float | None:
    """Outcome AUROC at matched remaining steps of a risk, (steps,)."""
    return finite(walks.strings.figures(np.stack([outcome] * 2, axis=1))[1])


def rank_correlation(one: Risks, other: Risks) -> float | None:
    """Spearman's correlation in [-1, 1], ties at their mean rank; None for fewer than two values or where all of one
    side are equal.

    >>> rank_correlation(np.array([0.1, 0.2, 0.2, 0.9]), np.array([0.3, 0.4, 0.4, 0.5]))
    1.0
    """
    if len(one) < 2:
        return None
    a, b = (rankdata(values) - (len(values) + 1) / 2 for values in (one, other))
    size = math.sqrt(float(a @ a) * float(b @ b))
    return min(max(float(a @ b) / size, -1.0), 1.0) if size > 0 else None


def _care(found: Fidelity, automaton: Automaton) -> Iterator[str]:
    """What to be careful about, a sentence each, from the gravest to the least."""
    if found.runs == 0:
        yield "There was no test run: how far the automaton agrees with its teacher is not known."
    elif found.runs < RUNS:
        yield (
            f"All figures rest on {count_text(found.runs, 'test run')}, fewer than {RUNS}: with other runs they could "
            "be quite different."
        )
    if found.steps and found.agreement is None:
        yield "The outcome risk of the automaton or of its teacher is the same at every step: they cannot be compared."
    if found.agreement is not None and found.agreement < AGREEMENT:
        yield (
            "The automaton often ranks steps otherwise than its teacher: the rank correlation of their outcome risks "
            f"is {_number(found.agreement)}, below {_number(AGREEMENT)}. What the picture shows is not how the teacher "
            "judges."
        )
    if found.steps and (found.auprc is None or found.rem is None):
        yield "The test runs hold too little of one outcome to measure how well failures are told from successes."
    if found.auprc is not None and found.teacher_auprc and found.auprc < AUPRC_SHARE * found.teacher_auprc:
        yield (
            f"It sees failures that are near less well than its teacher: imminent AUPRC {_number(found.auprc)} against "
            f"{_number(found.teacher_auprc)}, {share_text(found.auprc / found.teacher_auprc)} of it and below "
            f"{share_text(AUPRC_SHARE)}."
        )
    if found.rem is not None and found.teacher_rem is not None and found.teacher_rem - found.rem > REM_LOSS:
        yield (
            "It tells runs that fail from runs that succeed less well than its teacher: outcome AUROC at matched "
            f"remaining steps {_number(found.rem)} against {_number(found.teacher_rem)}, more than "
            f"{_number(REM_LOSS)} lower."
        )
    better, as_well = rivals(found)
    if found.rem is not None:
        for what, alone in better:
            yield (
                f"The {what} alone tells runs that fail from runs that succeed better: outcome AUROC at matched "
                f"remaining steps {_number(alone)} against {_number(found.rem)}."
            )
        if as_well:
            others = " or ".join(f"the {what} alone ({_number(alone)})" for what, alone in as_well)
            ends = "" if found.rem_interval is None else f", 95 % interval {RiskWords().range(*found.rem_interval)}"
            yield (
                f"It is not shown to tell runs that fail from runs that succeed better than {others}: its outcome "
                f"AUROC at matched remaining steps is {_number(found.rem)}{ends}."
            )
    if found.unseen_share > UNSEEN_SHARE:
        yield (
            f"{share_text(found.unseen_share)} of the transitions of test runs were never taken in training, more than "
            f"{share_text(UNSEEN_SHARE)}: there the next state is a guess."
        )
    thin = [figure for figure in state_figures(automaton) if figure.visits > 0 and figure.thin]
    share = sum(figure.share for figure in thin)
    if share > THIN_SHARE:
        yield (
            f"{share_text(share)} of training steps end in {count_text(len(thin), 'state')} whose risks rest on thin "
            f"evidence, more than {share_text(THIN_SHARE)}."
        )


def rivals(found: Fidelity) -> tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]:
    """What knows nothing but the number of the step, or the value of a group, by its name, with its outcome AUROC at
    matched remaining steps: those that are better than the automaton, and those that its interval holds."""
    if found.rem is None:
        return (), ()
    known = [
        (what, alone)
        for what, alone in (("number of the step", found.clock[1]), *found.groups)
        if alone is not None
    ]
    least = found.rem if found.rem_interval is None else min(found.rem, found.rem_interval[0])
    better = tuple(one for one in known if one[1] > found.rem and _number(one[1]) != _number(found.rem))
    return better, tuple(one for one in known if one not in better and one[1] >= least)


def _number(figure: float) -> str:
    return risk_text(figure) if figure >= 0 else f"−{risk_text(-figure)}"
