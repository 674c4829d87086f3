"""First alarms of the package e-valuator on splits of scores; run by `any_score.py` in the interpreter that has it.

    python benchmarks/any_score_evaluator.py SPLITS.json

SPLITS.json: {"scores": [[...] a run], "solved": [0 | 1 a run], "budgets": [...], "splits": [{"calibration": [runs],
"test": [runs]}]}. Standard output, a line a split: {variant: {budget: [step of the first alarm, or null, a test run]}}.

The package scores one row at a time. Here all rows of a step are scored at once by its own fitted models, and the first
rows of every split are checked against the package's own function.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evaluator import EValuator

_CHECKED = 300


class BatchedEvaluator(EValuator):
    """The package's evaluator with all rows of a step at once."""

    def _compute_e_vals_for_variant(self, df: pd.DataFrame, which: str) -> np.ndarray:
        found = self._batched(df, which)
        some = df.head(_CHECKED)
        theirs = super()._compute_e_vals_for_variant(some, which)
        if not np.allclose(found[: len(some)], theirs, rtol=1e-9):
            raise SystemExit("the batched scores are not those of the package")
        return found

    def _batched(self, df: pd.DataFrame, which: str) -> np.ndarray:
        split = which == "split"
        models = self.step_models_split if split else self.step_models_anytime
        scalers = self.step_scalers_split if split else self.step_scalers_anytime
        bases = self.step_base_probs_split if split else self.step_base_probs_anytime
        found = np.full(len(df), np.nan)
        steps = df[self.step_col].to_numpy()
        for step in np.unique(steps):
            if step not in models:
                continue
            at = np.flatnonzero(steps == step)
            series = np.array([list(one) for one in df["judge_probability_series"].to_numpy()[at]], dtype=float)
            shares = np.clip(models[step].predict_proba(scalers[step].transform(series)), 1e-6, 1 - 1e-6)
            base = bases[step]
            found[at] = (shares[:, 0] / shares[:, 1]) * (base["p1"] / base["p0"])
        last = pd.Series(found).groupby(df[self.problem_col].to_numpy()).ffill()
        return last.fillna(1.0).to_numpy()


def rows_of(given: dict, runs: list[int]) -> pd.DataFrame:
    """What the package takes: a row a step, with all scores so far."""
    rows = [
        (run, step, given["scores"][run][:step], given["solved"][run])
        for run in runs
        for step in range(1, len(given["scores"][run]) + 1)
    ]
    return pd.DataFrame(rows, columns=["uq_problem_idx", "num_steps", "judge_probability_series", "solved"])


def main() -> None:
    """All splits."""
    warnings.simplefilter("ignore")
    given = json.loads(Path(sys.argv[1]).read_text())
    for seed, split in enumerate(given["splits"]):
        calibration, test = (rows_of(given, split[side]) for side in ("calibration", "test"))
        said: dict = {}
        for variant in ("PAC", "Ville"):
            made = BatchedEvaluator(mt_variant=variant, alphas=given["budgets"], random_state=seed)
            made.fit(calibration)
            applied = made.apply(test)
            said[variant] = {}
            for budget in given["budgets"]:
                alarms = applied[applied[f"reject_{variant}_alpha_{str(budget).replace('.', '_')}"]]
                first = alarms.groupby("uq_problem_idx")["num_steps"].min().to_dict()
                said[variant][str(budget)] = [int(first[run]) if run in first else None for run in split["test"]]
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
