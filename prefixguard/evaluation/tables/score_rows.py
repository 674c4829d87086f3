"""What the scores say by themselves, beside a monitor that was made of them: as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from prefixguard.alarm import AlarmPolicy
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.evaluation.tables.rules import Float, Scores, tuned_row
from prefixguard.stepview import StepRecord

#: By the name of the row, what it is.
_ROWS: Final = {
    "score": "the score of the step, as it was given",
    "mean score": "the mean of the scores so far",
    "worst score": "the worst score so far, which is all that an alarm on the score asks for",
}


def score_values(records: Iterable[StepRecord], *, higher_is_safer: bool) -> dict[str, Float]:
    """What each row says after each step of a run, float (T,), greater for more risk. Causal."""
    given = np.array([record.score for record in records], dtype=np.float64)
    risk = -given if higher_is_safer else given
    means = np.cumsum(risk) / np.arange(1, len(risk) + 1)
    return dict(zip(_ROWS, (risk, means, np.maximum.accumulate(risk)), strict=True))


def score_rows(
    values: Sequence[Scores], calibration: Sequence[Scores] | None, policy: AlarmPolicy, budgets: Sequence[float]
) -> list[ScoreRow]:
    """Arguments as of `rule_rows`; without calibration runs the rows have no alarm."""
    return [tuned_row(name, note, values, calibration, policy, budgets) for name, note in _ROWS.items()]
