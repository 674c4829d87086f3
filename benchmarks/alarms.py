"""How often does the alarm's bound hold on real runs, what does it cost, and how far does a new agent break it?

    python benchmarks/alarms.py .traces --out benchmarks/results/alarms

Clean protocol: 50 % of the tasks fit a monitor (boosted trees), 15 % its maps from logits to risks, and the remaining
35 % are split 1,000 times into halves that set the threshold and halves that are counted; all of it for three divisions
of the tasks. `expected` is the share of such halves in which the budget is seen to hold where the bound is exact
(`evaluate.alarm_resampling`). Beside it the bound over runs that share tasks, which breaks.

Shift of agent: for every agent that solves at least 20 tasks (at most 16 of them), a monitor of the others' runs (40 %
of the tasks; maps 10 %), thresholds from the others' runs on half of the remaining tasks, counted on the new agent's
runs of the other half; beside it the others' own runs of that half. The drift signal gets one run a task of the first
half as its reference and then one run a task of the other half, of the new agent or, as many, of the others.

Kept in OUT.parts as it is done, so that an interrupted benchmark goes on where it stopped. Writes OUT.md and OUT.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from accuracy import HORIZON, SETS, agent_groups
from numpy.typing import NDArray

from prefixguard.alarm import BUDGETS, AlarmPolicy
from prefixguard.bundle import apply_map
from prefixguard.encoder import fit_vocabulary, tokenize
from prefixguard.evaluation.analyses.alarm_resampling import resample_alarms
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor, fit_platt, labels, steps_of
from prefixguard.runtime.drift import RunSummary, summarise_steps
from prefixguard.runtime.drift_signal import DriftReference, DriftSignal
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run, Side, link_tasks, split_tasks

NAMES = ("tau_bench", "tau2", "intercode", "webshop_react")
MOST_RUNS = 1500
SEEDS = (13, 14, 15)
CLEAN = {Side.TRAIN: 0.50, Side.CALIBRATION: 0.15, Side.ALARM: 0.35}
SHIFT = {Side.TRAIN: 0.40, Side.CALIBRATION: 0.10, Side.ALARM: 0.50}
RISKS = ("imminent", "outcome")
MOST_AGENTS, FEWEST_TASKS = 16, 20
DRIFT_ROUNDS, DRIFT_RATE, FEWEST_STREAM = 100, 0.01, 5
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Material:
    """A set: its runs, tasks (those that hold the same run are one), agents where it names several, words a step."""

    name: str
    corpus: Corpus
    tasks: list[str]
    agents: list[str] | None
    words: NDArray[np.int64]


@dataclass(frozen=True)
class Scored:
    """The runs that were kept for the alarm. risks: imminent and outcome, one (T, 2) a run. summaries: for drift."""

    runs: NDArray[np.int64]
    risks: list[Floats]
    summaries: list[RunSummary]


def read(traces: Path, name: str) -> Material:
    """At most 1,500 runs of a set, chosen by the hash of their ids."""
    folder, adapter, _ = SETS[name]

    def runs() -> Iterator[Run[StepRecord]]:
        known = [r for r in read_runs(traces / folder, load_adapter(adapter)) if r.outcome is not Outcome.UNKNOWN]
        if name == "intercode":
            known.sort(key=lambda r: hashlib.sha256(f"13:{r.run_id}".encode()).hexdigest())
            known = known[:MOST_RUNS]
        yield from sorted(known, key=lambda r: r.run_id)

    corpus = featurise(runs())
    one_task = {task: group[0] for group in link_tasks(corpus.task_ids, corpus.digests) for task in group}
    tasks = [one_task.get(task, task) for task in corpus.task_ids]
    n_steps = int(corpus.first[-1])
    words = np.array([len(tokenize(d).hashes) for d in corpus.documents.each(0, n_steps)], dtype=np.int64)
    return Material(name, corpus, tasks, agent_groups(corpus), words)


def fit_and_score(material: Material, shares: dict[Side, float], seed: int, among: NDArray[np.bool_]) -> Scored:
    """Fit and map on the runs of `among`, bool (n,), of their sides; score all runs of the alarm side."""
    corpus = material.corpus
    sides = split_tasks(material.tasks, seed=seed, shares=shares)
    of = np.array([sides[task].value for task in material.tasks])
    train, maps = (np.flatnonzero((of == side.value) & among) for side in (Side.TRAIN, Side.CALIBRATION))
    alarm = np.flatnonzero(of == Side.ALARM.value)
    config = TrainConfig(backend="gbdt", teacher=0.0, seed=seed, horizon=HORIZON)
    vocabulary = fit_vocabulary(
        corpus.texts(train.tolist()), max_features=config.max_features, min_tasks=config.min_tasks
    )
    rows = corpus.encode(vocabulary[0])
    monitor = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    target = labels(corpus, HORIZON)[steps_of(corpus, maps)].astype(np.float64)
    flat = np.concatenate(monitor.logits(corpus, rows, maps))
    fitted = [fit_platt(flat[:, i], target[:, i]) for i in range(2)]
    risks = [
        np.stack([apply_map(fitted[i], logits[:, i]) for i in range(2)], axis=1)
        for logits in monitor.logits(corpus, rows, alarm)
    ]
    summaries = []
    for r, risk in zip(alarm.tolist(), risks, strict=True):
        steps = slice(int(corpus.first[r]), int(corpus.first[r + 1]))
        summaries.append(summarise_steps(risk[:, 1], rows.counts[steps], material.words[steps]))
    return Scored(alarm, risks, summaries)


def resampled(material: Material, scored: Scored, rounds: int, budgets: tuple[float, ...], **masks) -> list[dict]:
    """`resample_alarms` for both risks and all budgets."""
    failed = material.corpus.failed[scored.runs].tolist()
    tasks = [material.tasks[r] for r in scored.runs.tolist()]
    found = []
    for i, risk in enumerate(RISKS):
        scores = [each[:, i] for each in scored.risks]
        for budget in budgets:
            one = resample_alarms(
                scores, failed, tasks, AlarmPolicy(budget=budget), horizon=HORIZON, rounds=rounds, seed=13, **masks
            )
            found.append({"risk": risk, **one.as_json()})
    return found


def drift(material: Material, scored: Scored, new: NDArray[np.bool_], seed: int) -> dict:
    """Share of streams that signal: of the new agent's runs, and of as many runs of the others. new: bool (runs,)."""
    rng = np.random.default_rng(seed)
    names = np.array([material.tasks[r] for r in scored.runs.tolist()])
    tasks = np.unique(names)
    signals: dict[str, list[int | None]] = {"shifted": [], "same": []}
    sizes, references = [], []
    for k in range(DRIFT_ROUNDS):
        first = set(rng.permutation(tasks)[: len(tasks) // 2].tolist())
        at_first = np.array([name in first for name in names])

        def one_a_task(which: NDArray[np.bool_], rng: np.random.Generator = rng) -> list[RunSummary]:
            mixed = rng.permutation(np.flatnonzero(which))
            _, places = np.unique(names[mixed], return_index=True)
            return [scored.summaries[i] for i in rng.permutation(mixed[places])]

        reference = one_a_task(at_first & ~new)
        streams = {"shifted": one_a_task(~at_first & new), "same": one_a_task(~at_first & ~new)}
        n = min(map(len, streams.values()))
        if n < FEWEST_STREAM:
            continue
        sizes.append(n)
        references.append(len(reference))
        known = DriftReference.of(reference)
        for name, stream in streams.items():
            signal = DriftSignal(known, DRIFT_RATE, seed=seed + k)
            signals[name].append(next((i for i, run in enumerate(stream[:n], 1) if signal.observe_run(run)), None))

    def told(name: str) -> dict:
        at = [i for i in signals[name] if i is not None]
        return {
            "signalled": round(len(at) / len(signals[name]), 4) if signals[name] else None,
            "median_runs": float(np.median(at)) if at else None,
        }

    return {
        "rounds": len(sizes),
        "rate": DRIFT_RATE,
        "reference_runs": round(float(np.mean(references)), 1) if sizes else None,
        "stream_runs": round(float(np.mean(sizes)), 1) if sizes else None,
        **{name: told(name) for name in signals},
    }


def chosen_agents(material: Material) -> list[str]:
    """The agents that solve at least 20 tasks, those that fail least first; at most 16, spread over that order."""
    if material.agents is None:
        return []
    fails: dict[str, list[bool]] = {}
    solved: dict[str, set[str]] = {}
    for agent, task, failed in zip(material.agents, material.tasks, material.corpus.failed.tolist(), strict=True):
        fails.setdefault(agent, []).append(failed)
        if not failed:
            solved.setdefault(agent, set()).add(task)
    enough = [agent for agent in solved if agent and len(solved[agent]) >= FEWEST_TASKS]
    ordered = sorted(enough, key=lambda a: (float(np.mean(fails[a])), a))
    places = np.unique(np.linspace(0, len(ordered) - 1, MOST_AGENTS).round().astype(int)) if ordered else []
    return [ordered[i] for i in places]


def run_set(name: str, traces: Path, parts: Path, rounds: int) -> dict:
    """All of one set, a part at a time."""
    kept: list[Material] = []

    def material() -> Material:
        if not kept:
            print(f"{name}: reading", file=sys.stderr, flush=True)
            kept.append(read(traces, name))
        return kept[0]

    def part(label: str, make: Callable[[], dict]) -> dict:
        path = parts / f"{name}-{rounds}-{label}.json"
        if path.exists():
            return json.loads(path.read_text())
        began = time.monotonic()
        found = make()
        parts.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{name}: {label} done in {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        return found

    def facts() -> dict:
        m = material()
        solved = {task for task, failed in zip(m.tasks, m.corpus.failed.tolist(), strict=True) if not failed}
        return {
            "runs": len(m.corpus),
            "failed": int(m.corpus.failed.sum()),
            "tasks": len(set(m.tasks)),
            "tasks_solved": len(solved),
            "agents": chosen_agents(m),
        }

    def clean(seed: int) -> dict:
        m = material()
        scored = fit_and_score(m, CLEAN, seed, np.ones(len(m.corpus), dtype=np.bool_))
        return {"seed": seed, "rows": resampled(m, scored, rounds, BUDGETS)}

    def shifted(agent: str) -> dict:
        m = material()
        new = np.array([a == agent for a in m.agents or ()])
        scored = fit_and_score(m, SHIFT, SEEDS[0], ~new)
        mine = new[scored.runs]
        fails = m.corpus.failed[new]
        return {
            "agent": agent,
            "runs": int(new.sum()),
            "failed": round(float(fails.mean()), 4),
            "failed_others": round(float(m.corpus.failed[~new].mean()), 4),
            "shifted": resampled(m, scored, rounds, BUDGETS[1:], calibrates=(~mine).tolist(), tested=mine.tolist()),
            "same": resampled(m, scored, rounds, BUDGETS[1:], calibrates=(~mine).tolist(), tested=(~mine).tolist()),
            "drift": drift(m, scored, mine, SEEDS[0]),
        }

    def label(agent: str) -> str:
        return f"shift-{hashlib.sha256(agent.encode()).hexdigest()[:8]}"

    about = part("facts", facts)
    return {
        "set": name,
        **about,
        "rounds": rounds,
        "clean": [part(f"clean-{seed}", lambda seed=seed: clean(seed)) for seed in SEEDS],
        "shift": [part(label(agent), lambda agent=agent: shifted(agent)) for agent in about["agents"]],
    }


def percent(value: float | None) -> str:
    """Whole per cent with one digit; a dash where there is no number."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def mean(rows: list[dict], way: str, key: str) -> float:
    """Mean over divisions that were not refused; NaN where all were."""
    values = [row[way][key] for row in rows if row[way] is not None and row[way][key] is not None]
    return float(np.mean(values)) if values else math.nan


def clean_table(result: dict) -> list[str]:
    """A row a risk and budget, means over the divisions; of the held share also the lowest and highest."""
    lines = [
        "| risk, budget | runs a half | drawn: held | weighted alike: held | expected | false alarms | failed alerted "
        f"| more than {HORIZON} steps before the end | over runs: held | expected |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    refused = []
    for place in range(len(result["clean"][0]["rows"])):
        rows = [division["rows"][place] for division in result["clean"]]
        title = f"{rows[0]['risk']} {100 * rows[0]['budget']:g} %"
        held = [row["weighted"]["held"] for row in rows if row["weighted"]]
        shared = [percent(mean(rows, "shared", key)) for key in ("held", "expected")]
        if not held:
            half = sorted(row["tasks"] // 2 for row in rows)
            needs = f"{100 * rows[0]['budget']:g} % needs {rows[0]['needed']} tasks"
            refused.append(f"{needs}, a half has {half[0]} to {half[-1]}")
            lines.append(f"| {title} | refused | | | | | | | {shared[0]} | {shared[1]} |")
            continue
        cells = [percent(mean(rows, "weighted", key)) for key in ("expected", "false_alarms", "alerted", "early")]
        lines.append(
            f"| {title} | {mean(rows, 'drawn', 'calibration'):.0f} | {percent(mean(rows, 'drawn', 'held'))} "
            f"| {percent(float(np.mean(held)))} ({percent(min(held))} to {percent(max(held))}) | {' | '.join(cells)} "
            f"| {shared[0]} | {shared[1]} |"
        )
    said = "; ".join(dict.fromkeys(refused))
    return [*lines, "", f"Refused: {said}." if said else "No budget was refused."]


def short(name: str) -> str:
    """A name of at most 60 characters: its beginning and its end."""
    return name if len(name) <= 60 else f"{name[:34]}...{name[-23:]}"


def shift_table(result: dict) -> list[str]:
    """A row an agent: the bound at 10 % on the outcome and imminent risk, on the new agent's runs and the others'."""
    lines = [
        "| new agent | runs, failed (others) | outcome 10 %: false alarms (others) | held (others) "
        "| failed alerted (others) | imminent 10 %: false alarms (others) "
        "| drift: streams that signal (others) | after runs (median) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in result["shift"]:
        cells = []
        for risk, keys in (("outcome", ("false_alarms", "held", "alerted")), ("imminent", ("false_alarms",))):
            new, old = (
                next(row for row in one[which] if row["risk"] == risk and row["budget"] == 0.10)["weighted"]
                for which in ("shifted", "same")
            )
            cells += [f"{percent(new[k])} ({percent(old[k])})" if new and old else "refused" for k in keys]
        signal = one["drift"]
        pair = f"{percent(signal['shifted']['signalled'])} ({percent(signal['same']['signalled'])})"
        after = signal["shifted"]["median_runs"]
        lines.append(
            f"| {short(one['agent'])} | {one['runs']}, {percent(one['failed'])} % ({percent(one['failed_others'])} %) "
            f"| {' | '.join(cells)} | {pair} of {signal['stream_runs'] or 0:.0f} runs, reference "
            f"{signal['reference_runs'] or 0:.0f} | {'–' if after is None else f'{after:.0f}'} |"
        )
    return lines


def text(result: dict) -> str:
    """A set's tables as Markdown."""
    lines = [
        f"### {result['set']}: {result['runs']:,} runs of {result['tasks']} tasks, {result['tasks_solved']} of them "
        f"solved at least once, {result['failed'] / result['runs']:.0%} failed; {len(SEEDS)} divisions x "
        f"{result['rounds']:,} halves",
        "",
        *clean_table(result),
    ]
    if result["shift"]:
        lines += ["", "Shift of agent:", "", *shift_table(result)]
    return "\n".join(lines)


INTRODUCTION = """\
# Alarms: does the bound hold?

`python benchmarks/alarms.py .traces`. Confidence 90 %, horizon 3. All numbers in per cent of halves or runs; held =
share of random halves in which at most the budget of the other half's successful runs alarmed. *Drawn*: one run a task
sets the threshold, one run a task is counted; *expected* is exact for it (ties only raise it). *Weighted alike*: the
same thresholds, every task's share of alarms counted alike (lowest and highest of the three divisions). *Over runs*:
the bound over all runs of a half as if runs of one task were independent, counted over runs. Drift signal:
false-signal rate 1 % over its whole life; a stream is one run a task."""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/alarms"), help="without its ending")
    parser.add_argument("--rounds", type=int, default=1000, help="random halves")
    args = parser.parse_args()
    parts = args.out.with_name(args.out.name + ".parts")
    results = []
    for name in args.sets:
        results.append(run_set(name, args.traces, parts, args.rounds))
        print(text(results[-1]) + "\n", flush=True)
    args.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text("\n\n".join([INTRODUCTION, *map(text, results)]) + "\n")


if __name__ == "__main__":
    main()
