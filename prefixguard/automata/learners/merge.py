"""Merge: statistical red-blue merging on prefix evidence, for few runs and for 100,000.

States are told apart by risk now and to come, as labels and teacher say it, and by how runs end; see `evidence` for
what is compared and `growth` for how. What to lean towards depends on the runs: a cap on steps asks for states that
count, many clean strings of a true machine ask for tests that are sure. Three settings are therefore tried on held-out
tasks first, by the same mean of two figures as every choice among automata.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.build import walk_training
from prefixguard.automata.learners.growth import Setting, grow
from prefixguard.automata.state_risk import training_risk
from prefixguard.automata.strings import Strings, Transitions
from prefixguard.errors import DataError

#: For strings of a true machine: by how runs end alone; few states, each sure.
SURE = Setting(risk=0.0, clock=0.0, ends=1.0, gain=1.0, doubt=3.0)
#: For agents: by risk now and to come; states that explain something.
PLAIN = Setting(risk=1.0, clock=0.0, ends=0.0, gain=0.1, doubt=0.0)
#: For agents whose steps are limited: states that count, too.
COUNTING = Setting(risk=1.0, clock=8.0, ends=0.0, gain=0.3, doubt=0.0)
_MARGIN = 0.005  # by which a later one of these has to be better
_TRIAL_RUNS = 20_000
_FOLDS = 3  # of tasks, each held out in turn


def learn(strings: Strings, *, max_states: int, seed: int, setting: Setting | None = None) -> Transitions:
    """At most `max_states` states. The order of the runs does not matter.

    seed: draws the tasks on which settings are tried. setting: this one, without trials.
    Raises DataError if there are no runs.
    """
    if not len(strings):
        raise DataError("merge: there are no runs to learn from. Give it some.")
    ordered = strings.of(_order(strings))
    if setting is None:
        setting = _choose(ordered, max_states, seed)
    return grow(ordered, setting, max_states)


def _order(strings: Strings) -> NDArray[np.int64]:
    """Runs by what learning reads of them, so that sums of floats do not depend on the order in which they came."""
    symbols = strings.symbols.astype(">i4")
    targets = np.concatenate((strings.labels, strings.teacher), axis=1)
    first, failed = strings.first.tolist(), strings.failed.tolist()
    keys = [
        (symbols[first[i] : first[i + 1]].tobytes(), failed[i], targets[first[i] : first[i + 1]].tobytes())
        for i in range(len(strings))
    ]
    return np.array(sorted(range(len(strings)), key=keys.__getitem__), dtype=np.int64)


def _choose(strings: Strings, max_states: int, seed: int) -> Setting:
    """The setting that does best on tasks held out; where none can be held out, the one for most agents."""
    tasks, task_of = np.unique(strings.tasks, return_inverse=True)
    if len(tasks) < 2:
        return COUNTING
    drawn = np.random.default_rng(seed).permutation(len(tasks))[task_of.reshape(-1)]  # a number each task
    among = np.flatnonzero(drawn < max(len(tasks) * _TRIAL_RUNS // len(strings), 2))
    fold = drawn[among] % min(_FOLDS, len(tasks))
    pairs = [(strings.of(among[fold != f]), strings.of(among[fold == f])) for f in np.unique(fold).tolist()]

    def score(setting: Setting) -> float:
        return float(np.mean([_score(grow(train, setting, max_states), train, test) for train, test in pairs]))

    best, most = SURE, score(SURE)
    for setting in (PLAIN, COUNTING):
        reached = score(setting)
        if reached > most + _MARGIN:
            best, most = setting, reached
    return best


def _score(found: Transitions, train: Strings, test: Strings) -> float:
    """Mean of imminent AUPRC and outcome AUROC at matched remaining steps on `test`; a void one is left out."""
    walked = walk_training(found, train)
    risk, _ = training_risk(train, walked.states, walked.transitions.n_states, ())
    states, _ = walked.walk(test)
    known = [figure for figure in test.figures(risk[states]) if figure == figure]
    return float(np.mean(known)) if known else 0.0
