"""Baselines that are trained: logistic regression on text, boosted trees, and the paper's own setting."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, tril, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from prefixguard.learn.config import LearnListener, TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.gru import GruNetwork
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.teacher import TextProjection, boost, run_weights, sparse_matrix, steps_of
from prefixguard.learn.trainer import Target, fit_network, predict

Scores = NDArray[np.float64]  # (steps of the test runs, 2): imminent, outcome


def last_step_text(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> csr_matrix:
    """TF-IDF of each step alone."""
    return sparse_matrix(corpus, rows, runs)


def prefix_text(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> csr_matrix:
    """TF-IDF of all steps so far, added up, L2-normalised."""
    parts = []
    for r in runs.tolist():
        x = sparse_matrix(corpus, rows, np.array([r]))
        parts.append(csr_matrix(tril(np.ones((x.shape[0], x.shape[0])))) @ x)
    return normalize(vstack(parts).tocsr())


def logistic(
    x_train: csr_matrix, targets: NDArray[np.float32], weight: NDArray[np.float64], x_test: csr_matrix
) -> Scores:
    """Logistic regression, C = 1, one fit a risk."""
    out = np.zeros((x_test.shape[0], 2))
    for risk in range(2):
        y = targets[:, risk]
        if y.min() == y.max():
            out[:, risk] = y[0]
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=1.0, max_iter=200).fit(x_train, y, sample_weight=weight)
        out[:, risk] = model.decision_function(x_test)
    return out


def boosting(
    corpus: Corpus,
    rows: Rows,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    labels: NDArray[np.float32],
    seed: int,
) -> Scores:
    """Boosted trees on context and projected text."""
    projection = TextProjection.fit(corpus, rows, train, seed)
    x, z = projection.features(corpus, rows, train), projection.features(corpus, rows, test)
    y, weight = labels[steps_of(corpus, train)], run_weights(corpus, train)
    return np.stack([boost(x, y[:, risk], weight, seed)(z) for risk in range(2)], axis=1)


def papers_setting(
    corpus: Corpus,
    rows: Rows,
    scale: ContextScale,
    train: NDArray[np.int64],
    validation: NDArray[np.int64],
    test: NDArray[np.int64],
    labels: NDArray[np.float32],
    seed: int,
) -> Scores:
    """The published model: K = 16 symbols read from text alone (hidden 128), a GRU of width 16, hard labels.

    Its own optimisation (batch 64, 24 epochs, AdamW 1e-3) takes some hundred steps on sets of this size and has not
    converged by then (webshop_react: AUPRC .25 where this one gives .51), so it gets more and larger ones.
    """
    config = TrainConfig(
        seed=seed, symbols=16, abstraction_width=128, width=16, epochs=30, batch_runs=12, learning_rate=5e-3,
        weight_decay=1e-4, text_dropout=0.0, dropout=0.0, teacher=0.0,
    )  # fmt: skip
    torch.manual_seed(seed)
    network = GruNetwork(rows.n_columns, scale, config, width=16, symbols_only=True, reads_context=False)
    device = torch.device("cpu")
    fitted = fit_network(
        "paper", network, corpus, rows, Target(labels, train, validation), config,
        seed=seed, device=device, listener=LearnListener(),
    )  # fmt: skip
    return np.concatenate(predict(fitted.network, corpus, rows, test, config, device))
