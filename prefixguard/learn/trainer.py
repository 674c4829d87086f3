"""Fit one network: weighted loss, one-cycle AdamW, best epoch on validation, resumable after every epoch.

Objective: mean over runs of the mean over steps of the binary cross-entropy of both risks, so that long runs do not
dominate, plus the balance term that keeps symbols sharp and all in use. Source: PrefixGuard 3, 4.4; the
second risk is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.learn.config import LearnListener, TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.head import FittedNetwork
from prefixguard.metrics import at_remaining, average_precision
from prefixguard.store import Kept, Store

_JITTER = 3.0  # steps by which runs of like length change places from epoch to epoch


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs side by side, padded to the longest.

    runs: int64 (B,), their numbers in the corpus.
    indices, values, offsets: the sparse rows of all B * T cells, run by run, as `embedding_bag` takes them.
    context: float32 (B, T, d). mask: bool (B, T), True where a step is.
    """

    runs: NDArray[np.int64]
    indices: Tensor
    values: Tensor
    offsets: Tensor
    context: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"}
        return Batch(self.runs, **{name: tensor.to(device) for name, tensor in tensors.items()})


def collate(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> Batch:
    """One batch of these runs."""
    lengths = corpus.lengths[runs]
    n, longest = len(runs), int(lengths.max())
    context = np.zeros((n, longest, corpus.context.shape[1]), dtype=np.float32)
    mask = np.zeros((n, longest), dtype=np.bool_)
    counts = np.zeros((n, longest), dtype=np.int64)
    indices, values = [], []
    for j, r in enumerate(runs.tolist()):
        length = int(lengths[j])
        i, v, k = rows.run(r)
        indices.append(i)
        values.append(v)
        counts[j, :length] = k
        mask[j, :length] = True
        context[j, :length] = corpus.context[corpus.first[r] : corpus.first[r + 1]]
    offsets = np.concatenate(([0], np.cumsum(counts.ravel())[:-1]))
    return Batch(
        runs,
        torch.from_numpy(np.concatenate(indices)),
        torch.from_numpy(np.concatenate(values)),
        torch.from_numpy(offsets),
        torch.from_numpy(context),
        torch.from_numpy(mask),
    )


def epoch(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], size: int, seed: tuple[int, ...] | None
) -> Iterator[Batch]:
    """The runs in batches of like length.

    seed: shuffles runs of like length and the order of batches; None: neither.
    """
    lengths = corpus.lengths[runs].astype(np.float64)
    rng = np.random.default_rng(seed) if seed is not None else None
    if rng is not None:
        lengths += rng.uniform(0, _JITTER, len(runs))
    ordered = runs[np.argsort(lengths, kind="stable")]
    starts = np.arange(0, len(ordered), size)
    if rng is not None:
        rng.shuffle(starts)
    for start in starts:
        yield collate(corpus, rows, ordered[start : start + size])


_WARM_UP = 0.2  # share of the steps in which the learning rate rises
_CLIP = 1.0  # greatest norm of a gradient


@dataclass(frozen=True, slots=True)
class Target:
    """What is learned from: the steps' targets and which runs are used for what.

    labels: float32 (steps, 2). train, validation: run numbers, int64. validation may be empty: the last epoch is kept.
    """

    labels: NDArray[np.float32]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]


def learning_rate(step: int, steps: int, peak: float) -> float:
    """One cycle: up along a cosine to `peak`, then down to nearly nothing. step: from 0."""
    warm = max(_WARM_UP * steps, 1.0)
    if step < warm:
        return peak * (0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * step / warm)))
    return peak * (1e-4 + 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1.0))))


def loss_of(logits: Tensor, p: Tensor | None, target: Tensor, mask: Tensor, balance: float) -> Tensor:
    """The training loss of a batch. logits, target: (B, T, 2); p: (B, T, K) or None; mask: (B, T)."""
    each = F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1)  # (B, T)
    weight = mask / mask.sum(1, keepdim=True)  # (B, T)
    loss = (each * weight).sum() / len(mask)
    if p is not None:
        used = p[mask]  # (steps, K)
        mean = used.mean(0)
        entropy = -(used * (used + 1e-9).log()).sum(-1).mean()
        loss = loss + balance * (entropy + (mean * (mean + 1e-9).log()).sum())
    return loss


