"""The paper's four sets with the paper's splits: with what the reference's importers leak, and without.

    python benchmarks/reproduce/run.py --webarena FOLDER --tau2 FOLDER --skillsbench FOLDER --terminalbench FOLDER

Nothing is downloaded here. A set whose folder is not given is left out, and what to download for it is said; a folder
that lacks the files ends the program with 2 before anything is fitted. `--what` says it for all sets.

For every set the table has AUPRC of the imminent risk (H = 3) on the paper's test side: of the paper's setting, boosted
trees, a GRU monitor and a DFA, of the step index and of one who knows the end, in both readings, beside the published
figures. Fits are kept as they are done: an interrupted program goes on where it stopped. Writes a JSON file a set and
reproduce.md. `--quick`: at most 1,000 runs a set, one seed, small networks (two minutes of one core for both readings
of 840 tau2 runs). Whole sets with all seeds take hours to days on two cores: begin with `--seeds 1`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import torch

from prefixguard.errors import DataError, PrefixGuardError
from prefixguard.stepview import load_adapter
from prefixguard.trace import open_documents
from reproduce.benchmark import ADAPTERS, Benchmark
from reproduce.material import READINGS, Gathered, gather
from reproduce.rows import DFA, FITTED, GRU, HORIZON, SYMBOLS, Arrays, Fits
from reproduce.sets import BENCHMARKS
from reproduce.table import Reading, compare, to_markdown

OUT = Path(__file__).parent.parent / "results" / "reproduce"
QUICK_RUNS = 1_000
_EVERY = 500  # runs between two lines of progress
_BEGAN = time.monotonic()


def say(text: str) -> None:
    """A line of progress."""
    print(f"[{time.monotonic() - _BEGAN:6.0f} s] {text}", file=sys.stderr, flush=True)


def fingerprint(benchmark: Benchmark, folder: Path, quick: bool) -> str:
    """Of the files that are read and of how: fits of other files are never taken up."""
    h = hashlib.sha256(f"{benchmark.name} {quick}".encode())
    for adapter in sorted(ADAPTERS.glob("*.json")):
        h.update(adapter.read_bytes())
    h.update(load_adapter("tau2").to_bytes())
    with open_documents(folder) as documents:
        for document in documents.matching(benchmark.files):
            h.update(f"\n{document.path}\0{documents.size(document.path)}".encode("utf-8", "surrogatepass"))
    return h.hexdigest()[:12]


class Kept:
    """Arrays that were made, a file each; written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def __contains__(self, name: str) -> bool:
        return self._path(name).exists()

    def __getitem__(self, name: str) -> Arrays:
        with np.load(self._path(name), allow_pickle=False) as data:
            return dict(data)

    def __setitem__(self, name: str, arrays: Arrays) -> None:
        path = self._path(name)
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            np.savez_compressed(stream, **dict[str, Any](arrays))
        part.replace(path)

    def _path(self, name: str) -> Path:
        return self._folder / f"{''.join(c if c.isalnum() else '_' for c in name)}.npz"


def facts_of(found: Gathered) -> Arrays:
    """What of the test side figures need, and counts of what was read."""
    corpus, sides, report = found.corpus, found.sides, found.report
    test = sides.test
    tasks = [corpus.task_ids[r] for r in test.tolist()]
    counts = {
        "runs": len(corpus),
        "failed": int(corpus.failed.sum()),
        "tasks": len(set(corpus.task_ids)),
        "steps": int(corpus.first[-1]),
        "train_runs": len(sides.train),
        "validation_runs": len(sides.validation),
        "calibration_runs": len(sides.calibration),
        "test_runs": len(test),
        "test_failed": int(corpus.failed[test].sum()),
        "test_tasks": len(set(tasks)),
        "left_out": {
            "without an outcome": found.unknown,
            "beyond the quick size": found.thinned,
            "without a step": sum(report.empty.values()),
            "unreadable": len(report.skipped),
        },
        "first_unreadable": report.skipped[0][1] if report.skipped else "",
    }
    return {
        "lengths": corpus.lengths[test],
        "failed": corpus.failed[test],
        "tasks": np.array(tasks),
        "counts": np.array(json.dumps(counts)),
    }


