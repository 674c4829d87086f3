"""Of an automaton: how far it follows the monitor that it was learned from, and how much of these runs it never met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from prefixguard.bundle import UNSEEN, Automaton, Bundle
from prefixguard.results import Block, Bullets, Result, Text, number, percent
from prefixguard.runtime import Reading


@dataclass(frozen=True, slots=True)
class AutomatonFidelity(Result):
    """states, symbols: of the automaton. unseen_share: of its transitions on these runs, those that no training run
    took, in [0, 1]; NaN where none was made.

    agreement: rank correlation of its outcome risk with its teacher's, on the runs set aside when it was exported;
    auprc, teacher_auprc, rem, teacher_rem: imminent AUPRC and outcome AUROC at matched remaining steps of both there.
    NaN where not known. care: what to be careful about, sentences, empty where nothing is.
    """

    states: int
    symbols: int
    unseen_share: float
    agreement: float
    auprc: float
    teacher_auprc: float
    rem: float
    teacher_rem: float
    care: tuple[str, ...]

    def blocks(self) -> tuple[Block, ...]:
        """Two sentences; what to be careful about last."""
        found = (
            f"Automaton of {self.states} states and {self.symbols} symbols. {percent(self.unseen_share)} of its "
            "transitions on these runs were never taken in training.",
            "Against its teacher, on the runs set aside at its export: rank correlation of outcome risks "
            f"{number(self.agreement)}; imminent AUPRC {number(self.auprc)} against {number(self.teacher_auprc)}; "
            f"outcome AUROC at matched remaining steps {number(self.rem)} against {number(self.teacher_rem)}.",
        )
        return (
            Bullets(found, "How far the automaton is its teacher"),
            *(Text(f"Audit with care: {sentence}", "care") for sentence in self.care),
        )


class UnseenTransitions:
    """Counts transitions of one automaton, and those that no training run took."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._all = self._unseen = 0

    def add(self, readings: Iterable[Reading]) -> None:
        """Those of one run, from its beginning. A step that was not judged makes none."""
        state = self._automaton.start
        for reading in readings:
            if reading.symbol is None or reading.state is None:
                continue
            self._all += 1
            self._unseen += int(self._automaton.transitions[state, reading.symbol]) == UNSEEN
            state = reading.state

    @property
    def unseen_share(self) -> float:
        """In [0, 1]; NaN before the first."""
        return self._unseen / self._all if self._all else float("nan")


def automaton_fidelity(bundle: Bundle, transitions: UnseenTransitions | None) -> AutomatonFidelity | None:
    """What is known of a bundle's automaton; None where it holds none."""
    automaton = bundle.automaton
    if automaton is None or transitions is None:
        return None
    said = bundle.manifest.get("fidelity") or {}
    metrics = bundle.manifest.get("metrics") or {}

    def figure(of: Any, name: str) -> float:
        value = of.get(name) if isinstance(of, dict) else None
        return float(value) if isinstance(value, (int, float)) else float("nan")

    care = said.get("care", ()) if isinstance(said, dict) else ()
    return AutomatonFidelity(
        states=len(automaton.transitions),
        symbols=automaton.transitions.shape[1],
        unseen_share=transitions.unseen_share,
        agreement=figure(said, "agreement"),
        auprc=figure(metrics, "imminent_auprc"),
        teacher_auprc=figure(said, "teacher_imminent_auprc"),
        rem=figure(metrics, "outcome_auroc_at_remaining"),
        teacher_rem=figure(said, "teacher_outcome_auroc_at_remaining"),
        care=tuple(str(sentence) for sentence in care),
    )
