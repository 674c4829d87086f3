"""A monitor without a model: levels from behaviours, and no risk.

It stands where a bundle's model stands, so sessions of both are opened, saved and restored alike. What it has in place
of a bundle is made in memory, of the adapter, or of a file of calibrated rules.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.behaviours import CATALOGUE, DeclaredBehaviours
from prefixguard.bundle import Bundle, Calibration, Platt
from prefixguard.context import FEATURES
from prefixguard.encoder import Vocabulary
from prefixguard.runtime.model import Step
from prefixguard.stepview import Adapter

#: What `load` is given for a monitor without a model, and the kind of what stands in a bundle's place.
RULES: Final = "rules"

_STEP: Final = Step(0.0, 0.0, None, None)


class RulesModel:
    """Stands where a model stands. It has no state and gives no risk: the session makes levels of behaviours."""

    __slots__ = ("declared", "scale")

    initial = None
    state_bytes = 0

    def __init__(self, declared: DeclaredBehaviours | None = None, scale: float = 1.0) -> None:
        """declared: behaviours besides those of the catalogue. scale: what all counts are multiplied by."""
        self.declared, self.scale = declared, scale

    def step(self, *_: Any) -> Step:
        """A step without a symbol; its logits mean nothing."""
        return _STEP

    def pushes(self, *_: Any) -> None:
        """No risk, so nothing moved it."""

    def say_state(self, *_: Any) -> tuple[str, ...]:
        """There is no state."""
        return ()

    reasons = say_state

    def pack(self, _: Any) -> bytes:
        """Nothing."""
        return b""

    def unpack(self, _: bytes) -> None:
        """Nothing."""


def rules_bundle(adapter: Adapter, model: RulesModel, path: str | os.PathLike[str] = RULES) -> Bundle:
    """What stands in the place of a bundle. Its id is of the catalogue, the adapter, what is declared and the scale.

    path: the file of calibrated rules, where they are from one.
    """
    declared = model.declared
    parts = [repr(CATALOGUE), adapter.sha256, "" if declared is None else declared.sha256, repr(model.scale)]
    refused = Thresholds(None, 1.0, 0, 0, 0, "rules have no threshold of risk")
    identity = Platt(1.0, 0.0)
    return Bundle(
        path=Path(path),
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
