"""Whether scores run the way that was said: it is never guessed, and a monitor of scores that run the other way is not
made.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefixguard.context import SCORE_FEATURES
from prefixguard.errors import ConfigError, DataError
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.corpus import Corpus
from prefixguard.metrics import Prefixes, Ranking, Resamples, interval

_MEAN: Final = [feature.name for feature in SCORE_FEATURES].index("mean_score")
_RESAMPLES: Final = 500


def check_options(corpus: Corpus, config: TrainConfig) -> None:
    """ConfigError where the options are not for these runs: of scores, or of steps."""
    if corpus.reads_scores and config.heads != ("gbdt",):
        raise ConfigError(f"backend {config.backend!r}: of scores only boosted trees are made. Say --backend gbdt.")
    if config.higher_is_safer and not corpus.reads_scores:
        raise ConfigError("higher_is_safer goes with scores, and these runs are steps of an agent. Leave it out.")


def check_direction(corpus: Corpus, runs: NDArray[np.int64], config: TrainConfig) -> None:
    """DataError where the mean scores of these runs rank failures below successes, surely: the AUROC's 95 % interval,
    over tasks, lies below one half.

    runs: those that are trained on, of both outcomes.
    """
    means = corpus.context[corpus.first[runs + 1] - 1, _MEAN].astype(np.float64)
    risk = -means if config.higher_is_safer else means
    prefixes = Prefixes.of([1] * len(runs), corpus.failed[runs].tolist(), [corpus.task_ids[r] for r in runs.tolist()])
    ranking = Ranking(prefixes.outcome_labels, risk, units=prefixes.units)
    drawn = Resamples.draw(prefixes.n_tasks, n=_RESAMPLES, seed=config.seed)
    ends = interval(drawn.figures(ranking.auroc, len(prefixes)))
    if ends is None or ends[1] >= 0.5:
        return
    said, remedy = (
        ("higher", "If a higher score means more risk, leave out --higher-is-safer.")
        if config.higher_is_safer
        else ("lower", "If a higher score means less risk, say --higher-is-safer.")
    )
    raise DataError(
        f"the scores run the other way: of the runs to train on, failed ones have {said} scores than successful ones "
        f"(AUROC {float(ranking.auroc()):.2f} [{ends[0]:.2f}, {ends[1]:.2f}], and .50 knows nothing). {remedy}"
    )