def measure(benchmark: Benchmark, folder: Path, reading: str, seeds: Sequence[int], kept: Kept, quick: bool) -> Reading:
    """One reading of a set; reads and fits what is not kept yet."""
    wanted = [(seed, row) for seed in seeds for row in FITTED if f"{reading} {seed} {row}" not in kept]
    if wanted or f"{reading} facts" not in kept:
        say(f"{benchmark.name}, {reading}: reading {folder}")
        most = QUICK_RUNS if quick else None
        found = gather(benchmark, folder, reading, most=most, on_run=_progress(benchmark.name))
        kept[f"{reading} facts"] = facts_of(found)
        say(f"{benchmark.name}, {reading}: {len(found.corpus):,} runs, {len(found.sides.test):,} to test on")
        for seed in seeds:
            fits = Fits(found.corpus, found.sides, seed, quick=quick)
            for row in (row for s, row in wanted if s == seed):
                kept[f"{reading} {seed} {row}"] = _fit(fits, row, kept, f"{reading} {seed} {GRU}")
                say(f"{benchmark.name}, {reading}, seed {seed}: {row} done")
    facts = kept[f"{reading} facts"]
    made = {row: [kept[f"{reading} {seed} {row}"] for seed in seeds] for row in FITTED}
    counts = json.loads(str(facts["counts"]))
    return Reading(
        lengths=facts["lengths"].tolist(),
        failed=facts["failed"].tolist(),
        tasks=facts["tasks"].tolist(),
        scores={row: [m["scores"] for m in each if "scores" in m] for row, each in made.items()},
        states=[int(m["states"]) for m in made[DFA] if "states" in m],
        facts=counts,
        missing={row: str(m["missing"]) for row, each in made.items() for m in each if "missing" in m},
    )


def _fit(fits: Fits, row: str, kept: Kept, symbols: str) -> Arrays:
    try:
        return fits.fit(row, kept[symbols].get("symbols") if row == DFA else None)
    except DataError as exc:
        return {"missing": np.array(str(exc))}


def _progress(name: str) -> Callable[[int], None]:
    def on_run(n: int) -> None:
        if n % _EVERY == 0:
            say(f"{name}: {n:,} runs read")

    return on_run


def what(names: Sequence[str]) -> str:
    """What to download for these sets, and where to put it."""
    parts = []
    for name in names:
        b = BENCHMARKS[name]
        parts.append(f"{b.title}: {b.rows:,} runs, --{name} FOLDER\n{b.download}")
    return "\n\n".join(parts)


def run_set(
    benchmark: Benchmark, folder: Path, out: Path, *, quick: bool, n_seeds: int, readings: Sequence[str]
) -> dict[str, Any]:
    """Measure a set and write its JSON file."""
    seeds = benchmark.seeds[: 1 if quick else n_seeds]
    kept = Kept(out / "fits" / f"{benchmark.name}-{fingerprint(benchmark, folder, quick)}")
    measured = {name: measure(benchmark, folder, name, seeds, kept, quick) for name in readings}
    protocol = {"seeds": list(seeds), "quick": quick, "horizon": HORIZON, "symbols": SYMBOLS}
    result = compare(benchmark, measured, protocol)
    (out / f"{benchmark.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Returns the exit code: 0, or 2 where a set is not there or cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, benchmark in BENCHMARKS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"the downloads of: {benchmark.title}")
    parser.add_argument("--reading", choices=READINGS, nargs="*", default=list(READINGS), help="default: both")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS:,} runs a set, one seed, small networks")
    parser.add_argument("--seeds", type=int, choices=(1, 2, 3), default=3, help="how many of the paper's three")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--what", action="store_true", help="say what to download, and end")
    args = parser.parse_args(arguments)
    if args.what:
        print(what(list(BENCHMARKS)))
        return 0
    given = {name: folder for name in BENCHMARKS if (folder := getattr(args, name)) is not None}
    absent = [name for name in BENCHMARKS if name not in given]
    if not given:
        print(f"No folder was given. What to download:\n\n{what(absent)}", file=sys.stderr)
        return 2
    lacking = {name: why for name, folder in given.items() if (why := BENCHMARKS[name].missing(folder)) is not None}
    if lacking:
        for name, why in lacking.items():
            print(f"{why}\n\n{what([name])}\n", file=sys.stderr)
        return 2
    if absent:
        print(f"Left out, for no folder was given:\n\n{what(absent)}\n", file=sys.stderr)
    torch.set_num_threads(max(args.threads, 1))
    args.out.mkdir(parents=True, exist_ok=True)
    readings = [name for name in READINGS if name in args.reading]
    try:
        results = [
            run_set(BENCHMARKS[name], given[name], args.out, quick=args.quick, n_seeds=args.seeds, readings=readings)
            for name in given
        ]
    except PrefixGuardError as exc:
        print(exc, file=sys.stderr)
        return 2
    text = "\n\n".join(to_markdown(result) for result in results)
    (args.out / "reproduce.md").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
