"""How well does `induce-adapter --model` write adapters for formats the model has not seen?

    python benchmarks/induction_model.py RUNS --model NAME --base-url URL [--sets ...]
    python benchmarks/induction_model.py --table

The model sees what the prompt holds: a pack of a few runs of a set, nothing of the shipped adapter. What it writes
reads other runs of the set, and so does the shipped adapter; agreement is defined in agreement.py. Each set is kept in
OUT.json as it is done, and OUT.md is written from all that is there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from agreement import Reading, agree, readings
from induction import SETS
from induction_table import reached
from mutations import LAYOUTS
from samples import take

from prefixguard.induce.model import Endpoint, ModelResult, propose_with_model
from prefixguard.induce.model.prompt import PROMPT_VERSION
from prefixguard.induce.samples import open_samples
from prefixguard.stepview import Adapter, load_adapter, read_runs

_COLUMNS = (
    ("valid at first", "first_valid"), ("rounds", "rounds"), ("score", "score"), ("first score", "first_score"),
    ("records", "records"), ("joined", "records_joined"), ("tools", "tools"), ("arguments", "arguments"),
    ("results", "results"), ("status", "status"), ("outcomes", "outcomes"), ("tasks", "tasks"),
    ("prompt tokens", "prompt_tokens"), ("tokens in", "tokens_in"), ("tokens out", "tokens_out"),
)  # fmt: skip


def measure(args: argparse.Namespace, name: str, work: Path) -> dict[str, Any]:
    """One set: asked about a few runs, compared on others."""
    root: Path = args.runs / name
    whole = readings(read_runs(root, load_adapter(SETS[name])), root)
    shown = work / "samples"  # a name that says nothing about the format
    take(root, shown, LAYOUTS[name], whole, runs=args.shown, seed=args.seed)
    endpoint = Endpoint(args.model, args.base_url, timeout=args.timeout, patience=2 * args.timeout)
    said = propose_with_model(
        open_samples(shown), endpoint, name=name, rounds=args.rounds, pack_tokens=args.pack_tokens,
        deadline=8 * args.timeout, listen=lambda line: print(f"{name}: {line}", file=sys.stderr, flush=True),
    )  # fmt: skip
    args.kept.mkdir(parents=True, exist_ok=True)
    (args.kept / f"{name}.transcript.jsonl").write_text(said.transcript.to_jsonl())
    out = told(said)
    if said.proposal is None:
        return out
    (args.kept / f"{name}.json").write_text(json.dumps(dict(said.proposal.spec), indent=1, ensure_ascii=False) + "\n")
    folder, reference = root, whole
    if len(whole) > args.runs_compared:
        folder = work / "compared"
        take(root, folder, LAYOUTS[name], whole, runs=args.runs_compared, seed=args.seed + 1)
        reference = readings(read_runs(folder, load_adapter(SETS[name])), folder)
    found = _placed(readings(read_runs(folder, Adapter(said.proposal.spec)), folder), reference)
    return {"runs_compared": len(reference), **out, **asdict(agree(found, reference))}


def _placed(found: Sequence[Reading], reference: Sequence[Reading]) -> list[Reading]:
    """A run that is a folder is named by one of its files or another: where one file only of a folder holds runs, it
    goes by the name that the reference has."""

    def alone(some: Sequence[Reading]) -> dict[str, str]:
        inside: dict[str, set[str]] = defaultdict(set)
        for run in some:
            parts = run.place.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                inside["/".join(parts[:depth])].add(run.place)
        return {folder: next(iter(places)) for folder, places in inside.items() if len(places) == 1}

    theirs, ours, known = alone(reference), alone(found), {run.place for run in reference}
    names = {
        ours[folder]: theirs[folder] for folder in sorted(theirs.keys() & ours.keys()) if ours[folder] not in known
    }
    return [replace(run, place=names.get(run.place, run.place)) for run in found]


def told(said: ModelResult) -> dict[str, Any]:
    """Rounds, validity and tokens of one conversation."""
    trials = [entry for entry in said.transcript.entries if entry["kind"] == "trial"]
    sent = [entry for entry in said.transcript.entries if entry["kind"] == "message"][:2]
    first: Mapping[str, Any] = trials[0] if trials else {}
    return {
        "prompt": PROMPT_VERSION,
        "prompt_tokens": sum(len(message["content"]) for message in sent) // 4,
        "first_compiled": bool(first.get("compiled")),
        "first_valid": bool(first.get("ok")),
        "first_score": first.get("score"),
        "first_faults": [f"{one['severity']} {one['check']}" for one in first.get("faults", [])],
        "rounds": said.usage.rounds,
        "ok": said.ok,
        "score": said.trial.report.score() if said.trial is not None else None,
        "tokens_in": said.usage.tokens_in,
        "tokens_out": said.usage.tokens_out,
        "why": said.why,
    }


def table(results: Mapping[str, Any]) -> str:
    """The results as Markdown, of the newest wording of the prompt first."""
    lines = ["# Adapters written with a model, beside those written by hand", "", results["note"], ""]
    for prompt, sets in sorted(results["prompts"].items(), key=lambda item: -int(item[0])):
        done = {name: sets[name] for name in SETS if name in sets}
        good, first = sum(map(reached, done.values())), sum(bool(one.get("first_valid")) for one in done.values())
        lines += [f"## Prompt {prompt}: {first} of {len(done)} valid at first, {good} reach the aim", ""]
        lines.append(f"| | {' | '.join(head for head, _ in _COLUMNS)} | aim |")
        lines.append(f"| --- |{' --- |' * (len(_COLUMNS) + 1)}")
        for name, one in done.items():
            cells = " | ".join(_cell(one.get(key)) for _, key in _COLUMNS)
            lines.append(f"| {name} | {cells} | {'yes' if reached(one) else 'no'} |")
        lines.append("")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--model", default="gpt-4.1")
    parser.add_argument("--base-url")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--pack-tokens", type=int, default=12_000)
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds for one answer")
    parser.add_argument("--shown", type=int, default=12, help="runs that the tool sees")
    parser.add_argument("--runs-compared", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--note", help="who answered; stands above the table")
    parser.add_argument("--table", action="store_true", help="write the table only")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/induction_model"))
    parser.add_argument("--kept", type=Path, default=Path("build/induction_model"), help="specs and transcripts")
    args = parser.parse_args()
    path: Path = args.out.with_suffix(".json")

    def kept() -> dict[str, Any]:
        return dict(json.loads(path.read_text())) if path.exists() else {"prompts": {}}

    for name in () if args.table or args.runs is None else args.sets:
        with tempfile.TemporaryDirectory(prefix="induction-") as work:
            result = measure(args, name, Path(work))
        results = kept()  # read late: several sets may be measured at once
        results["prompts"].setdefault(PROMPT_VERSION, {})[name] = result
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    results = kept()
    results["note"] = args.note or results.get("note", "")
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    args.out.with_suffix(".md").write_text(text := table(results))
    print(text)


if __name__ == "__main__":
    main()
