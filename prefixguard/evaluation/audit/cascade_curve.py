"""A cascade at several marks: share of steps escalated against what the walk still finds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.evaluation.audit.audited_system import StepIndex
from prefixguard.evaluation.audit.cascade import Cascade, PrefixVerdict, cascade, escalated_above
from prefixguard.evaluation.audit.text_blocks import TextBlock
from prefixguard.results import finite, percent, percents
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class CascadeCurve:
    """points: (mark, cascade), marks ascending: fewer and fewer steps are escalated."""

    points: tuple[tuple[float, Cascade], ...]

    def as_json(self) -> list[dict[str, Any]]:
        """Plain values, NaN as None; one a mark."""
        return [{"mark": finite(mark), **found.as_json()} for mark, found in self.points]

    def to_text(self) -> str:
        """Plain aligned text of at most 118 columns, ending without a newline."""
        cells: list[tuple[str, ...]] = [
            ("mark", "escalated", "saved", "Exact-F1", "", "Step-Acc", "", "false alarms", "", "a run", "1,000 runs")
        ]
        rows = [("none", 1.0, 0.0, self.points[0][1].always_figures)] if self.points else []
        rows += [(f"{mark:.4g}", one.escalated_share, one.calls_saved, one.gated_figures) for mark, one in self.points]
        for name, share, saved, figures in rows:
            cells.append(
                (
                    name,
                    percent(share),
                    percent(saved),
                    percent(figures.exact_f1),
                    percents(figures.intervals.get("exact_f1")),
                    percent(figures.step_accuracy),
                    percents(figures.intervals.get("step_accuracy")),
                    percent(figures.false_alarm_rate),
                    percents(figures.intervals.get("false_alarm_rate")),
                    f"{figures.calls_per_run:.1f}" if math.isfinite(figures.calls_per_run) else "–",
                    f"{figures.cost_per_1000_runs:.4g}" if math.isfinite(figures.cost_per_1000_runs) else "–",
                )
            )
        below = "A step is escalated where its risk passes the mark; none: every step is asked. saved, a run: calls."
        return TextBlock("Cascade by mark", tuple(cells), (below,)).to_text()


def cascade_curve(
    runs: Sequence[Run[StepRecord]],
    verdicts: Mapping[str, Mapping[int, PrefixVerdict]],
    risks: Mapping[str, Sequence[float]],
    marks: Sequence[float],
    *,
    index: StepIndex = "record",
    n_resamples: int = 1000,
    seed: int = 13,
) -> CascadeCurve:
    """`cascade` at each mark. verdicts: as there. risks: by run id, one a step; NaN where it was not judged."""
    points = []
    for mark in sorted(set(marks)):
        passed = escalated_above(risks, mark)
        points.append((mark, cascade(runs, verdicts, passed, index=index, n_resamples=n_resamples, seed=seed)))
    return CascadeCurve(tuple(points))
