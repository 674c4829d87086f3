"""Do learners of automata find a known machine again, from strings with noisy labels? And what do they cost?

    python benchmarks/recovery.py [--quick]

Strings walk on random minimal machines of 20 states over 6 symbols; how a run ends is decided by the state that it ends
in, and one label in ten is flipped. Learners see symbols and labels, no teacher. A learned machine says of a fresh
string what most training strings that ended in the same state were; so does the machine itself, which no learner can
beat by more than chance. In the world `reached`, every step ends the run with the same probability; in the world
`hazard`, each state has a probability of its own.

Costs are measured on strings that look like agents' (40 symbols, some frequent and many rare; a teacher that knows the
machine with some noise), each in a process of its own, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.strings import Strings, Transitions, walk
from prefixguard.bundle import UNSEEN

HERE = Path(__file__).parent
HORIZON = 3
LONGEST = 60
NOISE = 0.1
FRESH = 10_000
WITHIN = 0.02
FINDERS = ("merge", "rpni")  # that need no teacher
LARGE = ("memoryless", "ladder", "merge", "distilled", "rpni")  # those that train no network, on 100,000 strings


@dataclass(frozen=True, slots=True, eq=False)
class RolloutMachine:
    """next: int32 (S, K). fails: bool (S,), how a run ends that ends there. ends: float64 (S,), how likely it ends
    after a step to the state. likely: float64 (K,), how likely each symbol is."""

    next: NDArray[np.int32]
    fails: NDArray[np.bool_]
    ends: NDArray[np.float64]
    likely: NDArray[np.float64]

    @property
    def transitions(self) -> Transitions:
        return Transitions(0, self.next)


def random_machine(seed: int, n_states: int = 20, n_symbols: int = 6, world: str = "reached") -> RolloutMachine:
    """A machine whose states are all reached and all different."""
    rng = np.random.default_rng(seed)
    while True:
        following = rng.integers(0, n_states, (n_states, n_symbols)).astype(np.int32)
        fails = rng.random(n_states) < 0.5
        if _reached(following) == n_states and _different(following, fails) == n_states:
            break
    ends = np.full(n_states, 0.1) if world == "reached" else rng.choice([0.02, 0.1, 0.2], n_states)
    likely = np.ones(n_symbols) if n_symbols < 10 else 1 / np.arange(1, n_symbols + 1)
    return RolloutMachine(following, fails, ends, likely / likely.sum())


def _reached(following: NDArray[np.int32]) -> int:
    seen, queue = {0}, [0]
    for state in queue:
        queue += [s for s in dict.fromkeys(following[state].tolist()) if s not in seen]
        seen.update(queue)
    return len(seen)


def _different(following: NDArray[np.int32], marks: NDArray[np.bool_]) -> int:
    block = marks.astype(np.int64)
    while True:
        rows = np.concatenate((block[:, None], block[following]), axis=1)
        finer = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == block.max():
            return int(block.max()) + 1
        block = finer


def draw(machine: RolloutMachine, n: int, seed: int, noise: float = NOISE, teacher: bool = False) -> Strings:
    """n labelled strings. teacher: whether the teacher knows the machine, with noise; else it says the base rates."""
    rng = np.random.default_rng((seed, n))
    n_symbols = machine.next.shape[1]
    symbols = rng.choice(n_symbols, size=(n, LONGEST), p=machine.likely).astype(np.int32)
    dice = rng.random((n, LONGEST))
    states = np.empty((n, LONGEST), dtype=np.int32)
    now = np.zeros(n, dtype=np.int32)
    for t in range(LONGEST):
        now = machine.next[now, symbols[:, t]]
        states[:, t] = now
    over = dice < machine.ends[states]
    over[:, -1] = True
    lengths = over.argmax(axis=1) + 1
    failed = machine.fails[states[np.arange(n), lengths - 1]] ^ (rng.random(n) < noise)
    taken = np.arange(LONGEST) < lengths[:, None]
    left = (lengths[:, None] - 1 - np.arange(LONGEST))[taken]
    fails = np.repeat(failed, lengths)
    labels = np.stack((fails & (left <= HORIZON), fails), axis=1).astype(np.float32)
    if teacher:
        odds = np.log(_risks(machine, noise) / (1 - _risks(machine, noise)))[states[taken]]
        said = 1 / (1 + np.exp(-odds - rng.normal(0, 0.5, odds.shape)))
    else:
        said = np.tile(labels.mean(axis=0), (len(labels), 1))
    first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return Strings(symbols[taken], n_symbols, first, failed, np.arange(n), labels, said.astype(np.float32))


def _risks(machine: RolloutMachine, noise: float) -> NDArray[np.float64]:
    """P(the run fails within the horizon), P(it fails) after a step to each state; float64 (S, 2)."""
    now = machine.ends * np.where(machine.fails, 1 - noise, noise)
    soon, ever = np.zeros(len(now)), np.zeros(len(now))
    for step in range(500):
        if step <= HORIZON:
            soon = now + (1 - machine.ends) * (soon[machine.next] @ machine.likely)
        ever = now + (1 - machine.ends) * (ever[machine.next] @ machine.likely)
    return np.clip(np.stack((soon, ever), axis=1), 1e-4, 1 - 1e-4)


def accuracy(found: Transitions, train: Strings, fresh: Strings) -> float:
    """Share of fresh strings that fail as most training strings did that ended in the same state."""

    def end_states(strings: Strings) -> NDArray[np.int32]:
        nowhere = np.full(strings.n_symbols, UNSEEN, dtype=np.int32)
        return walk(found.start, found.next, nowhere, strings)[0][strings.first[1:] - 1]

    at = end_states(train)
    failed = np.bincount(at, weights=train.failed, minlength=found.n_states)
    vote = 2 * failed > np.bincount(at, minlength=found.n_states)
    return float((vote[end_states(fresh)] == fresh.failed).mean())


def peak_mb() -> float:
    """Greatest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def recover(learner: str, world: str, n: int, seed: int) -> dict[str, Any]:
    machine = random_machine(seed, world=world)
    train, fresh = draw(machine, n, seed), draw(machine, FRESH, seed + 1000)
    own = accuracy(machine.transitions, train, fresh)
    began = time.process_time()
    found = LEARNERS[learner](train, max_states=64, seed=seed)
    seconds = time.process_time() - began
    return {
        "learner": learner,
        "world": world,
        "strings": n,
        "machine": seed,
        "states": found.n_states,
        "accuracy": round(accuracy(found, train, fresh), 4),
        "own": round(own, 4),
        "cpu_seconds": round(seconds, 2),
        "peak_mb": round(peak_mb()),
    }


