"""Everything training can be told, checked once."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.trace import read_named

BACKENDS = ("gru", "transformer", "fsm", "gbdt", "blend")
#: Backends that `blend` can average, in the order in which their parts stand in a bundle.
BLENDABLE = ("gbdt", "gru", "transformer", "fsm")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Options of a training; all have defaults, all can stand in `prefixguard.toml` under `[train]`.

    backend: the head: gru, transformer, fsm, gbdt (boosted trees) or blend. blend: what `blend` averages, by comma.
    seed: of the split, the initialisation and the batches.
    horizon: H; a step of a failed run is imminent when at most H steps remain (inclusive).
    max_features, min_tasks: size of the vocabulary; a term must occur in that many tasks.
    symbols: K, size of the learned alphabet. abstraction_width: hidden width before the symbols.
    width: of the GRU's state, or of the Transformer's stream. layers, attention_heads, window: of the Transformer; it
        looks back at most `window` steps a layer. states: of the soft automaton (fsm), which has half
        as many symbols.
    bypass: width of the channel around the symbols. bins: piecewise-linear bins a feature.
    members: how many networks of a kind are averaged in one bundle.
    teacher: weight of the boosted teacher's out-of-fold risks in the targets, 0 to 1.
    validation_share: of the training tasks that choose a further member's epoch.
    epochs: of each member. symbol_epochs: of the symbols-only network.
    batch_runs, learning_rate, weight_decay, text_dropout, dropout: the optimisation.
    balance: weight of the term that keeps symbols sharp and all in use. tau_start, tau_end: Gumbel temperature.
    budget, confidence: of the alarm: at most `budget` of successful runs alarm, with this confidence.
    device: auto, cpu or cuda. threads: torch threads; 1 gives the same bytes on every machine of a kind.
    """

    backend: str = "gru"
    blend: str = "gbdt,gru"
    seed: int = 13
    horizon: int = 3
    max_features: int = 4096
    min_tasks: int = 3
    symbols: int = 16
    abstraction_width: int = 64
    width: int = 64
    layers: int = 2
    attention_heads: int = 4
    window: int = 32
    states: int = 64
    bypass: int = 32
    bins: int = 16
    members: int = 2
    teacher: float = 0.5
    validation_share: float = 0.12
    symbol_epochs: int = 16
    epochs: int = 24
    batch_runs: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    text_dropout: float = 0.3
    dropout: float = 0.2
    balance: float = 0.1
    tau_start: float = 1.0
    tau_end: float = 0.25
    budget: float = 0.10
    confidence: float = 0.90
    device: str = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(f"backend {self.backend!r}: choose one of {', '.join(BACKENDS)}.")
        odd = [name for name in self.heads if name not in BLENDABLE]
        if odd or not self.heads or len(set(self.heads)) < len(self.heads):
            raise ConfigError(f"blend {self.blend!r}: name each once, by comma, of: {', '.join(BLENDABLE)}.")
        if self.device not in ("auto", "cpu", "cuda"):
            raise ConfigError(f"device {self.device!r}: choose auto, cpu or cuda.")
        for name, low in _AT_LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise ConfigError(f"{name} = {value!r}: a whole number of at least {low} is needed.")
        if self.seed > _GREATEST_SEED:
            raise ConfigError(f"seed = {self.seed}: a whole number of at most {_GREATEST_SEED} is needed.")
        for name, (low_f, high_f) in _BETWEEN.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low_f <= value <= high_f:
                raise ConfigError(f"{name} = {value!r}: a number between {low_f} and {high_f} is needed.")

    @property
    def heads(self) -> tuple[str, ...]:
        """The backends whose logits are averaged: those of the blend, or the one."""
        if self.backend != "blend":
            return (self.backend,)
        return tuple(name.strip() for name in self.blend.split(","))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], where: str) -> TrainConfig:
        """From decoded TOML or JSON. An unknown name is refused with all known ones."""
        names = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(values) - names)
        if unknown:
            raise ConfigError(f"{where}: unknown option {unknown[0]!r}. Known: {', '.join(sorted(names))}.")
        return cls(**values)


#: Bytes of a file of options.
LARGEST_TOML = 1 << 20


def read_toml(path: Path) -> dict[str, Any]:
    """The decoded file. Raises ConfigError naming file and line."""
    remedy = "Mend the file or run without it."
    data = read_named(path, LARGEST_TOML, remedy=remedy, error=ConfigError)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path}: not readable as TOML ({exc}). {remedy}") from exc


_GREATEST_SEED = 2**31 - 1  # what all libraries that are seeded can take
_AT_LEAST = {
    "seed": 0,
    "horizon": 0,
    "max_features": 16,
    "min_tasks": 1,
    "symbols": 2,
    "abstraction_width": 1,
    "width": 1,
    "layers": 1,
    "attention_heads": 1,
    "window": 2,
    "states": 2,
    "bypass": 0,
    "bins": 2,
    "members": 1,
    "epochs": 1,
    "symbol_epochs": 1,
    "batch_runs": 1,
    "threads": 1,
}
_BETWEEN = {
    "teacher": (0.0, 1.0),
    "validation_share": (0.02, 0.5),
    "learning_rate": (1e-6, 1.0),
    "weight_decay": (0.0, 1.0),
    "text_dropout": (0.0, 0.9),
    "dropout": (0.0, 0.9),
    "balance": (0.0, 10.0),
    "tau_start": (0.01, 10.0),
    "tau_end": (0.01, 10.0),
    "budget": (0.001, 0.5),
    "confidence": (0.5, 0.999),
}
