"""A monitor without a model: levels from behaviours, and no risk.

It stands where a bundle's model stands, so sessions of both are opened, saved and restored alike. What it has in place
of a bundle is made in memory: the adapter, and no file.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prefixguard import behaviours
from prefixguard.alarm import AlarmPolicy, Level, Thresholds, rule_level
from prefixguard.behaviours import CATALOGUE, BehaviourFinding, BehaviourTracker, DeclaredBehaviours
from prefixguard.bundle import Bundle, Calibration, Platt
from prefixguard.context import FEATURES, ContextState
from prefixguard.encoder import Tokens, Vocabulary
from prefixguard.stepview import Adapter, StepRecord

#: What `load` is given for a monitor without a model, and the kind of what stands in a bundle's place.
RULES: Final = "rules"
#: Bytes that a tracker keeps in memory at most, without what is declared, and of each declared behaviour.
_TRACKER_BYTES, _DECLARED_BYTES = 3072, 17


class RuleJudgement(NamedTuple):
    """What rules say of a step. findings: all that holds. reasons: the faults behind the level, worst first."""

    level: Level
    findings: tuple[BehaviourFinding, ...]
    reasons: tuple[str, ...]


class RulesModel:
    """Levels from behaviours. Nothing in it changes; a run's state is its tracker."""

    __slots__ = ("_declared",)

    gives_reasons = False

    def __init__(self, declared: DeclaredBehaviours | None = None) -> None:
        """declared: behaviours besides those of the catalogue."""
        self._declared = declared

    @property
    def initial(self) -> BehaviourTracker:
        """A new tracker: the state of a run before its first step."""
        return behaviours.start(declared=self._declared)

    @property
    def state_bytes(self) -> int:
        """Length of a packed tracker."""
        return self.initial.packed_bytes

    @property
    def kept_bytes(self) -> int:
        """Bytes that a tracker keeps in memory at most."""
        return _TRACKER_BYTES + _DECLARED_BYTES * (len(self._declared.behaviours) if self._declared is not None else 0)

    def judge(
        self, record: StepRecord, tokens: Tokens, context: ContextState, numbers: NDArray[np.float32],
        state: BehaviourTracker,
    ) -> RuleJudgement:  # fmt: skip
        """One step. context, numbers: after it. state: taken in place."""
        found = behaviours.update(state, record, tokens, context, numbers)
        level = rule_level(found)
        if level is Level.OK:
            return RuleJudgement(level, found, ())
        behind = [finding for finding in found if rule_level([finding]) is not Level.OK]
        behind.sort(key=lambda finding: rule_level([finding]) is not Level.ALARM)
        return RuleJudgement(level, found, tuple(map(str, behind[:3])))

    def step(self, *_: Any) -> Any:
        """There is no model: `judge` says what a step is."""
        raise NotImplementedError("rules have no model")

    reasons = step

    def pack(self, state: BehaviourTracker) -> bytes:
        """A tracker as bytes, `state_bytes` long."""
        return behaviours.pack(state)

    def unpack(self, data: bytes) -> BehaviourTracker:
        """The tracker that was packed. SavedSessionError where the bytes are none."""
        return behaviours.unpack(data, self._declared)


def rules_bundle(adapter: Adapter, declared: DeclaredBehaviours | None) -> Bundle:
    """What stands in the place of a bundle. Its id is of the catalogue, the adapter and what is declared."""
    parts = [repr(CATALOGUE), adapter.sha256, "" if declared is None else declared.sha256]
    refused = Thresholds(None, 1.0, 0, 0, 0, "rules have no threshold of risk")
    identity = Platt(1.0, 0.0)
    return Bundle(
        path=Path(RULES),
        id=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        kind=RULES,
        manifest=MappingProxyType({}),
        adapter=adapter,
        vocabulary=Vocabulary((), np.empty(0, np.uint64), np.empty(0, np.float32)),
        typical=np.zeros(len(FEATURES), np.float32),
        arrays=MappingProxyType({}),
        model_bytes=None,
        reasons_bytes=None,
        calibration=Calibration(imminent=identity, outcome=identity, thresholds=refused, policy=AlarmPolicy()),
        card="",
    )