def fit_network(
    name: str,
    network: nn.Module,
    corpus: Corpus,
    rows: Rows,
    target: Target,
    config: TrainConfig,
    *,
    seed: int,
    device: torch.device,
    listener: LearnListener,
    checkpoints: Store | None = None,
) -> FittedNetwork:
    """Train `network` (called with a batch and tau, giving logits and symbol probabilities) and keep its best epoch.

    The best epoch has the highest mean of imminent AUPRC and outcome AUROC at matched remaining steps on validation
    runs; AUPRC alone selects clocks. Where neither exists there (one outcome only), the last epoch is kept. Randomness
    of an epoch depends on seed and epoch alone, so that a training that was interrupted ends with the same weights as
    one that was not.
    """
    network.to(device)
    parameters = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    per_epoch = math.ceil(len(target.train) / config.batch_runs)
    best: dict[str, NDArray[Any]] = _arrays(network)
    best_score, best_epoch, begin = -math.inf, 0, 0
    saved = checkpoints.get("epoch", network=name) if checkpoints else None
    if saved is not None:
        arrays, facts = saved.arrays, saved.facts
        begin, best_score, best_epoch = facts["epoch"], facts["best_score"], facts["best_epoch"]
        best = {k.removeprefix("best."): v for k, v in arrays.items() if k.startswith("best.")}
        _restore(network, {k.removeprefix("now."): v for k, v in arrays.items() if k.startswith("now.")})
        _restore_optimizer(optimizer, parameters, arrays)
    for number in range(begin, config.epochs):
        # One stream of randomness an epoch: Gumbel noise and dropout from torch, order and text dropout from numpy.
        torch.manual_seed(seed * 100_003 + number)
        drop = np.random.default_rng((seed, number, 1))
        network.train()
        # Gumbel temperature: linear from tau_start to tau_end.
        tau = config.tau_start + (config.tau_end - config.tau_start) * (number / max(config.epochs - 1, 1))
        total = 0.0
        for i, batch in enumerate(epoch(corpus, rows, target.train, config.batch_runs, (seed, number, 0))):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(number * per_epoch + i, config.epochs * per_epoch, config.learning_rate)
            batch = _drop_text(batch, drop, config.text_dropout).to(device)
            logits, p = network(batch, tau)
            loss = loss_of(logits, p, _targets(corpus, target.labels, batch), batch.mask, config.balance)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, _CLIP)
            optimizer.step()
            total += loss.item() * len(batch.runs)
        score = None
        if len(target.validation) == 0:
            best, best_epoch = _arrays(network), number + 1
        elif number >= config.epochs // 2:
            # Early epochs are not candidates: a small validation side can favour one by luck.
            score = validation_score(network, corpus, rows, target, config, device)
            # A side of one outcome measures nothing (-inf): the last epoch is then kept, not the network unfitted.
            if score > best_score or best_score == -math.inf:
                best, best_score, best_epoch = _arrays(network), score, number + 1
        shown = score if score is not None and math.isfinite(score) else None
        if checkpoints:
            arrays = {f"best.{k}": v for k, v in best.items()} | {f"now.{k}": v for k, v in _arrays(network).items()}
            arrays |= _optimizer_arrays(optimizer, parameters)
            facts = {"epoch": number + 1, "best_score": best_score, "best_epoch": best_epoch}
            checkpoints.put(Kept(facts, arrays), "epoch", network=name)
        listener.on_epoch(name, number + 1, config.epochs, total / len(target.train), shown)
    _restore(network, best)
    network.eval()
    return FittedNetwork(network, best_epoch, best_score if math.isfinite(best_score) else math.nan)


def validation_score(
    network: nn.Module, corpus: Corpus, rows: Rows, target: Target, config: TrainConfig, device: torch.device
) -> float:
    """Mean of imminent AUPRC and outcome AUROC at matched remaining steps; one alone where the other is void."""
    logits = predict(network, corpus, rows, target.validation, config, device)
    runs = target.validation
    prefixes = corpus.prefixes(runs)
    flat = np.concatenate(logits)
    parts = [
        average_precision(prefixes.imminent_labels(config.horizon), flat[:, 0]),
        float(at_remaining(prefixes, flat[:, 1]).auroc()),
    ]
    known = [x for x in parts if not math.isnan(x)]
    return float(np.mean(known)) if known else -math.inf


@torch.no_grad()
def predict(
    network: nn.Module,
    corpus: Corpus,
    rows: Rows,
    runs: NDArray[np.int64],
    config: TrainConfig,
    device: torch.device,
) -> list[NDArray[np.float64]]:
    """Logits of each of these runs, float64 (T, 2), in the order of `runs`."""
    network.eval()
    found: dict[int, NDArray[np.float64]] = {}
    for batch in epoch(corpus, rows, runs, 4 * config.batch_runs, None):
        logits, _ = network(batch.to(device), config.tau_end)
        values = logits.double().cpu().numpy()
        for j, r in enumerate(batch.runs.tolist()):
            found[r] = values[j, : int(corpus.lengths[r])]
    return [found[r] for r in runs.tolist()]


def _targets(corpus: Corpus, labels: NDArray[np.float32], batch: Batch) -> Tensor:
    out = np.zeros((*batch.mask.shape, 2), dtype=np.float32)
    for j, r in enumerate(batch.runs.tolist()):
        out[j, : int(corpus.lengths[r])] = labels[corpus.first[r] : corpus.first[r + 1]]
    return torch.from_numpy(out).to(batch.mask.device)


def _drop_text(batch: Batch, rng: np.random.Generator, share: float) -> Batch:
    """Drop a share of the sparse entries and scale the rest: dropout on the text."""
    if share == 0:
        return batch
    keep = (rng.random(len(batch.values), dtype=np.float32) >= share).astype(np.float32) / (1 - share)
    return replace(batch, values=batch.values * torch.from_numpy(keep))


def _arrays(network: nn.Module) -> dict[str, NDArray[Any]]:
    return {k: v.detach().cpu().numpy().copy() for k, v in network.state_dict().items()}


def _restore(network: nn.Module, arrays: dict[str, NDArray[Any]]) -> None:
    network.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in arrays.items()})


_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def _optimizer_arrays(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> dict[str, NDArray[Any]]:
    return {
        f"adam.{i}.{k}": optimizer.state[p][k].detach().cpu().numpy()
        for i, p in enumerate(parameters)
        if p in optimizer.state
        for k in _MOMENTS
    }


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], arrays: Mapping[str, NDArray[Any]]
) -> None:
    for i, p in enumerate(parameters):
        if f"adam.{i}.step" in arrays:
            state = {k: torch.from_numpy(np.array(arrays[f"adam.{i}.{k}"])) for k in _MOMENTS}
            optimizer.state[p] = {k: v if k == "step" else v.to(p.device) for k, v in state.items()}
