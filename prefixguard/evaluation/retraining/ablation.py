"""Ablation: what is lost when one field of the records, or one group of the context, cannot be read?

The variants are fitted on the very folds of the full training, so that differences are paired: run by run, task by
task. What is lost without a thing says what it alone contributes; two that say the same lose nothing each. What is
lost with only a thing says how much it carries by itself. Read both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, UsageError
from prefixguard.evaluation.retraining.fitting import RESAMPLES, FoldScores, OnStage, Retraining, Source, averaged
from prefixguard.evaluation.retraining.folds import FoldedEvaluation, folded
from prefixguard.evaluation.retraining.views import View, ablation_views, held_still, reads_the_same, seen_through
from prefixguard.evaluation.tables.figures import RISKS, RiskFigures, compared, lead_cell
from prefixguard.learn import Corpus, TrainConfig
from prefixguard.results import Block, Cell, Column, Result, TableBlock, Text, fields_of, finite, number
from prefixguard.stepview import Adapter
from prefixguard.store import OnProgress

#: What rows are sorted by: the loss in each, averaged.
_JUDGED_BY = (("imminent", "auprc"), ("outcome", "outcome_auroc_at_remaining"))


@dataclass(frozen=True, slots=True)
class AblationRow:
    """One variant. kind: `without` or `only`. part: field, context, or both.

    imminent, outcome: its figures; `differences` are the full training's lead, which is what is lost.
    same: it reads what the full training reads (a field that nothing reads, or that is empty in all runs), so it was
        not fitted, and nothing is lost.
    """

    name: str
    kind: str
    part: str
    imminent: RiskFigures
    outcome: RiskFigures
    same: bool

    def as_json(self) -> dict[str, Any]:
        """Its fields, and what is lost."""
        return {**fields_of(self), "lost": finite(self.lost)}

    @property
    def lost(self) -> float:
        """Mean of what is lost in imminent AUPRC and in outcome AUROC at matched remaining steps."""
        losses = [self.loss(risk, figure)[0] for risk, figure in _JUDGED_BY]
        known = [loss for loss in losses if not math.isnan(loss)]
        return sum(known) / len(known) if known else math.nan

    def loss(self, risk: str, figure: str) -> tuple[float, tuple[float, float] | None]:
        """What is lost in a figure, with its 95 % interval over tasks, paired."""
        figures: RiskFigures = getattr(self, risk)
        found = figures.differences.get(figure)
        return (math.nan, None) if found is None else (found.value, found.interval)


_TITLES = {
    "without": "Without one thing: what is lost",
    "only": "With only one thing: what is lost (a field: its own text and counts; a context group: no text)",
}


@dataclass(frozen=True, slots=True)
class Ablation(Result):
    """The full training, and its variants by what they lose, most first."""

    full: FoldedEvaluation
    rows: tuple[AblationRow, ...]

    def blocks(self) -> tuple[Block, ...]:
        """What the full training reaches, what is lost without and with only one thing, and notes."""
        full, clock = self.full, self.full.baselines["step index"]
        notes = [
            "AUPRC: of the imminent risk. rem: outcome AUROC at matched remaining steps. lost: full minus variant, "
            "paired; brackets: 95 %, bootstrap over tasks. Sorted by the mean of both losses.",
            *full.notes,
        ]
        if any(row.same for row in self.rows):
            notes.append("=: not fitted; in these runs it reads what the full training reads.")
        return (
            Text(
                f"Ablation of {full.backend} over {full.repeats} x {full.folds} task-grouped folds: {full.runs:,} runs "
                f"of {full.tasks:,} tasks. Full: AUPRC of the imminent risk {number(full.imminent.auprc)}, outcome "
                f"AUROC at matched remaining steps {number(full.outcome.outcome_auroc_at_remaining)}; the step index "
                f"alone: {number(clock.imminent.auprc)}, {number(clock.outcome.outcome_auroc_at_remaining)}."
            ),
            *(
                _table(title, rows)
                for kind, title in _TITLES.items()
                if (rows := [row for row in self.rows if row.kind == kind])
            ),
            *map(Text, notes),
        )


def _table(title: str, rows: Sequence[AblationRow]) -> TableBlock:
    cells: list[list[str | Cell]] = []
    for row in rows:
        line: list[str | Cell] = [f"{row.name} =" if row.same else row.name, "" if row.part == "both" else row.part]
        for risk, figure in _JUDGED_BY:
            found: RiskFigures = getattr(row, risk)
            line += [number(getattr(found, figure)), lead_cell(found.differences.get(figure))]
        cells.append(line)
    return TableBlock.of(title, ["", Column("of"), "AUPRC", "lost", "rem", "lost"], cells)


def ablate(
    runs: Source,
    config: TrainConfig | None = None,
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | Path | None = None,
    strict: bool = False,
    views: Sequence[View] | None = None,
    folds: int = 3,
    repeats: int = 1,
    seeds: Sequence[int] = (13,),
    group_by: str | None = None,
    out: str | Path | None = None,
    resamples: int = RESAMPLES,
    on_stage: OnStage | None = None,
    on_progress: OnProgress | None = None,
) -> Ablation:
    """Train the full monitor and its variants on the same folds.

    config: of the trainings; None: boosted trees, which are fitted in seconds. Other backends may lean on other things.
    views: the variants; None: `ablation_views()`, 29 of them, so that 30 * folds * repeats * seeds fits are made; two
        more where steps have signals.
    folds : parts that tasks are dealt to, 2 or more; each is held out once.
    repeats : deal tasks to other folds so often, 1 or more.
    seeds : every fold is fitted once a seed, such as 13,14,15.
    out: keeps every fold of every variant as it is done.
    The rest, and what is raised, as at `cross_validate`; ConfigError for two variants of one name and part.
    """
    if views is not None and len({(view.kind, view.part, view.name) for view in views}) < len(views):
        raise ConfigError("two variants have the same name: give each once.")
    retraining = Retraining(
        runs,
        config or TrainConfig(backend="gbdt"),
        adapter=adapter,
        labels=labels,
        strict=strict,
        folds=folds,
        repeats=repeats,
        seeds=seeds,
        group_by=group_by,
        out=out,
        resamples=resamples,
        on_stage=on_stage,
        on_progress=on_progress,
    )
    if retraining.corpus.reads_scores:
        raise UsageError("an ablation takes fields of steps away, and scores have none. Say cross-validate.")
    chosen = list(ablation_views(signals=retraining.corpus.has_signals) if views is None else views)
    full, whole = folded(retraining, retraining.score_all("full", 1 + len(chosen)))
    rows = []
    for view in chosen:
        scored = _scores(retraining, view)
        own = whole if scored is None else averaged(retraining.measure_all(scored))
        imminent, outcome = (compared(whole[risk], own[risk]) for risk in RISKS)
        rows.append(AblationRow(view.name, view.kind, view.part, imminent, outcome, same=scored is None))
    rows.sort(key=lambda row: (math.isnan(row.lost), -row.lost if not math.isnan(row.lost) else 0.0, row.name))
    return Ablation(full, tuple(rows))


def _scores(retraining: Retraining, view: View) -> list[FoldScores] | None:
    """Scores of a variant on every fold; None where it reads the same as the full training."""
    particular = {"fields": sorted(view.fields), "groups": sorted(view.groups), "text": view.text}
    corpus = retraining.corpus
    seen: Corpus | None = None
    scores = []
    for fold in retraining.plan:
        read = None
        if retraining.kept(fold, view=particular) is None:
            if seen is None:  # the work of blanking is done only where a fold is missing
                seen = seen_through(corpus, view)
                if (view.fields or not view.text) and not len(view.columns) and reads_the_same(seen, corpus):
                    retraining.skip(len(retraining.plan))
                    return None
            read = held_still(seen, view, fold.train)
        scores.append(retraining.score(view.name, fold, read, view=particular))
    return scores
