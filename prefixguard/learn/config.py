"""The options of a training, checked once, and the hooks it calls while it goes on."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.trace import read_named

#: Every head, and the file that fits it: a new one is a file with `fit(material)`, and a row here.
HEADS: Mapping[str, str] = {
    "gru": "prefixguard.learn.gru",
    "transformer": "prefixguard.learn.transformer",
    "fsm": "prefixguard.learn.soft_fsm",
    "gbdt": "prefixguard.learn.trees",
    "healthy": "prefixguard.learn.healthy",
}
#: Heads that are fitted without torch.
WITHOUT_TORCH = frozenset({"gbdt", "healthy"})
BACKENDS = (*HEADS, "blend")


def _whole(default: int, least: int, *, most: int | None = None) -> int:
    """An option that is a whole number of at least so much."""
    option: int = dataclasses.field(default=default, metadata={"low": least, "high": most})
    return option


def _number(default: float, low: float, high: float) -> float:
    """An option that is a number between two others, both allowed."""
    option: float = dataclasses.field(default=default, metadata={"low": low, "high": high})
    return option


def _check_range(name: str, value: Any, low: float, high: float | None) -> None:
    """ConfigError unless the value is of the kind of its lower bound, and in range."""
    if isinstance(low, int):
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise ConfigError(f"{name} = {value!r}: a whole number of at least {low} is needed.")
        if high is not None and value > high:
            raise ConfigError(f"{name} = {value}: a whole number of at most {high} is needed.")
    elif isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= (high or low):
        raise ConfigError(f"{name} = {value!r}: a number between {low} and {high} is needed.")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Options of a training; all have defaults, all can be set in `prefixguard.toml` under `[train]`.

    backend : the monitor's head: gru, transformer, fsm, gbdt (boosted trees), healthy (from successful runs alone) or
        blend.
    blend : what the backend blend averages, by comma.
    seed : of the split, the initialisation and the batches.
    horizon : H: a step of a failed run is imminent when at most so many steps remain.
    max_features : terms in the vocabulary.
    min_tasks : a term must occur in so many tasks.
    symbols : size of the learned alphabet.
    abstraction_width : hidden width before the symbols.
    width : width of the GRU's state and of the Transformer's stream.
    layers : layers of the Transformer.
    attention_heads : query heads of each of its layers.
    window : steps that each of its layers looks back on.
    states : states of the soft automaton, which has half as many symbols.
    bypass : width of the channel around the symbols.
    bins : piecewise-linear bins of every context feature.
    members : networks of a kind that are averaged in one bundle.
    teacher : weight of the boosted teacher's out-of-fold risks in the targets, 0 to 1; 0 trains without one.
    validation_share : share of the training tasks that choose a further member's epoch.
    symbol_epochs : epochs of the symbols-only network.
    epochs : epochs of each network.
    batch_runs : runs in a batch.
    learning_rate : highest learning rate.
    weight_decay : of AdamW.
    text_dropout : share of terms that are dropped while training.
    dropout : dropout inside the network.
    balance : weight of the term that keeps symbols sharp and all in use.
    tau_start : Gumbel temperature of the first epoch.
    tau_end : Gumbel temperature of the last epoch.
    budget : at most this share of successful runs may raise an alarm.
    confidence : how sure the budget is to hold.
    higher_is_safer : of scores: the higher, the less the risk. Without it, the higher, the more.
    signals : learn from what steps took (seconds, tokens, dollars, log-probabilities) where at least half of the runs
        say it; look for leaks of it first (`check-data`). The backend healthy does not.
    device : auto (CUDA when there is one), cpu or cuda.
    threads : threads of torch; 1 gives the same bytes on every machine of a kind.
    """

    backend: str = "gru"
    blend: str = "gbdt,gru"
    seed: int = _whole(13, 0, most=2**31 - 1)  # what all libraries that are seeded can take
    horizon: int = _whole(3, 0)
    max_features: int = _whole(4096, 16)
    min_tasks: int = _whole(3, 1)
    symbols: int = _whole(16, 2)
    abstraction_width: int = _whole(64, 1)
    width: int = _whole(64, 1)
    layers: int = _whole(2, 1)
    attention_heads: int = _whole(4, 1)
    window: int = _whole(32, 2)
    states: int = _whole(64, 2)
    bypass: int = _whole(32, 0)
    bins: int = _whole(16, 2)
    members: int = _whole(2, 1)
    teacher: float = _number(0.5, 0.0, 1.0)
    validation_share: float = _number(0.12, 0.02, 0.5)
    symbol_epochs: int = _whole(16, 1)
    epochs: int = _whole(24, 1)
    batch_runs: int = _whole(32, 1)
    learning_rate: float = _number(2e-3, 1e-06, 1.0)
    weight_decay: float = _number(1e-2, 0.0, 1.0)
    text_dropout: float = _number(0.3, 0.0, 0.9)
    dropout: float = _number(0.2, 0.0, 0.9)
    balance: float = _number(0.1, 0.0, 10.0)
    tau_start: float = _number(1.0, 0.01, 10.0)
    tau_end: float = _number(0.25, 0.01, 10.0)
    budget: float = _number(0.10, 0.001, 0.5)
    confidence: float = _number(0.90, 0.5, 0.999)
    higher_is_safer: bool = False
    signals: bool = False
    device: str = "auto"
    threads: int = _whole(1, 1)

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ConfigError(f"backend {self.backend!r}: choose one of {', '.join(BACKENDS)}.")
        if not HEADS.keys() >= set(self.heads) or len(set(self.heads)) < len(self.heads):
            raise ConfigError(f"blend {self.blend!r}: name each once, by comma, of: {', '.join(HEADS)}.")
        if self.device not in ("auto", "cpu", "cuda"):
            raise ConfigError(f"device {self.device!r}: choose auto, cpu or cuda.")
        for option in dataclasses.fields(self):
            if option.metadata:
                _check_range(option.name, getattr(self, option.name), **option.metadata)

    @property
    def heads(self) -> tuple[str, ...]:
        """The backends whose logits are averaged: those of the blend, or the one."""
        if self.backend != "blend":
            return (self.backend,)
        return tuple(name.strip() for name in self.blend.split(","))

    @property
    def only_healthy(self) -> bool:
        """Whether successful runs alone are learned from."""
        return self.heads == ("healthy",)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], where: str) -> TrainConfig:
        """From decoded TOML or JSON. An unknown name is refused with all known ones."""
        names = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(values) - names)
        if unknown:
            raise ConfigError(f"{where}: unknown option {unknown[0]!r}. Known: {', '.join(sorted(names))}.")
        return cls(**values)


class LearnListener:
    """What happens while training, as it happens. Empty hooks: override what you want to see."""

    def on_stage(self, name: str, detail: str = "") -> None:
        """A stage begins: reading, vocabulary, encoding, fitting, calibrating, compiling."""

    def on_warning(self, text: str) -> None:
        """Something that is worth a look before time goes into training; it is among the result's notes too."""

    def on_runs(self, count: int) -> None:
        """So many runs have been read."""

    def on_epoch(self, network: str, number: int, epochs: int, loss: float, score: float | None) -> None:
        """An epoch of a network is done; score on validation, None where it was not measured."""


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
