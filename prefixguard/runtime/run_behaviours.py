"""What a run's agent does: the behaviours that hold at a step, and the faults that are recent enough to be reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prefixguard import behaviours
from prefixguard.alarm import Level, rule_level
from prefixguard.behaviours import BY_NAME, BehaviourFinding, BehaviourTracker, DeclaredBehaviours
from prefixguard.context import ContextState
from prefixguard.encoder import Tokens
from prefixguard.errors import SavedSessionError
from prefixguard.stepview import StepRecord
from prefixguard.trace import RunOffer

#: Steps for which a fault counts as recent, the step at which it held last included; and how many are kept.
RECENT: Final = 3
MOST_FAULTS: Final = 3
_MOST_EVIDENCE: Final = 200
#: The step at which a fault held last; behaviour's name, since, count and evidence of the finding.
SavedFault = tuple[int, str, int, int, str]
_SEVERITY: Final = (Level.OK, Level.WATCH, Level.ALARM)


class RunBehaviours:
    """The behaviours of one run. Bounded; saved with its session.

    recent : the faults of this step and of the steps before it (`RECENT`), the latest first, and of one step the worst
    first; no behaviour twice. Each with the step at which it held last.
    """

    __slots__ = ("_kept", "_tracker")

    def __init__(self, tracker: BehaviourTracker) -> None:
        self._tracker = tracker
        self._kept: tuple[tuple[int, BehaviourFinding], ...] = ()

    def offer(self, offer: RunOffer) -> None:
        """Take in what the run is given, before its first step."""
        self._tracker.offer(offer.tools, offer.step_limit)

    def step(
        self, record: StepRecord, tokens: Tokens, context: ContextState, numbers: NDArray[np.float32]
    ) -> tuple[BehaviourFinding, ...]:
        """Take a step in and return all that holds at it. tokens, context, numbers: as of `behaviours.update`."""
        found = behaviours.update(self._tracker, record, tokens, context, numbers)
        step = self._tracker.step
        now = [finding for finding in found if finding.behaviour.kind == "fault"]
        if not now and not self._kept:
            return found
        now.sort(key=severity, reverse=True)
        names = {finding.behaviour.name for finding in now}
        before = [(at, one) for at, one in self._kept if step - at < RECENT and one.behaviour.name not in names]
        self._kept = (*((step, finding) for finding in now), *before)[:MOST_FAULTS]
        return found

    @property
    def recent(self) -> tuple[BehaviourFinding, ...]:
        """See the class."""
        return tuple(finding for _, finding in self._kept)

    @property
    def packed_bytes(self) -> int:
        """Length of what `pack` gives."""
        return self._tracker.packed_bytes

    def pack(self) -> bytes:
        """The tracker as bytes."""
        return behaviours.pack(self._tracker)

    def faults(self) -> tuple[SavedFault, ...]:
        """The recent faults as plain values."""
        return tuple((at, one.behaviour.name, one.since, one.count, one.evidence) for at, one in self._kept)

    def resume(
        self, packed: bytes, faults: Iterable[SavedFault], steps: int, declared: DeclaredBehaviours | None
    ) -> None:
        """Take over what `pack` and `faults` gave; packed is empty where a release saved that kept no behaviours.

        steps: of the run. Raises SavedSessionError for what no run gives.
        """
        if not packed:
            self._tracker.step = steps
            return
        self._tracker = behaviours.unpack(packed, declared)
        known = BY_NAME if declared is None else BY_NAME | {b.behaviour.name: b.behaviour for b in declared.behaviours}
        kept = []
        for at, name, since, count, evidence in faults:
            if name not in known or not 0 <= self._tracker.step - at < RECENT or not 1 <= since <= at or count < 1:
                raise SavedSessionError("The saved behaviours hold numbers that no run gives: the session is damaged.")
            kept.append((at, BehaviourFinding(known[name], since, count, evidence)))
        self._kept = tuple(kept)


def fault_of(value: Any) -> SavedFault:
    """One of `RunBehaviours.faults`, as read from JSON. Raises ValueError or TypeError for what is none."""
    at, name, since, count, evidence = value
    if not all(type(n) is int for n in (at, since, count)) or not isinstance(name, str):
        raise ValueError(value)
    if not isinstance(evidence, str) or len(evidence) > _MOST_EVIDENCE or not evidence.isprintable():
        raise ValueError(value)
    return at, name, since, count, evidence


def severity(finding: BehaviourFinding) -> int:
    """How bad a fault is by itself: 2 where rules without a model say ALARM, 1 at WATCH, else 0."""
    return _SEVERITY.index(rule_level([finding]))
