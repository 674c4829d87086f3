"""All that a picture of an automaton shows, computed and never written by hand."""

from __future__ import annotations

from dataclasses import dataclass

from prefixguard.bundle import Automaton


@dataclass(frozen=True, slots=True)
class Entry:
    """One symbol in words, from training steps.

    symbol: its number. gloss: a few words, for edges. condition: the full definition in words (tree, typed), or the
    terms of highest weight. terms: those terms with their weights. tools, statuses: what the symbol stands for, with
    shares, most frequent first. examples: up to three steps, one line each; text from runs, as such untrusted.
    count: training steps with it; share: of all. risk_change: mean change of the outcome risk, over steps, that it
    brings. reads_history: whether it depends on earlier steps of the run, not on the step alone.
    """

    symbol: int
    gloss: str
    condition: str
    terms: tuple[tuple[str, float], ...]
    tools: tuple[tuple[str, float], ...]
    statuses: tuple[tuple[str, float], ...]
    examples: tuple[str, ...]
    count: int
    share: float
    risk_change: float
    reads_history: bool


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step of a run on the automaton. text: the step in one line, from the run. teacher: its outcome risk."""

    symbol: int
    state: int
    unseen: bool
    imminent: float
    outcome: float
    level: str
    text: str
    teacher: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that the page replays. failed: None where the outcome is not known."""

    run_id: str
    failed: bool | None
    steps: tuple[ReplayStep, ...]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How far the automaton agrees with its teacher, on test runs that neither learned from.

    agreement: Spearman correlation of both's outcome risks over steps. same_level: share of steps at which both give
    the same level (OK, WATCH, ALARM). auprc, rem: imminent AUPRC, and outcome AUROC at matched remaining steps, of
    automaton and teacher; None where test runs have one outcome only. unseen_share: of transitions.
    runs, steps: what it was measured on. care: reasons to audit with care, a sentence each; empty where all
    thresholds are met.
    """

    agreement: float | None
    same_level: float | None
    auprc: float | None
    teacher_auprc: float | None
    rem: float | None
    teacher_rem: float | None
    unseen_share: float
    runs: int
    steps: int
    care: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AutomatonSummary:
    """An automaton with all that explains it.

    name: of the monitor. learner, alphabet: how it was learned. entries: one a symbol, in order. state_examples: for
    each state up to three steps that ended in it, one line each. replays: runs of the test side, failed first.
    watch, alarm: thresholds of the outcome risk; None without an alarm. base: failure rate of the training runs.
    """

    name: str
    learner: str
    alphabet: str
    automaton: Automaton
    entries: tuple[Entry, ...]
    state_examples: tuple[tuple[str, ...], ...]
    replays: tuple[Replay, ...]
    fidelity: Fidelity
    watch: float
    alarm: float | None
    base: float
