"""Who made the decisive mistake, and where? Attribution without a language model on 184 real failed runs.

    python benchmarks/attribution.py .traces --out benchmarks/results/attribution

Two kinds of risks, four ways from risks to a step (`prefixguard.escalate.attribution`):

(a) A monitor trained on other sets: boosted trees on runs of five sets, their outcomes as labels. It has seen no run of
    the tested set, no team of agents and no label of a mistake.
(b) A model trained on the tested set itself, question by question held out (10 folds, dealt out three times; the
    questions that stand in both folders stay together). All runs failed, so their outcome teaches nothing: its target
    is the attribution label, "the decisive mistake has happened by this step", or "this step is the decisive one". So
    it is a supervised locator that has learnt where such mistakes stand in this set, their usual position included; a
    monitor that learns from outcomes could not be trained so.

Beside them what needs no auditor (`prefixguard.auditor.trivial_baselines`) and what was published. Steps are
counted among the records, and among the entries of the source as published figures count; an exact hit is the same in
both. A run without an answer, and a label that falls on no record, count as wrong. Intervals: 95 % over a bootstrap of
questions; a lead is paired. Writes OUT.json and OUT.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import probes
from numpy.typing import NDArray

from prefixguard.auditor import AuditedSystem, StepIndex, audited, published_rows, trivial_baselines
from prefixguard.auditor.attribution import AttributionMethod, attribute
from prefixguard.bundle import apply_map
from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor, fit_platt, labels, run_weights, steps_of
from prefixguard.learn.teacher import TextProjection, boost
from prefixguard.metrics import AuditedRun, MeasuredAttribution, attribution_differences, measure_attribution
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run, link_tasks

#: What the monitor of (a) learns from: set -> adapter.
OTHERS = {
    "tau_bench": "tau_bench", "tau2": "tau2", "intercode": "intercode", "minisweagent": "mini_swe_agent",
    "webshop_react": "webshop_react",
}  # fmt: skip
RUNS_A_SET = 400
SEED, SEEDS = 13, (13, 14, 15)
FOLDS, RESAMPLES = 10, 1000
FOLDERS = ("Algorithm-Generated", "Hand-Crafted")
#: What the paired lead is over: the constant step that is best on these very runs, which nobody could know.
REFERENCE = {"record": "best step, in hindsight", "event": "best entry, in hindsight"}
FIGURES = ("agent_accuracy", "step_accuracy", "joint", "step_within_1", "step_within_3", "ass", "ass_all", "alarmed")
Floats = NDArray[np.float64]
AnyRun = Run[StepRecord]
#: Row -> for each run the steps that it blames, each as likely; None: nobody.
Blamed = dict[str, list[list[int | None]]]


def other_runs(traces: Path) -> Iterator[Run[StepRecord]]:
    """At most 400 runs of each other set, chosen by the hash of their ids; names made unlike across sets."""
    for name, adapter in OTHERS.items():
        known = [r for r in read_runs(traces / name, load_adapter(adapter)) if r.outcome is not Outcome.UNKNOWN]
        known.sort(key=lambda r: hashlib.sha256(f"{SEED}:{r.run_id}".encode()).hexdigest())
        for run in sorted(known[:RUNS_A_SET], key=lambda r: r.run_id):
            yield _renamed(run, name)


def _renamed(run: Run[StepRecord], name: str) -> Run[StepRecord]:
    return Run(
        f"{name}/{run.run_id}",
        f"{name}/{run.task_id or run.run_id}",
        run.outcome,
        run.records,
        run.source,
        {"set": name},
    )


def fold_of(task: str, folds: int) -> int:
    """The fold of a task, by its hash."""
    return int(hashlib.sha256(f"{SEED}:{task}".encode()).hexdigest(), 16) % folds


def read_tested(traces: Path) -> list[AnyRun]:
    """The tested runs, all of them failed, by id."""
    runs = list(read_runs(traces / "whoandwhen", load_adapter("whoandwhen")))
    return sorted((run for run in runs if run.outcome is Outcome.FAILURE), key=lambda run: run.run_id)


def trained_elsewhere(runs: Sequence[AnyRun], traces: Path) -> tuple[Blamed, dict[str, Any]]:
    """Rows of (a), and what it was trained on. One part in six of the other sets' tasks maps logits to risks, sets the
    base and the mark: the risk that 10 % of their successful runs ever reach."""
    corpus = featurise(chain(other_runs(traces), (_renamed(run, "tested") for run in runs)))
    pool, tested = np.arange(len(corpus) - len(runs)), np.arange(len(corpus) - len(runs), len(corpus))
    aside = np.array([_hash(corpus.task_ids[r], SEED) % 6 == 0 for r in pool.tolist()])
    train, held = pool[~aside], pool[aside]
    config = TrainConfig(backend="gbdt", teacher=0.0, seed=SEED)
    vocabulary = fit_vocabulary(
        corpus.texts(train.tolist()), max_features=config.max_features, min_tasks=config.min_tasks
    )
    rows = corpus.encode(vocabulary[0])
    monitor = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    target = labels(corpus, config.horizon)[steps_of(corpus, held)].astype(np.float64)
    of_held, of_tested = monitor.logits(corpus, rows, held), monitor.logits(corpus, rows, tested)
    found: Blamed = {}
    for risk, name in ((1, "outcome"), (0, "imminent")):
        platt = fit_platt(np.concatenate(of_held)[:, risk], target[:, risk])
        good = [
            apply_map(platt, logits[:, risk]).max()
            for logits, r in zip(of_held, held.tolist(), strict=True)
            if not corpus.failed[r]
        ]
        risks = [apply_map(platt, logits[:, risk]) for logits in of_tested]
        mark, bases = float(np.quantile(good, 0.9)), np.full(len(runs), target[:, risk].mean())
        found |= from_risks(f"other sets, {name}", runs, risks, mark=mark, bases=bases)
    return found, {
        "runs": dict(Counter(corpus.groups[r]["set"] for r in pool.tolist())),
        "failed": int(corpus.failed[pool].sum()),
        "steps": int(corpus.lengths[pool].sum()),
    }


def trained_here(runs: Sequence[AnyRun]) -> Blamed:
    """Rows of (b): every run's risks are from fits that saw no run of its question. Each of three divisions into folds
    gives a third of each answer."""
    corpus = featurise(runs)
    one_task = {task: group[0] for group in link_tasks(corpus.task_ids, corpus.digests) for task in group}
    tasks = [one_task.get(task, task) for task in corpus.task_ids]
    found: Blamed = {}
    for seed in SEEDS:
        for name, row in _located(runs, corpus, tasks, seed).items():
            kept = found.setdefault(name, [[] for _ in runs])
            for steps, more in zip(kept, row, strict=True):
                steps += more
    return found


def _located(runs: Sequence[AnyRun], corpus: Corpus, tasks: list[str], seed: int) -> Blamed:
    """Rows of (b) by one division into folds."""
    fold = {task: i % FOLDS for i, task in enumerate(sorted(set(tasks), key=lambda task: _hash(task, seed)))}
    of = np.array([fold[task] for task in tasks])
    decisive = [None if run.mistake is None else run.mistake.step for run in runs]
    labelled = np.array([step is not None for step in decisive])
    targets = np.zeros((int(corpus.first[-1]), 2), np.float32)  # by now, here
    for r, step in enumerate(decisive):
        if step is not None:
            at = int(corpus.first[r]) + step - 1
            targets[at : int(corpus.first[r + 1]), 0] = 1
            targets[at, 1] = 1
    risks = {name: np.zeros((len(targets), 2)) for name in ("trees", "linear", "trees without text")}
    bases = np.zeros(len(runs))
    for k in range(FOLDS):
        train, test = np.flatnonzero((of != k) & labelled), np.flatnonzero(of == k)
        vocabulary = fit_vocabulary(corpus.texts(train.tolist()), max_features=4096, min_tasks=3)
        rows = corpus.encode(vocabulary[0])
        seen, held = steps_of(corpus, train), steps_of(corpus, test)
        y, weight = targets[seen], run_weights(corpus, train)
        projection = TextProjection.fit(corpus, rows, train, seed)
        x, z = projection.features(corpus, rows, train), projection.features(corpus, rows, test)
        for i in range(2):
            risks["trees"][held, i] = boost(x, y[:, i], weight, seed)(z)
        context = boost(corpus.context[seen], y[:, 1], weight, seed)
        risks["trees without text"][held, 1] = context(corpus.context[held])
        text = probes.prefix_text
        scores = probes.logistic(text(corpus, rows, train), y, weight, text(corpus, rows, test))
        risks["linear"][held] = 1 / (1 + np.exp(-scores))
        bases[test] = targets[corpus.first[train], 0].mean()
    found: Blamed = {}
    for name, values in risks.items():
        each = np.split(values, corpus.first[1:-1])
        here = [attribute(run.records, v[:, 1], AttributionMethod.HIGHEST) for run, v in zip(runs, each, strict=True)]
        found[f"this set, here, {name}: highest"] = [[one.step] for one in here]
        if name != "trees without text":
            found |= from_risks(f"this set, by now, {name}", runs, [v[:, 0] for v in each], mark=0.5, bases=bases)
    return found


def from_risks(name: str, runs: Sequence[AnyRun], risks: Sequence[Floats], *, mark: float, bases: Floats) -> Blamed:
    """A row a method; those that look for a rise with and without the base."""
    found: Blamed = {}
    for method in AttributionMethod:
        rises = method in (AttributionMethod.CHANGE_POINT, AttributionMethod.LARGEST_RISE)
        for based in (False, True) if rises else (False,):
            found[f"{name}: {method.value}" + (" from the base" if based else "")] = [
                [attribute(run.records, v, method, mark=mark, base=float(b) if based else None).step]
                for run, v, b in zip(runs, risks, bases, strict=True)
            ]
    return found


def _hash(text: str, seed: int) -> int:
    return int(hashlib.sha256(f"{seed}:{text}".encode()).hexdigest(), 16)


def system(name: str, runs: Sequence[AnyRun], blamed: Sequence[list[int | None]], index: StepIndex) -> AuditedSystem:
    """A row as the audit's metrics take it. The agent is who acted at the step."""
    rows: list[AuditedRun] = []
    for run, steps in zip(runs, blamed, strict=True):
        for step in steps:
            agent = None if step is None else run.records[step - 1].agent
            outcome = "abstain" if step is None else "alarm"
            rows.append(audited(run, outcome, step=step, agent=agent, index=index, cost=0.0, share=1 / len(steps)))
    return AuditedSystem(name, tuple(rows))


