"""How far does a monitor get beyond rows that read less, or read it more simply?

    python benchmarks/controls.py .traces --sets webshop_react --out benchmarks/results

Three task-grouped folds. Of each fold's training tasks a quarter sets alarm thresholds; the monitor (backend gru) and
every control learn from the rest. Scores are kept in the output folder fold by fold, so that an interrupted benchmark
goes on where it stopped. Prints a table a set and writes controls.json and controls.md; sets that are there already
and not named stay in both. A step index stands beside them for scale. Figures are means over folds; intervals are 95 %
over a bootstrap of tasks, paired where rows are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy
from scipy.special import expit

from prefixguard.alarm import AlarmPolicy
from prefixguard.evaluation import ScoreRow
from prefixguard.evaluation.controls import CONTROLS, ControlSides, control_rows, scored_row
from prefixguard.learn import Corpus, TrainConfig, fit_monitor
from prefixguard.learn.head import held_out
from prefixguard.metrics import Prefixes, Resamples, first_alerts, interval, step_index

HORIZON = 3
BUDGET = 0.10
MONITOR = "monitor (gru)"
STEP_INDEX = "step index"
#: figure -> (heading, whether it ranks prefixes; the others are of first alerts on the outcome risk)
FIGURES = {
    "auprc": ("AUPRC imminent", True),
    "rem_imminent": ("rem: imminent", True),
    "rem_outcome": ("rem: outcome", True),
    "idx_outcome": ("idx: outcome", True),
    "false_alarm_rate": (f"false alarms at {BUDGET:.0%}", False),
    "alerted": ("failed runs alarmed", False),
    "early": (f"with more than {HORIZON} steps left", False),
}
LEADS = ("auprc", "rem_outcome")


def sides(corpus: Corpus, fold: NDArray[np.int64], k: int, seed: int) -> ControlSides:
    """Fold k to test on; of the other tasks a quarter for thresholds, the rest to learn from."""
    rest = np.flatnonzero(fold != k)
    alarm = held_out(corpus, rest, seed, 4, 0)
    return ControlSides(rest[~alarm], rest[alarm], np.flatnonzero(fold == k))


def fit_fold(corpus: Corpus, where: ControlSides, seed: int) -> list[ScoreRow]:
    """The monitor's row, then those of the controls."""
    policy = AlarmPolicy(budget=BUDGET)
    fitted = fit_monitor(corpus, where.train, TrainConfig(seed=seed, horizon=HORIZON))
    rows = corpus.encode(fitted.vocabulary)
    monitor = scored_row(
        MONITOR, "the default backend, before calibration",
        lambda runs: [expit(logits) for logits in fitted.logits(corpus, rows, runs)],
        corpus, where, seed=seed, policy=policy, budgets=[BUDGET],
    )  # fmt: skip
    controls = control_rows(corpus, where, horizon=HORIZON, seed=seed, policy=policy, budgets=[BUDGET])
    return [monitor, *controls]


def scores_of(corpus: Corpus, name: str, where: ControlSides, k: int, seed: int, kept: Path) -> dict[str, NDArray]:
    """Of each row the scores (steps, 2) and, under the row's name and "/alarm", its threshold (NaN: refused)."""
    said = f"{seed} {HORIZON} {BUDGET} {sorted(CONTROLS)} {[corpus.digests[r] for r in where.test.tolist()]}"
    path = kept / f"controls-{name}-{k}-{hashlib.sha256(said.encode()).hexdigest()[:12]}.npz"
    if path.exists():
        with np.load(path) as data:
            return dict(data)
    found: dict[str, NDArray] = {}
    for row in fit_fold(corpus, where, seed):
        found[row.name] = np.stack([np.concatenate(row.imminent), np.concatenate(row.outcome)], axis=1)
        alarm = row.thresholds[BUDGET].alarm
        found[f"{row.name}/alarm"] = np.array(np.nan if alarm is None else alarm)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **found)
    print(f"{name}: fold {k + 1} done", file=sys.stderr, flush=True)
    return found


def alert_figures(corpus: Corpus, test: NDArray[np.int64], scores: NDArray, alarm: float) -> dict[str, float]:
    """First alerts of one row on one fold."""
    if np.isnan(alarm):
        return {}
    _, task = np.unique([corpus.task_ids[r] for r in test.tolist()], return_inverse=True)
    outcome = np.split(scores[:, 1], np.cumsum(corpus.lengths[test])[:-1])
    found = first_alerts(
        outcome, corpus.failed[test].tolist(), task.astype(np.int64), alarm, AlarmPolicy(budget=BUDGET), horizon=HORIZON
    )
    return {figure: getattr(found, figure) for figure, (_, ranks) in FIGURES.items() if not ranks}


