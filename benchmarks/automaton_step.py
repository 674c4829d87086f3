"""Time of an automaton's step: transition and risks, symbol map, and a whole `observe`.

    python benchmarks/automaton_step.py [MONITOR] [--steps 2000] [--json out.json]

One thread. Rows `transition`: random automata of several sizes with a clock and unseen transitions, walked along a
random string; one step is the look-up of the state, of whether it was unseen, and of both logits. Rows `map`: a typed
map over 20 tools, complete trees over context features, over words, and over both by turns, and a score of words; all
on rows of 50 terms.
With a MONITOR of kind automaton: its own map and automaton on records as a session sees them, and `observe` from the
raw event to the reading, with its parts, as `latency.py` measures them.

Short times are those of a loop of many steps, divided by their number: best and median of several such loops.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

import latency
import numpy as np

from prefixguard import context
from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import UNSEEN, Automaton, Calibration, ModelMap, Platt, SymbolMap, TreeMap, TypedMap, WordScore
from prefixguard.context import N_FEATURES
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.runtime import AutomatonModel, Monitor, load
from prefixguard.stepview import serialize

LOOPS = 9
SIZES = ((8, 16), (33, 24), (64, 64), (1000, 64))


def random_automaton(n_states: int, n_symbols: int, clock: tuple[int, ...], seed: int = 13) -> Automaton:
    """Every number drawn; a fifth of the transitions is unseen."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(0, n_states, (n_states, n_symbols)).astype(np.int32)
    transitions[rng.random(transitions.shape) < 0.2] = UNSEEN
    columns = len(clock) + 1
    counts = np.ones((n_states, columns), np.int64)
    return Automaton(
        start=0,
        transitions=transitions,
        fallback=rng.integers(0, n_states, n_symbols).astype(np.int32),
        clock=clock,
        risk=rng.random((n_states, columns, 2)),
        interval=np.sort(rng.random((n_states, columns, 2, 2)), axis=-1),
        edges=np.ones((n_states, n_symbols), np.int64),
        visits=counts[:, 0],
        evidence=counts,
        evidence_runs=counts,
        stand_in=np.arange(n_states, dtype=np.int32),
    )


def model_of(automaton: Automaton, symbol_map: SymbolMap) -> AutomatonModel:
    """The run-time tables of an automaton without a bundle around it: what a step looks up is all that is there."""
    calibration = Calibration(Platt(1, 0), Platt(1, 0), Thresholds(None, 1, 0, 0, 0, "none"), AlarmPolicy())
    bundle: Any = SimpleNamespace(
        automaton=automaton,
        symbol_map=symbol_map,
        glosses=("",) * symbol_map.n_symbols,
        calibration=calibration,
        vocabulary=(),
        typical=np.zeros(N_FEATURES, np.float32),
        path=Path("made up"),
    )
    return AutomatonModel(bundle)


def complete_tree(depth: int, words: str) -> TreeMap:
    """words: `never`, `always`, or `by turns` from level to level."""
    n = (1 << depth) - 1
    rng = np.random.default_rng(depth)
    level = np.log2(np.arange(1, n + 1)).astype(int)
    asks_words = {"never": level < 0, "always": level >= 0, "by turns": level % 2 == 1}[words]
    feature = np.where(asks_words, -1 - rng.integers(0, 4096, n), rng.integers(0, N_FEATURES, n))
    children = np.arange(n)[:, None] * 2 + [1, 2]
    children = np.where(children < n, children, n - 1 - children)
    return TreeMap.of(feature, rng.normal(size=n), children[:, 0], children[:, 1])


def per_step(loop: Callable[[], int]) -> dict[str, float]:
    """Nanoseconds a step: best and median of several loops. loop: does its steps and says how many."""
    loop()
    times = []
    for _ in range(LOOPS):
        began = perf_counter_ns()
        n = loop()
        times.append((perf_counter_ns() - began) / n)
    return {"best_ns": round(min(times), 1), "median_ns": round(float(np.median(times)), 1)}


def time_transitions() -> list[dict[str, Any]]:
    rows = []
    for n_states, n_symbols in SIZES:
        model = model_of(random_automaton(n_states, n_symbols, (3, 6, 10, 15, 20, 30)), TypedMap(names(n_symbols)))
        string = np.random.default_rng(5).integers(0, n_symbols, 100_000).tolist()

        def walk(model: AutomatonModel = model, string: list[int] = string) -> int:
            place, count = 0, 0
            for symbol in string:
                count += 1
                place, _, _ = model.follow(place, symbol, count)
            return count

        rows.append({"row": "transition", "of": f"{n_states} states, {n_symbols} symbols", **per_step(walk)})
    return rows


