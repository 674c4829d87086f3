"""What stands in a table: scores of every prefix, by the monitor or by something it has to beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_table, run_maximum
from prefixguard.errors import DataError
from prefixguard.metrics import Prefixes, end_oracle, step_index

Float = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Scores of all runs by one source.

    name: how the row is called in tables and JSON.
    imminent, outcome: one float (T,) a run, NaN where a step was not judged.
    probability: whether the scores are probabilities, so that Brier and ECE mean something.
    oracle: knows what no monitor can know.
    thresholds: alarm thresholds on the outcome score, by budget; the key None is a rule that needs no calibration.
    note: what the row is, in words.
    """

    name: str
    imminent: Sequence[Float]
    outcome: Sequence[Float]
    probability: bool = False
    oracle: bool = False
    thresholds: Mapping[float | None, Thresholds] = field(default_factory=dict)
    note: str = ""

    def flat(self, lengths: Sequence[int]) -> tuple[Float, Float]:
        """Imminent and outcome scores of all prefixes, both (N,). Raises DataError where lengths are not the runs'."""
        for risk, scores in (("imminent", self.imminent), ("outcome", self.outcome)):
            if [len(score) for score in scores] != list(lengths):
                raise DataError(
                    f"row {self.name!r}: its {risk} scores are not one a step of every run "
                    f"({len(scores)} runs for {len(lengths)}). Score the same runs, step by step."
                )
        return _joined(self.imminent), _joined(self.outcome)


def rule_threshold() -> Thresholds:
    """The threshold of a rule whose score is 0 or 1: it alarms when it fires, whatever budget that costs."""
    return Thresholds(alarm=0.5, watch=0.5, n_runs=0, allowed=0, needed=0, reason=None)


def clock_rows(
    prefixes: Prefixes,
    lengths: Sequence[int],
    horizon: int,
    policy: AlarmPolicy,
    budgets: Sequence[float],
    calibration_lengths: Sequence[int] | None,
) -> list[ScoreRow]:
    """The rows that read nothing: constant, step index, end oracle.

    calibration_lengths: steps of the successful runs that set alarm thresholds, one run a task; gives the step index
        its thresholds ("alarm after step n"). None: it gets none.
    """
    steps = cut(step_index(prefixes), lengths)
    ends = cut(end_oracle(prefixes), lengths)
    thresholds: dict[float | None, Thresholds] = {}
    if calibration_lengths is not None:
        maxima = [run_maximum(np.arange(1, n + 1), policy) for n in calibration_lengths]
        for budget, mark in alarm_table(maxima, policy, budgets=budgets).items():
            thresholds[budget] = mark
    return [
        ScoreRow(
            "constant",
            _constant(prefixes.imminent_labels(horizon), lengths),
            _constant(prefixes.outcome_labels, lengths),
            probability=True,
            note="the same risk at every step: the share of positive prefixes of these very runs",
        ),
        ScoreRow("step index", steps, steps, thresholds=thresholds, note="the number of the step and nothing else"),
        ScoreRow("end oracle", ends, ends, oracle=True, note="knows when the run ends, nothing of how"),
    ]


def _constant(labels: npt.NDArray[np.uint8], lengths: Sequence[int]) -> list[Float]:
    share = float(labels.mean()) if len(labels) else 0.0
    return [np.full(n, share) for n in lengths]


def cut(flat: Float, lengths: Sequence[int]) -> list[Float]:
    """Scores of all prefixes, (N,), as one array a run."""
    return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _joined(scores: Sequence[Float]) -> Float:
    return np.concatenate(scores).astype(np.float64) if len(scores) else np.zeros(0)
