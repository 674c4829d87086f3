"""Fit a monitor on training runs: vocabulary, context scale, teacher, networks."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prefixguard.encoder import FitReport, Vocabulary, fit_vocabulary
from prefixguard.errors import ConfigError
from prefixguard.learn.batches import labels
from prefixguard.learn.checkpoint import Checkpoints
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.network import GruNetwork
from prefixguard.learn.scaling import ContextScale, fit_scale
from prefixguard.learn.teacher import out_of_fold, steps_of
from prefixguard.learn.trainer import Fitted, LearnListener, Target, fit_network, predict
from prefixguard.trace import task_hash


@dataclass(frozen=True, slots=True)
class FittedMonitor:
    """All that was learned, before it is compiled.

    members: accurate networks; the monitor's logits are the mean of theirs. symbol: the symbols-only network.
    """

    vocabulary: Vocabulary
    vocabulary_report: FitReport
    scale: ContextScale
    members: tuple[Fitted, ...]
    symbol: Fitted
    config: TrainConfig
    device: torch.device

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Mean logits of the members, one array (T, 2) a run."""
        each = [predict(m.network, corpus, rows, runs, self.config, self.device) for m in self.members]
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
    if config.teacher > 0:
        listener.on_stage("teacher", "boosted trees, out of fold")
        taught = out_of_fold(corpus, rows, everything, targets, config.seed)
        soft = (1 - config.teacher) * targets + config.teacher * taught
    else:
        soft = targets
    slices = max(round(1 / config.validation_share), 2)
    members = []
    for m in range(config.members):
        if validation is not None and m == 0:
            train, chosen = pool, validation
        else:
            out = held_out(corpus, everything, config.seed, slices, m % slices)
            train, chosen = everything[~out], everything[out]
        seed = config.seed * 1009 + m
        torch.manual_seed(seed)
        network = GruNetwork(rows.n_columns, scale, config, width=config.width)
        listener.on_stage("network", f"{m + 1} of {config.members}")
        members.append(
            fit_network(
                f"member{m}", network, corpus, rows, Target(soft, train, chosen), config,
                seed=seed, device=device, listener=listener, checkpoints=checkpoints,
            )
        )  # fmt: skip
    listener.on_stage("symbols", "a network that reads its own symbols only")
    torch.manual_seed(config.seed)
    symbol_network = GruNetwork(rows.n_columns, scale, config, width=config.width, symbols_only=True)
    symbol = fit_network(
        "symbol", symbol_network, corpus, rows,
        Target(soft, pool, validation if validation is not None else np.empty(0, np.int64)),
        dataclasses.replace(config, epochs=config.symbol_epochs),
        seed=config.seed, device=device, listener=listener, checkpoints=checkpoints,
    )  # fmt: skip
    return FittedMonitor(vocabulary[0], vocabulary[1], scale, tuple(members), symbol, config, device)


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
