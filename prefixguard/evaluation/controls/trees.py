"""Boosted trees: on the context vector alone, and on context and projected text, which is the backend `gbdt`."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from prefixguard.evaluation.controls.material import Float, Material, Scorer
from prefixguard.learn import fit_monitor, steps_of

_ROUNDS = 150
#: Those of the backend but for `feature_fraction`, which is low there because most of its columns are text.
_SETTINGS: dict[str, Any] = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 40,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


def context_alone(material: Material) -> Scorer:
    """Counts, rates, repeats and sizes of the steps so far, and not one word of them."""
    corpus = material.corpus
    features = corpus.context[steps_of(corpus, material.train)]
    data = lightgbm.Dataset(features, weight=material.weights, free_raw_data=False)
    settings = {**_SETTINGS, "seed": material.seed, "data_random_seed": material.seed}
    models: list[lightgbm.Booster | float] = []
    for risk in range(2):
        y = material.targets[:, risk]
        data.set_label(np.ascontiguousarray(y))
        models.append(lightgbm.train(settings, data, _ROUNDS) if y.min() < y.max() else float(y[0]))

    def score(runs: NDArray[np.int64]) -> list[Float]:
        columns = corpus.context[steps_of(corpus, runs)]
        risks = [np.full(len(columns), m) if isinstance(m, float) else _predict(m, columns) for m in models]
        return np.split(np.stack(risks, axis=1), np.cumsum(corpus.lengths[runs])[:-1])

    return score


def boosting(material: Material) -> Scorer:
    """The backend `gbdt` as `train` fits it, before calibration."""
    fitted = fit_monitor(
        material.corpus, material.train, material.config, rows=material.rows, vocabulary=material.vocabulary
    )

    def score(runs: NDArray[np.int64]) -> list[Float]:
        return [expit(logits) for logits in fitted.logits(material.corpus, material.rows, runs)]

    return score


def _predict(model: lightgbm.Booster, features: NDArray[np.float32]) -> Float:
    return np.asarray(model.predict(features, num_threads=1), dtype=np.float64)
