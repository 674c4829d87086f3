"""What automata are worth, over behaviours and by default, beside their teacher.

    python benchmarks/automata_behaviours.py .traces --keep scratch

Folds that never split a task. Of the other runs, by task, 70 % teach, 15 % calibrate and 15 % set the alarm threshold,
as in an export. The teacher is boosting on context and text. Every row is chosen by folds of the runs that teach, and
measured on the fold's test runs. What a fold's teacher says is kept in a folder, so that rows can be made again soon.
Prints a table and writes automata_behaviours.json and automata_behaviours.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy

from prefixguard.alarm import AlarmPolicy, AlarmState, Level
from prefixguard.automata.alphabets import fit_alphabet
from prefixguard.automata.build import build
from prefixguard.automata.material import Material
from prefixguard.automata.model_selection import (
    DEFAULT_ALPHABETS,
    DEFAULT_LEARNERS,
    Candidate,
    choices,
    choose,
    learn_from,
    try_choices,
)
from prefixguard.automata.parity import without_parity
from prefixguard.automata.state_risk import columns_of, fit_clock
from prefixguard.automata.summary.alarms import alarm_kappa, interval_coverage
from prefixguard.automata.summary.fidelity import rank_correlation
from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import (
    Corpus,
    draw_alarm_runs,
    labels,
    out_of_fold,
    run_weights,
    set_thresholds,
    sparse_matrix,
    steps_of,
)
from prefixguard.learn.teacher import TextProjection, boost

HORIZON, SEED, MAX_STATES = 3, 13, 64
ROWS = ("teacher", "behaviours", "default")
FIGURES = ("auprc", "rem", "imminent", "outcome", "kappa", "coverage", "states", "symbols", "description")
#: What a summary compares, and with what aim over behaviours: at least so much, on so many sets.
COMPARED = ("behaviours", "default")
AIMS = {"auprc": ("of the teacher's AUPRC", 0.9, 4), "outcome": ("of rank correlation of outcome risks", 0.8, 3)}
_SIDES = (0.70, 0.85)  # of the tasks that are not tested: teach, calibrate, set the threshold


def sides(corpus: Corpus, folds: int, k: int) -> list[NDArray[np.int64]]:
    """Runs that teach, calibrate, set the threshold, are tested."""
    fold = accuracy.folds_of(corpus, folds, 0)
    rest = sorted({t for t, f in zip(corpus.task_ids, fold.tolist(), strict=True) if f != k})
    rest.sort(key=lambda t: hashlib.sha256(f"sides:{t}".encode()).hexdigest())
    cuts = [0, *(round(share * len(rest)) for share in _SIDES), len(rest)]
    side_of = {task: side for side in range(3) for task in rest[cuts[side] : cuts[side + 1]]}
    return [np.array([r for r, t in enumerate(corpus.task_ids) if side_of.get(t, 3) == s]) for s in range(4)]


def material_of(corpus: Corpus, name: str, k: int, folds: int, keep: Path) -> tuple[Material, NDArray[np.float64]]:
    """The material of a fold, and what the teacher says of all steps, (steps, 2)."""
    pool, held_out, alarm, test = sides(corpus, folds, k)
    vocabulary = fit_vocabulary(corpus.texts(pool.tolist()), max_features=4096, min_tasks=5)
    rows, targets = corpus.encode(vocabulary[0]), labels(corpus, HORIZON)
    path = keep / f"{name}-{k}.npz"
    if not path.exists():
        taught = out_of_fold(corpus, rows, pool, targets, SEED)
        projection = TextProjection.fit(corpus, rows, pool, SEED)
        steps, weight = steps_of(corpus, pool), run_weights(corpus, pool)
        x, others = projection.features(corpus, rows, pool), np.concatenate((held_out, alarm, test))
        z, at = projection.features(corpus, rows, others), steps_of(corpus, others)
        said = taught.astype(np.float64)
        for risk in range(2):
            said[at, risk] = boost(x, targets[steps, risk], weight, SEED)(z)
        np.savez_compressed(path, taught=taught, said=said)
    with np.load(path) as data:
        taught, said = data["taught"], data["said"]
    codes = {task: number for number, task in enumerate(sorted(set(corpus.task_ids)))}
    material = Material(
        corpus=corpus, rows=rows, matrix=sparse_matrix(corpus, rows, np.arange(len(corpus))),
        vocabulary=vocabulary[0], tools=[corpus.tool(step) for step in range(int(corpus.first[-1]))],
        labels=targets, teacher=taught, tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
        pool=pool, held_out=held_out, alarm=alarm, test=test, seed=SEED,
    )  # fmt: skip
    return material, said


def levels_of(material: Material, risks: NDArray[np.float64], at: dict[int, slice]) -> list[Level]:
    """Levels of the test steps by outcome risks, the threshold set as in an export. at: where a run's risks are."""
    drawn = draw_alarm_runs(material.corpus, SEED, material.alarm).tolist()
    policy = AlarmPolicy(confidence=0.5)  # few runs set a threshold here
    sets = ([risks[at[r]] for r in runs] for runs in (material.held_out.tolist(), drawn))
    thresholds, _ = set_thresholds(*sets, policy)
    found: list[Level] = []
    for r in material.test.tolist():
        alarm = AlarmState(policy, thresholds)
        found += [alarm.step(risk) for risk in risks[at[r]].tolist()]
    return found


