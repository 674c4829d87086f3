"""A guarantee on top of anybody's score: the exact bound of a monitor of scores beside e-valuator's.

    python benchmarks/any_score.py --evaluator /path/to/python-with-e-valuator

Four sets of what a step-wise verifier said of runs (`verifier_scores`), twenty splits by task: half of the problems
calibrate, the other half tests. Rows: the boosted monitor of scores (fitted on half of the calibration problems, its
bound at 90 % confidence on the other half); the same bound on the bare score, set on all of them; e-valuator's PAC
threshold, whose budget includes its confidence; and its e-process with Ville's inequality. Figures are means over
splits. Intervals of 95 %, and those of paired differences, are over problems: each has its mean over the splits that
test it, and problems are resampled.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_threshold, first_alert, run_maximum
from prefixguard.encoder import Vocabulary
from prefixguard.learn import Corpus, Rows, featurise, labels
from prefixguard.learn.trees import fit_trees, score_directions
from prefixguard.metrics import Resamples, interval
from prefixguard.stepview import score_record
from prefixguard.trace import Outcome, Run

SETS = ("hotpotqa", "gsm8k", "math", "chessgames")
BUDGETS = (0.05, 0.10)
OURS, BARE = "monitor of scores", "bare score"
ROWS = (OURS, BARE, "PAC", "Ville")
_THEIRS = Path(__file__).with_name("any_score_evaluator.py")


@dataclass(frozen=True)
class Scored:
    """One set: its runs, their rows of words, which hold none, and the bare scores of each."""

    corpus: Corpus
    rows: Rows
    scores: list[np.ndarray]


def read(path: Path, most: int | None) -> Scored:
    """A set as runs; one run a problem, so that a problem is its task. most: problems, the first by hash; None: all."""
    rows: dict[str, list[tuple[int, float]]] = {}
    solved: dict[str, bool] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            name = row["uq_problem_idx"]
            rows.setdefault(name, []).append((int(float(row["num_steps"])), float(row["judge_probability"])))
            solved[name] = row["solved"].strip().lower() in ("true", "1", "1.0")
    runs = []
    kept = sorted(rows, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:most]
    for name in sorted(kept):
        steps = rows[name]
        scores = [score for _, score in sorted(steps)]
        if not np.isfinite(scores).all():
            continue
        records = tuple(score_record(step, score) for step, score in enumerate(scores, 1))
        runs.append(Run(name, name, Outcome.SUCCESS if solved[name] else Outcome.FAILURE, records, str(path)))
    corpus = featurise(runs)
    none = Vocabulary((), np.empty(0, np.uint64), np.empty(0, np.float32))
    return Scored(corpus, corpus.encode(none), [np.array([record.score for record in run.records]) for run in runs])


def halves(corpus: Corpus, runs: np.ndarray, seed: str) -> tuple[np.ndarray, np.ndarray]:
    """The runs in the order of a hash of seed and task, cut in the middle."""
    order = sorted(runs.tolist(), key=lambda r: hashlib.sha256(f"{seed}:{corpus.task_ids[r]}".encode()).hexdigest())
    middle = len(order) // 2
    return np.array(sorted(order[:middle])), np.array(sorted(order[middle:]))


def alarms(risks: list[np.ndarray], calibration: list[np.ndarray], budget: float) -> list[int | None]:
    """First alarms of runs, under the exact bound on the calibration runs."""
    policy = AlarmPolicy(budget=budget, confidence=0.9)
    found: Thresholds = alarm_threshold([run_maximum(risk, policy) for risk in calibration], policy)
    return [first_alert(risk, found.alarm, policy) for risk in risks]


def probability(values: np.ndarray) -> np.ndarray:
    """Any rising map to [0, 1]: a bound does not see which."""
    return 1 / (1 + np.exp(-values))


def ours(found: Scored, calibration: np.ndarray, test: np.ndarray, seed: int) -> dict[str, dict[float, list[Any]]]:
    """First alarms of our two rows."""
    corpus = found.corpus
    pool, rest = halves(corpus, calibration, f"{seed}:inner")
    targets = labels(corpus, horizon=3)
    targets[:, 0] = 0  # the imminent risk is not asked for, and what is constant is not fitted
    fitted = fit_trees(corpus, found.rows, pool, targets, seed, rises=score_directions(higher_is_safer=True))

    def risks(runs: np.ndarray) -> list[np.ndarray]:
        return [probability(logits[:, 1]) for logits in fitted.logits(corpus, found.rows, runs)]

    def bare(runs: np.ndarray) -> list[np.ndarray]:
        return [probability(-found.scores[r]) for r in runs.tolist()]

    succeeded = ~corpus.failed
    monitor, of_rest = risks(test), risks(rest[succeeded[rest]])
    score, of_all = bare(test), bare(calibration[succeeded[calibration]])
    return {
        OURS: {budget: alarms(monitor, of_rest, budget) for budget in BUDGETS},
        BARE: {budget: alarms(score, of_all, budget) for budget in BUDGETS},
    }


@contextmanager
def theirs(found: Scored, plan: list[tuple[np.ndarray, np.ndarray]], python: str) -> Iterator[Iterator[dict[str, Any]]]:
    """First alarms of e-valuator's two, split by split; its process works beside ours."""
    given = {
        "scores": [scores.tolist() for scores in found.scores],
        "solved": [int(not failed) for failed in found.corpus.failed],
        "budgets": list(BUDGETS),
        "splits": [{"calibration": calibration.tolist(), "test": test.tolist()} for calibration, test in plan],
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "splits.json"
        place.write_text(json.dumps(given))
        with subprocess.Popen([python, str(_THEIRS), str(place)], stdout=subprocess.PIPE, text=True) as process:
            if process.stdout is None:
                raise SystemExit("no output of e-valuator")
            said = (json.loads(line) for line in process.stdout)
            yield ({row: {float(b): first for b, first in of.items()} for row, of in one.items()} for one in said)


def measure(corpus: Corpus, splits: list[tuple[np.ndarray, dict[str, Any]]], seed: int) -> dict[str, Any]:
    """Figures of a set: by budget and row, with intervals over problems, and the lead of our monitor over each row."""
    n = len(corpus)
    drawn = Resamples.draw(n, n=1000, seed=seed)
    failed = corpus.failed
    found: dict[str, Any] = {}
    for budget in BUDGETS:
        sums = {row: {"alarmed": np.zeros(n), "saved": np.zeros(n)} for row in ROWS}
        rates: dict[str, list[float]] = {row: [] for row in ROWS}
        times = np.zeros(n)
        for test, said in splits:
            times[test] += 1
            for row in ROWS:
                first = np.array([np.nan if step is None else step for step in said[row][budget]], dtype=float)
                alarmed = ~np.isnan(first)
                sums[row]["alarmed"][test] += alarmed
                sums[row]["saved"][test] += np.where(alarmed, corpus.lengths[test] - np.nan_to_num(first), 0)
                rates[row].append(float(alarmed[~failed[test]].mean()))
        means = {row: {what: one / np.maximum(times, 1) for what, one in of.items()} for row, of in sums.items()}
        tested = times > 0
        wrong, right = failed & tested, ~failed & tested

        def share(values: np.ndarray, of: np.ndarray, by: np.ndarray) -> Any:
            top, bottom = np.where(of, values, 0.0), np.where(of, by, 0.0)
            return lambda w, top=top, bottom=bottom: (w @ top) / np.maximum(w @ bottom, 1e-12)

        ones, lengths = np.ones(n), corpus.lengths.astype(float)
        rows: dict[str, Any] = {}
        samples: dict[str, dict[str, np.ndarray]] = {}
        for row in ROWS:
            figures = {
                "detected": share(means[row]["alarmed"], wrong, ones),
                "false_alarms": share(means[row]["alarmed"], right, ones),
                "saved": share(means[row]["saved"], wrong, lengths),
            }
            estimates = drawn.estimate({name: (figure, n) for name, figure in figures.items()})
            samples[row] = estimates.samples
            rows[row] = {
                **{name: round(value, 4) for name, value in estimates.values.items()},
                "detected_interval": [round(end, 4) for end in estimates.intervals["detected"]],
                "splits_over_budget": sum(rate > budget for rate in rates[row]),
                "largest_false_alarms": round(max(rates[row]), 4),
            }
        for row in ROWS[1:]:
            for what, key in (("detected", "ours_ahead"), ("saved", "ours_ahead_saved")):
                ends = interval(samples[OURS][what] - samples[row][what]) or (0.0, 0.0)
                rows[row][key] = round(rows[OURS][what] - rows[row][what], 4)
                rows[row][f"{key}_interval"] = [round(end, 4) for end in ends]
        found[str(budget)] = rows
    return found


def lead_of(said: dict[str, Any], key: str) -> str:
    """In points, with its interval; nothing for our own row."""
    if key not in said:
        return ""
    low, high = said[f"{key}_interval"]
    return f"{100 * said[key]:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def text(results: dict[str, Any]) -> str:
    """The page."""
    lines = ["# A guarantee on top of anybody's score", "", (__doc__ or "").split("\n\n", 2)[2].strip(), ""]
    for budget in BUDGETS:
        lines += [
            f"## Budget {budget:.0%} of successful runs",
            "",
            "Detected: share of failed runs with an alarm. Over: of the splits, those whose false alarms on the test "
            "half are more than the budget; a bound of 90 % confidence allows about 2 in 20, more where that half is "
            "small.",
            "Saved: share of the steps of failed runs that come after the alarm. Ours ahead: the monitor of scores "
            "less the row, in points.",
            "",
            "| set | row | detected | false alarms | over | saved | ours ahead: detected | ours ahead: saved |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for name, one in results["sets"].items():
            for row, said in one["budgets"][str(budget)].items():
                low, high = said["detected_interval"]
                detected, saved = (lead_of(said, key) for key in ("ours_ahead", "ours_ahead_saved"))
                lines.append(
                    f"| {name} | {row} | {said['detected']:.1%} [{low:.1%}, {high:.1%}] | {said['false_alarms']:.1%} | "
                    f"{said['splits_over_budget']} of {results['splits']} | {said['saved']:.1%} | {detected} | "
                    f"{saved} |"
                )
        lines.append("")
    lines += ["## Who is ahead", ""]
    words = {"ours_ahead": "detects more", "ours_ahead_saved": "saves more"}
    cells = [rows for one in results["sets"].values() for rows in one["budgets"].values()]
    for row in ROWS[1:]:
        broken = sum(2 * cell[row]["splits_over_budget"] > results["splits"] for cell in cells)
        kept = f"; {row} is over its budget in more than half of the splits in {broken} of the cells" if broken else ""
        said = []
        for key, more_of in words.items():
            ends = [cell[row][f"{key}_interval"] for cell in cells]
            more, fewer = sum(low > 0 for low, _ in ends), sum(high < 0 for _, high in ends)
            same = len(cells) - more - fewer
            said.append(
                f"{more_of} in {more} of {len(cells)} cells, as much within the interval in {same}, less in {fewer}"
            )
        lines.append(f"- Beside {row}: the monitor of scores {' and '.join(said)}{kept}.")
    lines += [
        "",
        "PAC bounds the rate over the draw of the calibration runs and of the new run together; the exact bound holds "
        "the rate itself under the budget with 90 % confidence over that draw, so that one split in ten may be above. "
        "An e-process holds at any time, of a run that goes on for ever too, and pays for it.",
        "",
        "e-valuator 1.0.0 with its defaults: logistic models, half of its calibration for the threshold of PAC. "
        + "; ".join(
            f"{name}: {one['runs']:,} runs, {one['failed']:,} failed, {one['steps']:,} steps"
            for name, one in results["sets"].items()
        )
        + ".",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """All sets, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path(".traces/verifier_scores"))
    parser.add_argument("--evaluator", required=True, help="an interpreter that has the package e-valuator")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--most", type=int, help="problems of a set, drawn by hash; default: all")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    results: dict[str, Any] = {"splits": given.splits, "budgets": list(BUDGETS), "sets": {}}
    place = given.out / "any_score.json"
    if place.is_file() and (before := json.loads(place.read_text()))["splits"] == given.splits:
        results = before  # other sets stay as they were measured
    for name in given.sets:
        began = time.monotonic()
        found = read(given.runs / f"{name}.csv", given.most)
        corpus = found.corpus
        plan = [halves(corpus, np.arange(len(corpus)), str(seed)) for seed in range(given.splits)]
        splits = []
        with theirs(found, plan, given.evaluator) as others:
            for seed, (calibration, test) in enumerate(plan):
                own = ours(found, calibration, test, seed)
                splits.append((test, own | next(others)))
                print(f"{name} split {seed + 1} of {given.splits}, {time.monotonic() - began:.0f} s", flush=True)
        results["sets"][name] = {
            "runs": len(corpus),
            "failed": int(corpus.failed.sum()),
            "steps": int(corpus.first[-1]),
            "seconds": round(time.monotonic() - began),
            "budgets": measure(corpus, splits, 13),
        }
        given.out.mkdir(parents=True, exist_ok=True)
        results["sets"] = {one: results["sets"][one] for one in SETS if one in results["sets"]}
        place.write_text(json.dumps(results, indent=1) + "\n")
        (given.out / "any_score.md").write_text(text(results))


if __name__ == "__main__":
    main()
