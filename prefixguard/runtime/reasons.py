"""Why a monitor says WATCH or ALARM, in words that people act on: what the agent does wrong comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import BehaviourFinding
from prefixguard.context import FEATURES, SIGNAL_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.runtime.model import Step, StepModel
from prefixguard.runtime.reading import MOST
from prefixguard.runtime.run_behaviours import severity

#: What reasons are made of: what the agent does, or the features and words of the model.
ReasonsKind = Literal["behaviours", "features"]

_PLACE: Final = {feature.name: i for i, feature in enumerate((*FEATURES, *SIGNAL_FEATURES))}
_WORDS: Final = "words"
#: What moved a risk, by group of features; terms of the text are `_WORDS`.
GROUP_WORDS: Final[Mapping[str, str]] = {
    "position": "the length of the run",
    "counts": "how many calls, messages and errors it has",
    "repeats": "how much of it is repeated",
    "sizes": "the length of its texts",
    "grounding": "where its identifiers come from",
    "novelty": "how much of its text is new",
    "signals": "what its steps took",
    _WORDS: "its words",
}
_MOST_GROUPS: Final = 2
_NOTHING: Final = "No known behaviour stands out"


def behaviour_reasons(
    faults: Sequence[BehaviourFinding],
    artefacts: Sequence[BehaviourFinding],
    model: StepModel,
    row: SparseRow,
    context: NDArray[np.float32],
    state: Any,
    step: Step,
) -> tuple[tuple[str, ...], tuple[BehaviourFinding, ...]]:
    """At most three sentences: faults, strongest first; then artefacts; then the automaton's state, where there is one.
    And the faults themselves, in that order.

    faults : the recent ones, latest first. artefacts : of this step. row, context, state, step : as of
    `StepModel.reasons`. Faults are ranked by how much their features moved the risk, where the model tells, else by
    severity, and then by time; those that nobody can act on come last. The model is asked only where there is something
    to rank, or nothing to say.
    """
    closing = model.say_state(state, step)
    said = len(faults) + len(artefacts)
    pushes = model.contributions(row, context, state) if len(faults) > 1 or not said else None
    if not said:
        return (_no_behaviour(pushes), *closing)[:MOST], ()
    moved = {} if pushes is None else {name: float(push) for name, push in zip(_PLACE, pushes[0], strict=False)}
    ranked = sorted(
        faults,
        key=lambda one: (
            not one.behaviour.actionable, -sum(moved.get(name, 0.0) for name in one.behaviour.rests_on), -severity(one),
        ),
    )  # fmt: skip
    shown = [say_finding(finding) for finding in (*ranked, *artefacts)]
    return (*shown[: MOST - min(len(closing), 1)], *closing)[:MOST], tuple(ranked)


def say_finding(finding: BehaviourFinding) -> str:
    """A finding with what its developers can do about it.

    >>> from prefixguard.behaviours import Behaviour
    >>> say_finding(BehaviourFinding(Behaviour("b", "fault", "Tests fail.", "Fix it.", "Show one."), 3, 2, "pytest"))
    'Tests fail: 2 times since step 3 (pytest). Show one'
    """
    advice = finding.behaviour.advice.rstrip(".")
    return f"{finding}. {advice}" if advice else str(finding)


def _no_behaviour(pushes: tuple[NDArray[np.float32], NDArray[np.float32]] | None) -> str:
    """What moved the risk where no behaviour holds: the strongest groups of features, by name."""
    if pushes is None:
        return _NOTHING
    moved = dict.fromkeys(GROUP_WORDS, 0.0)
    for feature, push in zip((*FEATURES, *SIGNAL_FEATURES), pushes[0].tolist(), strict=False):
        moved[feature.group] += push
    moved[_WORDS] = float(pushes[1].sum())
    groups = sorted((group for group, push in moved.items() if push > 0), key=lambda group: -moved[group])
    if not groups:
        return _NOTHING
    return f"{_NOTHING}; {' and '.join(GROUP_WORDS[group] for group in groups[:_MOST_GROUPS])} moved the risk most"
