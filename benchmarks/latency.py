"""End-to-end latency of `Session.observe`, and where the time goes.

    python benchmarks/latency.py MONITOR [--steps 2000] [--json out.json]
    python benchmarks/latency.py MONITOR --before TREE OLD_MONITOR [--rounds 12]

One thread. A step is an event whose result has about 50, 500 or 5,000 tokens: words of the monitor's own vocabulary,
words it does not know, and numbers, in an order drawn by a fixed seed. Rows of a size:

    observe                a raw event through the adapter, level OK (no reasons)
    observe, with reasons  the same, forced to WATCH at every step
    record, uncut          the step as a record with all its tokens, past the adapter's budgets (which cut long texts)
    two plain Python loops a yardstick in the same run: tokens, n-grams and new words by plain loops, nothing else

Adapters for chat histories are fed a call and its result, and the result's `observe` is timed. Others are fed what
`EVENTS` has for them; where it has nothing, only the record rows are measured, and the table says so. The parts are
timed on the same steps, one by one, and their sum is compared with the whole.

With --before, another checkout of this repository with a monitor of its own is measured in turns with this one, a
process each, so that both see the same machine: medians over the rounds, and the median ratio within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
import onnxruntime

from prefixguard import behaviours, context
from prefixguard.alarm import AlarmState, Level, Thresholds
from prefixguard.encoder import Vocabulary, tokenize
from prefixguard.runtime import Monitor, load
from prefixguard.runtime.reasons import behaviour_reasons
from prefixguard.stepview import StepRecord, serialize

SIZES = (50, 500, 5000)
_WORD = re.compile(rb"[0-9a-z_\x80-\xff]+")
_SHARES = "where_the_time_goes_cpu_us_p50"
RUN_LENGTH = 20  # steps of one run, after which a new session begins
Draw = Callable[[int], str]


def words_of(vocabulary: Vocabulary, seed: int = 13) -> Draw:
    """Texts of n tokens: 60 % from the vocabulary, 25 % unknown words, 15 % numbers."""
    known = sorted({word for term in vocabulary.terms for word in term.partition(":")[2].split()}) or ["word"]
    rng = np.random.default_rng(seed)

    def draw(n: int) -> str:
        kinds, picks = rng.random(n), rng.integers(0, 1 << 30, n)
        return " ".join(
            known[p % len(known)] if k < 0.6 else f"word{p % 5000}" if k < 0.85 else str(p % 100_000)
            for k, p in zip(kinds.tolist(), picks.tolist(), strict=True)
        )

    return draw


def chat(i: int, text: str) -> list[Any]:
    """A call and its result, as chat completions have them."""
    function = {"name": ("search", "get_order", "update")[i % 3], "arguments": json.dumps({"id": f"#W{i % 7}"})}
    call = {"id": f"c{i}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "I look it up.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{i}", "name": function["name"], "content": text},
    ]


def messages(i: int, text: str) -> list[Any]:
    """An action in a code block and what the shell or page answers."""
    return [
        {"role": "assistant", "content": f"THOUGHT: next.\n```bash\nls dir{i % 7}\n```"},
        {"role": "user", "content": text},
    ]


#: Ways to say a step; the first that the adapter turns into one record a step is used.
EVENTS: tuple[Callable[[int, str], list[Any]], ...] = (
    chat,
    messages,
    lambda i, text: [{"action": f"click[item {i % 7}]", "observation": text, "thought": "next"}],
    lambda i, text: [f"Action {i}: Search[x{i % 7}]\nObservation {i}: {text}\nThought {i + 1}: so\n"],
)


def events_for(monitor: Monitor) -> Callable[[int, str], list[Any]] | None:
    """The way to say a step that this monitor's adapter reads: the last event of each step completes it."""
    for way in EVENTS:
        session = monitor.start()
        try:
            told = [session.observe(event) for i in range(1, 5) for event in way(i, "some words")]
        except Exception:  # a way to say a step that is no event at all to this adapter
            continue
        per_step = len(told) // 4
        last = told[per_step - 1 :: per_step][1:]
        if all(len(readings) == 1 and readings[0].level is not Level.UNKNOWN for readings in last):
            return way
    return None


def with_watch(monitor: Monitor, watch: float) -> Monitor:
    """The monitor with its levels pinned: below 0 all is WATCH, at 1 all is OK."""
    thresholds = Thresholds(alarm=None, watch=watch, n_runs=0, allowed=0, needed=0, reason="for measuring")
    calibration = replace(monitor.bundle.calibration, thresholds=thresholds)
    return Monitor(replace(monitor.bundle, calibration=calibration))


def summary(times_ns: list[tuple[int, int]]) -> dict[str, float]:
    """p50 and p99 of the time on the clock, and p50 of the processor's time, which other work does not lengthen as
    much; the two agree on a machine that does nothing else."""
    clock, processor = np.array(times_ns).T / 1000
    p50, p99 = np.percentile(clock, [50, 99])
    own = float(np.median(processor))
    return {
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "cpu_p50_us": round(own, 1),
        "n": len(clock),
    }


