"""How far an automaton agrees with its teacher, and in which cases it is to be audited with care.

The automaton explains itself, not its teacher. Where both part, or where too little was seen to tell, sentences say so;
the thresholds below which they do are stated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from prefixguard.alarm import Level
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary import Fidelity
from prefixguard.automata.summary.state_figures import state_figures
from prefixguard.automata.summary.wording import count_text, risk_text, share_text
from prefixguard.bundle import Automaton
from prefixguard.errors import DataError

#: Below: rank correlation of both's outcome risks; automaton's share of its teacher's imminent AUPRC; test runs.
AGREEMENT = 0.8
AUPRC_SHARE = 0.9
RUNS = 30
#: Above: how much lower the outcome AUROC at matched remaining steps is; share of test transitions that no training
#: run took; share of the states that were visited whose risk rests on thin evidence.
REM_LOSS = 0.05
UNSEEN_SHARE = 0.05
THIN_SHARE = 0.25

Risks = NDArray[np.float64]


def measure_fidelity(
    automaton: Automaton,
    test: Strings,
    risks: Risks,
    teacher: Risks,
    unseen: NDArray[np.bool_],
    *,
    levels: Sequence[Level | None] | None = None,
    teacher_levels: Sequence[Level | None] | None = None,
) -> Fidelity:
    """Agreement, and what each is worth, on runs that neither was fitted to; there may be none.

    test: those runs; of their steps only labels are read. risks, teacher: float (steps, 2), finite, of automaton and
    teacher (the monitor that it was learned from): imminent, outcome. unseen: bool (steps,). levels, teacher_levels:
    one a step; steps where either has none (None, UNKNOWN) are left out, as all are where a sequence is not given.
    A figure that is not defined is None: with one outcome only, or where a risk is the same at every step.
    Raises DataError where lengths differ.
    """
    n = len(test.symbols)
    given = [len(x) for x in (risks, teacher, unseen, levels, teacher_levels) if x is not None]
    if set(given) != {n}:
        raise DataError(f"{n:,} steps of test runs with {given} risks, flags and levels: give one each.")
    auprc, rem = map(_known, test.figures(risks))
    teacher_auprc, teacher_rem = map(_known, test.figures(teacher))
    measured = Fidelity(
        agreement=rank_correlation(risks[:, 1], teacher[:, 1]),
        same_level=_same_level(levels, teacher_levels),
        auprc=auprc,
        teacher_auprc=teacher_auprc,
        rem=rem,
        teacher_rem=teacher_rem,
        unseen_share=float(unseen.mean()) if n else 0.0,
        runs=len(test),
        steps=n,
        care=(),
    )
    return replace(measured, care=tuple(_care(measured, automaton)))


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


def _same_level(one: Sequence[Level | None] | None, other: Sequence[Level | None] | None) -> float | None:
    silent = (None, Level.UNKNOWN)
    pairs = [(a, b) for a, b in zip(one or (), other or (), strict=False) if a not in silent and b not in silent]
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


def _known(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


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
    if found.unseen_share > UNSEEN_SHARE:
        yield (
            f"{share_text(found.unseen_share)} of the transitions of test runs were never taken in training, more than "
            f"{share_text(UNSEEN_SHARE)}: there the next state is a guess."
        )
    figures = [figure for figure in state_figures(automaton) if figure.visits > 0]
    thin = sum(figure.thin for figure in figures)
    if figures and thin / len(figures) > THIN_SHARE:
        yield (
            f"The risks of {thin} of {count_text(len(figures), 'visited state')} rest on thin evidence, more than "
            f"{share_text(THIN_SHARE)} of them."
        )


def _number(figure: float) -> str:
    return risk_text(figure) if figure >= 0 else f"−{risk_text(-figure)}"
