"""Counters of a session, and what they say about whether its run is like the runs the monitor was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prefixguard.errors import SavedSessionError


@dataclass(frozen=True, slots=True)
class Drift:
    """How a run looks to its monitor; compare with what training runs look like.

    steps: steps so far. empty_row_share: share of them in which no known term occurred, in [0, 1].
    terms_a_token: distinct known terms (words and pairs of words of one field) per word; falls when the run's language
        is not the training runs'. unread_share: share of events that the adapter could not read, in [0, 1].
    unjudged_steps: steps without a risk. saturated_words: different words beyond what the context remembers; above 0
        its novelty and grounding features are less exact than in training.
    lapsed: fields that were filled in training and have been empty for too long here (see `lapses`).
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


class Tally:
    """Plain counters of one session. events: calls of `observe`. lapsed_steps: steps not judged because
    the run is no longer read as training runs were. terms, tokens: over all judged steps. transitions: of an
    automaton; unseen_transitions: those that no training run took."""

    __slots__ = (
        "empty_rows",
        "events",
        "lapsed_steps",
        "reasons_failed",
        "steps",
        "terms",
        "tokens",
        "transitions",
        "unjudged_steps",
        "unread_events",
        "unseen_transitions",
    )

    def __init__(self) -> None:
        self.events = self.unread_events = self.lapsed_steps = 0
        self.steps = self.unjudged_steps = self.empty_rows = 0
        self.tokens = self.terms = self.reasons_failed = 0
        self.transitions = self.unseen_transitions = 0

    def to_dict(self) -> dict[str, int]:
        """Name to count, names sorted."""
        return {name: getattr(self, name) for name in self.__slots__}

    def resume(self, counts: Mapping[str, int]) -> None:
        """Go on from `to_dict`. Raises SavedSessionError unless these are the counters."""
        if set(counts) != set(self.__slots__):
            raise SavedSessionError("The counters of the saved session are not those of this release.")
        for name, n in counts.items():
            setattr(self, name, n)

    def drift(self, saturated_words: int, lapsed: tuple[str, ...] = (), skipped_share: float = 0.0) -> Drift:
        """The shares."""
        return Drift(
            steps=self.steps,
            empty_row_share=self.empty_rows / self.steps if self.steps else 0.0,
            terms_a_token=self.terms / self.tokens if self.tokens else 0.0,
            unread_share=self.unread_events / self.events if self.events else 0.0,
            unjudged_steps=self.unjudged_steps,
            saturated_words=saturated_words,
            lapsed=lapsed,
            skipped_share=skipped_share,
            unseen_share=self.unseen_transitions / self.transitions if self.transitions else 0.0,
        )
