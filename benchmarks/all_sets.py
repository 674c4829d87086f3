"""A monitor on each of eleven sets, as a user makes and judges it: train, evaluate on its test tasks, audit the runs.

    python benchmarks/all_sets.py .traces --out benchmarks/results/all_sets

Each set is split by task as `train` does; the figures are those of `evaluate` on the tasks set aside. A set whose runs
all ended alike is audited only. Sets are kept in the output folder as they are done, so that an interrupted benchmark
goes on where it stopped. Prints a table; writes NAME.json (everything that `evaluate --json` says) and all_sets.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.evaluation import evaluate
from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.learn import TrainConfig, featurise, train_corpus
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

#: Set: the adapter that reads it.
SETS = {
    "tau_bench": "tau_bench", "tau2": "tau2", "sweagent": "sweagent", "minisweagent": "mini_swe_agent",
    "terminal_bench": "terminal_log", "webshop_react": "webshop_react", "mind2web_abp": "online_mind2web",
    "intercode": "intercode", "reflexion": "react_log", "whoandwhen": "whoandwhen",
    "sentinel": "sentinel",
}  # fmt: skip
#: Runs that are taken at most, chosen by the hash of their id.
MOST = 2500


def runs_of(traces: Path, name: str) -> Iterator[Run[StepRecord]]:
    """The runs of a set."""
    found = list(read_runs(traces / name, load_adapter(SETS[name])))
    if len(found) > MOST:
        found = sorted(found, key=lambda r: hashlib.sha256(f"13:{r.run_id}".encode()).hexdigest())[:MOST]
    return iter(sorted(found, key=lambda r: r.run_id))


def run_set(name: str, traces: Path, backend: str) -> dict[str, Any]:
    """Figures of a set; without an evaluation where none could be made, and why."""
    print(f"{name}: reading", file=sys.stderr, flush=True)
    runs = list(runs_of(traces, name))
    audit = audit_leaks(iter(runs)).as_json()
    known = [run for run in runs if run.outcome is not Outcome.UNKNOWN]
    result: dict[str, Any] = {
        "set": name, "backend": backend, "runs": len(runs), "judged": len(known),
        "failed": sum(run.outcome is Outcome.FAILURE for run in known), "leaks": audit,
    }  # fmt: skip
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(f"{name}: training", file=sys.stderr, flush=True)
            adapter = load_adapter(SETS[name])
            made = train_corpus(
                featurise(iter(runs)), adapter, out=Path(folder) / "m", config=TrainConfig(backend=backend)
            )
            result["seconds"] = round(time.process_time() - began, 1)
            result["evaluation"] = evaluate(made.path, iter(runs)).as_json()
        except PrefixGuardError as exc:
            result["reason"] = str(exc)
    return result


def text(results: list[dict[str, Any]]) -> str:
    """All sets as a Markdown table."""
    head = (
        "set", "runs, failed", "tested on", "AUPRC imminent", "step index", "end oracle", "best rule",
        "rem: outcome", "within", "at 10 %: false alarms", "failed runs alerted", "early", "lead", "leaks found",
        "verdict",
    )  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for r in results:
        errors = sum(f["severity"] == "error" for f in r["leaks"]["findings"])
        leaks = f"{errors} errors, {len(r['leaks']['findings']) - errors} warnings"
        first = f"{r['judged']:,}, {r['failed'] / max(r['judged'], 1):.0%}"
        e = r.get("evaluation")
        if e is None:
            lines.append(f"| {r['set']} | {first} | " + " | ".join([""] * 11) + f" | {leaks} | {r['reason']} |")
            continue
        rules = ("same call 4 times", "3 errors in a row", "incumbent rule", "same call repeated", "errors in a row",
                 "stuck detector")  # fmt: skip
        best = max(e["baselines"][n]["imminent"]["auprc"] or 0 for n in rules if n in e["baselines"])
        alert = next((a for a in e["first_alert"] if abs(a["budget"] - 0.1) < 1e-9), None)
        granted = alert is not None and alert["threshold"] is not None
        cells = [
            r["set"], first, f"{e['runs']} runs, {e['failed_runs']} failed", spread(e["imminent"], "auprc"),
            number(e["baselines"]["step index"]["imminent"]["auprc"]),
            number(e["baselines"]["end oracle"]["imminent"]["auprc"]), number(best),
            spread(e["outcome"], "outcome_auroc_at_remaining"), number(e["outcome"]["outcome_auroc_within_groups"]),
            *([share(alert["false_alarm_rate"]), share(alert["alerted"]), share(alert["early"]),
               "" if alert["lead_median"] is None else f"{alert['lead_median']:g}"] if granted
              else ["refused", "", "", ""]),
            leaks, re.split("[:.] ", e["verdict"]["text"])[0],
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Three digits, or nothing."""
    return "" if value is None else f"{value:.3f}"


def share(value: float | None) -> str:
    """Per cent, or nothing."""
    return "" if value is None else f"{value:.1%}"


def spread(figures: dict[str, Any], name: str) -> str:
    """A figure with its interval."""
    ends = figures["intervals"].get(name)
    return number(figures[name]) + ("" if ends is None else f" ({ends[0]:.3f}, {ends[1]:.3f})")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--backend", default="gru", help="what is trained")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/all_sets"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        path = args.out / f"{name}.json"
        if not path.exists() or json.loads(path.read_text())["backend"] != args.backend:
            path.write_text(json.dumps(run_set(name, args.traces, args.backend), indent=1) + "\n")
            print(f"{name} done", file=sys.stderr, flush=True)
        paths = [p for n in SETS if (p := args.out / f"{n}.json").exists()]
        table = text([json.loads(p.read_text()) for p in paths])
        (args.out / "all_sets.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    main()
