"""Which of the sample files hold logs, and how they hold runs: as files, as notebooks, or a folder a run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import render

#: Code points that are looked at to find the structure: of one text, and of all.
LONGEST_TEXT = 3_000_000
MOST_TEXT = 8_000_000
MOST_TEXTS = 60


@dataclass(frozen=True, slots=True)
class TextSource:
    """Logs of one make. container: the part of the spec without `runs`. of: path of the text in a run, where the
    container is a folder; "" for text and notebooks. texts: those that are looked at. files: their files. records:
    for folders, the decoded JSON member beside each text (None where absent); for texts inside JSON, the record each
    stands in. root: path of those records, "" where there are none. documents: for texts inside JSON, (path, kind,
    value) of a document a trial reads in place of the files.
    """

    container: dict[str, Any]
    texts: tuple[str, ...]
    files: tuple[SampleFile, ...]
    of: str = ""
    root: str = ""
    records: tuple[Any, ...] = ()
    all_records: tuple[Any, ...] = ()
    why: str = ""
    companions: tuple[SampleFile, ...] = field(default=())
    documents: tuple[tuple[str, Kind, Any], ...] = ()


def find_sources(samples: Samples) -> list[TextSource]:
    """Ways in which the samples hold logs, the likeliest first."""
    texts = [file for file in samples.files if file.kind in (Kind.TEXT, Kind.NOTEBOOK) and file.text.strip()]
    found = []
    folder = _folders(samples, texts) if texts else None
    if folder is not None:
        found.append(folder)
    for kind in (Kind.TEXT, Kind.NOTEBOOK):
        files = _of_a_make([file for file in texts if file.kind is kind])
        if files:
            found.append(_plain(files, kind))
    return found + texts_in_json(samples)


def _of_a_make(files: list[SampleFile]) -> list[SampleFile]:
    """Files of the suffix that most of the text has; a README beside logs is none of them."""
    if not files:
        return []
    size: Counter[str] = Counter()
    for file in files:
        size[PurePosixPath(file.path).suffix] += len(file.text)
    best = max(sorted(size), key=lambda suffix: size[suffix])
    return [
        file
        for file in files
        if PurePosixPath(file.path).suffix == best
        and not (len(files) > 1 and PurePosixPath(file.path).stem.lower() in ("readme", "license", "notes"))
    ]


def _chosen(files: list[SampleFile]) -> list[SampleFile]:
    """Some of many files, spread, longer ones first where most are short."""
    long = sorted(files, key=lambda file: -len(file.text))
    median = len(long[len(long) // 2].text)
    full = [file for file in files if len(file.text) >= min(median, 20_000)]
    step = max(1, -(-len(full) // MOST_TEXTS))
    kept, total = [], 0
    for file in full[::step]:
        if total and total + min(len(file.text), LONGEST_TEXT) > MOST_TEXT:
            continue
        total += min(len(file.text), LONGEST_TEXT)
        kept.append(file)
    return kept


def _plain(files: list[SampleFile], kind: Kind) -> TextSource:
    kept = _chosen(files)
    suffixes = sorted({PurePosixPath(file.path).suffix for file in files})
    pattern = [f"**/*{suffix}" if suffix else "**/*" for suffix in suffixes]
    container: dict[str, Any] = {
        "format": "notebook" if kind is Kind.NOTEBOOK else "text",
        "files": pattern[0] if len(pattern) == 1 else pattern,
    }
    return TextSource(
        container, tuple(file.text[:LONGEST_TEXT] for file in kept), tuple(kept), why=f"{len(files)} files of text"
    )


def _folders(samples: Samples, texts: list[SampleFile]) -> TextSource | None:
    """A folder a run: a JSON file in many folders, with a text log at the same place beside it."""
    by_name: Counter[str] = Counter(PurePosixPath(file.path).name for file in texts)
    markers = Counter(PurePosixPath(file.path).name for file in samples.files if file.kind is Kind.JSON)
    best: tuple[float, str, str, dict[str, SampleFile], dict[str, SampleFile]] | None = None
    for marker, n in sorted(markers.items()):
        if n < 2:
            continue
        homes = {str(PurePosixPath(f.path).parent): f for f in samples.files if PurePosixPath(f.path).name == marker}
        for log_name, m in sorted(by_name.items()):
            if m < 2 and n > 3:
                continue
            found: dict[str, dict[str, SampleFile]] = {}
            for file in texts:
                path = PurePosixPath(file.path)
                if path.name != log_name:
                    continue
                for up in list(path.parents)[:4]:
                    if str(up) in homes:
                        found.setdefault(str(path.relative_to(up)), {})[str(up)] = file
                        break
            for relative, logs in sorted(found.items()):
                if len(logs) < 2:
                    continue
                score = sum(len(file.text) for file in logs.values()) * (len(logs) / len(homes)) ** 0.5
                if best is None or score > best[0]:
                    best = (score, marker, relative, logs, homes)
    if best is None:
        return None
    _, marker, relative, logs, homes = best
    kept = _chosen([logs[home] for home in sorted(logs)])
    home_of = {file.path: home for home, file in logs.items()}
    member = PurePosixPath(marker).stem.replace("-", "_").replace(".", "_")
    member = member if member != "log" else "info"
    container = {
        "format": "folder",
        "marker": marker,
        "members": {member: marker, "log": {"path": relative, "format": "text"}},
    }
    return TextSource(
        container,
        tuple(file.text[:LONGEST_TEXT] for file in kept),
        tuple(kept),
        "$.log",
        f"$.{member}",
        tuple(homes[home_of[file.path]].value for file in kept),
        tuple(homes[home].value for home in sorted(homes)),
        f"{len(homes)} folders with {marker}, {len(logs)} of them with {relative}",
        tuple(homes[home_of[file.path]] for file in kept),
    )


# --- texts inside JSON

#: Records that are looked at to find the field of the log.
_MOST_RECORDS = 2000
#: A log has at least so many lines in half of the records.
_LEAST_LINES = 4


def texts_in_json(samples: Samples) -> list[TextSource]:
    """Logs that stand whole in one field of a JSON record each: a record is a run, the field its text."""
    found = []
    for kind in (Kind.JSON, Kind.JSONL):
        files = [file for file in samples.files if file.kind is kind]
        for runs in sorted({place for file in files for place in _places_of_runs(file)}):
            source = _in_records(files, kind, runs)
            if source is not None:
                found.append(source)
    found.sort(key=lambda source: -sum(map(len, source.texts)))
    return found[:2]


def _places_of_runs(file: SampleFile) -> list[str]:
    """Paths at which a document may hold its runs: itself, its elements, or those of one of its lists."""
    if file.kind is Kind.JSONL:
        return [""]
    if isinstance(file.value, list):
        return ["$[*]"]
    if not isinstance(file.value, dict):
        return []
    lists = [
        key
        for key, value in file.value.items()
        if isinstance(key, str) and key.isidentifier() and isinstance(value, list)
    ]
    return ["", *(f"$.{key}[*]" for key in lists[:20])]


def _records_at(file: SampleFile, runs: str) -> list[Any]:
    if file.kind is Kind.JSONL or runs == "$[*]":
        return file.value if isinstance(file.value, list) else []
    if not isinstance(file.value, dict):
        return []
    if not runs:
        return [file.value]
    inner = file.value.get(runs[2:-3])
    return inner if isinstance(inner, list) else []


def _in_records(files: list[SampleFile], kind: Kind, runs: str) -> TextSource | None:
    records = [
        (file, record)
        for file in files
        for record in _records_at(file, runs)[:_MOST_RECORDS]
        if isinstance(record, dict)
    ]
    columns: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for _, record in records[:_MOST_RECORDS]:
        for path, value in flat_values(record).items():
            if isinstance(value, str) and value.strip().count("\n") + 1 >= _LEAST_LINES:
                columns[path] += 1
                sizes[path] += len(value)
    of = max(sorted(sizes), key=lambda path: sizes[path], default=None)
    if of is None or columns[of] < max(1, 0.5 * len(records[:_MOST_RECORDS])):
        return None
    having = [(file, record) for file, record in records if isinstance(flat_values(record).get(of), str)]
    step = max(1, -(-len(having) // MOST_TEXTS))
    texts: list[str] = []
    kept: list[tuple[SampleFile, Any]] = []
    for file, record in having[::step]:
        text = render(flat_values(record)[of][:LONGEST_TEXT])
        if not texts or sum(map(len, texts)) + len(text) <= MOST_TEXT:
            texts.append(text)
            kept.append((file, record))
    suffixes = sorted({PurePosixPath(file.path).suffix for file, _ in having})
    pattern = [f"**/*{suffix}" if suffix else "**/*" for suffix in suffixes]
    container: dict[str, Any] = {
        "format": "jsonl" if kind is Kind.JSONL else "json",
        "files": pattern[0] if len(pattern) == 1 else pattern,
    }
    if runs:
        container["runs"] = runs
    chosen = [record for _, record in kept]
    return TextSource(
        container,
        tuple(texts),
        tuple(file for file, _ in kept),
        of,
        "$",
        tuple(chosen),
        tuple(record for _, record in records[:_MOST_RECORDS]),
        f"{len(having)} records with a text of several lines at {of}",
        documents=_documents(suffixes[0], kind, runs, chosen),
    )


def _documents(suffix: str, kind: Kind, runs: str, records: list[Any]) -> tuple[tuple[str, Kind, Any], ...]:
    if kind is Kind.JSONL or runs == "$[*]":
        return ((f"sample{suffix}", kind, records),)
    if runs:
        return ((f"sample{suffix}", kind, {runs[2:-3]: records}),)
    return tuple((f"sample_{i}{suffix}", kind, record) for i, record in enumerate(records))


def flat_values(value: Any, path: str = "$", depth: int = 0) -> dict[str, Any]:
    """Plain values of a JSON document by path, as far as three levels in."""
    found: dict[str, Any] = {}
    if isinstance(value, dict) and depth < 3:
        for key, inner in list(value.items())[:200]:
            step = f".{key}" if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w*", key) else f'["{key}"]'
            found.update(flat_values(inner, path + step, depth + 1))
    elif not isinstance(value, list | dict):
        found[path] = value
    return found
