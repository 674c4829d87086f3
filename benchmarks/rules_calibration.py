"""Rules calibrated on runs without outcomes: how many new runs alarm, at these counts and at the usual ones.

    python benchmarks/rules_calibration.py .traces

Half of the tasks, by the hash of their name, calibrate; the runs of the other half are counted, both ways. A set whose
halves are too small for the rate, or whose runs no counts keep to it, is refused, and is said. Writes
rules_calibration.json and rules_calibration.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import all_sets
import behaviours

from prefixguard.alarm import alarm_scale
from prefixguard.errors import DataError
from prefixguard.runtime import calibrate_rules
from prefixguard.trace import Outcome, task_key

SHARES = ("runs", "succeeded", "failed")


def run_half(name: str, runs: list[Any], scales: list[Fraction], half: list[bool], rate: float) -> dict[str, Any]:
    """Calibrate on the runs of one half of the tasks, and count on the others. scales: at most which a run alarms."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = calibrate_rules(
                (run for run, mine in zip(runs, half, strict=True) if mine),
                out=Path(folder) / "rules.json", alarm_rate=rate, adapter=all_sets.SETS[name],
            )  # fmt: skip
        except DataError as exc:
            return {"refused": str(exc).partition(":")[0]}
    new = [(run.outcome, scale) for run, scale, mine in zip(runs, scales, half, strict=True) if not mine]
    of = dict(zip(SHARES, (set(Outcome), {Outcome.SUCCESS}, {Outcome.FAILURE}), strict=True))

    def shares(least: float) -> dict[str, float | None]:
        counted = {row: [scale >= least for outcome, scale in new if outcome in wanted] for row, wanted in of.items()}
        return {row: sum(alarms) / len(alarms) if alarms else None for row, alarms in counted.items()}

    return {
        "tasks": found.calibration.drawn, "scale": found.scale, "new_runs": len(new),
        "calibrated": shares(found.scale), "usual": shares(1.0),
    }  # fmt: skip


def run_set(name: str, traces: Path, rate: float) -> dict[str, Any]:
    """Both halves of a set."""
    print(name, file=sys.stderr, flush=True)
    runs = [run for run in all_sets.runs_of(traces, name) if run.records]
    half = [hashlib.sha256(task_key(run).encode()).digest()[0] % 2 == 0 for run in runs]
    found = [behaviours.findings_of(list(run.records)) for run in runs]
    scales = [max((alarm_scale(findings) for findings in of), default=Fraction(0)) for of in found]
    return {
        "set": name, "rate": rate,
        "halves": [run_half(name, runs, scales, [one is mine for one in half], rate) for mine in (True, False)],
    }  # fmt: skip


def text(results: list[dict[str, Any]]) -> str:
    """The table as Markdown."""
    lines = [
        f"Rules calibrated at an alarm rate of {results[0]['rate']:.0%}: share of new runs that alarm (of those that "
        "succeeded, of those that failed), of either half of the tasks; and with the usual counts:",
        "",
        "| set | tasks that calibrate | scale of the counts | calibrated | usual counts |",
        "| --- | --- | --- | --- | --- |",
    ]

    def said(shares: dict[str, float | None]) -> str:
        every, *rest = ("-" if shares[row] is None else f"{shares[row]:.1%}" for row in SHARES)
        return f"{every} ({', '.join(rest)})"

    for r in results:
        kept = [half for half in r["halves"] if "refused" not in half]
        rows = [
            (str(half["tasks"]), f"{half['scale']:.3g}", said(half["calibrated"]), said(half["usual"])) for half in kept
        ]
        if kept:
            cells = ["; ".join(column) for column in zip(*rows, strict=True)]
            lines.append(f"| {r['set']} | {' | '.join(cells)} |")
    refused = [(r["set"], half["refused"]) for r in results for half in r["halves"] if "refused" in half]
    lines += ["", "Refused:", "", *(f"- {name}: {why}" for name, why in refused)] if refused else []
    return "\n".join([*lines, ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(all_sets.SETS), default=list(all_sets.SETS))
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    args = parser.parse_args()
    results = [run_set(name, args.traces, args.rate) for name in args.sets]
    (args.out / "rules_calibration.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "rules_calibration.md").write_text(text(results))
    print(text(results))


if __name__ == "__main__":
    main()
