"""AUROC when a share of each run is seen: the step that is looked at, and which runs count."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from prefixguard.evaluation.analyses import shares_seen
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import Prefixes, Resamples, auroc

N = 80


def found(unjudged: bool = False) -> tuple[object, list[np.ndarray], list[bool], list[int]]:
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 14, N).tolist()
    failed = (rng.random(N) < 0.4).tolist()
    risks = [rng.random(n) + 0.3 * fail for n, fail in zip(lengths, failed, strict=True)]
    if unjudged:
        risks = [np.where(np.arange(len(risk)) == 0, np.nan, risk) for risk in risks]
    prefixes = Prefixes.of(lengths, failed, [f"t{i // 2}" for i in range(N)])
    steps = [np.arange(1.0, n + 1) for n in lengths]
    rows = [
        ScoreRow("monitor", risks, risks),
        ScoreRow("step index", steps, steps),
        ScoreRow("end", steps, steps, oracle=True),
    ]
    return shares_seen(rows, prefixes, lengths, resamples=Resamples.draw(40, n=50)), risks, failed, lengths


def test_it_is_the_score_at_the_step_where_the_share_is_done() -> None:
    table, risks, failed, lengths = found()
    long = [i for i in range(N) if lengths[i] >= 4]
    assert (table.runs, table.failed_runs) == (len(long), sum(failed[i] for i in long))
    monitor, clock = table.rows
    for share in (0.25, 0.5, 0.75, 1.0):
        at = [risks[i][math.ceil(share * lengths[i]) - 1] for i in long]
        assert monitor.auroc[share] == pytest.approx(auroc([failed[i] for i in long], at), abs=1e-12)
        low, high = monitor.intervals[share]
        assert low <= monitor.auroc[share] <= high
    assert clock.auroc[1.0] == pytest.approx(auroc([failed[i] for i in long], [lengths[i] for i in long]))


def test_a_run_that_was_not_judged_there_counts_for_no_row() -> None:
    table, _, failed, lengths = found(unjudged=True)
    long = [i for i in range(N) if lengths[i] > 4]  # a quarter of four steps is the step that was not judged
    assert table.rows[1].auroc[0.25] == pytest.approx(
        auroc([failed[i] for i in long], [math.ceil(0.25 * lengths[i]) for i in long])
    )


def test_what_is_shown_says_that_it_is_no_aim() -> None:
    table, *_ = found()
    text = table.to_text()
    assert "which a live monitor does not" in " ".join(text.split()) and "25 %" in text
    assert json.loads(table.to_json())["rows"][0]["auroc"].keys() == {"0.25", "0.5", "0.75", "1"}


def test_runs_that_are_all_short_have_no_table() -> None:
    prefixes, steps = Prefixes.of([2, 3], [True, False], ["a", "b"]), [np.ones(2), np.ones(3)]
    table = shares_seen([ScoreRow("monitor", steps, steps)], prefixes, [2, 3], resamples=Resamples.draw(2, n=5))
    assert table.blocks() == () and math.isnan(table.rows[0].auroc[1.0])