def names(n_symbols: int) -> tuple[str, ...]:
    return tuple(f"tool_{i}" for i in range(n_symbols // 4 - 1))


def time_maps() -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    tools = names(84)
    steps = [
        (
            tools[int(rng.integers(len(tools)))],
            SparseRow(np.sort(rng.choice(4096, 50, replace=False)), np.ones(50, np.float32)),
            rng.normal(size=N_FEATURES).astype(np.float32),
        )
        for _ in range(500)
    ]
    maps: dict[str, SymbolMap] = {"typed, 20 tools": TypedMap(tools)}
    maps |= {
        f"tree, depth {depth}, words {words}": complete_tree(depth, words)
        for depth in (5, 8)
        for words in ("never", "always", "by turns")
    }
    columns = np.sort(rng.choice(4096, 300, replace=False))
    score = WordScore(columns, rng.normal(size=300))
    maps["tree, depth 1, a score of 300 words"] = TreeMap.of([N_FEATURES], [0.0], [-1], [-2], (score,))
    rows = []
    for name, symbol_map in maps.items():

        def look(symbol_map: SymbolMap = symbol_map) -> int:
            for tool, row, numbers in steps:
                symbol_map.symbol(tool, row, numbers)
            return len(steps)

        rows.append({"row": "map", "of": name, **per_step(look)})
    return rows


def time_monitor(monitor: Monitor, steps: int) -> list[dict[str, Any]]:
    """The monitor's own model step on real rows and context, and whole observes."""
    way = latency.events_for(monitor)
    draw = latency.words_of(monitor.bundle.vocabulary)
    texts = [draw(500) for _ in range(latency.RUN_LENGTH)]
    seen, memory = [], context.start()
    for record in latency.records_of(monitor, way, texts):
        tokens = tokenize(serialize(record))
        row = monitor.bundle.vocabulary.encode(tokens)
        seen.append((record.tool, row, context.update(memory, record, tokens)))

    def run() -> int:
        state = monitor.model.initial
        for tool, row, numbers in seen:
            state = monitor.model.step(tool, row, numbers, state).state
        return len(seen)

    rows = [{"row": "model.step", "of": describe(monitor), **per_step(run)}]
    calm, worried = latency.with_watch(monitor, 1.0), latency.with_watch(monitor, -1.0)
    for tokens_a_step in (50, 500):
        texts = [draw(tokens_a_step) for _ in range(steps)]
        for name, one in (("observe", calm), ("observe, with reasons", worried)):
            if way is not None:
                timed = latency.time_events(one, way, texts)
            else:
                timed = latency.time_records(one, latency.uncut(texts))
            rows.append({"row": name, "of": f"{tokens_a_step} tokens", **timed})
        for part, took in latency.parts(monitor, way, texts).items():
            rows.append({"row": f"of it: {part}", "of": f"{tokens_a_step} tokens", "cpu_p50_us": took})
    return rows


def describe(monitor: Monitor) -> str:
    automaton, symbol_map = monitor.bundle.automaton, monitor.bundle.symbol_map
    if automaton is None or symbol_map is None:
        return f"kind {monitor.bundle.kind}"
    kind = "model" if isinstance(symbol_map, ModelMap) else symbol_map.to_json()["kind"]
    return f"{automaton.n_states} states, {automaton.n_symbols} symbols, {kind}"


def to_text(result: dict[str, Any]) -> str:
    on = result["machine"]
    lines = [f"{on['cpu']}, load {on['load']}, Python {on['python']}, one thread", ""]
    lines.append(f"{'row':<32} {'of':<36} {'best us':>9} {'p50 us':>9} {'p99 us':>9} {'cpu p50':>9}")
    for row in result["rows"]:
        best, p50 = row.get("best_ns"), row.get("median_ns")
        figures = [
            None if best is None else best / 1000,
            row.get("p50_us") if p50 is None else p50 / 1000,
            row.get("p99_us"),
            row.get("cpu_p50_us"),
        ]
        shown = " ".join(f"{'' if x is None else f'{x:.3f}' if x < 10 else f'{x:.1f}':>9}" for x in figures)
        lines.append(f"{row['row']:<32} {row['of']:<36} {shown}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path, nargs="?", help="a bundle, best of kind automaton")
    parser.add_argument("--steps", type=int, default=2000, help="steps of `observe` that are measured")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    rows = time_transitions() + time_maps()
    result: dict[str, Any] = {"machine": latency.machine(), "threads": 1, "rows": rows}
    if options.monitor is not None:
        monitor = load(options.monitor)
        result |= {"monitor": monitor.bundle.id, "rows": rows + time_monitor(monitor, options.steps)}
    print(to_text(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