def cost(learner: str, n: int) -> dict[str, Any]:
    strings = draw(random_machine(1, n_symbols=40), n, 1, teacher=True)
    before, began, cpu = peak_mb(), time.perf_counter(), time.process_time()
    found = LEARNERS[learner](strings, max_states=64, seed=1)
    return {
        "learner": learner,
        "strings": n,
        "steps": len(strings.symbols),
        "states": found.n_states,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mb": round(peak_mb()),
        "peak_mb_before": round(before),
        "notes": list(found.notes),
    }


def apart(*arguments: str) -> dict[str, Any]:
    """One measurement in a process of its own, on one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", file=sys.stderr, flush=True)
    return dict(json.loads(done.stdout))


def measure(quick: bool) -> dict[str, Any]:
    sizes = (2_000,) if quick else (2_000, 20_000, 100_000)
    seeds = (1,) if quick else (1, 2, 3, 4, 5)
    recovered = [
        apart("recover", learner, world, str(n), str(seed))
        for world in ("reached", "hazard")
        for learner in FINDERS
        for n in sizes
        for seed in seeds
    ]
    costs = [apart("cost", learner, "2000") for learner in LEARNERS]
    if not quick:
        costs += [apart("cost", learner, "100000") for learner in LARGE]
    return {"within": WITHIN, "recovery": recovered, "costs": costs}


def to_markdown(result: dict[str, Any]) -> str:
    lines = [
        "Recovery of random 20-state machines over 6 symbols, 10 % of labels flipped; accuracy on 10,000 fresh strings",
        f"with labels flipped alike. Found: at least the machine's own accuracy less {result['within']:.2f}.",
        "",
        "| world | learner | strings | found | accuracy, mean (least) | its own | states | processor s |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in result["recovery"]:
        groups.setdefault((row["world"], row["learner"], row["strings"]), []).append(row)
    for (world, learner, n), rows in groups.items():
        reached = [r["accuracy"] for r in rows]
        found = sum(r["accuracy"] >= r["own"] - result["within"] for r in rows)
        states = sorted(r["states"] for r in rows)
        lines.append(
            f"| {world} | {learner} | {n:,} | {found} of {len(rows)} | {np.mean(reached):.3f} ({min(reached):.3f}) "
            f"| {np.mean([r['own'] for r in rows]):.3f} | {states[0]}-{states[-1]} "
            f"| {np.mean([r['cpu_seconds'] for r in rows]):.1f} |"
        )
    lines += [
        "",
        "Costs on strings like agents' (40 symbols), at most 64 states, one thread.",
        "",
        "| learner | strings | steps | seconds | processor s | peak memory (before learning) | states | notes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {r['learner']} | {r['strings']:,} | {r['steps']:,} | {r['seconds']:.2f} | {r['cpu_seconds']:.2f} "
        f"| {r['peak_mb']} MB ({r['peak_mb_before']}) | {r['states']} | {'; '.join(r['notes'])} |"
        for r in result["costs"]
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one machine, 2,000 strings; nothing is written")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, learner, *rest = options.one
        if kind == "recover":
            print(json.dumps(recover(learner, rest[0], int(rest[1]), int(rest[2]))))
        else:
            print(json.dumps(cost(learner, int(rest[0]))))
        return
    result = measure(options.quick)
    table = to_markdown(result)
    print(table)
    if not options.quick:
        (HERE / "results" / "recovery.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        (HERE / "results" / "recovery.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
