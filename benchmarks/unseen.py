"""How well does `induce-adapter` read formats that it was not built on, against what the runs really were?

    python benchmarks/unseen.py                            every format of tests/induce/unseen
    python benchmarks/unseen.py desk_csv                   one of them

A format is written as samples, the command makes an adapter of them with nobody to ask, and its reading (the draft's,
where nothing was frozen) is compared with the truth that the generator knows: records, names of tools (exactly),
results, outcomes, tasks. It is read if all five are at least 0.95. What is frozen and not read is the worst error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from agreement import Reading, agree, readings

from prefixguard.errors import PrefixGuardError
from prefixguard.stepview import Adapter, StepRecord, canonical, load_adapter, read_runs

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


def measure(form: Any, args: argparse.Namespace) -> dict[str, Any]:
    """What the command makes of one format: its exit code, the five figures of what it wrote, seconds."""
    with tempfile.TemporaryDirectory() as folder:
        root, out = Path(folder) / "samples" / form.name, Path(folder) / "out"
        truth = truth_of(form.write(root, args.seed, args.runs))
        draft = out / "draft.json"
        said = json.loads(args.said.read_text(encoding="utf-8")).get(form.name, []) if args.said else []
        if args.model:
            said = [*said, "--model", args.model, "--base-url", args.base_url]
        command = [sys.executable, "-m", "prefixguard", "induce-adapter", root, "--name", form.name, "--out", out]
        command += ["--draft", draft, "--yes", "--no-recognise", *said]
        began = time.monotonic()
        told = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        words = told.communicate()[0]
        found = {
            "exit": told.returncode,
            "frozen": (out / f"{form.name}.json").exists(),
            "seconds": round(time.monotonic() - began, 1),
        }
        if args.kept:
            args.kept.mkdir(parents=True, exist_ok=True)
            (args.kept / f"{form.name}.txt").write_text(words, encoding="utf-8")
            for made in out.glob("*.json*") if out.exists() else ():
                shutil.copy(made, args.kept / f"{form.name}.{made.name}")
        try:
            return found | figures_of(load_adapter(draft), root, truth)
        except PrefixGuardError as exc:
            return found | dict.fromkeys(FIGURES, 0.0) | {"why": str(exc)[:160]}


def figures_of(adapter: Adapter, root: Path, truth: Sequence[Reading]) -> dict[str, Any]:
    """The five figures of an adapter on these samples, and what else agrees, as words."""
    agreed = agree(readings(read_runs(root, adapter), root), truth)
    figures = {name: getattr(agreed, name) for name in FIGURES}
    if agreed.runs < READ:
        figures["records"] = min(figures["records"], agreed.runs)
    found = {name: 1.0 if value is None and agreed.runs else value or 0.0 for name, value in figures.items()}
    more = f"runs {agreed.runs} joined {agreed.records_joined} arguments {agreed.arguments} status {agreed.status}"
    return found | {"why": f"{more} observation {agreed.observations} action {agreed.actions}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", help="names of formats (default: all)")
    default = Path(__file__).parents[1] / "tests" / "induce"
    parser.add_argument("--generators", type=Path, default=default, help="folder that holds the package unseen")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--said", type=Path, help="a .json of options for the command: {format: [hints]}")
    parser.add_argument("--model", help="with this model's help")
    parser.add_argument("--base-url", help="where the model is")
    parser.add_argument("--kept", type=Path, help="keep what the command said and wrote here")
    args = parser.parse_args()
    # A script beside this one has the package's name, so the generators' folder comes first.
    sys.path.insert(0, str(args.generators))
    from unseen import FORMATS

    read = wrong = whole = 0
    print("| format | group | " + " | ".join(FIGURES) + " | read | frozen | exit | seconds | |")
    print("| --- " * (len(FIGURES) + 7) + "|")
    for name, form in FORMATS.items():
        if args.formats and name not in args.formats:
            continue
        found = measure(form, args)
        good = all(found[figure] >= READ for figure in FIGURES)
        read, wrong, whole = read + good, wrong + (found["frozen"] and not good), whole + 1
        cells = [f"{found[figure]:.3f}" for figure in FIGURES]
        cells += ["yes" if good else "no", "yes" if found["frozen"] else "no", str(found["exit"])]
        print(f"| {name} | {form.group} | {' | '.join(cells)} | {found['seconds']} | {found['why']} |", flush=True)
    print(f"\nread: {read} of {whole}; frozen and not read: {wrong}")


if __name__ == "__main__":
    main()
