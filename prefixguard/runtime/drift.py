"""How a run looks to its monitor: counters while it goes on, and a handful of shares once it is over.

The shares are what a drift signal compares (`drift_signal`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError, SavedSessionError


@dataclass(frozen=True, slots=True)
class Drift:
    """How a run looks to its monitor; compare with what training runs look like.

    steps: steps so far. empty_row_share: share of them in which no known term occurred, in [0, 1].
    terms_a_token: distinct known terms (words and pairs of words of one field) per word; falls when the run's language
        is not the training runs'. unread_share: share of events that the adapter could not read, in [0, 1].
    unjudged_steps: steps without a risk. saturated_words: different words beyond what the context remembers; above 0
        its novelty and grounding features are less exact than in training.
    lapsed: fields that were filled in training and have been empty for too long here (see `field_dropout`).
    skipped_share: share of the last 64 events that no rule of the adapter takes, in [0, 1].
    unseen_share: share of the automaton's transitions so far that no training run took, in [0, 1]; 0.0 without one.
    Shares are 0.0 before the first event or step.
    """

    steps: int
    empty_row_share: float
    terms_a_token: float
    unread_share: float
    unjudged_steps: int
    saturated_words: int
    lapsed: tuple[str, ...] = ()
    skipped_share: float = 0.0
    unseen_share: float = 0.0


@dataclass(slots=True)
class Tally:
    """Plain counters of one session.

    events: calls of `observe`. lapsed_steps: steps not judged because the run is no longer read as the training runs
    were. terms, tokens: over all judged steps. transitions: of an automaton; unseen_transitions: those of them that no
    training run took.
    """

    empty_rows: int = 0
    events: int = 0
    lapsed_steps: int = 0
    reasons_failed: int = 0
    steps: int = 0
    terms: int = 0
    tokens: int = 0
    transitions: int = 0
    unjudged_steps: int = 0
    unread_events: int = 0
    unseen_transitions: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Tally:
        """From a saved session. Raises SavedSessionError unless these are the counters."""
        if set(counts) != set(cls.__slots__):
            raise SavedSessionError("The counters of the saved session are not those of this release.")
        return cls(**counts)

    def drift(self, saturated_words: int = 0, lapsed: tuple[str, ...] = (), skipped_share: float = 0.0) -> Drift:
        """The shares."""
        return Drift(
            steps=self.steps,
            empty_row_share=_share(self.empty_rows, self.steps),
            terms_a_token=_share(self.terms, self.tokens),
            unread_share=_share(self.unread_events, self.events),
            unjudged_steps=self.unjudged_steps,
            saturated_words=saturated_words,
            lapsed=lapsed,
            skipped_share=skipped_share,
            unseen_share=_share(self.unseen_transitions, self.transitions),
        )


def _share(n: int, of: int) -> float:
    return n / of if of else 0.0


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
    """The summary of a run given as arrays (T,): what `Session.summary` gives for its records, without a session.

    outcome_risks: float, NaN where a step was not judged. terms: known terms of its row. words: words of its text.
    Raises DataError where counts differ.
    """
    risks = np.asarray(outcome_risks, dtype=np.float64)
    known, all_words = np.asarray(terms, dtype=np.int64), np.asarray(words, dtype=np.int64)
    if not risks.shape == known.shape == all_words.shape or risks.ndim != 1:
        raise DataError(f"a run of {risks.size} risks, {known.size} and {all_words.size} counts: give one each a step.")
    judged = ~np.isnan(risks)
    tally = Tally(
        steps=len(risks),
        empty_rows=int((known[judged] == 0).sum()),
        terms=int(known[judged].sum()),
        tokens=int(all_words[judged].sum()),
        unjudged_steps=int((~judged).sum()),
    )
    found = summarise_run(risks[judged].tolist(), tally.drift(), has_states=False, has_events=False)
    return replace(found, unseen_transitions=unseen_transitions)


def summarise_run(risks: Sequence[float | None], drift: Drift, *, has_states: bool, has_events: bool) -> RunSummary:
    """A run that has ended.

    risks: outcome risks of its readings, None where a step was not judged. drift: of its session. has_states: whether
    an automaton judged it. has_events: whether it came as events; a run of records has no shares of events.
    """
    judged = [risk for risk in risks if risk is not None]
    steps = drift.steps
    return RunSummary(
        largest_risk=max(judged) if judged else None,
        mean_risk=min(1.0, math.fsum(judged) / len(judged)) if judged else None,
        known_terms=drift.terms_a_token / (1 + drift.terms_a_token) if judged else None,
        unknown_steps=drift.empty_row_share if steps else None,
        unseen_transitions=drift.unseen_share if has_states else None,
        unread_events=drift.unread_share if has_events else None,
        skipped_events=drift.skipped_share if has_events else None,
        unjudged_steps=min(1.0, drift.unjudged_steps / steps) if steps else None,
    )
