"""Freezing an adapter: its spec, its golden samples and its report, written together and then never changed.

    FOLDER/NAME.json                the spec, in one spelling
    FOLDER/NAME.report.md, .json    how it was made: what a reviewer reads
    FOLDER/NAME.transcript.jsonl    what was said to a language model and what it answered, where one was asked
    FOLDER/golden/NAME/runs/...     a few samples, cut small
    FOLDER/golden/NAME/expected.jsonl   the records they give
    FOLDER/NAME.draft.json, NAME.draft.report.md   a spec that a check refused: not an adapter yet

What identifies it is the hash of the spec's canonical JSON (`Adapter.sha256`). The spec takes its name last, so an
adapter that is there has all the rest beside it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.errors import ConfigError, OutputError
from prefixguard.induce.golden import Golden, write_files
from prefixguard.stepview import Adapter

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}\Z")
#: Names that would mean something else: the control, and what Windows reads as a device.
_TAKEN = ("raw", "con", "prn", "aux", "nul")
_WIDTH = 112
#: Keys in the order in which a person reads them; others follow by name.
_ORDER = (
    *("schema", "name", "version", "description", "comment", "format", "files", "container", "run"),
    *("id", "task", "groups", "preamble", "outcome", "events", "sibling", "path", "zip", "split", "flatten"),
    *("rules", "when", "then", "emit", "each", "actor", "agent", "call_id", "tool", "arguments"),
    *("observation", "action", "result", "of", "type", "success", "failure", "is"),
    *("status", "join", "turn", "kind", "budgets", "view", "hidden", "waived"),
)


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was written. golden, transcript: None where there is none."""

    adapter: Path
    report: Path
    report_json: Path
    golden: Path | None
    transcript: Path | None
    sha256: str

    @property
    def all(self) -> tuple[Path, ...]:
        """Every path, the adapter first."""
        maybe = (self.adapter, self.report, self.report_json, self.golden, self.transcript)
        return tuple(path for path in maybe if path is not None)


def check_name(name: str) -> str:
    """The name, if an adapter can be called so; ConfigError otherwise."""
    if _NAME.match(name) is None or name in _TAKEN:
        raise ConfigError(
            f"an adapter cannot be called {name!r}: small letters, digits and _ only, a letter first, at most 60, and "
            f"none of {', '.join(_TAKEN)}. Say another with --name."
        )
    return name


def name_for(source: str | Path) -> str:
    """A name from where the samples are.

    >>> name_for("logs/My-Agent Runs/"), name_for("runs.tar.gz"), name_for("-"), name_for("2024/*.json")
    ('my_agent_runs', 'runs', 'induced', 'induced')
    """
    parts = [part for part in Path(source).parts if part not in ("/", "..", ".") and not set(part) & set("*?{")]
    stem = parts[-1].lstrip(".").partition(".")[0] if parts else ""
    name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:60]
    return name if _NAME.match(name) and name not in _TAKEN else "induced"


def check_target(out: str | Path, name: str, overwrite: bool) -> None:
    """OutputError where an adapter of that name is there already; asked before anything is read."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; adapters go into a folder. Choose another --out.")
    there = [path for path in (folder / f"{name}.json", folder / "golden" / name) if path.exists()]
    if there and not overwrite:
        raise OutputError(
            f"{there[0]} is there already. A frozen adapter is not changed, since monitors may have been trained "
            "through it: choose another --name or --out, or say --overwrite."
        )


def freeze(
    adapter: Adapter,
    report: Mapping[str, Any],
    page: str,
    golden: Golden,
    out: str | Path,
    *,
    transcript: str | None = None,
    overwrite: bool = False,
) -> Frozen:
    """Write an adapter and what belongs to it into the folder `out`, which is made if it is not there.

    report, page: the report as JSON values and as Markdown. transcript: JSON lines. overwrite: replace an adapter of
    the same name. All is written aside first and then renamed, the spec last.
    Raises ConfigError for a name that is none, OutputError where nothing can be written.
    """
    name = check_name(adapter.name)
    check_target(out, name, overwrite)
    folder = Path(out)
    texts = {
        f"{name}.report.md": page,
        f"{name}.report.json": json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False) + "\n",
    }
    if transcript:
        texts[f"{name}.transcript.jsonl"] = transcript
    texts[f"{name}.json"] = pretty(json.loads(adapter.to_bytes()))
    mark = secrets.token_hex(4)
    temporary = folder / f".{name}.{mark}.tmp"
    try:
        temporary.mkdir(parents=True)
        for file, text in texts.items():
            _write(temporary / file, text.encode("utf-8", "backslashreplace"))
        samples = _golden(temporary, golden)
        _swap_folder(samples, folder / "golden" / name)
        for file in texts:
            (temporary / file).replace(folder / file)
        if not transcript:
            (folder / f"{name}.transcript.jsonl").unlink(missing_ok=True)  # of the adapter that was overwritten
    except OSError as exc:
        full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "Make room and try again." if full else "Choose a folder you may write to."
        raise OutputError(f"{folder}: the adapter cannot be written ({exc.strerror}). {remedy}") from exc
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Frozen(
        folder / f"{name}.json",
        folder / f"{name}.report.md",
        folder / f"{name}.report.json",
        folder / "golden" / name if samples is not None else None,
        folder / f"{name}.transcript.jsonl" if transcript else None,
        adapter.sha256,
    )


def write_draft(path: Path, spec: Mapping[str, Any], page: str) -> tuple[Path, Path]:
    """Keep a spec that is no adapter yet, with its report beside it (X.json and X.report.md), so that a person can mend
    it. What is there is replaced. OutputError where nothing can be written."""
    paths = path, path.with_suffix(".report.md")
    mark = secrets.token_hex(4)
    aside = [one.with_name(f".{one.name}.{mark}.tmp") for one in paths]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for one, text in zip(aside, (pretty(dict(spec)), page), strict=True):
            _write(one, text.encode("utf-8", "backslashreplace"))
        for new, one in zip(aside, paths, strict=True):
            new.replace(one)
    except OSError as exc:
        why = f"the draft cannot be written ({exc.strerror}). Choose another --out or --draft."
        raise OutputError(f"{path.parent}: {why}") from exc
    finally:
        for one in aside:
            one.unlink(missing_ok=True)
    return paths


def _golden(temporary: Path, golden: Golden) -> Path | None:
    if not golden.files:
        return None
    folder = temporary / "golden"
    write_files(folder / "runs", golden.files)
    _write(folder / "expected.jsonl", golden.expected)
    return folder


def _swap_folder(new: Path | None, target: Path) -> None:
    """Put a folder in the place of another, or take it away; the old one is gone only when the new one is there."""
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    if target.exists():
        target.rename(aside)
    try:
        if new is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            new.rename(target)
    except BaseException:
        if aside.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def pretty(spec: Any) -> str:
    """A spec as JSON for people: what fits on a line stands on one, keys in the order of a reader. One content, one
    spelling.

    >>> print(pretty({"events": "$.m[*]", "name": "x", "rules": [{"emit": "skip", "when": {"@.a": 1}}]}), end="")
    {"name": "x", "events": "$.m[*]", "rules": [{"when": {"@.a": 1}, "emit": "skip"}]}
    """
    return _spelled(spec, 0) + "\n"


def _spelled(value: Any, depth: int, taken: int = 0) -> str:
    line = json.dumps(_in_order(value), ensure_ascii=False)
    if len(line) + 2 * depth + taken <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    indent = "  " * (depth + 1)
    if isinstance(value, list):
        inner = [indent + _spelled(one, depth + 1) for one in value]
        brackets = "[]"
    else:
        inner = []
        for key in sorted(value, key=_place):
            name = json.dumps(key, ensure_ascii=False)
            inner.append(f"{indent}{name}: {_spelled(value[key], depth + 1, len(name) + 2)}")
        brackets = "{}"
    return brackets[0] + "\n" + ",\n".join(inner) + "\n" + "  " * depth + brackets[1]


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value, key=_place)}
    return [_in_order(one) for one in value] if isinstance(value, list) else value


def _place(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER), key)
