"""Fit a monitor on training runs: vocabulary, context scale, teacher, heads."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import ConfigError
from prefixguard.learn.batches import epoch, labels
from prefixguard.learn.checkpoint import Checkpoints
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.gru import GruNetwork
from prefixguard.learn.head import FsmHead, Head, NetworkHead
from prefixguard.learn.network import StepNetwork
from prefixguard.learn.neural_part import LevelSymbols, NetworkSymbols
from prefixguard.learn.scaling import ContextScale, fit_scale
from prefixguard.learn.soft_fsm import FsmNetwork
from prefixguard.learn.step_part import SymbolPart
from prefixguard.learn.teacher import out_of_fold, steps_of
from prefixguard.learn.trainer import Fitted, LearnListener, Target, fit_network
from prefixguard.learn.transformer import TransformerNetwork
from prefixguard.learn.trees import fit_trees
from prefixguard.trace import task_hash

_NETWORKS: Mapping[str, type[StepNetwork]] = {"gru": GruNetwork, "transformer": TransformerNetwork}


@dataclass(frozen=True, slots=True)
class FittedMonitor:
    """All that was learned, before it is compiled.

    heads: the monitor's logits are the mean of theirs. symbols: what gives a step's symbol.
    symbol: the symbols-only network, where there is one.
    """

    vocabulary: Vocabulary
    vocabulary_report: FitReport
    scale: ContextScale
    heads: tuple[Head, ...]
    symbols: SymbolPart
    symbol: Fitted | None
    config: TrainConfig

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Mean logits of the heads, one array (T, 2) a run."""
        each = [head.logits(corpus, rows, runs) for head in self.heads]
        return [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]


