"""Which of the sample files hold logs, and how they hold runs: as files, as notebooks, or a folder a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile, Samples

#: Code points that are looked at to find the structure: of one text, and of all.
LONGEST_TEXT = 3_000_000
MOST_TEXT = 8_000_000
MOST_TEXTS = 60


@dataclass(frozen=True, slots=True)
class TextSource:
    """Logs of one make. container: the part of the spec without `runs`. of: path of the text in a run, where the
    container is a folder; "" for text and notebooks. texts: those that are looked at. files: their files. records:
    for folders, the decoded JSON member beside each text (None where absent). member: its name in `$`.
    """

    container: dict[str, Any]
    texts: tuple[str, ...]
    files: tuple[SampleFile, ...]
    of: str = ""
    member: str = ""
    records: tuple[Any, ...] = ()
    all_records: tuple[Any, ...] = ()
    why: str = ""
    companions: tuple[SampleFile, ...] = field(default=())


def find_sources(samples: Samples) -> list[TextSource]:
    """Ways in which the samples hold logs, the likeliest first."""
    texts = [file for file in samples.files if file.kind in (Kind.TEXT, Kind.NOTEBOOK) and file.text.strip()]
    if not texts:
        return []
    found = []
    folder = _folders(samples, texts)
    if folder is not None:
        found.append(folder)
    for kind in (Kind.TEXT, Kind.NOTEBOOK):
        files = _of_a_make([file for file in texts if file.kind is kind])
        if files:
            found.append(_plain(files, kind))
    return found


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
        member,
        tuple(homes[home_of[file.path]].value for file in kept),
        tuple(homes[home].value for home in sorted(homes)),
        f"{len(homes)} folders with {marker}, {len(logs)} of them with {relative}",
        tuple(homes[home_of[file.path]] for file in kept),
    )
