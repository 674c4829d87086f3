"""From the model's logits to probabilities, and the alarm's threshold and policy: `calibration.json`.

The maps are monotone, so they change no ranking; both are computed one number at a time in float64, by the same few
lines wherever a risk is needed, so that a threshold set on one path is met exactly on every other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, GroupThresholds, Thresholds
from prefixguard.bundle.strict_json import instance, load_json, optional, share, text, whole
from prefixguard.errors import BundleError, ConfigError, PrefixGuardError

SCHEMA = "prefixguard/calibration/v1"
#: The same with thresholds by group.
GROUPED_SCHEMA = "prefixguard/calibration/v2"


def _sigmoid(z: float) -> float:
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


def _softplus(z: float) -> float:
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def _check_finite(name: str, *values: float) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ConfigError(f"{name}: parameters must be finite numbers, got {value!r}.")


@dataclass(frozen=True, slots=True)
class Platt:
    """p = sigmoid(a * logit + b), a > 0. Source: Platt 1999; PrefixGuard 4.4.

    >>> Platt(1.0, 0.0)(0.0)
    0.5
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        """Raises ConfigError unless both are finite and a > 0."""
        _check_finite("Platt map", self.a, self.b)
        if self.a <= 0:
            raise ConfigError(f"Platt map: a must be above 0 so that the map rises, got {self.a!r}.")

    def __call__(self, logit: float) -> float:
        """Probability of a logit (natural log-odds)."""
        return _sigmoid(self.a * logit + self.b)


@dataclass(frozen=True, slots=True)
class Beta:
    """p = sigmoid(a * log(s) - b * log(1 - s) + c) with s = sigmoid(logit); a, b >= 0. Source: Kull et al. 2017.

    With a = b = 1 and c = 0 it changes nothing.

    >>> round(Beta(1.0, 1.0, 0.0)(2.0), 12) == round(Platt(1.0, 0.0)(2.0), 12)
    True
    """

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        """Raises ConfigError unless all are finite and a, b >= 0."""
        _check_finite("beta map", self.a, self.b, self.c)
        if self.a < 0 or self.b < 0:
            raise ConfigError(f"beta map: a and b must be at least 0 so that it rises, got {self.a!r}, {self.b!r}.")

    def __call__(self, logit: float) -> float:
        """Probability of a logit (natural log-odds)."""
        return _sigmoid(self.b * _softplus(logit) - self.a * _softplus(-logit) + self.c)


RiskMap = Platt | Beta

_KINDS: Mapping[str, type[Platt] | type[Beta]] = {"platt": Platt, "beta": Beta}


def apply_map(risk_map: RiskMap, logits: Iterable[float]) -> NDArray[np.float64]:
    """Probabilities of many logits: exactly what the map gives for each alone."""
    return np.array([risk_map(float(x)) for x in logits], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Maps of both risks, and what the alarm (on the outcome risk) goes by.

    thresholds: of all runs, but those of a group that has its own. groups: None where no group has.
    """

    imminent: RiskMap
    outcome: RiskMap
    thresholds: Thresholds
    policy: AlarmPolicy
    groups: GroupThresholds | None = None

    def thresholds_of(self, group: str | None) -> Thresholds:
        """What holds for a run whose group has this value; the common ones where it has none of its own."""
        return self.thresholds if self.groups is None else self.groups.pick(group, self.thresholds)

    def to_bytes(self) -> bytes:
        """`calibration.json`, the same bytes for the same content."""
        by_value = {value: asdict(one) for value, one in (self.groups.of if self.groups else {}).items()}
        document = {
            "schema": SCHEMA if self.groups is None else GROUPED_SCHEMA,
            "imminent": {"map": _map_to_json(self.imminent)},
            "outcome": {
                "map": _map_to_json(self.outcome),
                "thresholds": asdict(self.thresholds),
                "policy": asdict(self.policy),
                **({} if self.groups is None else {"groups": {"by": self.groups.by, "of": by_value}}),
            },
        }
        try:
            return json.dumps(document, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as exc:
            raise ConfigError(f"The calibration holds a value that is not a plain finite number: {exc}.") from exc

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "calibration.json") -> Calibration:
        """Read `calibration.json`. Raises BundleError with place and remedy when it is not what `to_bytes` writes."""
        try:
            document = load_json(data)
            if document["schema"] not in (SCHEMA, GROUPED_SCHEMA):
                raise ValueError(f"schema {document['schema']!r} instead of {SCHEMA!r} or {GROUPED_SCHEMA!r}")
            outcome = document["outcome"]
            return cls(
                imminent=_map_from_json(document["imminent"]["map"]),
                outcome=_map_from_json(outcome["map"]),
                thresholds=_thresholds(outcome["thresholds"]),
                policy=instance(AlarmPolicy, outcome["policy"]),
                groups=instance(GroupThresholds, outcome["groups"], by=text, of=_of_values)
                if document["schema"] == GROUPED_SCHEMA
                else None,
            )
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, PrefixGuardError) as exc:
            raise BundleError(
                f"{where}: not a calibration ({str(exc)[:300]}). Calibrate or train the monitor again."
            ) from exc


def _map_to_json(risk_map: RiskMap) -> dict[str, Any]:
    kind = next(name for name, cls in _KINDS.items() if isinstance(risk_map, cls))
    return {"kind": kind, **asdict(risk_map)}


def _map_from_json(document: Mapping[str, Any]) -> RiskMap:
    kind, rest = document["kind"], {name: value for name, value in document.items() if name != "kind"}
    if kind not in _KINDS:
        raise ValueError(f"map kind {kind!r}, known: {', '.join(_KINDS)}")
    return instance(_KINDS[kind], rest)


def _thresholds(document: Any) -> Thresholds:
    risk = partial(share, kind="risk from 0 to 1")
    counts = {"n_runs": whole, "allowed": whole, "needed": whole}
    return instance(Thresholds, document, alarm=optional(risk), watch=risk, reason=optional(text), **counts)


def _of_values(document: Any, what: str) -> Mapping[str, Thresholds]:
    if not isinstance(document, dict) or not document:
        raise ValueError(f"{what} is not an object with at least one value")
    return MappingProxyType({value: _thresholds(one) for value, one in document.items()})
