"""What does training cost? Seconds a stage and peak memory, on one core.

    python benchmarks/training.py .traces/tau_bench --adapter tau_bench
    python benchmarks/training.py --gigabyte      # featurise a generated folder of 1 GB, peak memory

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
from prefixguard.lab import write_runs
from prefixguard.learn import LearnListener, TrainConfig, featurise, train
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


def gigabyte(size: int) -> dict:
    """Featurise a generated folder of about `size` bytes, a file a thousand runs."""
    with tempfile.TemporaryDirectory() as name:
        folder, written, n = Path(name), 0, 0
        while written < size:
            written += write_runs(folder / f"{n:04d}.jsonl", 1000, n)
            n += 1
        before = peak_mb()
        began = time.monotonic()
        corpus = featurise(read_runs(folder, load_adapter("openai_chat")))
        read = time.monotonic() - began
        vocabulary, report = fit_vocabulary(corpus.texts(range(len(corpus))))
        fitted = time.monotonic() - began - read
        corpus.encode(vocabulary)
        return {
            "bytes": written,
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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("--adapter")
    parser.add_argument("--gigabyte", action="store_true")
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if not args.gigabyte and (args.runs is None or args.adapter is None):
        parser.error("give RUNS and --adapter, or --gigabyte")
    result = gigabyte(args.bytes) if args.gigabyte else train_once(args.runs, args.adapter)
    for key, value in result.items():
        print(f"{key:20s} {value}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
