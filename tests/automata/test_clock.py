"""The clock's columns begin where the risk changes, and the caller's runs count alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from words import strings_of

from prefixguard.automata.state_risk import columns_of, fit_clock
from prefixguard.automata.strings import Strings


def runs_of(lengths: list[int], risk: object) -> Strings:
    """Runs whose risk (labels and teacher alike) is a function of the step index."""
    strings = strings_of([(0,) * n for n in lengths], 1)
    value = np.array([risk(t) for t in strings.index.tolist()], dtype=np.float32)  # type: ignore[operator]
    both = np.stack((value, value), axis=1)
    return replace(strings, labels=both, teacher=both)


def test_a_jump_is_found_at_its_step() -> None:
    strings = runs_of([30] * 20, lambda t: 0.9 if t >= 21 else 0.1)
    assert fit_clock(strings) == (21,)
    columns = columns_of((21,), strings)
    assert (columns == (strings.index >= 21)).all()


def test_no_column_where_the_risk_is_the_same_throughout_or_few_steps_are_there() -> None:
    assert fit_clock(runs_of([30] * 20, lambda t: 0.3)) == ()
    assert fit_clock(runs_of([9] * 11, lambda t: t / 10)) == ()  # 99 steps: no two columns of 50
    assert columns_of((), runs_of([3, 2], lambda t: 0.1)).tolist() == [0] * 5


def test_columns_rise_are_few_and_hold_enough() -> None:
    strings = runs_of([60] * 40, lambda t: (t / 60) ** 3)
    clock = fit_clock(strings)
    assert len(clock) == 11
    assert all(a < b for a, b in pairwise(clock)) and clock[0] >= 2
    assert np.bincount(columns_of(clock, strings)).min() >= 50
    widths = [b - a for a, b in pairwise((1, *clock, 61))]
    assert widths[0] > widths[-1]  # wide where little changes


def test_every_run_counts_alike() -> None:
    """A few long runs whose risk climbs in many steps do not use up the columns that many short ones need."""
    short = runs_of([10] * 300, lambda t: 0.1 if t >= 6 else 0.0)
    long = runs_of([1000] * 60, lambda t: (t // 20) / 50 if t > 20 else 0.0)
    both = strings_of([*short.words(), *long.words()], 1)
    values = np.concatenate((short.labels, long.labels))
    assert 6 in fit_clock(replace(both, labels=values, teacher=values))
