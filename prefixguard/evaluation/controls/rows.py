"""All baselines that have to be trained: they learn from the runs that the monitor learned from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_table, run_maximum
from prefixguard.bundle import Bundle
from prefixguard.errors import ConfigError, DataError, MissingExtraError, UsageError
from prefixguard.evaluation.controls.fits import (
    ControlRuns,
    Scorer,
    boosting,
    context_alone,
    last_step_words,
    raw_text,
    words_so_far,
)
from prefixguard.evaluation.controls.sides import ControlSides, sides_of
from prefixguard.evaluation.evaluation import alarm_thresholds
from prefixguard.evaluation.tables.evaluation_table import EvaluationTable, RunKey
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.learn import Corpus, draw_alarm_runs, featurise, torch_part
from prefixguard.results import Block, Bullets, Result, number
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class Control:
    """A row that has to be trained. fit: learns from the training runs. note: what it is, in words."""

    fit: Callable[[ControlRuns], Scorer]
    note: str


def _process_mining(runs: ControlRuns) -> Scorer:
    activities = torch_part("prefixguard.evaluation.controls.activities", "the control process mining")
    scorer: Scorer = activities.process_mining(runs)
    return scorer


#: By the name of their row, in the order of a table.
CONTROLS: Mapping[str, Control] = {
    "words of the last step": Control(
        last_step_words, "logistic regression on the words of the last step; it remembers nothing"
    ),
    "words so far": Control(
        words_so_far, "logistic regression on the words of all steps so far, in no order; it counts no steps"
    ),
    "context alone": Control(
        context_alone, "boosted trees on counts, rates, repeats and sizes of the steps so far; it reads no word"
    ),
    "boosting": Control(boosting, "boosted trees on context and text, the backend gbdt before calibration"),
    "process mining": Control(
        _process_mining, "a small LSTM on the names of activities (the tool, or message), as process monitoring does"
    ),
    "raw text": Control(
        raw_text,
        "boosted trees on the text of each step without fields, tools and status (the raw view), and on what can be "
        "counted there",
    ),
}


def control_rows(
    corpus: Corpus,
    sides: ControlSides,
    *,
    horizon: int,
    seed: int,
    policy: AlarmPolicy,
    budgets: Sequence[float],
    wanted: Sequence[str] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> list[ScoreRow]:
    """Train the controls and score the test runs, in the order of `sides.test`, with probabilities.

    Each control learns from the training runs only, with a vocabulary fitted on them. Its probabilities are not
    calibrated: where the monitor is calibrated on further runs, compare ranks and alarms rather than Brier and ECE.

    corpus, sides : the runs, and which of them train, set thresholds and are scored.
    horizon : H of the imminent label. seed : of everything that is drawn; same runs and seed, same bytes.
    policy, budgets : of the alarm; each row gets its own thresholds on the outcome risk.
    wanted : names of `CONTROLS`, None for all; rows come in the order of `CONTROLS`. Where all are wanted, a control
        whose package is not installed is left out, and `on_stage` is called with the reason.
    on_stage : called with the name of each control before it is fitted.
    Raises ConfigError for an unknown name, DataError where the sides cannot serve (`ControlSides.check`),
    MissingExtraError for a control that was named and whose package is not installed.
    """
    names = tuple(CONTROLS) if wanted is None else tuple(wanted)
    unknown = [name for name in names if name not in CONTROLS]
    if unknown:
        raise ConfigError(f"no control is called {unknown[0]!r}. Choose from: {', '.join(CONTROLS)}.")
    if corpus.reads_scores:
        raise UsageError("controls read what an agent does, and these runs are scores. Leave the controls out.")
    sides.check(corpus)
    runs = ControlRuns(corpus, sides.train, horizon, seed)
    rows = []
    for name, control in CONTROLS.items():
        if name not in names:
            continue
        if on_stage:
            on_stage(name)
        try:
            scorer = control.fit(runs)
        except MissingExtraError as exc:
            if wanted is not None:
                raise
            if on_stage:
                on_stage(f"{name} is left out: {exc}")
            continue
        rows.append(scored_row(name, control.note, scorer, corpus, sides, seed=seed, policy=policy, budgets=budgets))
    return rows


def scored_row(
    name: str,
    note: str,
    scorer: Scorer,
    corpus: Corpus,
    sides: ControlSides,
    *,
    seed: int,
    policy: AlarmPolicy,
    budgets: Sequence[float],
) -> ScoreRow:
    """Scores of the test runs, in their order, and thresholds by budget from one successful alarm run a task.

    Of the test runs' outcomes nothing is read. A budget that the alarm runs cannot support gets a threshold of None,
    with the reason, as a monitor's does.
    """
    risks = scorer(sides.test)
    drawn = draw_alarm_runs(corpus, seed, sides.alarm)
    maxima = [run_maximum(risk[:, 1], policy) for risk in (scorer(drawn) if len(drawn) else [])]
    thresholds: dict[float | None, Thresholds] = {
        float(budget): found for budget, found in alarm_table(maxima, policy, budgets=budgets).items()
    }
    return ScoreRow(
        name,
        imminent=[np.ascontiguousarray(risk[:, 0]) for risk in risks],
        outcome=[np.ascontiguousarray(risk[:, 1]) for risk in risks],
        probability=True,
        thresholds=thresholds,
        note=note,
    )


def controls_beside(
    bundle: Bundle,
    runs: Iterable[Run[StepRecord]],
    *,
    wanted: Sequence[str] | None = None,
    on_run: Callable[[int], None] | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Callable[[Sequence[RunKey]], list[ScoreRow]]:
    """The controls of a monitor, in the form that the option `beside` of `evaluate` takes.

    bundle : the monitor's bundle.
    runs : parsed runs, among them those that the monitor was trained on. They are read when the rows are needed.
    wanted : names of `CONTROLS`, None for all.
    on_run : called with the number of runs read so far. on_stage : called with the name of each control.
    Raises, when the rows are needed, DataError and ConfigError as `control_rows` and `sides_of` do.
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


@dataclass(frozen=True, slots=True)
class TrainedControls(Result):
    """The controls of a table, as its section. rows: name, what it is, imminent AUPRC, outcome AUROC at matched
    remaining steps; best first by the mean of both.
    """

    rows: tuple[tuple[str, str, float, float], ...]

    @classmethod
    def of(cls, table: EvaluationTable) -> TrainedControls:
        """Those of `CONTROLS` that stand in the table."""
        rows = [
            (name, table.baselines[name].note, row.imminent.auprc, row.outcome.outcome_auroc_at_remaining)
            for name in CONTROLS
            if (row := table.baselines.get(name)) is not None
        ]
        return cls(tuple(sorted(rows, key=lambda row: -(row[2] + row[3]) if row[2] == row[2] else 0.0)))

    def as_json(self) -> dict[str, Any]:
        """Name to what it is; the figures stand with the baselines."""
        return {name: {"note": note} for name, note, _, _ in self.rows}

    def blocks(self) -> tuple[Block, ...]:
        """A line a control."""
        items = (f"{name} (AUPRC {number(auprc)}, rem {number(rem)}): {note}" for name, note, auprc, rem in self.rows)
        title = "Controls: trained on the runs that the monitor was trained on; they stand in the tables above"
        return (Bullets(tuple(items), title),)
