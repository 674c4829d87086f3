"""Controls beside a monitor that is being evaluated, over the very runs that are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from prefixguard.alarm import AlarmPolicy
from prefixguard.bundle import Bundle
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.controls.rows import control_rows
from prefixguard.evaluation.controls.sides import sides_of
from prefixguard.evaluation.evaluation import alarm_thresholds
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.evaluation.table import RunKey
from prefixguard.learn import featurise
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


def controls_beside(
    bundle: Bundle,
    runs: Iterable[Run[StepRecord]],
    *,
    wanted: Sequence[str] | None = None,
    on_run: Callable[[int], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Callable[[Sequence[RunKey]], list[ScoreRow]]:
    """What `evaluate(beside=)` takes: rows that learn from the runs that the monitor learned from.

    bundle: the monitor's. runs: all that are read, those that it was made from among them. wanted: see `control_rows`.
    Nothing is read or fitted before the rows are asked for.
    """

    def rows(keys: Sequence[RunKey]) -> list[ScoreRow]:
        corpus = featurise(runs, on_run=on_run)
        sides = sides_of(corpus, bundle.manifest)
        places: dict[RunKey, list[int]] = {}
        for r in reversed(range(len(corpus))):
            places.setdefault((corpus.run_ids[r], corpus.digests[r]), []).append(r)
        try:
            test = np.array([places[key].pop() for key in keys], dtype=np.int64)
        except (KeyError, IndexError) as exc:
            raise DataError("controls: the second reading of the runs is not the first. Do not write to them.") from exc
        if len(np.intersect1d(test, np.concatenate((sides.train, sides.alarm)))):
            raise ConfigError(
                "controls learn from the runs that the monitor was made from, so these cannot be counted too. Leave "
                "out --all or the controls."
            )
        policy: AlarmPolicy = bundle.calibration.policy
        seed = bundle.manifest.get("seed")
        return control_rows(
            corpus,
            replace(sides, test=test),
            horizon=3 if bundle.horizon is None else bundle.horizon,
            seed=seed if isinstance(seed, int) else 0,
            policy=policy,
            budgets=list(alarm_thresholds(bundle)),
            wanted=wanted,
            on_stage=on_stage,
        )

    return rows