def row(material: Material, said: NDArray[np.float64], choice: Candidate | None) -> dict[str, Any]:
    """Figures of an automaton on the test runs; of the teacher itself, for no choice."""
    corpus = material.corpus
    at = {r: slice(int(corpus.first[r]), int(corpus.first[r + 1])) for r in range(len(corpus))}
    theirs = levels_of(material, said[:, 1], at)
    steps = steps_of(corpus, material.test)
    alphabet = fit_alphabet(choice.alphabet if choice else "typed", material, material.pool, MAX_STATES)
    test = alphabet.strings(material, material.test)
    if choice is None:
        auprc, rem = test.figures(said[steps])
        return {"auprc": auprc, "rem": rem}
    alphabet = fit_alphabet(choice.alphabet, material, material.pool, choice.max_states)
    train, walked = learn_from(alphabet, choice.learner, choice.max_states, material, material.pool)
    held_out, clock = alphabet.strings(material, material.held_out), fit_clock(train) if choice.clock else ()
    before = walked.transitions.n_states
    walked = without_parity(walked, train, held_out, clock)
    automaton = build(walked, train, held_out, clock)
    risks = np.full_like(said, np.nan)
    for runs in (material.held_out, material.alarm, material.test):
        strings = alphabet.strings(material, runs)
        states, _ = walked.walk(strings)
        risks[steps_of(corpus, runs)] = automaton.risk[states, columns_of(clock, strings)]
    test = alphabet.strings(material, material.test)
    auprc, rem = test.figures(risks[steps])
    used = int(np.count_nonzero(automaton.edges.sum(axis=0)))
    imminent, outcome = (rank_correlation(risks[steps, i], said[steps, i]) for i in range(2))
    suffix = "clock" if choice.clock else "no clock"
    return {
        "auprc": auprc, "rem": rem, "imminent": imminent, "outcome": outcome,
        "kappa": alarm_kappa(levels_of(material, risks[:, 1], at), theirs),
        "coverage": interval_coverage(automaton, test, walked.walk(test)[0])[0],
        "states": automaton.n_states, "symbols": used,
        "description": automaton.n_states + used + int(np.count_nonzero(automaton.edges)),
        "merged": before - automaton.n_states,
        "choice": f"{choice.alphabet}, {choice.learner}, at most {choice.max_states}, {suffix}",
    }  # fmt: skip


def run_set(name: str, traces: Path, folds: int, taken: int, keep: Path) -> dict[str, Any]:
    """All rows of a set, fold by fold."""
    corpus, _ = accuracy.read(traces, name)
    found: dict[str, list[dict[str, Any]]] = {of: [] for of in ROWS}
    for k in range(taken):
        material, said = material_of(corpus, name, k, folds, keep)
        trials = try_choices(material, choices(DEFAULT_ALPHABETS, DEFAULT_LEARNERS, MAX_STATES, (False, True)))
        over = tuple(t for t in trials if t.choice.alphabet == "behaviours")
        for of, choice in zip(ROWS, (None, choose(over), choose(trials)), strict=True):
            found[of].append(row(material, said, choice))
            print(name, k, of, found[of][-1], file=sys.stderr, flush=True)
    return {"set": name, "runs": len(corpus), "failed": int(corpus.failed.sum()), "rows": found}


