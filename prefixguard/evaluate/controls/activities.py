"""Predictive process monitoring: a small LSTM that reads the names of activities and nothing else.

An activity is a step's tool; speech is the activity `message`. Source: Tax et al. 2017, Predictive business process
monitoring with LSTM neural networks; outcome-oriented as in Teinemaa et al. 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.evaluate.controls.material import Float, Material, Scorer
from prefixguard.learn import Corpus

MESSAGE = "message"
WIDTH = 32
_EMBEDDING = 16
_EPOCHS = 20
_BATCH = 16  # runs
_RATE = 5e-3
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


def process_mining(material: Material) -> Scorer:
    """Fit on the CPU, in one thread, seeded; the global generator of torch is left as it was."""
    corpus = material.corpus
    names = sorted({name for r in material.train.tolist() for name in _names(corpus, r)})
    code = {name: number for number, name in enumerate(names, _UNKNOWN + 1)}

    def codes(run: int) -> NDArray[np.int64]:
        return np.array([code.get(name, _UNKNOWN) for name in _names(corpus, run)], dtype=np.int64)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(material.seed)
            model = ActivityLstm(len(names) + 1)
            _train(model, material, [codes(r) for r in material.train.tolist()])
    finally:
        torch.set_num_threads(threads)

    def score(runs: NDArray[np.int64]) -> list[Float]:
        found = []
        with torch.no_grad():
            for r in runs.tolist():  # one by one: no run's scores depend on how long another is
                logits = model(torch.from_numpy(codes(r))[None])[0]
                found.append(torch.sigmoid(logits.double()).numpy())
        return found

    return score


def _names(corpus: Corpus, run: int) -> list[str]:
    return [activity(corpus.tool(step)) for step in range(int(corpus.first[run]), int(corpus.first[run + 1]))]


def _train(model: ActivityLstm, material: Material, words: list[NDArray[np.int64]]) -> None:
    """AdamW, one cycle; the loss is the weighted mean over steps, in which tasks count alike."""
    starts = np.concatenate(([0], np.cumsum([len(word) for word in words])))
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=1e-2)
    per_epoch = -(-len(words) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=per_epoch * _EPOCHS)
    for _ in range(_EPOCHS):
        for batch in _batches([len(word) for word in words]):
            longest = min(max(len(words[i]) for i in batch), _LONGEST)
            codes = np.zeros((len(batch), longest), dtype=np.int64)
            targets = np.zeros((len(batch), longest, 2), dtype=np.float32)
            weight = np.zeros((len(batch), longest, 1), dtype=np.float32)  # zero where no step is
            for row, i in enumerate(batch):
                n, a = min(len(words[i]), longest), int(starts[i])
                codes[row, :n] = words[i][:n]
                targets[row, :n] = material.targets[a : a + n]
                weight[row, :n, 0] = material.weights[a : a + n]
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(torch.from_numpy(codes)),
                torch.from_numpy(targets),
                weight=torch.from_numpy(weight),
                reduction="sum",
            ) / float(weight.sum())
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Runs of like length together, batches in an order drawn from torch's generator."""
    jitter = torch.rand(len(lengths)).numpy()
    order = np.argsort(np.array(lengths) + 3 * jitter, kind="stable")
    starts = torch.randperm(-(-len(order) // _BATCH)).tolist()
    for start in starts:
        yield order[start * _BATCH : (start + 1) * _BATCH].tolist()
