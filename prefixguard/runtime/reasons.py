"""Why a monitor says WATCH or ALARM, in words that people act on: what the agent does wrong comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
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

_ALL: Final = (*FEATURES, *SIGNAL_FEATURES)
#: Log-odds; what moves a risk by less is rounding.
_LEAST: Final = 1e-6
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
    `StepModel.reasons`. Faults are ranked by how much their features moved the risk together, where the model tells,
    else by severity, and then by time; those that nobody can act on come last. The model is asked only where there is
    something to rank, or nothing to say.
    """
    closing = model.say_state(state, step)
    said = len(faults) + len(artefacts)
    if not said:
        groups = _groups(len(context))
        moved = model.pushes(row, context, state, _sets(tuple(groups.values()), len(context)))
        return (_no_behaviour(dict(zip(groups, moved or (), strict=False))), *closing)[:MOST], ()
    pushes = None
    if len(faults) > 1:
        rests_on = tuple([one.behaviour.rests_on for one in faults])
        pushes = model.pushes(row, context, state, _sets(rests_on, len(context)))
    ranked = sorted(
        zip(faults, pushes or [0.0] * len(faults), strict=True),
        key=lambda one: (not one[0].behaviour.actionable, -one[1], -severity(one[0])),
    )
    shown = [say_finding(finding) for finding in (*(fault for fault, _ in ranked), *artefacts)]
    return (*shown[: MOST - min(len(closing), 1)], *closing)[:MOST], tuple(fault for fault, _ in ranked)


def say_finding(finding: BehaviourFinding) -> str:
    """A finding with what its developers can do about it.

    >>> from prefixguard.behaviours import Behaviour
    >>> say_finding(BehaviourFinding(Behaviour("b", "fault", "Tests fail.", "Fix it.", "Show one."), 3, 2, "pytest"))
    'Tests fail: 2 times since step 3 (pytest). Show one'
    """
    advice = finding.behaviour.advice.rstrip(".")
    return f"{finding}. {advice}" if advice else str(finding)


@lru_cache
def _groups(d: int) -> dict[str, tuple[str, ...]]:
    """The names of each group's features, of the first d, and the words."""
    found: dict[str, tuple[str, ...]] = {}
    for feature in _ALL[:d]:
        found[feature.group] = (*found.get(feature.group, ()), feature.name)
    return found | {_WORDS: (_WORDS,)}


@lru_cache(maxsize=1024)
def _sets(of: tuple[tuple[str, ...], ...], d: int) -> NDArray[np.float32]:
    """Sets of names of features, and of `_WORDS`, as `StepModel.pushes` takes them: float32 (n, d + 1)."""
    names = [*(feature.name for feature in _ALL[:d]), _WORDS]
    return np.array([[name in one for name in names] for one in of], dtype=np.float32)


def _no_behaviour(moved: Mapping[str, float]) -> str:
    """What moved the risk where no behaviour holds: the strongest groups of features, by name."""
    groups = sorted((group for group, push in moved.items() if push > _LEAST), key=lambda group: -moved[group])
    if not groups:
        return _NOTHING
    return f"{_NOTHING}; {' and '.join(GROUP_WORDS[group] for group in groups[:_MOST_GROUPS])} moved the risk most"
