"""The escalation tier end to end: a scripted auditor of known skill over real HTTP, and cascades in the simulation.

    python benchmarks/escalation.py [MONITOR] [--runs 200] [--curve-runs 400] [--json out.json] [--markdown out.md]

Three parts, all on fresh runs of the simulated shop, of which the decisive step is known:

    audits    the real client, prompts, parser and walk through `audit`; figures beside what the script must give
    ledger    the real `Escalator` on live runs; every question offered ends in exactly one way
    cascades  share of steps escalated against Exact-F1, false alarms, calls and money; replayed from verdicts on all
              prefixes, and at two points audited over HTTP behind the gate, which must give the very same rows
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from escalation_audits import audits
from escalation_cascades import cascades
from escalation_ledger import LOADS, ledger
from escalation_material import GPU_HOUR, GPU_READS, GPU_WRITES, PRICE_IN, PRICE_OUT, REPLY_TOKENS, Material
from escalation_text import to_markdown

from prefixguard.runtime import load
from prefixguard.simulation import generate

MONITOR = Path(__file__).parent.parent / "monitors" / "lab"
RESULTS = Path(__file__).parent / "results"


def measure(path: Path, n_runs: int, n_curve: int, seed: int, resamples: int) -> dict[str, Any]:
    monitor = load(path)
    began = perf_counter()
    material = Material.made(n_runs, seed)
    found: dict[str, Any] = {"monitor": monitor.bundle.id, "seed": seed, "audits": audits(material, seed)}
    events = [run["messages"] for run in generate(min(n_runs, 60), seed, trials=1)]
    found["ledger"] = [ledger(one, monitor, material, events) for one in LOADS]
    print(f"ledger done after {perf_counter() - began:.0f} s", file=sys.stderr)
    found["cascades"] = cascades(monitor, Material.made(n_curve, seed + 2), n_curve, seed + 2, resamples)
    found["prices"] = {
        "in_per_million": PRICE_IN,
        "out_per_million": PRICE_OUT,
        "gpu_hour": GPU_HOUR,
        "gpu_reads_a_second": GPU_READS,
        "gpu_writes_a_second": GPU_WRITES,
        "reply_tokens": REPLY_TOKENS,
    }
    found["seconds"] = round(perf_counter() - began, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path, nargs="?", default=MONITOR)
    parser.add_argument("--runs", type=int, default=200, help="runs that are audited and watched")
    parser.add_argument("--curve-runs", type=int, default=400, help="runs of the cascades, and of their calibration")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--json", type=Path, default=RESULTS / "escalation.json")
    parser.add_argument("--markdown", type=Path, default=RESULTS / "escalation.md")
    options = parser.parse_args()
    found = measure(options.monitor, options.runs, options.curve_runs, options.seed, options.resamples)
    options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    options.markdown.write_text(to_markdown(found), encoding="utf-8")
    print(to_markdown(found))


if __name__ == "__main__":
    main()
