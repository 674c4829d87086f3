"""How well does `induce-adapter --offline` read formats that it was not built on, against what the runs really were?

    python benchmarks/unseen.py                            every format of tests/induce/unseen
    python benchmarks/unseen.py desk_csv                   one of them

A format is written as samples, an adapter is induced from them without hints, and its reading is compared with the
truth that the generator knows: records, names of tools (exactly), results, outcomes, tasks. It is read if all five are
at least 0.95.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from agreement import Reading, agree, readings

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import Adapter, StepRecord, canonical, read_runs

FIGURES = ("records", "tools", "results", "outcomes", "tasks")
READ = 0.95


def truth_of(runs: Sequence[Any]) -> list[Reading]:
    """What the runs really were, as a perfect adapter would read it."""
    return [
        Reading(f"{run.file} {run.run}", run.task_id or run.task or run.run, run.outcome, tuple(_records(run.steps)))
        for run in runs
    ]


def _records(steps: Sequence[Any]) -> list[StepRecord]:
    out: list[StepRecord] = []
    heard: list[str] = []
    for step in steps:
        if step.kind == "observe":
            heard.append(step.text)
            continue
        arguments = ""
        if step.arguments is not None:
            bare = set(step.arguments) == {""}
            arguments = str(step.arguments[""]) if bare else canonical(step.arguments)
        is_call = step.kind == "call"
        status = "unknown" if step.is_error is None else "error" if step.is_error else "ok"
        tool, action, result = (step.tool, step.said, step.text) if is_call else ("respond", step.text, "")
        seen, heard = "\n".join(heard), []
        out.append(StepRecord(len(out) + 1, "agent", "", tool, arguments, seen, action, result, status))
    return out


def measure(form: Any, seed: int, runs: int, kept: Path | None) -> dict[str, Any]:
    """The five figures of one format, and what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / form.name
        truth = truth_of(form.write(root, seed, runs))
        began = time.monotonic()
        try:
            spec = dict(propose_by_search(open_samples(root), name="unseen").spec)
            seconds = time.monotonic() - began
            if kept is not None:
                kept.mkdir(parents=True, exist_ok=True)
                text = json.dumps(spec, indent=1, ensure_ascii=False)
                (kept / f"{form.name}.json").write_text(f"{text}\n", encoding="utf-8")
            found = readings(read_runs(root, Adapter(spec)), root)
        except PrefixGuardError as exc:
            return dict.fromkeys(FIGURES, 0.0) | {"seconds": time.monotonic() - began, "why": str(exc)[:160]}
        agreed = agree(found, truth)
        figures = {name: getattr(agreed, name) for name in FIGURES}
        if agreed.runs < READ:
            figures["records"] = min(figures["records"], agreed.runs)
        missed = {name: 1.0 if value is None and agreed.runs else value or 0.0 for name, value in figures.items()}
        more = f"runs {agreed.runs} joined {agreed.records_joined} arguments {agreed.arguments} status {agreed.status}"
        return missed | {"seconds": seconds, "why": f"{more} observation {agreed.observations} action {agreed.actions}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="names of formats (default: all)")
    default = Path(__file__).parents[1] / "tests" / "induce"
    parser.add_argument("--generators", type=Path, default=default, help="folder that holds the package unseen")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--specs", type=Path, help="keep the induced specs here")
    args = parser.parse_args()
    sys.path.insert(0, str(args.generators))
    from unseen import FORMATS

    read = whole = 0
    print("| format | group | " + " | ".join(FIGURES) + " | read | seconds | |")
    print("| --- " * (len(FIGURES) + 5) + "|")
    for name, form in FORMATS.items():
        if args.formats and name not in args.formats:
            continue
        found = measure(form, args.seed, args.runs, args.specs)
        good = all(found[figure] >= READ for figure in FIGURES)
        read, whole = read + good, whole + 1
        shown = " | ".join(f"{found[figure]:.3f}" for figure in FIGURES)
        answer = "yes" if good else "no"
        print(f"| {name} | {form.group} | {shown} | {answer} | {found['seconds']:.1f} | {found['why']} |", flush=True)
    print(f"\nread: {read} of {whole}")


if __name__ == "__main__":
    main()
