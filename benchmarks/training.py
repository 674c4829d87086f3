"""What does training cost? Seconds a stage and peak memory, on one core.

    python benchmarks/training.py .traces/tau_bench --adapter tau_bench
    python benchmarks/training.py RUNS --adapter NAME --featurise      # up to the sparse rows, for large folders
    python benchmarks/training.py --generate 1000000000                # the same on generated runs

Prints a table and JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import LearnListener, TrainConfig, featurise, train
from prefixguard.simulation import write_runs
from prefixguard.stepview import load_adapter, read_runs


class Stages(LearnListener):
    """Seconds of each stage."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.stage: str | None = None

    def on_stage(self, name: str, detail: str = "") -> None:
        now = time.monotonic()
        if self.stage is not None:
            self.seconds[self.stage] = round(self.seconds.get(self.stage, 0.0) + now - self.began, 2)
        self.began, self.stage = now, name


def peak_mb() -> float:
    """Greatest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train_once(runs: Path, adapter: str) -> dict:
    """One whole training."""
    stages = Stages()
    began, cpu = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        result = train(runs, out=Path(folder) / "m", adapter=adapter, config=TrainConfig(), listener=stages)
        stages.on_stage("end")
    fit = sum(stages.seconds.get(s, 0.0) for s in ("teacher", "network", "symbols"))
    return {
        "runs": result.manifest["data"]["runs"],
        "steps": result.manifest["data"]["steps"],
        "stages": stages.seconds,
        "fit_seconds": round(fit, 1),
        "all_seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_mb": round(peak_mb()),
    }


def featurise_only(runs: Path, adapter: str) -> dict:
    """Read, count n-grams and encode, as training does before it fits anything."""
    before = peak_mb()
    began = time.monotonic()
    corpus = featurise(read_runs(runs, load_adapter(adapter)))
    read = time.monotonic() - began
    vocabulary, report = fit_vocabulary(corpus.texts(range(len(corpus))))
    fitted = time.monotonic() - began - read
    corpus.encode(vocabulary)
    return {
        "bytes": sum(p.stat().st_size for p in runs.rglob("*") if p.is_file()),
        "runs": len(corpus),
        "steps": int(corpus.first[-1]),
        "peak_mb_before": round(before),
        "peak_mb": round(peak_mb()),
        "read_seconds": round(read, 1),
        "vocabulary_seconds": round(fitted, 1),
        "encode_seconds": round(time.monotonic() - began - read - fitted, 1),
        "distinct_ngrams": report.distinct,
        "dropped_below": report.dropped_below,
    }


def generated(size: int) -> dict:
    """`featurise_only` of a generated folder of about `size` bytes, a file a thousand runs."""
    with tempfile.TemporaryDirectory() as name:
        folder, written, n = Path(name), 0, 0
        while written < size:
            written += write_runs(folder / f"{n:04d}.jsonl", 1000, n)
            n += 1
        return featurise_only(folder, "openai_chat")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("--adapter")
    parser.add_argument("--featurise", action="store_true", help="stop before anything is fitted")
    parser.add_argument(
        "--generate", type=int, metavar="BYTES", help="featurise so many bytes of the simulation's runs"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.generate:
        result = generated(args.generate)
    elif args.runs is None or args.adapter is None:
        parser.error("give RUNS and --adapter, or --generate BYTES")
    else:
        result = (featurise_only if args.featurise else train_once)(args.runs, args.adapter)
    for key, value in result.items():
        print(f"{key:20s} {value}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
