"""What steps took, as first alerts add it up: seconds, tokens and dollars, by the trace itself or a price table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.runtime import plain
from prefixguard.stepview import Signals, StepRecord
from prefixguard.trace import read_named

#: The entry of a table for models that it does not name, and for runs that name none.
ANY: Final = "*"
TOOK: Final = ("seconds", "tokens", "dollars")
_NAMED: Final = 3  # models that are named in a note
_MOST_BYTES, _MOST_MODELS, _LONGEST, _DEAREST = 1 << 20, 10_000, 200, 1e6
_FORM: Final = '{"gpt-4.1": {"in": 2.0, "out": 8.0}, "*": {"in": 1.0, "out": 4.0}}'


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars of a million tokens, read and written, by model; `*` is for models that the table does not name."""

    of: Mapping[str, tuple[float, float]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Prices:
        """The table in a JSON file: an object from model to `in` and `out`. Raises ConfigError for anything else."""
        remedy = f"Give dollars of a million tokens by model: {_FORM}"
        data = read_named(Path(path), _MOST_BYTES, remedy=remedy, error=ConfigError)
        try:
            found = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as exc:
            raise ConfigError(f"{path}: a price table is a JSON file, and this is not JSON. {remedy}") from exc
        if not isinstance(found, dict) or not 0 < len(found) <= _MOST_MODELS:
            raise ConfigError(f"{path}: a price table is an object of 1 to {_MOST_MODELS:,} models. {remedy}")
        return cls({model: _pair(one, f"{path}: {model[:_LONGEST]!r}", remedy) for model, one in found.items()})

    def dollars(self, signals: Signals, groups: Mapping[str, str]) -> float | None:
        """What a step of a run of these groups cost; None where its tokens or the price are not known. The run's group
        `model` names its model, or else its `agent`."""
        pair = self._price(groups)
        if pair is None or signals.tokens_in is None or signals.tokens_out is None:
            return None
        return (signals.tokens_in * pair[0] + signals.tokens_out * pair[1]) / 1e6

    def _price(self, groups: Mapping[str, str]) -> tuple[float, float] | None:
        named = (groups.get(key, "") for key in ("model", "agent"))
        return next((self.of[name] for name in named if name in self.of), None) or self.of.get(ANY)

    def note(self, runs: Sequence[tuple[Mapping[str, str], npt.NDArray[np.float64]]]) -> str:
        """Of which runs the dollars are known, in a sentence, and why not of the others. runs: the groups of each, and
        the dollars of its steps."""
        lacking = [groups for groups, dollars in runs if np.isnan(dollars).all()]
        unknown = [groups for groups in lacking if self._price(groups) is None]
        said = f"Prices: {len(runs) - len(lacking):,} of {len(runs):,} runs have dollars, of their own or by the table."
        if silent := len(lacking) - len(unknown):
            said += f" {silent:,} say no tokens in and out."
        if unknown:
            models = sorted({groups.get("model") or groups.get("agent") or "no name" for groups in unknown})
            more = f", and {len(models) - _NAMED:,} more" if len(models) > _NAMED else ""
            names = ", ".join(plain(model, _LONGEST) for model in models[:_NAMED])
            said += f" {len(unknown):,} are of models that the table does not name ({names}{more}): add them, or "
            said += f'"{ANY}" for any other.'
        return said


def _pair(found: Any, where: str, remedy: str) -> tuple[float, float]:
    if not isinstance(found, dict) or set(found) != {"in", "out"}:
        raise ConfigError(f'{where} is not an object with "in" and "out" alone. {remedy}')
    for value in found.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _DEAREST:
            raise ConfigError(f"{where}: a price is from 0 to {_DEAREST:,.0f}, not {json.dumps(value)[:40]}. {remedy}")
    return float(found["in"]), float(found["out"])


def took_by(
    records: Iterable[StepRecord], groups: Mapping[str, str], prices: Prices | None
) -> dict[str, npt.NDArray[np.float64]]:
    """What each step took, float (T,) each of `TOOK`, NaN where nobody says. The trace's own dollars come first."""
    rows = []
    for signals in (record.signals or Signals() for record in records):
        tokens = [one for one in (signals.tokens_in, signals.tokens_out) if one is not None]
        dollars = signals.dollars
        if dollars is None and prices is not None:
            dollars = prices.dollars(signals, groups)
        known = (signals.seconds, math.fsum(tokens) if tokens else None, dollars)
        rows.append([math.nan if one is None else one for one in known])
    table = np.array(rows, dtype=np.float64).reshape(-1, len(TOOK))
    return {name: table[:, i] for i, name in enumerate(TOOK)}
