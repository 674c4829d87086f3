"""A finished run in a handful of shares: what a drift signal compares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.session import Session
from prefixguard.stepview import StepRecord

if TYPE_CHECKING:
    from prefixguard.runtime.monitor import Monitor


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One finished run, as its monitor saw it. Every value in [0, 1]; None where the run does not have it.

    largest_risk, mean_risk: of the outcome risks of its judged steps.
    known_terms: k / (1 + k), k the known terms (words and pairs of words) a word of its text.
    unknown_steps: share of its steps in which no known term occurred.
    unseen_transitions: share of the automaton's transitions that no training run took; None for other monitors.
    unread_events: share of its events that the adapter could not read; None for runs that came as records.
    skipped_events: share of its last 64 events that no rule of the adapter takes; None for runs that came as records.
    unjudged_steps: share of its steps without a risk.
    Raises DataError for a value out of range.
    """

    largest_risk: float | None = None
    mean_risk: float | None = None
    known_terms: float | None = None
    unknown_steps: float | None = None
    unseen_transitions: float | None = None
    unread_events: float | None = None
    skipped_events: float | None = None
    unjudged_steps: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise DataError(f"a run's {field.name} is {value}: it is a share, so a number from 0 to 1, or None.")


def summarise_steps(
    outcome_risks: npt.ArrayLike,
    terms: npt.ArrayLike,
    words: npt.ArrayLike,
    unseen_transitions: float | None = None,
) -> RunSummary:
    """A run given as numbers, one a step (T,): what `summarise_records` says of it, without a session.

    outcome_risks: float, NaN where a step was not judged. terms: known terms of its row. words: words of its text.
    Raises DataError where counts differ.
    """
    risks = np.asarray(outcome_risks, dtype=np.float64)
    known, all_words = np.asarray(terms, dtype=np.int64), np.asarray(words, dtype=np.int64)
    if not risks.shape == known.shape == all_words.shape or risks.ndim != 1:
        raise DataError(f"a run of {risks.size} risks, {known.size} and {all_words.size} counts: give one each a step.")
    judged = ~np.isnan(risks)
    n_words, steps = int(all_words[judged].sum()), len(risks)
    a_word = int(known[judged].sum()) / n_words if n_words else 0.0
    some = bool(judged.any())
    return RunSummary(
        largest_risk=float(risks[judged].max()) if some else None,
        mean_risk=min(1.0, math.fsum(risks[judged].tolist()) / int(judged.sum())) if some else None,
        known_terms=a_word / (1 + a_word) if some else None,
        unknown_steps=int((known[judged] == 0).sum()) / steps if steps else None,
        unseen_transitions=unseen_transitions,
        unjudged_steps=int((~judged).sum()) / steps if steps else None,
    )


def summarise_run(session: Session, readings: Iterable[Reading]) -> RunSummary:
    """A run that has ended: its session, and all readings that the session gave."""
    said = list(readings)
    return _summary(session, [r.outcome_risk for r in said], any(r.state is not None for r in said))


def summarise_records(monitor: Monitor, records: Iterable[StepRecord]) -> RunSummary:
    """A run read from a file: by the path of a live run from its records on. Nothing is said of its events."""
    session = Session(monitor, None)
    return summarise_run(session, [session.observe_record(record) for record in records])


def _summary(session: Session, risks: Sequence[float | None], has_states: bool) -> RunSummary:
    drift = session.drift
    judged = [risk for risk in risks if risk is not None]
    live, steps = session.counters["events"] > 0, drift.steps
    return RunSummary(
        largest_risk=max(judged) if judged else None,
        mean_risk=min(1.0, math.fsum(judged) / len(judged)) if judged else None,
        known_terms=drift.terms_a_token / (1 + drift.terms_a_token) if judged else None,
        unknown_steps=drift.empty_row_share if steps else None,
        unseen_transitions=drift.unseen_share if has_states else None,
        unread_events=drift.unread_share if live else None,
        skipped_events=drift.skipped_share if live else None,
        unjudged_steps=min(1.0, drift.unjudged_steps / steps) if steps else None,
    )
