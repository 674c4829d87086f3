"""Clock rows on real runs, against figures that other code measured on the same runs."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from prefixguard.evaluation import evaluate_scores
from prefixguard.stepview import load_adapter, read_runs
from prefixguard.trace import Outcome, task_key

TRACES = Path(os.environ.get("PREFIXGUARD_TRACES", Path(__file__).parents[2] / ".traces"))


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "runs", "failed", "prevalence", "step_index", "end_oracle"),
    [("tau2", 841, 234, 0.083, 0.210, 0.279), ("webshop_react", 500, 321, None, 0.565, 0.642)],
)
def test_clocks_on_real_runs(name, runs, failed, prevalence, step_index, end_oracle):
    """To three digits. webshop_react's prevalence depends on what counts as a step and is not compared."""
    if not (TRACES / name).is_dir():
        pytest.skip(
            f"{TRACES / name} is not there: unpack the real runs into .traces or name them by PREFIXGUARD_TRACES"
        )
    read = [run for run in read_runs(TRACES / name, load_adapter(name)) if run.outcome is not Outcome.UNKNOWN]
    flat = [np.full(len(run.records), 0.5) for run in read]
    outcomes = [run.outcome is Outcome.FAILURE for run in read]
    table = evaluate_scores(flat, flat, outcomes, [task_key(run) for run in read], resamples=20)
    assert (table.runs, table.failed_runs) == (runs, failed)
    if prevalence is not None:
        assert table.imminent.prevalence == pytest.approx(prevalence, abs=0.0005)
    assert table.baselines["step index"].imminent.auprc == pytest.approx(step_index, abs=0.0005)
    assert table.baselines["end oracle"].imminent.auprc == pytest.approx(end_oracle, abs=0.0005)
    labels = np.concatenate([f & (np.arange(len(s))[::-1] <= 3) for f, s in zip(outcomes, flat, strict=True)])
    clock = np.concatenate([np.arange(1, len(s) + 1) for s in flat])
    assert table.baselines["step index"].imminent.auprc == pytest.approx(average_precision_score(labels, clock))
