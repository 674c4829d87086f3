"""The rows of a table: scores of every prefix, by the monitor, by what it has to beat, or by an oracle.

The end oracle (`clock_rows`) knows when a run ends and nothing of how. Of the other oracles (`oracle_rows`) one knows
how and not when, two know something of both. Together they show what an AUPRC of .6 can be made of on these runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_table, run_maximum
from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import Prefixes, ReferenceRisks, end_oracle, step_index

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
    thresholds: Mapping[Any, Thresholds] = field(default_factory=dict)
    note: str = ""

    def flat(self, lengths: Sequence[int]) -> tuple[Float, Float]:
        """Imminent and outcome scores of all prefixes, both (N,). Raises DataError where lengths are not the runs'."""
        flat = []
        for risk, scores in (("imminent", self.imminent), ("outcome", self.outcome)):
            if [len(score) for score in scores] != list(lengths):
                raise DataError(
                    f"row {self.name!r}: its {risk} scores are not one a step of every run "
                    f"({len(scores)} runs for {len(lengths)}). Score the same runs, step by step."
                )
            flat.append(np.concatenate([np.zeros(0), *scores]).astype(np.float64))
        return flat[0], flat[1]


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
    steps, ends = (cut(scores, lengths) for scores in (step_index(prefixes), end_oracle(prefixes)))
    maxima = [run_maximum(np.arange(1, n + 1), policy) for n in calibration_lengths or ()]
    after_step = {} if calibration_lengths is None else alarm_table(maxima, policy, budgets=budgets)
    shares = [
        float(labels.mean()) if len(labels) else 0.0
        for labels in (prefixes.imminent_labels(horizon), prefixes.outcome_labels)
    ]
    imminent, outcome = ([np.full(n, share) for n in lengths] for share in shares)
    constant = "the same risk at every step: the share of positive prefixes of these very runs"
    return [
        ScoreRow("constant", imminent, outcome, probability=True, note=constant),
        ScoreRow("step index", steps, steps, thresholds=after_step, note="the number of the step and nothing else"),
        ScoreRow("end oracle", ends, ends, oracle=True, note="knows when the run ends, nothing of how"),
    ]


def reference_rows(
    reference: ReferenceRisks, prefixes: Prefixes, lengths: Sequence[int], sizes: Sequence[Float] | None
) -> list[ScoreRow]:
    """The rows that read nothing and were fitted on training runs: clock and, where the sizes of steps are known, size
    spline. sizes: bytes of text of each step, (T,) a run."""
    rows = [("fitted clock", reference.by_step(prefixes.step), "the number of the step, as a risk")]
    if sizes is not None:
        note = "the number of the step and the bytes of text so far, as a risk by a spline of either"
        rows.append(("size spline", reference.by_size(prefixes.step, sizes), note))
    return [
        ScoreRow(
            name, cut(risks[:, 0], lengths), cut(risks[:, 1], lengths), True, note=f"{note}; fitted on training runs"
        )
        for name, risks, note in rows
    ]


def oracle_rows(prefixes: Prefixes, lengths: Sequence[int], horizon: int, seed: int = 13) -> list[ScoreRow]:
    """The oracles besides the end oracle, in this order:

    - outcome oracle: 1 at every prefix of a failed run, else 0. Nothing of the end, so for the imminent risk it marks
      failed runs from their first step on. Its outcome figures are 1.
    - half oracle: outcome and end of every run of a seeded half of the tasks (the larger half where they are odd), of
      the other runs nothing. Known positives score 1, known negatives 0, all that is unknown .5 between them.
    - blurred oracle: every outcome, and every end within `horizon` steps: the end it believes in is off by a whole
      number of steps, drawn once a run from -H..H. Failed runs score minus the steps it believes are left, none once
      that end has passed; successful runs score below all of them. Its outcome figures are 1.

    prefixes: of all runs, none left out. lengths: steps of each run. horizon: H, 0 or more.
    seed: of the half and of the blur; 0 or more. Tasks count in the order in which their first run comes.
    Raises ConfigError for a horizon or seed below 0, DataError where lengths are not the runs'.

    >>> one = Prefixes.of([2, 2], [True, False], ["a", "b"])
    >>> [scores.tolist() for scores in oracle_rows(one, [2, 2], horizon=0)[0].imminent]
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if horizon < 0 or seed < 0:
        raise ConfigError(f"oracle rows: horizon {horizon} and seed {seed}: use 0 or more of each.")
    if len(lengths) != len(prefixes.failed) or sum(lengths) != len(prefixes):
        raise DataError(
            f"oracle rows: {len(lengths)} runs of {sum(lengths)} steps for {len(prefixes.failed)} runs of "
            f"{len(prefixes)} prefixes. Give all prefixes of the same runs."
        )
    rng = np.random.default_rng(seed)
    labels = prefixes.imminent_labels(horizon), prefixes.outcome_labels
    known_tasks = rng.permutation(prefixes.n_tasks) < (prefixes.n_tasks + 1) // 2  # bool (U,)
    known = known_tasks[prefixes.units]
    half = [np.where(known, label, 0.5) for label in labels]
    shift = rng.integers(-horizon, horizon + 1, size=len(prefixes.failed))  # int64 (R,)
    left = np.maximum(0, prefixes.remaining + shift[prefixes.run])
    below = -float(left.max(initial=0)) - 1.0
    blurred = np.where(prefixes.failed[prefixes.run], -left.astype(np.float64), below)
    outcome = labels[1].astype(np.float64)
    rows = [
        ("outcome oracle", outcome, outcome, "knows how the run ends, nothing of when"),
        (
            "half oracle",
            half[0],
            half[1],
            "knows how and when the runs of half of the tasks end, nothing of the others",
        ),
        ("blurred oracle", blurred, outcome, f"knows how the run ends, and when to within {horizon} steps"),
    ]
    return [
        ScoreRow(name, cut(soon, lengths), cut(at_all, lengths), oracle=True, note=note)
        for name, soon, at_all, note in rows
    ]


def cut(flat: Float, lengths: Sequence[int]) -> list[Float]:
    """Scores of all prefixes, (N,), as one array a run."""
    return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []
