"""A handful of a set's runs in a folder of their own, as somebody would hand them to `induce-adapter`."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agreement import Reading
from mutations import Layout

#: Companion files larger than this stay behind.
_LARGEST_COMPANION = 8 << 20


def _key(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}:{text}".encode()).hexdigest()


def _file_of(place: str) -> str:
    return re.sub(r" (?:(?:run|line) \d+|group .+)$", "", place)


def take(source: Path, target: Path, layout: Layout, reference: Sequence[Reading], *, runs: int, seed: int) -> int:
    """Copy about so many runs of a set, with what stands beside them, folders kept. Returns the files copied.

    Files that hold many runs (an array, an object) are all taken and cut to some of their runs; text files whole; of
    files that are a run each so many are drawn, at least a quarter of each outcome where there are that many.
    reference: somebody's reading of the whole set, for which file holds which run and how they ended.
    """
    holding: dict[str, list[Reading]] = defaultdict(list)
    for run in reference:
        holding[_file_of(run.place)].append(run)
    many = len(holding) * 2 <= len(reference)
    names = {file.rpartition("/")[2] for file in holding}
    if not many and len(names) == 1:  # runs without a record, which nobody's reading has
        for path in sorted(source.rglob(next(iter(names)))):
            file = path.relative_to(source).as_posix()
            if file not in holding:
                holding[file] = [Reading(file, None, "no record", ())]
    chosen = set(holding) if many else _drawn(holding, runs, seed)
    shutil.rmtree(target, ignore_errors=True)
    copied = 0
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        name = path.relative_to(source).as_posix()
        if name in holding:
            if name not in chosen:
                continue
        elif not _goes_along(name, chosen, holding) or path.stat().st_size > _LARGEST_COMPANION:
            continue
        to = target / name
        to.parent.mkdir(parents=True, exist_ok=True)
        if many and name in holding and layout.runs:
            each = max(2, -(-runs // len(holding)))
            value = _cut(json.loads(path.read_text(encoding="utf-8")), layout.runs, each, seed)
            to.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        else:
            shutil.copyfile(path, to)
        copied += 1
    return copied


def _drawn(holding: dict[str, list[Reading]], runs: int, seed: int) -> set[str]:
    order = sorted(holding, key=lambda name: _key(seed, name))
    ended = {name: holding[name][0].outcome for name in order}
    quarter = runs // 4
    chosen: list[str] = []
    for outcome in sorted(set(ended.values())):
        chosen += [name for name in order if ended[name] == outcome][:quarter]
    chosen += [name for name in order if name not in chosen and ended[name] != "no record"]
    return set(chosen[: max(runs, 1)])


def _goes_along(name: str, chosen: set[str], holding: dict[str, list[Reading]]) -> bool:
    """Does a file that holds no run belong to the chosen ones: to all, or to one of them by its name."""
    owners = _owners(holding)
    parts = name.split("/")
    parts[-1] = parts[-1].split(".")[0]
    mine = {run for depth in range(len(parts)) for run in owners.get("/".join(parts[: depth + 1]), ())}
    mine |= {run for part in parts for run in owners.get(f"*{part}", ())}
    return not mine or bool(mine & chosen)


_known: dict[int, dict[str, set[str]]] = {}


def _owners(holding: dict[str, list[Reading]]) -> dict[str, set[str]]:
    """Folders that hold one run, and stems of runs (behind a star), to the file of the run."""
    if id(holding) not in _known:
        _known.clear()
        inside: dict[str, set[str]] = defaultdict(set)
        for file in holding:
            parts = file.split("/")
            for depth in range(1, len(parts)):
                inside["/".join(parts[:depth])].add(file)
            inside[f"*{parts[-1].split('.')[0]}"].add(file)
        common = {f"*{name}" for name in ("results", "result", "traffic", "trajectory")}
        _known[id(holding)] = {name: files for name, files in inside.items() if len(files) == 1 and name not in common}
    return _known[id(holding)]


def _cut(document: Any, at: str, most: int, seed: int) -> Any:
    """The document with so many of its runs, in their order."""
    if at == "[*]" and isinstance(document, list):
        return _some(document, most, seed)
    if at == ".*" and isinstance(document, dict):
        kept = set(sorted(document, key=lambda key: _key(seed, key))[:most])
        return {key: value for key, value in document.items() if key in kept}
    if isinstance(document, dict) and isinstance(document.get(at), list):
        return {**document, at: _some(document[at], most, seed)}
    return document


def _some(values: list[Any], most: int, seed: int) -> list[Any]:
    kept = set(sorted(range(len(values)), key=lambda n: _key(seed, str(n)))[:most])
    return [value for n, value in enumerate(values) if n in kept]