def mean(result: dict[str, Any], of: str, figure: str) -> float:
    """Of a row's folds; of the AUPRC the share of the teacher's."""
    known = [fold[figure] for fold in result["rows"][of] if fold.get(figure) is not None]
    whole = mean(result, "teacher", figure) if figure == "auprc" and of != "teacher" else 1.0
    return float(np.mean(known)) / whole if known else math.nan


def summary(results: list[dict[str, Any]]) -> list[str]:
    """What matters of all sets in one table, and which aims were missed."""
    heads = ("AUPRC, share of the teacher's", "outcome risks, rank correlation", "alarms, kappa", "intervals that held")
    lines = [f"| | {' | '.join(heads)} |", f"| ---{' | ---:' * len(heads)} |"]
    for result in results:
        shares = " / ".join(f"{mean(result, of, 'auprc'):.0%}".replace("%", " %") for of in COMPARED)
        others = (" / ".join(f"{mean(result, of, f):.2f}" for of in COMPARED) for f in ("outcome", "kappa", "coverage"))
        lines.append(f"| {result['set']} | {' | '.join((shares, *others))} |".replace("nan", "-"))
    lines.append("")
    for figure, (what, least, sets) in AIMS.items():
        found = {result["set"]: mean(result, "behaviours", figure) for result in results}
        reached = [name for name, value in found.items() if value >= least]
        below = ", ".join(f"{name} ({value:.2f})" for name, value in found.items() if value < least)
        said = "Reached" if len(reached) >= sets else "Missed"
        lines += [
            f"{said}: over behaviours, at least {least} {what} on {sets} sets of {len(results)}.",
            f"It is so on {len(reached)}: {', '.join(reached) or 'none'}. Below it: {below or 'none'}.",
            "",
        ]
    return lines[:-1]


def text(results: list[dict[str, Any]]) -> str:
    """The summary, then a table a set, means over folds."""
    lines = [
        "Each cell: the best over behaviours / the default.",
        "",
        *summary(results),
        "",
        "Means over task folds; a kappa that is not defined in a fold is left out. The teacher is boosting.",
        "rem: outcome AUROC at matched remaining steps. imminent, outcome: rank correlation with the teacher's risk.",
        "description: states, symbols that occur and transitions.",
        "",
    ]
    for result in results:
        lines += [f"{result['set']} ({result['runs']:,} runs, {result['failed']:,} failed)", ""]
        lines += [f"| | {' | '.join(FIGURES)} | chosen |", f"| --- {'| ---: ' * len(FIGURES)}| --- |"]
        for of, folds in result["rows"].items():
            cells = []
            for figure in FIGURES:
                known = [fold[figure] for fold in folds if fold.get(figure) is not None]
                whole = figure in ("states", "symbols", "description")
                cells.append("-" if not known else f"{np.mean(known):.0f}" if whole else f"{np.mean(known):.3f}")
            lines.append(
                f"| {of} | {' | '.join(cells)} | {'; '.join(fold['choice'] for fold in folds if 'choice' in fold)} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="?", help="folder that holds the sets; without it, tables anew")
    parser.add_argument("--sets", nargs="*", choices=list(accuracy.SETS), default=list(accuracy.SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--take", type=int, default=3, help="folds that are measured")
    parser.add_argument("--keep", type=Path, help="folder for what teachers say")
    args = parser.parse_args()
    if args.traces is None:
        results = json.loads((args.out / "automata_behaviours.json").read_text())
    else:
        with tempfile.TemporaryDirectory() as folder:
            keep = args.keep or Path(folder)
            keep.mkdir(parents=True, exist_ok=True)
            results = [run_set(name, args.traces, args.folds, args.take, keep) for name in args.sets]
        (args.out / "automata_behaviours.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "automata_behaviours.md").write_text(text(results))
    print(text(results))


if __name__ == "__main__":
    main()
