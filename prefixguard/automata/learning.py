"""The best automaton of all that are tried: learned on the pool, calibrated, and able to alarm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy
from prefixguard.automata.alphabets import Alphabet, fit_alphabet
from prefixguard.automata.alphabets.model_symbols import ask_model
from prefixguard.automata.build import Walked, build
from prefixguard.automata.material import Material
from prefixguard.automata.model_selection import Candidate, CandidateTrial, choose, learn_from, try_choices
from prefixguard.automata.parity import without_parity
from prefixguard.automata.state_risk import columns_of, fit_clock
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.bundle import Automaton, Bundle
from prefixguard.learn import LearnListener, draw_alarm_runs, set_thresholds

#: Automata that are learned, the best first, until one can alarm.
_MOST_LEARNED = 4


@dataclass(frozen=True, slots=True, eq=False)
class LearnedAutomaton:
    """An automaton and all that it came from. pool: the runs that it was learned from, as strings of the alphabet."""

    choice: Candidate
    trials: tuple[CandidateTrial, ...]
    alphabet: Alphabet
    pool: Strings
    walked: Walked
    automaton: Automaton


def learn_best(
    material: Material, bundle: Bundle, candidates: tuple[Candidate, ...], listener: LearnListener
) -> LearnedAutomaton:
    """The best candidate by folds of the pool, learned again on all of it; the next best where it can never alarm, and
    the best after all where none of the first few can."""
    given, budget = ask_model(bundle, material, {c.alphabet for c in candidates}), bundle.calibration.policy.budget
    trials: tuple[CandidateTrial, ...] = ()
    if len(candidates) > 1:
        trials = try_choices(
            material, candidates, given=given, budget=budget, on_trial=lambda what: listener.on_stage("trying", what)
        )
    waiting: list[CandidateTrial] = list(trials)
    made: list[LearnedAutomaton] = []
    while not made or (waiting and len(made) < _MOST_LEARNED):
        choice = choose(waiting, budget) if waiting else candidates[0]
        waiting = [trial for trial in waiting if trial.choice != choice]
        listener.on_stage("learning", f"{choice.alphabet}, {choice.learner}")
        alphabet = fit_alphabet(choice.alphabet, material, material.pool, choice.max_states, given)
        pool, walked = learn_from(alphabet, choice.learner, choice.max_states, material, material.pool)
        held_out = alphabet.strings(material, material.held_out)
        clock = fit_clock(pool) if choice.clock else ()
        walked = without_parity(walked, pool, held_out, clock)
        made.append(LearnedAutomaton(choice, trials, alphabet, pool, walked, build(walked, pool, held_out, clock)))
        if _can_alarm(made[-1], material, bundle.calibration.policy):
            return made[-1]
    return made[0]


def _can_alarm(learned: LearnedAutomaton, material: Material, policy: AlarmPolicy) -> bool:
    """Whether its threshold, set as an export sets it, leaves a risk above it."""
    automaton = learned.automaton

    def risks(runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        strings = learned.alphabet.strings(material, runs)
        states, _ = learned.walked.walk(strings)
        outcome = automaton.risk[states, columns_of(automaton.clock, strings), 1]
        return np.split(outcome, strings.first[1:-1])

    drawn = draw_alarm_runs(material.corpus, material.seed, material.alarm)
    alarm = set_thresholds(risks(material.held_out), risks(drawn), policy)[0].alarm
    return alarm is not None and float(automaton.risk[..., 1].max()) > alarm


def read_steps(material: Material, learned: LearnedAutomaton, walks: Walks) -> NDArray[np.int64]:
    """Steps of training, held-out and test runs by state and span of the clock, (S, C)."""
    automaton, held_out = learned.automaton, learned.alphabet.strings(material, material.held_out)
    found = np.zeros((automaton.n_states, len(automaton.clock) + 1), dtype=np.int64)
    walked = ((learned.pool, learned.walked.states), (held_out, learned.walked.walk(held_out)[0]))
    for strings, states in (*walked, (walks.strings, walks.states)):
        np.add.at(found, (states, columns_of(automaton.clock, strings)), 1)
    return found
