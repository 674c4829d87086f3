"""Rules that were calibrated, as one small JSON file: `prefixguard/rules/v1`.

It holds how runs are read, the scale of the counts, the behaviours that were declared, and what the scale rests on. It
is data; a file that contradicts itself is refused.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from prefixguard.alarm import LEAST_SCALE, MOST_SCALE, AlarmPolicy, binomial_cdf
from prefixguard.behaviours import CATALOGUE_SHA256, DeclaredBehaviours
from prefixguard.errors import BundleError, BundleVersionError, PrefixGuardError
from prefixguard.stepview import Adapter
from prefixguard.trace import read_named

_PREFIX: Final = "prefixguard/rules/v"
SCHEMA: Final = f"{_PREFIX}1"
#: Bytes of a file: an adapter, a file of behaviours, and some numbers.
MOST_BYTES: Final = 2 << 20
#: Runs that a file may say it rests on: more, and checking their bound takes long.
_MOST_RUNS: Final = 1_000_000
_AGAIN: Final = "Calibrate again: prefixguard calibrate rules RUNS"


@dataclass(frozen=True, slots=True)
class RuleCalibration:
    """What a scale rests on.

    alarm_rate : share of new runs that may alarm at most, in (0, 1). confidence : how sure that is, in (0, 1).
    runs : runs that were read. drawn : of them, one a task. allowed : of those, how many might alarm at most.
    alarmed : how many do, at the scale. alarmed_before : how many do without it. seed : of the draw.
    """

    alarm_rate: float
    confidence: float
    runs: int
    drawn: int
    allowed: int
    alarmed: int
    alarmed_before: int
    seed: int

    def is_consistent(self, scale: float) -> bool:
        """Can a calibration have given these numbers with this scale? Raises PrefixGuardError for shares that are
        none."""
        policy = AlarmPolicy(budget=self.alarm_rate, confidence=self.confidence)
        now, before = self.alarmed, self.alarmed_before
        return (
            0 < self.drawn <= self.runs <= _MOST_RUNS
            and 0 <= now <= self.allowed < self.drawn
            and binomial_cdf(self.allowed, self.drawn, policy.budget) <= policy.delta
            and 0 <= before <= self.drawn
            and (now <= before if scale > 1 else now >= before if scale < 1 else now == before)
        )


@dataclass(frozen=True, slots=True)
class RulesFile:
    """The content of a file of calibrated rules.

    adapter : how runs are read. declared : behaviours besides those of the catalogue. scale : what all counts are
    multiplied by (`alarm.rule_level`), from `LEAST_SCALE` to `MOST_SCALE`.
    """

    adapter: Adapter
    declared: DeclaredBehaviours | None
    scale: float
    calibration: RuleCalibration

    def to_bytes(self) -> bytes:
        """The same rules give the same bytes."""
        found = {
            "schema": SCHEMA,
            "catalogue": CATALOGUE_SHA256,
            "scale": self.scale,
            "calibration": asdict(self.calibration),
            "behaviours": None if self.declared is None else json.loads(self.declared.to_bytes()),
            "adapter": json.loads(self.adapter.to_bytes()),
        }
        return (json.dumps(found, indent=1, allow_nan=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Self:
        """What `to_bytes` gave. where : the file, for messages.

        Raises BundleVersionError for a file of a newer release, BundleError for one of other behaviours, and for
        anything that a calibration does not write.
        """
        try:
            spec = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as exc:
            raise BundleError(
                f"{where}: a bundle is a folder, and calibrated rules are a JSON file; this is neither ({exc}). "
                f"{_AGAIN}"
            ) from exc
        schema = spec.get("schema") if isinstance(spec, dict) else None
        newer = re.fullmatch(f"{_PREFIX}([1-9][0-9]{{0,5}})", schema) if isinstance(schema, str) else None
        if newer is not None and schema != SCHEMA:
            raise BundleVersionError(f"{where}: a newer release wrote it ({schema}). Upgrade prefixguard.")
        if newer is None:
            raise BundleError(f"{where}: is no file of calibrated rules ({SCHEMA}); a bundle is a folder. {_AGAIN}")
        if spec.get("catalogue") != CATALOGUE_SHA256:
            raise BundleError(
                f"{where}: was calibrated for the behaviours of another release, so its rate of alarms does not hold. "
                f"{_AGAIN}"
            )
        try:
            found = cls._read(spec, where)
            whole = found is not None and found.to_bytes() == data
        except (PrefixGuardError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise BundleError(f"{where}: cannot be read ({type(exc).__name__}: {exc}). {_AGAIN}") from exc
        if found is None or not whole:
            raise BundleError(f"{where}: is not as a calibration writes it. {_AGAIN}")
        return found

    @classmethod
    def _read(cls, spec: dict[str, Any], where: str) -> Self | None:
        """None for numbers that no calibration gives."""
        scale, given, declared = spec["scale"], spec["calibration"], spec["behaviours"]
        kinds = {field.name: float if field.type == "float" else int for field in fields(RuleCalibration)}
        if type(scale) is not float or not (math.isfinite(scale) and LEAST_SCALE <= scale <= MOST_SCALE):
            return None
        if not isinstance(given, dict) or {name: type(value) for name, value in given.items()} != kinds:
            return None
        calibration = RuleCalibration(**given)
        if not calibration.is_consistent(scale):
            return None
        return cls(
            Adapter(spec["adapter"], f"{where}: adapter"),
            None if declared is None else DeclaredBehaviours(declared, f"{where}: behaviours"),
            scale,
            calibration,
        )


def read_rules(path: str | os.PathLike[str]) -> RulesFile:
    """The rules in a file. Raises BundleError, as `RulesFile.from_bytes`, also for a file that cannot be read."""
    place = Path(path)
    data = read_named(place, MOST_BYTES, remedy="Name the file that `calibrate rules` wrote.", error=BundleError)
    return RulesFile.from_bytes(data, str(place))
