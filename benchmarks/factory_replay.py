"""What the factory's injection and replay are worth where the truth is known: the simulation, by seed.

    python benchmarks/factory_replay.py [--failures 520] [--injections 25] [--out benchmarks/results]

Truth is the first fault that was not made good. Replay is told which steps hold a fault (oracle proposals), or is told
so by a scripted proposer of known skill. The papers' literal rule stands beside. Intervals are over failures (Wilson).
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefixguard.factory import LabelledRun, collect, inject, read_corpus
from prefixguard.factory.contrast import DecisiveCandidate, candidates, first_cause, literal, point_of_no_return
from prefixguard.factory.environments import Environments
from prefixguard.factory.proposers import OracleProposer, ScriptedProposer
from prefixguard.factory.safe_runs import integrity
from prefixguard.simulation import PlayedRun, Turn, generate, play

WORLD = 21
MARGIN = 0.05


def played(run: LabelledRun) -> PlayedRun:
    """The run as only the simulation knows it."""
    made = run.provenance
    turns = [Turn(**turn) for turn in made["turns"]]
    number = int(made["task"].removeprefix("support-"))
    return play(WORLD, number, f"{WORLD}/{made['task']}/{made['seed']}", agent=made["agent"], turns=turns)


def losses(run: PlayedRun) -> list[dict[str, Any]]:
    """Faults that mattered and were not made good."""
    return [dict(fault) for fault in run.faults if not fault["harmless"] and not fault["repaired"]]


def truth(run: LabelledRun) -> int:
    return min(fault["step"] for fault in losses(played(run)))


def shares(named: list[int | None], true: list[int]) -> dict[str, Any]:
    """Exact, early, late, none, of all; and the interval of exact."""
    n, found = len(true), Counter[str]()
    for step, right in zip(named, true, strict=True):
        found["none" if step is None else "exact" if step == right else "early" if step < right else "late"] += 1
    exact = found["exact"] / n
    z = 1.96
    middle, half = exact + z * z / 2 / n, z * math.sqrt(exact * (1 - exact) / n + z * z / 4 / n / n)
    interval = [round((middle - half) / (1 + z * z / n), 4), round((middle + half) / (1 + z * z / n), 4)]
    return {**{name: round(found[name] / n, 4) for name in ("exact", "early", "late", "none")}, "interval": interval}


def failures_of(count: int, folder: Path) -> tuple[list[LabelledRun], list[LabelledRun], Any]:
    """At least so many failures, the safe runs beside them, and the report."""
    path = folder / "corpus.jsonl"
    report = collect(f"simulation:{WORLD}", path, count=4 * count, tasks=count, seed=1)
    runs = list(read_corpus(path))
    natural = [run for run in runs if run.source == "natural"]
    return natural[:count], [run for run in runs if run.source == "safe"], report


def exact_replays(count: int = 400) -> int:
    """Runs of `generate` that play again byte for byte, faults included."""
    same = 0
    for number, run in enumerate(generate(count, WORLD)):
        task, trial = divmod(number, 4)
        again = play(WORLD, task, f"{WORLD}/support/run/{task}/{trial}", keyed=False)
        same += again.messages == run["messages"] and list(again.faults) == run["metadata"]["faults"]
    return same


def safe_filter(safe: list[LabelledRun], seed: str = "filter", count: int = 600) -> dict[str, Any]:
    """Faults in kept runs; and what the trace alone would have kept."""
    world = Environments().of(safe[0])
    succeeded = by_trace = faulty = 0
    for number in range(count):
        world.reset(f"support-{number:05d}", seed)
        if world.continuation(None) == "success":
            run = LabelledRun(world.trace(), "safe", provenance=world.provenance())
            succeeded += 1
            by_trace += integrity(run) == ""
            faulty += integrity(run) == "" and bool(played(run).faults)
    return {
        "kept": len(safe), "kept with a fault": sum(bool(played(run).faults) for run in safe),
        "successes": succeeded, "kept by the trace alone": by_trace, "of these with a fault": faulty,
    }  # fmt: skip


def injections(per_kind: int, folder: Path) -> dict[str, Any]:
    """Accepted faults by kind: those whose label is the truth, whose prefix is the source's, and that replay finds."""
    path = folder / "injected.jsonl"
    report = inject(folder / "corpus.jsonl", path, per_kind=per_kind, per_run=4, tries=24, seed=1)
    sources = {run.run_id: run for run in read_corpus(folder / "corpus.jsonl")}
    rows: dict[str, Counter[str]] = {}
    worlds = Environments()
    for run in read_corpus(path):
        (mistake,) = run.mistakes
        row, world = rows.setdefault(mistake.kind, Counter()), worlds.of(run)
        before = sources[run.provenance["source_run"]].records()[: mistake.step - 1]
        found = candidates(world, run, OracleProposer().propose(run, world)[0], rolls=0, salt="b")
        cause = first_cause(found, MARGIN)
        row["accepted"] += 1
        row["label is the truth"] += truth(run) == mistake.step
        row["same prefix"] += run.records()[: mistake.step - 1] == before
        row["found by a flip"] += cause is not None and cause.step == mistake.step
    tried = report.counts["of those tried"]
    return {kind: {**row, "acceptance": tried[kind]} for kind, row in sorted(rows.items())}


