"""How well does `induce-adapter --offline` write adapters for formats it has not seen?

    python benchmarks/induction.py RUNS                         sets against their shipped adapters
    python benchmarks/induction.py RUNS --formats --mutations   and public formats against their truth, and both mutated
    python benchmarks/induction.py RUNS --train --raw           and monitors trained through each adapter

The tool sees a few runs of a set in a folder of its own and nothing of the shipped adapter. What it writes reads other
runs of the set, and so does the shipped adapter; agreement is defined in agreement.py. Every result is kept in
OUT.json as it is done; --resume skips what is there. OUT.md is written from it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import induction_table
from agreement import Reading, agree, read_truth, readings, worst
from mutations import KINDS, LAYOUTS, mutate
from samples import take

from prefixguard.induce.proposal import take_first
from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import Adapter, load_adapter, read_runs

#: set -> shipped adapter
SETS = {
    "tau_bench": "tau_bench",
    "tau2": "tau2",
    "sweagent": "sweagent",
    "minisweagent": "mini_swe_agent",
    "terminal_bench": "terminal_log",
    "webshop_react": "webshop_react",
    "mind2web_abp": "online_mind2web",
    "intercode": "intercode",
    "reflexion": "react_log",
    "whoandwhen": "whoandwhen",
    "sentinel": "sentinel",
}
#: Sets that a monitor is trained on, and at most so many runs.
TRAINED = {"tau_bench": None, "tau2": None, "webshop_react": None, "minisweagent": None, "intercode": 2500}
INDUCE = Path(__file__).parents[1] / "tests" / "induce"
_SECONDS = 900
_FEW = 12


class Bench:
    """Results so far, and where they are kept."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.path: Path = args.out.with_suffix(".json")
        self.results: dict[str, dict[str, Any]] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.work = Path(tempfile.mkdtemp(prefix="induction-"))

    def once(self, part: str, name: str, make: Callable[[], dict[str, Any]]) -> None:
        """Measure one thing and keep it, unless it is there and --resume."""
        kept = self.results.setdefault(part, {})
        if self.args.resume and name in kept and "error" not in kept[name]:
            return
        began = time.monotonic()
        try:
            with _at_most(_SECONDS if part not in ("train", "raw") else 0):
                result = make()
        except Exception as exc:  # a benchmark goes on: what failed is its result
            if self.args.show:
                traceback.print_exc()
            result = {"error": f"{type(exc).__name__}: {exc}"[:600]}
        result["seconds"] = round(time.monotonic() - began, 1)
        kept[name] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1, sort_keys=True) + "\n")
        print(f"{part} {name}: {_short(result)}", file=sys.stderr, flush=True)

    def induced(self, folder: Path, name: str) -> Adapter:
        """What the tool makes of a folder; its spec is kept for a person to look at."""
        proposal = propose_by_search(open_samples(folder), name=name, ask=take_first)
        self.args.specs.mkdir(parents=True, exist_ok=True)
        (self.args.specs / f"{name}.json").write_text(
            json.dumps(dict(proposal.spec), indent=1, ensure_ascii=False) + "\n"
        )
        return Adapter(proposal.spec)

    def against(self, adapter: Adapter, folder: Path, reference: Sequence[Reading]) -> dict[str, Any]:
        """The adapter's reading of a folder beside the reference."""
        found = readings(read_runs(folder, adapter), folder)
        if self.args.show:
            print("\n".join(worst(found, reference, self.args.show)), file=sys.stderr)
        return {"adapter": adapter.sha256, **asdict(agree(found, reference))}


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    def over(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _short(result: dict[str, Any]) -> str:
    if "error" in result:
        return str(result["error"])
    return " ".join(
        f"{key}={value}" for key, value in result.items() if not isinstance(value, dict) and key != "adapter"
    )


def run_sets(bench: Bench) -> None:
    """Every set: induced from a few runs, compared on others."""
    for name in bench.args.sets:
        bench.once("sets", name, lambda name=name: _one_set(bench, name))


def _whole(bench: Bench, name: str) -> list[Reading]:
    root = bench.args.runs / name
    return readings(read_runs(root, load_adapter(SETS[name])), root)


def _one_set(bench: Bench, name: str) -> dict[str, Any]:
    root: Path = bench.args.runs / name
    whole = _whole(bench, name)
    shown = bench.work / f"{name}-shown"
    take(root, shown, LAYOUTS[name], whole, runs=bench.args.shown, seed=bench.args.seed)
    adapter = bench.induced(shown, name)
    folder, reference = root, whole
    if not bench.args.all and len(whole) > bench.args.runs_compared:
        folder = bench.work / f"{name}-compared"
        take(root, folder, LAYOUTS[name], whole, runs=bench.args.runs_compared, seed=bench.args.seed + 1)
        reference = readings(read_runs(folder, load_adapter(SETS[name])), folder)
    found = bench.against(adapter, folder, reference)
    for used in (shown, bench.work / f"{name}-compared"):
        shutil.rmtree(used, ignore_errors=True)
    return {"runs_compared": len(reference), **found}


def run_formats(bench: Bench) -> None:
    """Every public format: induced from its samples, compared with their truth."""
    for path in sorted((INDUCE / "truth").glob("*.jsonl")):
        name = path.stem
        if bench.args.only and name not in bench.args.only:
            continue

        def measure(name: str = name, path: Path = path) -> dict[str, Any]:
            folder = INDUCE / "samples" / name
            return bench.against(bench.induced(folder, name), folder, read_truth(path))

        bench.once("formats", name, measure)


def run_mutations(bench: Bench) -> None:
    """Formats and sets in changed form, induced from and compared on the changed samples."""
    sources: list[tuple[str, Path, Callable[[], list[Reading]]]] = []
    for path in sorted((INDUCE / "truth").glob("*.jsonl")):
        sources.append((path.stem, INDUCE / "samples" / path.stem, lambda path=path: read_truth(path)))
    for name in bench.args.sets if bench.args.runs is not None else ():
        folder = bench.work / f"{name}-plain"

        def sampled(name: str = name, folder: Path = folder) -> list[Reading]:
            take(
                bench.args.runs / name, folder, LAYOUTS[name], _whole(bench, name), runs=3 * _FEW, seed=bench.args.seed
            )
            return readings(read_runs(folder, load_adapter(SETS[name])), folder)

        sources.append((name, folder, sampled))
    for name, folder, read in sources:
        if bench.args.only and name not in bench.args.only:
            continue
        reference: list[Reading] = []
        for kind in ("none", *KINDS):
            if bench.args.kinds and kind not in bench.args.kinds:
                continue

            def measure(
                name: str = name, kind: str = kind, folder: Path = folder,
                read: Callable[[], list[Reading]] = read, reference: list[Reading] = reference,
            ) -> dict[str, Any]:  # fmt: skip
                if not reference:
                    reference.extend(read())
                target, changed = folder, 0
                if kind != "none":
                    target = bench.work / f"{name}-{kind}"
                    changed = mutate(folder, target, kind, LAYOUTS[name], reference, seed=bench.args.seed).changed
                    if not changed:
                        shutil.rmtree(target)
                        return {"changed": 0}
                try:
                    found = bench.against(
                        bench.induced(target, f"{name}-{kind}".replace("-none", "")), target, reference
                    )
                finally:
                    if kind != "none":
                        shutil.rmtree(target)
                return {"changed": changed, **found}

            bench.once("mutations", f"{name} {kind}", measure)
        if folder.is_relative_to(bench.work):
            shutil.rmtree(folder, ignore_errors=True)


def run_training(bench: Bench, part: str) -> None:
    """Monitors trained through the shipped adapter and the induced one ("train"), or the raw text and it ("raw")."""
    import training_pairs

    for name in bench.args.sets:
        if name not in TRAINED:
            continue

        def measure(name: str = name) -> dict[str, Any]:
            root = bench.args.runs / name
            shipped = load_adapter(SETS[name])
            if part == "train":
                shown = bench.work / f"{name}-shown"
                take(root, shown, LAYOUTS[name], _whole(bench, name), runs=bench.args.shown, seed=bench.args.seed)
                first, second = shipped, bench.induced(shown, name)
            else:
                first, second = load_adapter(f"raw:{SETS[name]}"), shipped
            one, two = list(read_runs(root, first)), list(read_runs(root, second))
            pairs = training_pairs.pairs_of(one, two, TRAINED[name])
            labels = {"outcomes_differ": _differing(one, two)} if part == "train" else {}
            if all(_records(x) == _records(y) for x, y in pairs) and len(pairs) > 1:
                return {"identical": True, "runs": len(pairs), **labels}
            kept = bench.args.specs / "folds"
            sides = [x for x, _ in pairs], [y for _, y in pairs]
            found = training_pairs.compare(name, *sides, kept, bench.args.repeats, bench.args.folds)
            return {"identical": False, "missing": len(one) - len(pairs), **labels, **found}

        bench.once(part, name, measure)


def _records(run: Any) -> list[tuple[str, ...]]:
    from prefixguard.stepview import FIELDS

    return [tuple(getattr(record, field) for field in FIELDS) for record in run.records]


def _differing(one: Sequence[Any], two: Sequence[Any]) -> int:
    outcomes = {run.source: run.outcome for run in two}
    return sum(outcomes.get(run.source) != run.outcome for run in one)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", help="folder that holds the sets; without it only formats")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--formats", action="store_true", help="public formats against their truth")
    parser.add_argument("--mutations", action="store_true", help="formats and sets in changed form")
    parser.add_argument("--train", action="store_true", help="monitors through shipped and induced adapters")
    parser.add_argument("--raw", action="store_true", help="monitors through raw text and shipped adapters")
    parser.add_argument("--no-sets", action="store_true", help="leave the plain comparison of sets out")
    parser.add_argument("--only", nargs="*", help="formats (and sets) to take of --formats and --mutations")
    parser.add_argument("--kinds", nargs="*", choices=("none", *KINDS), help="mutations to take")
    parser.add_argument("--shown", type=int, default=_FEW, help="runs that the tool sees")
    parser.add_argument("--runs-compared", type=int, default=400, help="runs that are compared")
    parser.add_argument("--all", action="store_true", help="compare all runs of a set")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="so many examples of each difference, on standard error")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/induction"))
    parser.add_argument("--specs", type=Path, default=Path("build/induction"), help="where induced specs are kept")
    args = parser.parse_args()
    bench = Bench(args)
    try:
        if args.runs is not None and not args.no_sets:
            run_sets(bench)
        if args.formats or args.runs is None:
            run_formats(bench)
        if args.mutations:
            run_mutations(bench)
        for part in ("train", "raw"):
            if getattr(args, part) and args.runs is not None:
                run_training(bench, part)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)
    table = induction_table.text(bench.results)
    args.out.with_suffix(".md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
