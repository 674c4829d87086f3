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
from prefixguard.trace import Outcome, Run, open_documents

#: Runs that are looked at to choose from, and the most that are kept of each outcome.
_LOOKED_AT = 100
_OF_EACH = 2
#: Bytes of all files together above which fewer runs are kept, and above which there are no golden samples.
_WANTED, _MOST = 64 << 10, 1 << 20
#: Code points to which long texts are cut; the first that changes nothing of the runs is taken.
_LENGTHS = (240, 700, 2000, 6000)


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
    found = list(islice(run_files(source, adapter), _LOOKED_AT))
    golden = Golden({}, b"")
    for keep in (_OF_EACH, 1):
        golden = _cut(source, _chosen(source, found, keep), adapter)
        size = sum(map(len, golden.files.values()))
        if golden.files and size <= (_WANTED if keep > 1 else _MOST):
            return golden
    if golden.files:
        return Golden({}, b"", notes=(f"No golden samples: the smallest runs still take {size:,} bytes.",))
    return golden


def _chosen(source: str | Path, found: Sequence[RunFiles], keep: int) -> list[RunFiles]:
    """So many runs of each outcome, those with small files and more than one record first."""
    of_file = Counter(one.file for one in found)
    with open_documents(source) as documents:
        sizes = {path: documents.size(path) for one in found for path in (one.file, *one.companions)}

    def weight(one: RunFiles) -> tuple[bool, int, str]:
        texts = sum(len(r.observation) + len(r.action) + len(r.arguments) + len(r.result) for r in one.run.records)
        beside = sum(sizes[path] for path in one.companions)
        return len(one.run.records) < 2, sizes[one.file] // of_file[one.file] + beside + texts, one.run.run_id

    taken: Counter[Outcome] = Counter()
    chosen = set()
    for place in sorted(range(len(found)), key=lambda place: weight(found[place])):
        outcome = found[place].run.outcome
        taken[outcome] += 1
        if taken[outcome] <= keep:
            chosen.add(place)
    return [one for place, one in enumerate(found) if place in chosen]


def _cut(source: str | Path, runs: Sequence[RunFiles], adapter: Adapter) -> Golden:
    with open_documents(source) as documents:
        paths = sorted({path for one in runs for path in (one.file, *one.companions)})
        read = {path: documents.companion(path, path.rpartition("/")[2]) for path in paths}
    files = {path: data for path, data in read.items() if data is not None}
    if not _records(files, adapter):
        return Golden({}, b"", notes=("No golden samples: the chosen files give no records in a folder of their own.",))
    masker = Masker()
    current = {path: mask_file(data, masker) for path, data in files.items()}
    records = _records(current, adapter)
    if not records:
        return Golden({}, b"", notes=("No golden samples: with likely secrets masked the adapter reads no run.",))
    spec = json.loads(adapter.to_bytes())
    kept = {
        path: keep_runs(path, data, [one for one in runs if one.file == path], spec) for path, data in current.items()
    }
    wanted = Counter((one.run.outcome, len(one.run.records)) for one in runs)
    fewer = _records(kept, adapter)
    if wanted <= Counter((run.outcome, len(run.records)) for run in fewer):
        current, records = kept, fewer
    shape = _shape(records)
    for length in _LENGTHS:
        shorter = {path: shorten_file(data, length) for path, data in current.items()}
        again = _records(shorter, adapter)
        if _shape(again) == shape:
            current, records = shorter, again
            break
    lines = [json.dumps(line, ensure_ascii=False) + "\n" for run in records for line in record_lines(run)]
    return Golden(current, "".join(lines).encode("utf-8", "replace"), len(records), masker.masked)


def _records(files: Mapping[str, bytes], adapter: Adapter) -> list[Run[StepRecord]]:
    """Runs of these files, in a folder of their own; none where they cannot be read."""
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
        write_files(Path(folder), files)
        try:
            return list(read_runs(folder, adapter))
        except PrefixGuardError:
            return []


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder; paths that would leave it are refused by the caller's source."""
    for path, data in files.items():
        target = folder.joinpath(*[part for part in path.split("/") if part not in ("", ".", "..")])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _shape(runs: Sequence[Run[StepRecord]]) -> list[tuple[Any, ...]]:
    """What a cut may not change."""

    def of(r: StepRecord) -> tuple[Any, ...]:
        filled = [bool(text) for text in (r.observation, r.action, r.result)]
        return r.tool, r.actor, r.agent, r.status, _form(r.arguments), *filled

    return [
        (run.outcome, run.task_id is None, run.source.rpartition("/")[2], *map(of, run.records)) for run in runs
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