def run_set(name: str, runs: Path, kept: Path, folds: int, seed: int) -> dict[str, Any]:
    """All folds of a set, then its table."""
    print(f"{name}: reading", file=sys.stderr, flush=True)
    corpus, _ = accuracy.read(runs, name)
    weights = Resamples.draw(len(set(corpus.task_ids)), n=accuracy.RESAMPLES, seed=seed).weights
    fold = accuracy.folds_of(corpus, folds, 0)
    ranks: dict[str, dict[str, list[NDArray]]] = {}
    alerts: dict[str, dict[str, list[float]]] = {}
    for k in range(folds):
        where = sides(corpus, fold, k, seed)
        scores = scores_of(corpus, name, where, k, seed, kept)
        prefixes = Prefixes.of(
            corpus.lengths[where.test].tolist(),
            corpus.failed[where.test].tolist(),
            [corpus.task_ids[r] for r in where.test.tolist()],
        )
        scores[STEP_INDEX] = np.stack([step_index(prefixes)] * 2, axis=1)
        for row in (MONITOR, *CONTROLS, STEP_INDEX):
            for figure, value in accuracy.measure(corpus, where.test, scores[row], None, weights).items():
                ranks.setdefault(row, {}).setdefault(figure, []).append(value)
            alarm = float(scores.get(f"{row}/alarm", np.nan))
            for figure, number in alert_figures(corpus, where.test, scores[row], alarm).items():
                alerts.setdefault(row, {}).setdefault(figure, []).append(number)
    mean = {row: {f: np.nanmean(np.stack(v), axis=0) for f, v in figures.items()} for row, figures in ranks.items()}
    return {
        "set": name,
        "runs": len(corpus),
        "tasks": len(set(corpus.task_ids)),
        "failed": int(corpus.failed.sum()),
        "steps": int(corpus.first[-1]),
        "folds": folds,
        "rows": {row: _row(mean, alerts.get(row, {}), row) for row in mean},
    }


def _row(mean: dict[str, dict[str, NDArray]], alerts: dict[str, list[float]], row: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for figure, (_, ranks) in FIGURES.items():
        if ranks:
            values = mean[row][figure]
            lead = mean[MONITOR][figure] - values
            found[figure] = {"value": round(float(values[0]), 4), "interval": _ends(values[1:])}
            if row != MONITOR:
                found[figure] |= {"lead": round(float(lead[0]), 4), "lead_interval": _ends(lead[1:])}
        elif figure in alerts:
            found[figure] = {"value": round(float(np.mean(alerts[figure])), 4), "folds": len(alerts[figure])}
    return found


def _ends(draws: NDArray) -> list[float] | None:
    ends = interval(draws)
    return None if ends is None else [round(end, 4) for end in ends]


def text(result: dict[str, Any]) -> str:
    """A set's table as Markdown."""
    heads = [heading for heading, _ in FIGURES.values()]
    for figure in reversed(LEADS):
        heads.insert(list(FIGURES).index(figure) + 1, "monitor's lead")
    lines = [
        f"### {result['set']}: {result['runs']:,} runs of {result['tasks']:,} tasks, "
        f"{result['failed'] / result['runs']:.0%} failed, {result['steps']:,} steps; {result['folds']} task-grouped "
        "folds",
        "",
        f"| row | {' | '.join(heads)} |",
        f"| --- |{' --- |' * len(heads)}",
    ]
    for row, figures in result["rows"].items():
        cells = []
        for figure, (_, ranks) in FIGURES.items():
            found = figures.get(figure)
            shape = ".3f" if ranks else ".0%"
            cells.append("" if found is None else format(found["value"], shape))
            if figure in LEADS:
                ends = (found or {}).get("lead_interval")
                cells.append("" if not ends else f"{found['lead']:+.3f} ({ends[0]:+.3f}, {ends[1]:+.3f})")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def page(results: dict[str, Any]) -> str:
    """controls.md: what the rows are, and a table a set."""
    about = "\n".join(f"- *{name}*: {control.note}." for name, control in CONTROLS.items())
    return (
        "# Rows that have to be trained, beside the monitor\n\n"
        "Made by `python benchmarks/controls.py`. All rows learn from the same runs: those of two folds less a quarter "
        "of their tasks,\nwhich sets the alarm thresholds; so figures stand a little below those of `accuracy.md`. "
        "*rem*, *idx*: does the outcome show\nbetween runs with as many steps left, at the same step.\n\n"
        f"{about}\n\n" + "\n\n".join(text(result) for result in results.values()) + "\n"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(accuracy.SETS), default=list(accuracy.SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--kept", type=Path, help="folder of the scores of single folds; default: OUT/folds")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=13)
    args = parser.parse_args()
    file = args.out / "controls.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in args.sets:
        results[name] = run_set(name, args.runs, args.kept or args.out / "folds", args.folds, args.seed)
        print(text(results[name]) + "\n", flush=True)
        args.out.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (args.out / "controls.md").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