def measured(runs: Sequence[AnyRun], blamed: Blamed, index: StepIndex) -> dict[str, dict[str, Any]]:
    """Figures of all rows, the trivial ones last, with their lead in Step-Acc over the best constant."""
    systems = [system(name, runs, row, index) for name, row in blamed.items()]
    systems += trivial_baselines(runs, index=index, constants=(1, 2, 4, 5, 8, 9))
    found = {one.name: measure_attribution(one.rows, n_resamples=RESAMPLES, seed=SEED) for one in systems}
    reference = found[REFERENCE[index]]
    return {name: _figures(one, reference) for name, one in found.items() if name != "never alarm"}


def _figures(one: MeasuredAttribution, reference: MeasuredAttribution) -> dict[str, Any]:
    values = {name: getattr(one.figures, name) for name in FIGURES}
    lead, spread = attribution_differences(one, reference).get("step_accuracy", (float("nan"), None))
    return {
        **{name: None if np.isnan(value) else round(value, 4) for name, value in values.items()},
        "intervals": {n: [round(x, 4) for x in ends] for n, ends in one.figures.intervals.items() if n in FIGURES},
        "lead": None if np.isnan(lead) else [round(lead, 4), *(round(x, 4) for x in spread or ())],
    }


def text(result: dict[str, Any]) -> str:
    """Tables as Markdown, one a folder."""
    other = result["other_sets"]
    lines = [
        "# Attribution without a language model",
        "",
        f"(a) other sets: boosted trees trained on {sum(other['runs'].values()):,} runs ({other['steps']:,} steps) of "
        f"{', '.join(other['runs'])}. (b) this set: supervised by the attribution labels themselves, "
        f"{len(SEEDS)} x {FOLDS} folds by question: a locator, not a monitor; it needs labels that few have. "
        "`from the base`: the risk before the first step counts as a reading, so the first step can be blamed. "
        "Percent of all runs, 95 % interval over questions; lead: step less that of the best constant step (best on "
        "these very runs: a high bar), paired; ±1 counted in records and in entries of the source; distance: mean over "
        "answered runs (ASS), in records / entries. Constants of entries count from 1; published ones from 0.",
    ]
    for folder, table in result["folders"].items():
        record, event = table["record"], table["event"]
        lines += [
            "",
            f"## {folder}: {table['runs']} runs, {table['records']:.1f} records a run",
            "",
            "| row | answered | agent | step | step: lead | both | ±1 record | ±1 entry | distance |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for name, row in (record | {name: row for name, row in event.items() if name not in record}).items():
            by_record, by_event = record.get(name, {}), event.get(name, {})
            cells = [_cell(row, "agent_accuracy"), _cell(row, "step_accuracy"), _lead(row), _cell(row, "joint")]
            cells += [_cell(by_record, "step_within_1"), _cell(by_event, "step_within_1")]
            ass = (one.get("ass") for one in (by_record, by_event))
            cells.append(" / ".join("" if value is None else f"{value:.1f}" for value in ass).strip(" /"))
            lines.append(f"| {name} | {row['alarmed']:.0%} | " + " | ".join(cells) + " |")
    lines += ["", "## Published, of language models, in percent", "", "| system | test | agent | step | caveats |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for one in published_rows("whoandwhen"):
        place = one.test.partition("/")[2]
        lines.append(
            f"| {one.system} | {place} | {100 * one.agent:.1f} | {100 * one.step:.1f} | {' '.join(one.caveats)} |"
        )
    return "\n".join(lines)


def _cell(row: dict[str, Any], name: str) -> str:
    if row.get(name) is None:
        return ""
    low_high = row["intervals"].get(name)
    spread = "" if low_high is None else f" ({100 * low_high[0]:.0f}–{100 * low_high[1]:.0f})"
    return f"{100 * row[name]:.1f}{spread}"


def _lead(row: dict[str, Any]) -> str:
    if row["lead"] is None:
        return ""
    value, *spread = row["lead"]
    return f"{100 * value:+.1f}" + (f" ({100 * spread[0]:+.0f}, {100 * spread[1]:+.0f})" if spread else "")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/attribution"))
    args = parser.parse_args()
    began = time.process_time()
    runs = read_tested(args.traces)
    blamed, other = trained_elsewhere(runs, args.traces)
    blamed |= trained_here(runs)
    result: dict[str, Any] = {
        "set": "whoandwhen",
        "other_sets": other,
        "folds": FOLDS,
        "seeds": list(SEEDS),
        "folders": {},
    }
    for folder in FOLDERS:
        chosen = [i for i, run in enumerate(runs) if run.groups["folder"] == folder]
        some = [runs[i] for i in chosen]
        rows = {name: [row[i] for i in chosen] for name, row in blamed.items()}
        result["folders"][folder] = {
            "runs": len(some),
            "records": round(float(np.mean([len(run.records) for run in some])), 2),
            "labels_on_no_record": sum(run.mistake is None or run.mistake.step is None for run in some),
            "record": measured(some, rows, "record"),
            "event": measured(some, rows, "event"),
        }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    table = text(result)
    args.out.with_suffix(".md").write_text(table + "\n")
    print(table)
    print(f"\n{time.process_time() - began:.0f} s of one core")


if __name__ == "__main__":
    main()