def time_events(monitor: Monitor, way: Callable[[int, str], list[Any]], texts: list[str]) -> dict[str, float]:
    """Time of the event that completes a step."""
    times: list[tuple[int, int]] = []
    session = monitor.start()
    for i, text in enumerate(texts):
        if i % RUN_LENGTH == 0:
            session = monitor.start()
        *before, last = way(i, text)
        for event in before:
            session.observe(event)
        began, own = perf_counter_ns(), thread_time_ns()
        readings = session.observe(last)
        took = (perf_counter_ns() - began, thread_time_ns() - own)
        if readings and i >= RUN_LENGTH:
            times.append(took)
    return summary(times)


def records_of(monitor: Monitor, way: Callable[[int, str], list[Any]] | None, texts: list[str]) -> list[StepRecord]:
    """The records that the adapter makes of the steps, or, without a way to say them, the steps uncut."""
    if way is None:
        return uncut(texts)
    parser = monitor.bundle.adapter.parser(None)
    return [record for i, text in enumerate(texts) for event in way(i, text) for record in parser.observe(event)]


def uncut(texts: list[str]) -> list[StepRecord]:
    return [
        StepRecord(i + 1, "agent", "", "search", json.dumps({"id": f"#W{i % 7}"}), "", "I look it up.", text, "ok")
        for i, text in enumerate(texts)
    ]


def time_records(monitor: Monitor, records: list[StepRecord]) -> dict[str, float]:
    times: list[tuple[int, int]] = []
    session = monitor.start()
    for i, record in enumerate(records):
        if i % RUN_LENGTH == 0:
            session = monitor.start()
        began, own = perf_counter_ns(), thread_time_ns()
        session.observe_record(record)
        took = (perf_counter_ns() - began, thread_time_ns() - own)
        if i >= RUN_LENGTH:
            times.append(took)
    return summary(times)


def time_plain_loops(monitor: Monitor, records: list[StepRecord]) -> dict[str, float]:
    """A yardstick of the machine: what two plain Python loops over the tokens would cost, one that counts known words
    and pairs, one that asks which words are new. No model, no features."""
    known = {term.partition(":")[2]: i for i, term in enumerate(monitor.bundle.vocabulary.terms)}
    times: list[tuple[int, int]] = []
    for record in records:
        document = serialize(record)
        began, own = perf_counter_ns(), thread_time_ns()
        words = [word.decode("utf-8", "replace") for word in _WORD.findall(document.lower())]
        counts: dict[int, int] = {}
        for i, word in enumerate(words):
            for term in (word, f"{words[i - 1]} {word}") if i else (word,):
                column = known.get(term)
                if column is not None:
                    counts[column] = counts.get(column, 0) + 1
        seen: set[str] = set()
        new = numbers = 0
        for word in words:
            if word not in seen:
                new += 1
                seen.add(word)
            numbers += any(letter.isdigit() for letter in word)
        times.append((perf_counter_ns() - began, thread_time_ns() - own))
    return summary(times)


def parts(monitor: Monitor, way: Callable[[int, str], list[Any]] | None, texts: list[str]) -> dict[str, float]:
    """Median microseconds (processor time) of each part of a step, on the same steps."""
    bundle, model = monitor.bundle, monitor.model
    names = (
        "adapter", "serialise", "tokenise", "encode", "context", "behaviours", "model", "calibrate and alarm",
        "reasons",
    )  # fmt: skip
    times: dict[str, list[int]] = {name: [] for name in names}
    parser = bundle.adapter.parser(None) if way is not None else None
    loose = iter(uncut(texts))
    now = thread_time_ns
    memory, state, tracker = context.start(), model.initial, behaviours.start()
    alarm = AlarmState(bundle.calibration.policy, bundle.calibration.thresholds)
    for i, text in enumerate(texts):
        if i % RUN_LENGTH == 0:
            memory, state, tracker = context.start(), model.initial, behaviours.start()
        t = [now(), now()]
        if parser is None or way is None:
            record = next(loose)
        else:
            *before, last = way(i, text)
            for event in before:
                parser.observe(event)
            t = [now()]
            records = parser.observe(last)
            t.append(now())
            if not records:
                continue
            record = records[0]
        document = serialize(record)
        t.append(now())
        tokens = tokenize(document)
        t.append(now())
        row = bundle.vocabulary.encode(tokens)
        t.append(now())
        numbers = context.update(memory, record, tokens)
        t.append(now())
        behaviours.update(tracker, record, tokens, memory, numbers)
        t.append(now())
        step = model.step(record.tool, row, numbers, state)
        t.append(now())
        monitor.imminent_map(step.imminent)
        alarm.step(monitor.outcome_map(step.outcome))
        t.append(now())
        behaviour_reasons((), (), model, row, numbers, state, step)  # what they cost at most: with the graph
        t.append(now())
        state = step.state
        if i >= RUN_LENGTH:
            for name, ns in zip(names, np.diff(t).tolist(), strict=True):
                times[name].append(ns)
    return {name: round(float(np.median(ns)) / 1000, 1) for name, ns in times.items()}


