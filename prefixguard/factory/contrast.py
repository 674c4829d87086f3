"""The decisive step of a failed run: what each proposed correction changes, with the same chances on both sides.

The value of an action is the share of continuations after it that succeed. Its contrast is the value of the correction
less that of what the agent did; both are continued with the same chances. A literal reading of the papers' rule ("the
earliest step whose correction, replayed, succeeds") has no second side, and blames almost any early step: what comes
after it is played anew, and mostly succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.factory.environments import Action, Decision, Proposal, ReplayableEnvironment
from prefixguard.factory.labelled import LabelledRun
from prefixguard.trace import Outcome


@dataclass(frozen=True, slots=True)
class DecisiveCandidate:
    """A step that may have decided the run.

    place, step: of the decision, from 0, and of the record, from 1. flip: whether the correction alone, with all
    chances as they were, makes the run succeed; None where chances cannot be named. corrected, original: the values of
    the two actions, in [0, 1]; None where they were not played.
    """

    place: int
    step: int
    flip: bool | None
    corrected: float | None
    original: float | None
    reason: str = ""

    @property
    def contrast(self) -> float:
        """What the correction is worth, in [-1, 1]; 0 where it was not played."""
        return 0.0 if self.corrected is None or self.original is None else self.corrected - self.original


def candidates(
    world: ReplayableEnvironment, run: LabelledRun, proposals: Sequence[Proposal], *, rolls: int, salt: str
) -> list[DecisiveCandidate]:
    """Play every proposal. rolls: continuations of each action; 0 plays flips only. ReplayError where a run cannot be
    played."""
    decisions, found = world.decisions(run), list[DecisiveCandidate]()
    for one in proposals:
        decision = decisions[one.place]
        if dict(one.action) == dict(decision.action):
            continue  # no correction
        flip = None
        if world.chances == "keyed":
            flip = _after(world, run, one.place, one.action).continuation(None) is Outcome.SUCCESS
        values = _values(world, run, one, decision, 1 if world.chances == "none" else rolls, salt)
        found.append(DecisiveCandidate(one.place, decision.step, flip, *values, one.reason))
    return found


def _values(
    world: ReplayableEnvironment, run: LabelledRun, one: Proposal, decision: Decision, rolls: int, salt: str
) -> tuple[float | None, float | None]:
    if rolls == 0:
        return None, None
    salts = [f"{salt}/{run.run_id}/{one.place}/{roll}" for roll in range(rolls)]
    shares = []
    for action in (one.action, decision.action):
        stands = _after(world, run, one.place, action)
        shares.append(sum(stands.fork().continuation(each) is Outcome.SUCCESS for each in salts) / rolls)
    return shares[0], shares[1]


def _after(world: ReplayableEnvironment, run: LabelledRun, place: int, action: Action) -> ReplayableEnvironment:
    again = world.fork()
    again.replay(run, place)
    again.step(action)
    return again


def first_cause(found: Sequence[DecisiveCandidate], margin: float) -> DecisiveCandidate | None:
    """The earliest candidate whose correction alone makes the run succeed; where none does, the one with the largest
    contrast, the earlier of two; None, an abstention, where that is below the margin."""
    flipped = next((one for one in found if one.flip), None)
    if flipped is not None or not found:
        return flipped
    best = max(found, key=lambda one: (one.contrast, -one.place))
    return best if best.contrast >= margin else None


def point_of_no_return(found: Sequence[DecisiveCandidate]) -> DecisiveCandidate | None:
    """The earliest candidate after which no continuation succeeded."""
    return next((one for one in found if one.original == 0.0), None)


def literal(world: ReplayableEnvironment, run: LabelledRun, proposals: Sequence[Proposal], salt: str) -> int | None:
    """The step that the papers' literal rule names: the earliest one after which a run with everything right up to
    there and played anew from there succeeds, one continuation a step. None where none does. For comparison."""
    right = {one.place: one.action for one in proposals}
    for place, decision in enumerate(world.decisions(run)):
        stands = _after(world, run, place, right.get(place, decision.action))
        if stands.continuation(f"{salt}/{run.run_id}/literal/{place}") is Outcome.SUCCESS:
            return decision.step
    return None


def evidence(found: Sequence[DecisiveCandidate]) -> list[dict[str, Any]]:
    """What was found, plain JSON."""
    names = ("place", "step", "flip", "corrected", "original", "contrast", "reason")
    return [{name: getattr(one, name) for name in names} for one in found]