def choose_device(name: str) -> torch.device:
    """auto: CUDA when present. Raises ConfigError for cuda without one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device cuda: torch sees no CUDA device. Use --device cpu or auto.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def held_out(corpus: Corpus, pool: NDArray[np.int64], seed: int, parts: int, part: int) -> NDArray[np.bool_]:
    """Which runs of the pool are in slice `part` of `parts` of its tasks, in the order of the hash of "seed:task"."""
    tasks = sorted({corpus.task_ids[r] for r in pool.tolist()}, key=lambda t: task_hash(f"{seed}:member:{t}"))
    mine = {t for i, t in enumerate(tasks) if i % parts == part}
    return np.array([corpus.task_ids[r] in mine for r in pool.tolist()], dtype=np.bool_)


def fit_monitor(
    corpus: Corpus,
    pool: NDArray[np.int64],
    config: TrainConfig,
    *,
    validation: NDArray[np.int64] | None = None,
    listener: LearnListener | None = None,
    checkpoints: Checkpoints | None = None,
    rows: Rows | None = None,
    vocabulary: tuple[Vocabulary, FitReport] | None = None,
) -> FittedMonitor:
    """Fit everything that is learned on the runs of `pool` and `validation`; nothing else of the corpus is looked at.

    validation: runs that choose the first member's epoch, outside the pool. Further members swap them for an equal
    share of the pool's tasks each, so that every run teaches some member. None: a slice of the pool for each.
    rows, vocabulary: already made for this pool (both or neither).
    """
    listener = listener or LearnListener()
    torch.set_num_threads(config.threads)
    device = choose_device(config.device)
    everything = pool if validation is None else np.concatenate((pool, validation))
    if vocabulary is None or rows is None:
        listener.on_stage("vocabulary", f"{len(pool):,} runs")
        vocabulary = fit_vocabulary(
            corpus.texts(pool.tolist()), max_features=config.max_features, min_tasks=config.min_tasks
        )
        listener.on_stage("encoding", f"{len(vocabulary[0]):,} terms")
        rows = corpus.encode(vocabulary[0])
    scale = fit_scale(
        corpus.context[steps_of(corpus, pool)],
        corpus.lengths[pool],
        corpus.failed[pool],
        horizon=config.horizon,
        bins=config.bins,
    )
    targets = labels(corpus, config.horizon)
    if config.teacher > 0 and config.heads != ("gbdt",):
        listener.on_stage("teacher", "boosted trees, out of fold")
        taught = out_of_fold(corpus, rows, everything, targets, config.seed)
        soft = (1 - config.teacher) * targets + config.teacher * taught
    else:
        soft = targets
    material = _Material(corpus, rows, scale, targets, soft, pool, validation, config, device, listener, checkpoints)
    heads = tuple(_fit_head(kind, material) for kind in config.heads)
    symbols, symbol = _fit_symbols(heads, material)
    return FittedMonitor(vocabulary[0], vocabulary[1], scale, heads, symbols, symbol, config)


@dataclass(frozen=True)
class _Material:
    """What heads are fitted on. labels: hard targets; soft: mixed with the teacher's out-of-fold risks."""

    corpus: Corpus
    rows: Rows
    scale: ContextScale
    labels: NDArray[np.float32]
    soft: NDArray[np.float32]
    pool: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    config: TrainConfig
    device: torch.device
    listener: LearnListener
    checkpoints: Checkpoints | None

    @property
    def everything(self) -> NDArray[np.int64]:
        """Runs of pool and validation."""
        return self.pool if self.validation is None else np.concatenate((self.pool, self.validation))

    def slice(self, member: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Training and validation runs of a member."""
        if self.validation is not None and member == 0:
            return self.pool, self.validation
        slices = max(round(1 / self.config.validation_share), 2)
        out = held_out(self.corpus, self.everything, self.config.seed, slices, member % slices)
        return self.everything[~out], self.everything[out]

    def fit(self, name: str, network: torch.nn.Module, target: Target, config: TrainConfig, seed: int) -> Fitted:
        """Train one network."""
        return fit_network(
            name, network, self.corpus, self.rows, target, config,
            seed=seed, device=self.device, listener=self.listener, checkpoints=self.checkpoints,
        )  # fmt: skip


def _fit_head(kind: str, m: _Material) -> Head:
    config = m.config
    if kind == "gbdt":
        m.listener.on_stage("trees", "boosted trees")
        return fit_trees(m.corpus, m.rows, m.everything, m.labels, config.seed)
    if kind == "fsm":
        return _fit_fsm(m)
    members = []
    for i in range(config.members):
        seed = config.seed * 1009 + i
        torch.manual_seed(seed)
        network = _NETWORKS[kind](m.rows.n_columns, m.scale, config, width=config.width)
        m.listener.on_stage("network", f"{kind} {i + 1} of {config.members}")
        members.append(m.fit(f"{kind}{i}", network, Target(m.soft, *m.slice(i)), config, seed))
    return NetworkHead(tuple(members), m.scale, config, m.device)


def _fit_fsm(m: _Material) -> FsmHead:
    """One soft automaton, with a third more epochs: it has to get sharp as well as right."""
    config = dataclasses.replace(m.config, epochs=math.ceil(m.config.epochs * 4 / 3))
    seed = config.seed * 1009
    torch.manual_seed(seed)
    network = FsmNetwork(m.rows.n_columns, m.scale, config)
    m.listener.on_stage("network", "fsm")
    fitted = m.fit("fsm0", network, Target(m.soft, *m.slice(0)), config, seed)
    off, steps = 0.0, 0
    for batch in epoch(m.corpus, m.rows, m.pool, 4 * config.batch_runs, None):
        batch = batch.to(m.device)
        off += float(network.off_argmax(batch, config.tau_end)[batch.mask].double().sum())
        steps += int(batch.mask.sum())
    return FsmHead((fitted,), m.scale, config, m.device, off / steps)


def _fit_symbols(heads: tuple[Head, ...], m: _Material) -> tuple[SymbolPart, Fitted | None]:
    """A symbols-only network beside neural heads; the machine's own symbols; levels of the outcome risk of trees."""
    config = m.config
    if config.heads == ("fsm",) and isinstance(heads[0], FsmHead):
        return heads[0].symbols(), None
    if config.heads == ("gbdt",):
        outcome = np.concatenate(heads[0].logits(m.corpus, m.rows, m.everything))[:, 1]
        cuts = np.unique(np.quantile(outcome, np.arange(1, config.symbols) / config.symbols).astype(np.float32))
        return LevelSymbols(cuts), None
    m.listener.on_stage("symbols", "a network that reads its own symbols only")
    torch.manual_seed(config.seed)
    network = GruNetwork(m.rows.n_columns, m.scale, config, width=config.width, symbols_only=True)
    none = np.empty(0, np.int64)
    target = Target(m.soft, m.pool, m.validation if m.validation is not None else none)
    fitted = m.fit("symbol", network, target, dataclasses.replace(config, epochs=config.symbol_epochs), config.seed)
    return NetworkSymbols(network, m.scale), fitted


def training_key(corpus: Corpus, pool: NDArray[np.int64], validation: NDArray[np.int64], config: TrainConfig) -> str:
    """Hash of configuration and data: a checkpoint of another training is never taken up.

    The runs of validation count as well: they choose epochs, and further members learn from them.
    """
    h = hashlib.sha256(repr(config).encode())
    for runs in (pool, validation):
        h.update(f"{len(runs)} runs\n".encode())
        for r in runs.tolist():
            said = f"{corpus.run_ids[r]}\0{corpus.task_ids[r]}\0{corpus.digests[r]}\0{corpus.failed[r]}\n"
            h.update(said.encode("utf-8", "surrogatepass"))
    return h.hexdigest()
