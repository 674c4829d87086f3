"""How much better the last record tells the outcome than the record before, by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prefixguard.evaluation.leaks.chance import LEVEL, difference_by_chance, rank_area
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity, chance, shown
from prefixguard.evaluation.leaks.material import Judged
from prefixguard.evaluation.leaks.probe import FOLDS, probe_scores
from prefixguard.evaluation.leaks.telling import at
from prefixguard.evaluation.leaks.tokens import GIVEN, JUMP, TokenTables
from prefixguard.stepview import FIELDS

#: Area under the ROC curve that a probe of a last record must reach for a finding, and alone for an error.
_AREA = 0.75
_AREA_ALONE = 0.97


def find_last_step(
    judged: Judged, tables: TokenTables, tokens: Sequence[LeakFinding], seed: int
) -> Iterator[LeakFinding]:
    """Fields whose last record tells far more than the record before. tokens: what `find_tokens` found.

    An error where a token of the same last record is one, or where what the agent was given tells nearly every run
    although the record before tells little; otherwise a warning, since ends of runs differ naturally.
    """
    for field in FIELDS:
        last, before = (
            probe_scores([look(run) for run in judged.runs], judged, seed) for look in (at(field, -1), at(field, -2))
        )
        area, was = rank_area(judged.failed, last), rank_area(judged.failed, before)
        if not (area >= _AREA and area - was >= JUMP):
            continue
        p = min(1.0, len(FIELDS) * difference_by_chance(judged.failed, last, before, judged.tasks, seed))
        if p >= LEVEL:
            continue
        named = [one for one in tokens if one.field == field and one.kind == "token" and "before" in one.figures]
        alone = field in GIVEN and area >= _AREA_ALONE and was < 0.75 and not named
        severity: Severity = "error" if alone or any(one.severity == "error" for one in named) else "warning"
        top = tables.last[field].told[:1]
        token = named[0].token if named else (top[0].feature if top else "")
        text = (
            f"A probe that reads {field} alone tells the outcome of runs of other tasks with an area of {area:.2f} at "
            f"the last record and {was:.2f} at the one before ({chance(p)}, tasks permuted)"
        )
        text += f"; most by {shown(token)}." if token else "."
        figures = {"last": area, "before": was, "p": p, "runs": float(len(judged)), "folds": float(FOLDS)}
        yield LeakFinding("last_step", field, token, severity, figures, text)