def replays(failures: list[LabelledRun]) -> dict[str, Any]:
    """Each rule's shares."""
    worlds, true, named = Environments(), [truth(run) for run in failures], dict[str, list[int | None]]()

    def says(rule: str, found: DecisiveCandidate | None) -> None:
        named.setdefault(rule, []).append(None if found is None else found.step)

    for run in failures:
        world = worlds.of(run)
        proposals, _ = OracleProposer().propose(run, world)
        flips = candidates(world, run, proposals, rolls=0, salt="b")
        says("flip, own chances", first_cause(flips, MARGIN))
        for rolls in (2, 4, 8, 16):
            found = candidates(world, run, proposals, rolls=rolls, salt="b")
            says(f"contrast, R {rolls}", first_cause([replace(one, flip=None) for one in found], MARGIN))
        says("flip, else contrast, R 16 (first_cause)", first_cause(found, MARGIN))
        says("point_of_no_return, R 16", point_of_no_return(found))
        step = literal(world, run, proposals, "b")
        named.setdefault("literal rule, 1 re-roll a step", []).append(step)
    constant = max(range(1, 40), key=lambda step: sum(step == one for one in true))
    named[f"constant step {constant}"] = [constant] * len(true)
    return {rule: shares(steps, true) for rule, steps in named.items()}


def curve(failures: list[LabelledRun]) -> dict[str, Any]:
    """First cause, R 8, with a proposer that names each mistake with chance `hit`, and as often suspects another."""
    true, rows, worlds = [truth(run) for run in failures], {}, Environments()
    for hit in (1.0, 0.9, 0.75, 0.5, 0.25):
        proposer, named = ScriptedProposer(hit, 0.5, seed=1), list[int | None]()
        for run in failures:
            world = worlds.of(run)
            cause = first_cause(candidates(world, run, proposer.propose(run, world)[0], rolls=8, salt="b"), MARGIN)
            named.append(None if cause is None else cause.step)
        rows[f"hit {hit:g}, another beside .5"] = shares(named, true)
    return rows


def table(rows: dict[str, dict[str, Any]], first: str) -> list[str]:
    names = list(next(iter(rows.values())))
    lines = [f"| {first} | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for name, row in rows.items():
        lines.append(f"| {name} | {' | '.join(str(row[one]) for one in names)} |")
    return lines


def timed(what: str, took: dict[str, float], work: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    found = work()
    took[what] = round(time.perf_counter() - begin, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", type=int, default=520)
    parser.add_argument("--injections", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        failures, safe, report = timed("collect", took, lambda: failures_of(options.failures, folder))
        found = {
            "world": WORLD, "failures": len(failures), "collected": report.as_json()["counts"],
            "left_out": report.skips.counts, "byte_for_byte": [timed("replays", took, exact_replays), 400],
            "safe": safe_filter(safe),
            "injected": timed("inject", took, lambda: injections(options.injections, folder)),
            "rules": timed("rules", took, lambda: replays(failures)),
            "curve": timed("curve", took, lambda: curve(failures[:200])), "curve_failures": min(200, len(failures)),
        }  # fmt: skip
    path = options.out / "factory_replay.json"
    path.write_text(json.dumps({**found, "seconds": took}, indent=1) + "\n")
    write_page(options.out)


def write_page(out: Path) -> None:
    """The tables of all that was measured."""
    found = json.loads((out / "factory_replay.json").read_text())
    n, safe, exact = found["failures"], found["safe"], found["byte_for_byte"]
    lines = [
        "# Replay and injection where the truth is known", "",
        f"The simulation, world {found['world']}; made by `python benchmarks/factory_replay.py`. A scripted world: it",
        "shows that the methods find what is there, and says nothing about real agents.", "",
        f"Runs of `generate` that play again byte for byte: {exact[0]} of {exact[1]}.",
        f"Safe runs that were kept: {safe['kept']}, with a fault: {safe['kept with a fault']}.",
        f"Of {safe['successes']} other successes the trace alone (no error of a tool, nothing cut off) would keep",
        f"{safe['kept by the trace alone']}, of which {safe['of these with a fault']} have a fault that was made good",
        "or changed nothing.", "",
        "## Injected faults", "", *table(found["injected"], "kind"), "",
        f"## The decisive step of {n} natural failures, oracle proposals", "", *table(found["rules"], "rule"), "",
        "A flip names a later step than the truth where a second mistake ended the run before the first one could be",
        "made good: there its correction alone wins too.", "",
        f"## With a scripted proposer (first {found['curve_failures']} failures, R 8)", "",
        *table(found["curve"], "proposer"),
    ]  # fmt: skip
    lines += ["", f"Seconds on two shared cores: {', '.join(f'{k} {v}' for k, v in found['seconds'].items())}."]
    (out / "factory_replay.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
