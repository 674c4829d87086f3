"""Golden samples of an adapter: a few of the runs it was made from, cut small, and the records they must give for ever.

Runs are chosen for both outcomes and little text. Then everything is taken away that the adapter does not miss: other
runs of the same file, other files, the middle of long texts. Whatever is taken away, the runs must keep their number of
records, tools, statuses, filled fields and outcomes; a cut that changes one of them is undone. Likely secrets are
masked first, and what was masked stays masked.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.escalate import Masker
from prefixguard.induce.golden_files import keep_runs, mask_file, shorten_file
from prefixguard.stepview import Adapter, RunFiles, StepRecord, read_runs, run_files
from prefixguard.trace import Run, open_documents

#: Runs that are looked at to choose from, and the most that are kept of each outcome.
_LOOKED_AT = 100
_OF_EACH = 2
#: Bytes of all files together above which fewer runs are kept, and above which there are no golden samples.
_WANTED, _MOST = 64 << 10, 1 << 20
#: Code points to which long texts are cut; the first that changes nothing of the runs is taken.
_LENGTHS = (240, 700, 2000, 6000)

Shape = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Golden:
    """files: path inside the folder of runs, and bytes. expected: records as `parse --json` writes them, a line each.
    notes: sentences on what could not be kept. runs, masked: kept runs, and different likely secrets taken out."""

    files: Mapping[str, bytes]
    expected: bytes
    runs: int = 0
    masked: int = 0
    notes: tuple[str, ...] = ()


def golden_samples(source: str | Path, adapter: Adapter) -> Golden:
    """The samples for this adapter; without files, and with a note that says why, where none can be made."""
    chosen = _choose(source, list(islice(run_files(source, adapter), _LOOKED_AT)))
    spec = json.loads(adapter.to_bytes())
    for keep in (_OF_EACH, 1):
        best = [one for one, rank in chosen if rank < keep]
        files = _files(source, best)
        golden = _cut(files, best, adapter, spec)
        if golden.files and sum(map(len, golden.files.values())) <= (_WANTED if keep > 1 else _MOST):
            return golden
    if golden.files:
        size = sum(map(len, golden.files.values()))
        return Golden({}, b"", notes=(f"No golden samples: the smallest runs still take {size:,} bytes.",))
    return golden


def _choose(source: str | Path, found: Sequence[RunFiles]) -> list[tuple[RunFiles, int]]:
    """Runs of each outcome, those with small files and more than one record first, each with its rank there."""
    of_file = Counter(one.file for one in found)
    with open_documents(source) as documents:
        sizes = {path: documents.size(path) for one in found for path in (one.file, *one.companions)}

    def weight(one: RunFiles) -> int:
        return (
            sizes[one.file] // of_file[one.file] + sum(sizes[path] for path in one.companions) + _text_length(one.run)
        )

    ranked: dict[str, int] = {}
    chosen = []
    for one in sorted(found, key=lambda one: (len(one.run.records) < 2, weight(one), one.run.run_id)):
        rank = ranked.get(one.run.outcome.value, 0)
        ranked[one.run.outcome.value] = rank + 1
        chosen.append((one, rank))
    order = {id(one): i for i, one in enumerate(found)}
    return sorted((pair for pair in chosen if pair[1] < _OF_EACH), key=lambda pair: order[id(pair[0])])


def _text_length(run: Run[StepRecord]) -> int:
    return sum(len(r.observation) + len(r.action) + len(r.arguments) + len(r.result) for r in run.records)


def _files(source: str | Path, runs: Sequence[RunFiles]) -> dict[str, bytes]:
    """Bytes of the runs' files and companions, by path."""
    paths = sorted({path for one in runs for path in (one.file, *one.companions)})
    with open_documents(source) as documents:
        found = {path: documents.companion(path, path.rpartition("/")[2]) for path in paths}
    return {path: data for path, data in found.items() if data is not None}


def _cut(files: Mapping[str, bytes], runs: Sequence[RunFiles], adapter: Adapter, spec: Mapping[str, Any]) -> Golden:
    whole = _records(files, adapter)
    if not whole:
        return Golden({}, b"", notes=("No golden samples: the chosen files give no records in a folder of their own.",))
    masker = Masker()
    masked = {path: mask_file(data, masker) for path, data in files.items()}
    if (read := _records(masked, adapter)) is None or not read:
        return Golden({}, b"", notes=("No golden samples: with likely secrets masked the adapter reads no run.",))
    of_file = {path: [one for one in runs if one.file == path] for path in masked}
    kept = {path: keep_runs(path, data, of_file[path], spec) for path, data in masked.items()}
    wanted = Counter((one.run.outcome, len(one.run.records)) for one in runs)
    current = masked
    fewer = _records(kept, adapter)
    if fewer is not None and wanted <= Counter((run.outcome, len(run.records)) for run in fewer):
        current, read = kept, fewer
    shape = _shape(read)
    for length in _LENGTHS:
        shorter = {path: shorten_file(data, length) for path, data in current.items()}
        again = _records(shorter, adapter)
        if again is not None and _shape(again) == shape:
            current, read = shorter, again
            break
    lines = [json.dumps(line, ensure_ascii=False) + "\n" for run in read for line in record_lines(run)]
    return Golden(current, "".join(lines).encode("utf-8", "replace"), len(read), masker.masked)


def _records(files: Mapping[str, bytes], adapter: Adapter) -> list[Run[StepRecord]] | None:
    """Runs of these files, in a folder of their own; None where they cannot be read."""
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
        write_files(Path(folder), files)
        try:
            return list(read_runs(folder, adapter))
        except PrefixGuardError:
            return None


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder; paths that would leave it are refused by the caller's source."""
    for path, data in files.items():
        target = folder.joinpath(*[part for part in path.split("/") if part not in ("", ".", "..")])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _shape(runs: Sequence[Run[StepRecord]]) -> Shape:
    """What a cut may not change."""
    return [
        (
            run.outcome,
            run.task_id is None,
            run.source.rpartition("/")[2],
            [
                (
                    r.tool,
                    r.actor,
                    r.agent,
                    r.status,
                    _form(r.arguments),
                    bool(r.observation),
                    bool(r.action),
                    bool(r.result),
                )
                for r in run.records
            ],
        )
        for run in runs
    ]


def _form(arguments: str) -> str:
    """Whether arguments are JSON, a text, or not there: a cut may not turn one into another."""
    try:
        return type(json.loads(arguments)).__name__
    except (ValueError, RecursionError):
        return "text" if arguments else ""


def record_lines(run: Run[StepRecord]) -> list[dict[str, Any]]:
    """The run in the stable line format of `parse --json`."""
    head = {"run_id": run.run_id, "task_id": run.task_id, "groups": dict(run.groups), "outcome": run.outcome.value}
    names = ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status")
    return [
        {**head, "step": r.index, **{name: getattr(r, name) for name in names}}
        | ({} if r.signals is None else {"signals": r.signals.to_json()})
        for r in run.records
    ]


__all__ = ["Golden", "golden_samples", "record_lines", "write_files"]