def measure(monitor: Monitor, steps: int) -> dict[str, Any]:
    calm, worried = with_watch(monitor, 1.0), with_watch(monitor, -1.0)
    way = events_for(monitor)
    draw = words_of(monitor.bundle.vocabulary)
    rows, shares = [], {}
    for size in SIZES:
        n = steps if size <= 500 else max(steps // 5, 2 * RUN_LENGTH)
        texts = [draw(size) for _ in range(n)]
        records = records_of(monitor, way, texts[:RUN_LENGTH])
        kept = int(np.median([len(tokenize(serialize(record)).hashes) for record in records]))
        if way is not None:
            rows.append({"tokens": size, "kept": kept, "row": "observe", **time_events(calm, way, texts)})
            row = {"tokens": size, "kept": kept, "row": "observe, with reasons"}
            rows.append(row | time_events(worried, way, texts))
        rows.append({"tokens": size, "kept": size, "row": "record, uncut", **time_records(calm, uncut(texts))})
        row = {"tokens": size, "kept": kept, "row": "two plain Python loops"}
        rows.append(row | time_plain_loops(calm, records_of(monitor, way, texts)))
        shares[str(size)] = parts(calm, way, texts)
    return {
        "monitor": monitor.bundle.id,
        "adapter": monitor.bundle.adapter.name,
        "events": "none known for this adapter; records only" if way is None else getattr(way, "__name__", "events"),
        "machine": machine(),
        "threads": 1,
        "rows": rows,
        _SHARES: shares,
    }


def beside(monitor: Path, tree: Path, old: Path, steps: int, rounds: int) -> dict[str, Any]:
    """This checkout with its monitor and another one with its own, in turns."""
    here = Path(__file__).resolve().parent.parent
    told: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "figures.json")
        for _ in range(rounds):
            for name, root, bundle in (("before", tree, old), ("after", here, monitor)):
                command = [sys.executable, __file__, str(bundle.resolve()), "--steps", str(steps), "--json", str(out)]
                env = {**os.environ, "PYTHONPATH": str(root.resolve())}
                subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
                told[name].append(json.loads(out.read_text()))
    rows = []
    for i, row in enumerate(told["after"][0]["rows"]):
        found = {name: np.array([one["rows"][i]["p50_us"] for one in each]) for name, each in told.items()}
        rows.append(
            {key: row[key] for key in ("tokens", "kept", "row")}
            | {f"{name}_p50_us": round(float(np.median(each)), 1) for name, each in found.items()}
            | {f"{name}_least_p50_us": round(float(each.min()), 1) for name, each in found.items()}
            | {"ratio": round(float(np.median(found["after"] / found["before"])), 3)}
        )
    loads = [float(one["machine"]["load"]) for each in told.values() for one in each]
    parts = {
        name: {
            size: {part: round(float(np.median([one[_SHARES][size][part] for one in each])), 1) for part in shares}
            for size, shares in each[0][_SHARES].items()
        }
        for name, each in told.items()
    }
    return {
        "monitors": {name: each[0]["monitor"] for name, each in told.items()},
        "machine": machine() | {"load": f"{min(loads)} to {max(loads)}"},
        "rounds": rounds,
        "steps": steps,
        "rows": rows,
        _SHARES: parts,
    }


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = f"{names[0]} ({len(names)} logical)" if names else cpu
    return {
        "cpu": cpu,
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "onnxruntime": onnxruntime.__version__,
    }


def to_text(result: dict[str, Any]) -> str:
    on = result["machine"]
    lines = [
        f"{on['cpu']}, load {on['load']}, Python {on['python']}, one thread; adapter {result['adapter']}, "
        f"events: {result['events']}",
        "",
        f"{'tokens':>7} {'kept':>6}  {'row':<24} {'p50 us':>9} {'p99 us':>9} {'cpu p50':>9} {'n':>6}",
    ]
    for row in result["rows"]:
        lines.append(
            f"{row['tokens']:>7} {row['kept']:>6}  {row['row']:<24} {row['p50_us']:>9.1f} {row['p99_us']:>9.1f} "
            f"{row['cpu_p50_us']:>9.1f} {row['n']:>6}"
        )
    shares = result[_SHARES]
    lines += ["", "where the time goes (cpu, p50)" + "".join(f"{size:>9}" for size in shares)]
    for name in next(iter(shares.values())):
        lines.append(f"{name:<30}" + "".join(f"{shares[size][name]:>9.1f}" for size in shares))
    lines.append(
        f"{'sum without reasons':<30}"
        + "".join(f"{sum(v for k, v in shares[size].items() if k != 'reasons'):>9.1f}" for size in shares)
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path)
    parser.add_argument("--steps", type=int, default=2000, help="steps measured at 50 and 500 tokens")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--before", type=Path, nargs=2, metavar=("TREE", "OLD_MONITOR"), help="another checkout")
    parser.add_argument("--rounds", type=int, default=12, help="turns of both checkouts")
    options = parser.parse_args()
    if options.before:
        result = beside(options.monitor, *options.before, options.steps, options.rounds)
        for row in result["rows"]:
            print(*row.values(), sep="\t")
    else:
        result = measure(load(options.monitor), options.steps)
        print(to_text(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
