"""What do behaviours alone tell of a run, beside the 46 context features; and how often does each hold?

    python benchmarks/behaviours.py .traces

Boosting, three folds that never split a task. Of each behaviour: how often it held so far (at most 6), whether it held
at each of the last three steps, and for how many steps in a row (at most 6). The limit of steps is unknown but in one
row: there it is the 99th percentile of the lengths of training runs. Then: levels from the behaviours' own counts,
without training, on every set, beside three rules that people write. Writes behaviours.json and behaviours.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy
import all_sets

from prefixguard import behaviours, context
from prefixguard.alarm import Level, rule_level
from prefixguard.behaviours import BY_NAME, BehaviourFinding
from prefixguard.encoder import tokenize
from prefixguard.evaluation.tables.rules import RULES as BASELINES
from prefixguard.evaluation.tables.rules import rule_scores
from prefixguard.learn import featurise
from prefixguard.learn.corpus import labels
from prefixguard.learn.teacher import boost, run_weights, steps_of
from prefixguard.stepview import StepRecord, load_adapter, read_runs, serialize
from prefixguard.trace import Outcome, Run

PLACES = {name: place for place, name in enumerate(BY_NAME)}
FIGURES = ("auprc", "rem_outcome", "idx_outcome")
MOST = 6
#: Rules that people write, by the name that they have in tables of an evaluation.
NAIVE = {"same call 4 times": "the same call 4 times in a row", "3 errors in a row": "3 errors in a row",
         "incumbent rule": "OpenHands' detector"}  # fmt: skip
RULES = ("rules: ALARM", "rules: WATCH or ALARM", *NAIVE.values())
CAPPED = "behaviours, cap known"
SEED = 13


def findings_of(records: list[StepRecord]) -> Iterator[tuple[BehaviourFinding, ...]]:
    """What holds at each step of a run."""
    tracker, state = behaviours.start(), context.start()
    for record in records:
        tokens = tokenize(serialize(record))
        numbers = context.update(state, record, tokens)
        yield behaviours.update(tracker, record, tokens, state, numbers)


def held(records: list[StepRecord]) -> NDArray[np.int8]:
    """Which behaviours hold at each step of a run, (T, behaviours)."""
    out = np.zeros((len(records), len(PLACES)), dtype=np.int8)
    for row, findings in zip(out, findings_of(records), strict=True):
        row[[PLACES[finding.behaviour.name] for finding in findings]] = 1
    return out


def features(holds: NDArray[np.int8]) -> NDArray[np.float32]:
    """Of each behaviour at each step of a run: times so far, the last three steps, steps in a row."""
    streak = np.zeros_like(holds)
    for t in range(len(holds)):
        streak[t] = np.minimum((streak[t - 1] if t else 0) + 1, MOST) * holds[t]
    before = [np.vstack((np.zeros((k, holds.shape[1]), np.int8), holds))[: len(holds)] for k in (1, 2)]
    so_far = np.minimum(np.cumsum(holds, axis=0, dtype=np.int64), MOST)
    return np.hstack((so_far, holds, *before, streak)).astype(np.float32)


def run_set(name: str, traces: Path, folds: int) -> dict[str, Any]:
    """The rows of a set, and how often each behaviour holds."""
    folder, adapter, limit = accuracy.SETS[name]
    of_runs: list[NDArray[np.int8]] = []

    def runs() -> Iterator[Run[StepRecord]]:
        known = [r for r in read_runs(traces / folder, load_adapter(adapter)) if r.outcome is not Outcome.UNKNOWN]
        if limit is not None:
            known.sort(key=lambda r: hashlib.sha256(f"{SEED}:{r.run_id}".encode()).hexdigest())
            known = sorted(known[:limit], key=lambda r: r.run_id)
        for run in known:
            if run.records:
                of_runs.append(held(list(run.records)))
            yield run

    corpus = featurise(runs())
    assert [len(one) for one in of_runs] == corpus.lengths.tolist()
    behaviour = np.vstack([features(one) for one in of_runs])
    clock = np.concatenate([np.arange(n, dtype=np.float32) for n in corpus.lengths.tolist()])[:, None]
    given = {
        "46 context features": corpus.context[:, : context.N_FEATURES],
        "behaviours": behaviour,
        "behaviours and a clock": np.hstack((behaviour, clock)),
        "clock": clock,
    }
    targets, fold = labels(corpus, accuracy.HORIZON), accuracy.folds_of(corpus, folds, 0)
    gathered: dict[str, dict[str, list[float]]] = {row: {figure: [] for figure in FIGURES} for row in (*given, CAPPED)}
    for k in range(folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        steps, weight = steps_of(corpus, train), run_weights(corpus, train)
        cap = np.quantile(corpus.lengths[train], 0.99)
        near = (clock + 1 >= 0.9 * cap).astype(np.float32)  # `near_step_cap`, the cap told by the training runs
        for row, x in {**given, CAPPED: np.hstack((behaviour, near))}.items():
            z = x[steps_of(corpus, test)]
            scores = np.stack([boost(x[steps], targets[steps, risk], weight, SEED)(z) for risk in range(2)], axis=1)
            for figure, value in accuracy.measure(corpus, test, scores, None, None).items():
                if figure in FIGURES:
                    gathered[row][figure].append(float(value[0]))
        print(f"{name}: fold {k + 1} of {folds}", file=sys.stderr, flush=True)
    ever = np.array([one.any(axis=0) for one in of_runs])
    return {
        "set": name,
        "runs": len(corpus),
        "failed": int(corpus.failed.sum()),
        "rows": {row: {f: round(float(np.mean(v)), 4) for f, v in found.items()} for row, found in gathered.items()},
        "runs_with": {
            behaviour: [round(float(ever[corpus.failed == failed, place].mean()), 4) for failed in (True, False)]
            for behaviour, place in PLACES.items()
        },
        "steps_with": dict(zip(PLACES, np.vstack(of_runs).mean(axis=0).round(4).tolist(), strict=True)),
    }


def run_rules(name: str, traces: Path) -> dict[str, Any]:
    """Rules of behaviours on a set, beside others that people write: runs that alarm, by outcome, and steps left."""
    began: dict[str, dict[bool, list[int | None]]] = {row: {True: [], False: []} for row in RULES}
    raised: dict[str, int] = {}
    behind: dict[str, list[int | None]] = {row: [] for row in RULES}  # steps from the labelled step to the alarm
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for run in all_sets.runs_of(traces, name):
        if run.outcome is Outcome.UNKNOWN:
            continue
        failed = run.outcome is Outcome.FAILURE
        records = list(run.records)
        levels = [rule_level(findings) for findings in findings_of(records)]
        counts = rule_scores(records)
        fired = {
            "rules: ALARM": [level is Level.ALARM for level in levels],
            "rules: WATCH or ALARM": [level is not Level.OK for level in levels],
            **{NAIVE[rule.untuned]: (counts[rule.name] >= rule.fires).tolist() for rule in BASELINES},
        }
        lengths[failed].append(len(records))
        for row, steps in fired.items():
            began[row][failed].append(steps.index(True) if any(steps) else None)
            if run.mistake is not None and run.mistake.step is not None:
                behind[row].append(steps.index(True) + 1 - run.mistake.step if any(steps) else None)
        first = began["rules: ALARM"][failed][-1]
        if first is not None and not failed:
            for finding in list(findings_of(records))[first]:
                if rule_level([finding]) is Level.ALARM:
                    raised[finding.behaviour.name] = raised.get(finding.behaviour.name, 0) + 1
    table = {}
    for row, of in began.items():
        share = {failed: float(np.mean([at is not None for at in ats])) if ats else None for failed, ats in of.items()}
        left = [n - 1 - at for n, at in zip(lengths[True], of[True], strict=True) if at is not None]
        table[row] = {
            "false_alarms": share[False], "alerted": share[True], "steps_left": float(np.median(left)) if left else None
        }  # fmt: skip
    return {
        "set": name, "failed": len(lengths[True]), "succeeded": len(lengths[False]), "rules": table,
        "raised_on_successes": raised, "labelled": {row: of_labelled(found) for row, found in behind.items() if found},
    }  # fmt: skip


def of_labelled(behind: list[int | None]) -> dict[str, float | None]:
    """Runs whose labels name a step: so many, shares that alarm before it and from it on, median steps to the latter.

    behind: steps from the labelled one to the first alarm, below 0 if that came before; None: no alarm.
    """
    after = [n for n in behind if n is not None and n >= 0]
    before = sum(n is not None and n < 0 for n in behind)
    return {
        "runs": len(behind), "before": before / len(behind), "after": len(after) / len(behind),
        "steps": float(np.median(after)) if after else None,
    }  # fmt: skip


def rules_text(results: list[dict[str, Any]]) -> str:
    """The table of rules as Markdown."""
    lines = [
        "Rules without a model: share of successful runs that alarm, of failed runs, and median steps left then:",
        "",
    ]
    lines += ["| set (failed, succeeded) | " + " | ".join(RULES) + " |", f"| --- {'| --- ' * len(RULES)}|"]

    def cell(figures: dict[str, float | None]) -> str:
        shares = ["-" if figures[f] is None else f"{figures[f]:.1%}" for f in ("false_alarms", "alerted")]
        left = figures["steps_left"]
        return ", ".join([*shares, "-" if left is None else f"{left:.0f}"])

    for r in results:
        cells = [cell(r["rules"][row]) for row in RULES]
        lines.append(f"| {r['set']} ({r['failed']:,}, {r['succeeded']:,}) | {' | '.join(cells)} |")
    lines += ["", "What raised the alarms on successful runs, in runs:", ""]
    for r in results:
        if r["raised_on_successes"]:
            said = sorted(r["raised_on_successes"].items(), key=lambda one: (-one[1], one[0]))
            lines.append(f"- {r['set']}: {', '.join(f'{name} {n}' for name, n in said)}")
    lines += [
        "",
        "Where labels name a step (the mistake, or the first with an injected fault): share of these runs that",
    ]
    lines += ["alarm before it, share that alarm from it on, median steps from it to the alarm:", ""]
    lines += ["| set (runs with such a label) | " + " | ".join(RULES) + " |", "| --- " * (len(RULES) + 1) + "|"]
    for r in results:
        if r["labelled"]:
            told = [r["labelled"][row] for row in RULES]
            steps = ["-" if one["steps"] is None else f"{one['steps']:g}" for one in told]
            cells = [f"{one['before']:.1%}, {one['after']:.1%}, {n}" for one, n in zip(told, steps, strict=True)]
            lines.append(f"| {r['set']} ({told[0]['runs']}) | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def text(results: list[dict[str, Any]]) -> str:
    """Both tables as Markdown."""
    names = [f"{r['set']} ({r['runs']:,}, {r['failed'] / r['runs']:.0%} failed)" for r in results]
    lines = ["AUPRC of the imminent risk, outcome AUROC at matched remaining steps, the same at a matched step:", ""]
    lines += [f"| | {' | '.join(names)} |", f"| --- {'| --- ' * len(results)}|"]
    for row in results[0]["rows"]:
        cells = [", ".join(f"{r['rows'][row][figure]:.3f}" for figure in FIGURES) for r in results]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    lines += ["", "Share of failed runs and of successful runs in which a behaviour holds at least once:", ""]
    lines += [f"| | | {' | '.join(r['set'] for r in results)} |", f"| --- | --- {'| --- ' * len(results)}|"]
    for name, behaviour in BY_NAME.items():
        shares = [r["runs_with"][name] for r in results]
        if any(map(any, shares)):
            cells = [f"{failed:.0%}, {succeeded:.0%}" for failed, succeeded in shares]
            lines.append(f"| {name} | {behaviour.kind} | {' | '.join(cells)} |")
    silent = [name for name in BY_NAME if not any(any(r["runs_with"][name]) for r in results)]
    return "\n".join([*lines, "", f"Never seen here: {', '.join(silent) or 'none'}.", ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(accuracy.SETS), default=list(accuracy.SETS))
    parser.add_argument("--rules", nargs="*", choices=list(all_sets.SETS), default=list(all_sets.SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    rules = [run_rules(name, args.traces) for name in args.rules]
    print(rules_text(rules), flush=True)
    results = [run_set(name, args.traces, args.folds) for name in args.sets]
    written = "\n".join([*([text(results)] if results else []), *([rules_text(rules)] if rules else [])])
    (args.out / "behaviours.json").write_text(json.dumps({"sets": results, "rules": rules}, indent=1) + "\n")
    (args.out / "behaviours.md").write_text(written)
    print(written)


if __name__ == "__main__":
    main()
