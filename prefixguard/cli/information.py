"""`info`: what a bundle, an adapter or a set of runs is, without running it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.alarm import GroupThresholds
from prefixguard.bundle import SCORES, Bundle, Trust, open_bundle, read_signature
from prefixguard.cli.shown import lost_lines, refuse_empty
from prefixguard.errors import UntrustedBundleError, UsageError
from prefixguard.stepview import Adapter, ReadReport, adapter_for, list_adapters, load_adapter, read_runs
from prefixguard.trace import digest_of, repeat_groups


@dataclass(frozen=True, slots=True)
class BundleInfo:
    """A compiled monitor, unchanged since it was written. Mappings are as in its manifest; alarm, watch: thresholds
    on the outcome risk.

    signature: whose there is, and whether it was checked: who wrote an unsigned bundle, nobody knows.
    model: onnx, automaton or scores. reads: what it is told of a run. automaton: its states, symbols and steps of the
        clock; empty for the others.
    alarm_by_group: the group's name, and by value its thresholds and what they rest on; empty where all runs have the
        same. An alarm that is None was refused: the common one holds for that value.
    recalibration: which monitor's thresholds were set anew, and on how many runs; empty where they are those of
        training.
    """

    kind: str
    path: str
    id: str
    adapter: str
    horizon: int | None
    backend: str | None
    seed: int | None
    model: str
    reads: str
    signature: str
    automaton: Mapping[str, int]
    terms: int
    alarm: float | None
    watch: float
    budget: float
    confidence: float
    alarm_by_group: Mapping[str, Any]
    recalibration: Mapping[str, Any]
    bytes: int
    data: Mapping[str, Any]
    metrics: Mapping[str, Any]
    libraries: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """A frozen adapter. live: whether a run can be watched through it while it goes on."""

    kind: str
    name: str
    version: str
    sha256: str
    description: str
    live: bool


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """Runs, as one adapter reads them.

    outcomes: runs by outcome. tasks: different tasks named. groups: number of values of every group.
    steps_median, steps_most: a run. repeats: runs that say word for word what another says. lost: what is missing from
    their steps, in sentences (`stepview.losses`).
    """

    kind: str
    source: str
    adapter: str
    runs: int
    outcomes: Mapping[str, int]
    tasks: int
    runs_without_task: int
    groups: Mapping[str, int]
    steps: int
    steps_median: int
    steps_most: int
    repeats: int
    lost: tuple[str, ...] = ()
    report: ReadReport | None = None


def info(
    thing: str | os.PathLike[str],
    *,
    adapter: str | os.PathLike[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    trust: Trust | None = None,
    progress: Callable[[int], None] | None = None,
) -> BundleInfo | AdapterInfo | CorpusInfo:
    """What a thing is, without running it.

    thing : folder of a bundle, name or .json of an adapter, or (with `adapter`) runs.
    adapter : for runs: the adapter that reads them (a name, or the path of a .json).
    labels : for runs: outcomes beside them: run_id,outcome[,task_id] as .jsonl or .csv.
    trust: public keys, one of which must have signed a bundle, as for `load`.
    progress: called with the number of runs read so far.
    Raises BundleError, AdapterError or TraceError where the thing is broken, UsageError where it could be runs but no
    adapter is named.
    """
    path = Path(thing)
    is_bundle = adapter is None and (path / "manifest.json").is_file()
    if trust is not None and not is_bundle:
        raise UsageError(f"{path}: no bundle; only of bundles a signature can be asked for. Leave out trust.")
    if adapter is not None:
        return _corpus(os.fspath(thing), adapter_for(os.fspath(adapter), os.fspath(thing)), labels, progress)
    if is_bundle:
        return _bundle(path, trust)
    if os.fspath(thing) in list_adapters() or path.suffix == ".json":
        opened = load_adapter(os.fspath(thing))
        return AdapterInfo("adapter", opened.name, opened.version, opened.sha256, opened.description, _is_live(opened))
    if path.exists() or os.fspath(thing) == "-" or any(mark in os.fspath(thing) for mark in "*?"):
        raise UsageError(
            f"{path}: neither a bundle nor an adapter. If it holds runs, say what reads them: --adapter NAME "
            f"(shipped: {', '.join(list_adapters())})."
        )
    load_adapter(os.fspath(thing))  # says what the nearest names are
    raise UsageError(f"{path}: no such thing.")


def _is_live(adapter: Adapter) -> bool:
    return not adapter.program.events.drop_last


def _bundle(path: Path, trust: Trust | None) -> BundleInfo:
    bundle = open_bundle(path, trust=trust)
    manifest, calibration, automaton = bundle.manifest, bundle.calibration, bundle.automaton
    size: dict[str, int] = {}
    if automaton is not None:
        size = {"states": automaton.n_states, "symbols": automaton.n_symbols, "clock": len(automaton.clock)}
    return BundleInfo(
        kind="bundle",
        path=str(path),
        id=bundle.id,
        adapter=f"{bundle.adapter.name} {bundle.adapter.version}",
        horizon=manifest.get("horizon"),
        backend=manifest.get("backend"),
        seed=manifest.get("seed"),
        model=bundle.kind,
        reads=_reads(bundle),
        signature=_signature(path, is_checked=trust is not None),
        automaton=size,
        terms=len(bundle.vocabulary),
        alarm=calibration.thresholds.alarm,
        watch=calibration.thresholds.watch,
        budget=calibration.policy.budget,
        confidence=calibration.policy.confidence,
        alarm_by_group={} if calibration.groups is None else _by_group(calibration.groups),
        recalibration=_recalibration(manifest.get("recalibration")),
        bytes=sum(file.stat().st_size for file in path.iterdir() if file.is_file()),
        data=dict(manifest.get("data") or {}),
        metrics=dict(manifest.get("metrics") or {}),
        libraries=dict(manifest.get("libraries") or {}),
    )


def _reads(bundle: Bundle) -> str:
    """In words."""
    if bundle.kind != SCORES:
        return "steps of an agent" + (
            ", with what they took (seconds, tokens, dollars)" if bundle.reads_signals else ""
        )
    return f"scores of a verifier, judge or critic; a higher one is {'safer' if bundle.higher_is_safer else 'riskier'}"


def _signature(path: Path, *, is_checked: bool) -> str:
    """In words; a file that is no signature counts as none, since nobody asked for one."""
    try:
        found = read_signature(path)
    except UntrustedBundleError:
        return "signature.json is not a signature"
    if found is None:
        return "none: unchanged since it was written, by whoever that was"
    return f"key {found.key[:16]}, {'trusted' if is_checked else 'not checked (name the public key to trust)'}"


def _by_group(groups: GroupThresholds) -> dict[str, Any]:
    rows = {
        value: {"alarm": one.alarm, "watch": one.watch, "runs": one.n_runs, "needed": one.needed}
        for value, one in groups.of.items()
    }
    return {"by": groups.by, "of": rows}


def _recalibration(found: Any) -> dict[str, Any]:
    """What the manifest says of it, of runs their number only."""
    if not isinstance(found, Mapping):
        return {}
    kept = ("monitor", "runs", "successful", "failed", "without_outcome", "in_sample", "group_by", "seed")
    return {name: found[name] for name in kept if name in found} | {"drawn": len(found.get("drawn") or ())}


def _corpus(
    source: str, adapter: Adapter, labels: str | os.PathLike[str] | None, progress: Callable[[int], None] | None
) -> CorpusInfo:
    report = ReadReport()
    outcomes: Counter[str] = Counter()
    tasks: set[str] = set()
    groups: dict[str, set[str]] = {}
    lengths: list[int] = []
    digests: list[str] = []
    without_task = 0
    companion = None if labels is None else Path(labels)
    for count, run in enumerate(read_runs(source, adapter, labels=companion, report=report), 1):
        if progress is not None:
            progress(count)
        outcomes[run.outcome.value] += 1
        if run.task_id is None:
            without_task += 1
        else:
            tasks.add(run.task_id)
        for name, value in run.groups.items():
            groups.setdefault(name, set()).add(value)
        lengths.append(len(run.records))
        digests.append(digest_of(run))
    refuse_empty(report, source, adapter)
    return CorpusInfo(
        kind="runs",
        source=source,
        adapter=f"{adapter.name} {adapter.version}",
        runs=len(lengths),
        outcomes=dict(sorted(outcomes.items())),
        tasks=len(tasks),
        runs_without_task=without_task,
        groups={name: len(values) for name, values in sorted(groups.items())},
        steps=sum(lengths),
        steps_median=sorted(lengths)[len(lengths) // 2] if lengths else 0,
        steps_most=max(lengths, default=0),
        repeats=sum(len(group) - 1 for group in repeat_groups(digests)),
        lost=tuple(lost_lines(report, adapter, source)),
        report=report,
    )
