"""All rows that have to be trained, fitted on the runs that the monitor was fitted on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prefixguard.alarm import AlarmPolicy
from prefixguard.errors import ConfigError, MissingExtraError
from prefixguard.evaluation.controls import raw_text
from prefixguard.evaluation.controls.material import Material, Scorer
from prefixguard.evaluation.controls.scored import scored_row
from prefixguard.evaluation.controls.sides import ControlSides
from prefixguard.evaluation.controls.trees import boosting, context_alone
from prefixguard.evaluation.controls.words import last_step_words, words_so_far
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.learn import Corpus, torch_part


@dataclass(frozen=True, slots=True)
class Control:
    """A row that has to be trained. fit: learns from the training runs. note: what it is, in words."""

    fit: Callable[[Material], Scorer]
    note: str


def _process_mining(material: Material) -> Scorer:
    activities = torch_part("prefixguard.evaluation.controls.activities", "the control process mining")
    scorer: Scorer = activities.process_mining(material)
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
    raw_text.NAME: Control(raw_text.raw_text, raw_text.NOTE),
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
    """The controls' scores of the test runs, in the order of `sides.test`, as probabilities.

    Each learns from the training runs only, with a vocabulary of its own fitted on them. Probabilities are as fitted:
    where the monitor is calibrated on further runs, compare ranks and alarms rather than Brier and ECE.

    horizon: H. seed: of all that is drawn; the same runs and seed give the same bytes. policy, budgets: of the alarm;
    each row gets its own thresholds on the outcome risk. wanted: names of `CONTROLS`, None for all; rows come in the
    order of `CONTROLS`. on_stage: called with the name of each control before it is fitted. A control whose package
    is not installed is left out of all, and `on_stage` is told so.
    Raises ConfigError for an unknown name, DataError where the sides cannot serve (`ControlSides.check`),
    MissingExtraError for a control that was named and whose package is not installed.
    """
    names = tuple(CONTROLS) if wanted is None else tuple(wanted)
    unknown = [name for name in names if name not in CONTROLS]
    if unknown:
        raise ConfigError(f"no control is called {unknown[0]!r}. Choose from: {', '.join(CONTROLS)}.")
    sides.check(corpus)
    material = Material(corpus, sides.train, horizon, seed)
    rows = []
    for name, control in CONTROLS.items():
        if name not in names:
            continue
        if on_stage:
            on_stage(name)
        try:
            scorer = control.fit(material)
        except MissingExtraError as exc:
            if wanted is not None:
                raise
            if on_stage:
                on_stage(f"{name} is left out: {exc}")
            continue
        rows.append(scored_row(name, control.note, scorer, corpus, sides, seed=seed, policy=policy, budgets=budgets))
    return rows
