"""Predictive process monitoring: a small LSTM that reads the names of activities and nothing else.

An activity is a step's tool; speech is the activity `message`. Source: Tax et al. 2017, Predictive business process
monitoring with LSTM neural networks; outcome-oriented as in Teinemaa et al. 2019.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.evaluation.controls.fits import ControlRuns, Float, Scorer
from prefixguard.learn import Corpus
from prefixguard.trace import task_hash

MESSAGE = "message"
WIDTH = 32
_EMBEDDING = 16
_EPOCHS = 40
_BATCH = 16  # runs
_SLICES = 8
_RATE = 1e-2
_LONGEST = 400  # steps of a run that are learned from: gradients through more are slow and teach little
_UNKNOWN = 0  # an activity that no training run has


def activity(tool: str) -> str:
    """The name of a step's activity.

    >>> activity("search"), activity("respond"), activity("")
    ('search', 'message', 'message')
    """
    return MESSAGE if tool in ("", "respond") else tool


class ActivityLstm(nn.Module):
    """Codes (B, T) -> logits (B, T, 2): imminent, outcome."""

    def __init__(self, n_activities: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_activities, _EMBEDDING)
        self.lstm = nn.LSTM(_EMBEDDING, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, codes: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embedding(codes))  # (B, T, WIDTH)
        logits: Tensor = self.out(hidden)
        return logits


def process_mining(runs: ControlRuns) -> Scorer:
    """Fit on the CPU, in one thread, seeded; the global generator of torch is left as it was."""
    corpus = runs.corpus
    words = [_names(corpus, r) for r in runs.train.tolist()]
    names = sorted({name for word in words for name in word})
    code = {name: number for number, name in enumerate(names, _UNKNOWN + 1)}

    def codes(word: list[str]) -> NDArray[np.int64]:
        return np.array([code.get(name, _UNKNOWN) for name in word], dtype=np.int64)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(runs.seed)
            model = ActivityLstm(len(names) + 1)
            _train(model, runs, [codes(word) for word in words])
    finally:
        torch.set_num_threads(threads)

    def score(scored: NDArray[np.int64]) -> list[Float]:
        found = []
        with torch.no_grad():
            for r in scored.tolist():  # one by one: no run's scores depend on how long another is
                logits = model(torch.from_numpy(codes(_names(corpus, r)))[None])[0]
                found.append(torch.sigmoid(logits.double()).numpy())
        return found

    return score


def _names(corpus: Corpus, run: int) -> list[str]:
    return [activity(corpus.tool(step)) for step in range(int(corpus.first[run]), int(corpus.first[run + 1]))]


def _train(model: ActivityLstm, runs: ControlRuns, words: list[NDArray[np.int64]]) -> None:
    """AdamW, one cycle. The loss is the weighted mean over steps, in which tasks count alike; its value on an eighth of
    the training tasks, which is not learned from, chooses the epoch."""
    cells = _Cells(runs, words)
    chosen_by = _slice(runs)
    learned, held = np.flatnonzero(~chosen_by), np.flatnonzero(chosen_by)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=1e-2)
    per_epoch = -(-len(learned) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=per_epoch * _EPOCHS)
    best, weights = np.inf, copy.deepcopy(model.state_dict())
    for _ in range(_EPOCHS):
        for batch in _batches(learned, cells.lengths):
            loss, weight = cells.loss(model, batch)
            optimizer.zero_grad()
            (loss / weight).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            value = sum(float(cells.loss(model, [run])[0]) for run in held.tolist())
        if value < best or not len(held):
            best, weights = value, copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)


class _Cells:
    """Codes, targets and weights of the training runs, as padded batches."""

    def __init__(self, runs: ControlRuns, words: list[NDArray[np.int64]]) -> None:
        self.words = words
        self.lengths = np.array([len(word) for word in words], dtype=np.int64)
        cuts = np.cumsum(self.lengths)[:-1]
        self.targets = np.split(runs.targets, cuts)
        self.weights = np.split(runs.weights.astype(np.float32), cuts)

    def loss(self, model: ActivityLstm, runs: list[int]) -> tuple[Tensor, float]:
        """Weighted cross-entropy of both risks, added up over the steps of these runs; the sum of the weights."""
        longest = min(int(self.lengths[runs].max()), _LONGEST)
        codes = np.zeros((len(runs), longest), dtype=np.int64)
        targets = np.zeros((len(runs), longest, 2), dtype=np.float32)
        weight = np.zeros((len(runs), longest, 1), dtype=np.float32)  # zero where no step is
        for row, run in enumerate(runs):
            n = min(int(self.lengths[run]), longest)
            codes[row, :n] = self.words[run][:n]
            targets[row, :n] = self.targets[run][:n]
            weight[row, :n, 0] = self.weights[run][:n]
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(torch.from_numpy(codes)),
            torch.from_numpy(targets),
            weight=torch.from_numpy(weight),
            reduction="sum",
        )
        return loss, float(weight.sum())


def _slice(runs: ControlRuns) -> NDArray[np.bool_]:
    """Which training runs choose the epoch, bool (n,): those of each eighth task by hash; none of fewer than eight."""
    order = sorted(set(runs.tasks), key=lambda task: task_hash(f"{runs.seed}:activities:{task}"))
    chosen = set(order[_SLICES - 1 :: _SLICES])
    return np.array([task in chosen for task in runs.tasks], dtype=np.bool_)


def _batches(runs: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[list[int]]:
    """Runs of like length together, batches in an order drawn from torch's generator."""
    jitter = 3 * torch.rand(len(runs)).numpy()
    order = runs[np.argsort(lengths[runs] + jitter, kind="stable")]
    for start in torch.randperm(-(-len(order) // _BATCH)).tolist():
        yield order[start * _BATCH : (start + 1) * _BATCH].tolist()
