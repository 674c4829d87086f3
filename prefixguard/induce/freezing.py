"""Freezing an adapter: its spec, its golden samples and its report, written together and then never changed.

    FOLDER/NAME.json                the spec, in one spelling
    FOLDER/NAME.report.md, .json    how it was made: what a reviewer reads
    FOLDER/NAME.transcript.jsonl    what was said to a language model and what it answered, where one was asked
    FOLDER/golden/NAME/runs/...     a few samples, cut small
    FOLDER/golden/NAME/expected.jsonl   the records they give
    FOLDER/NAME.draft.json          a spec that a check refused, with its report and transcript: not an adapter yet

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
        f"{name}.transcript.jsonl": transcript or "",
        f"{name}.json": pretty(json.loads(adapter.to_bytes())),
    }
    _put(folder, texts, (folder / "golden" / name, golden))
    return Frozen(
        folder / f"{name}.json",
        folder / f"{name}.report.md",
        folder / f"{name}.report.json",
        folder / "golden" / name if golden.files else None,
        folder / f"{name}.transcript.jsonl" if transcript else None,
        adapter.sha256,
    )


def write_draft(path: Path, spec: Mapping[str, Any] | None, page: str, transcript: str | None) -> tuple[Path, ...]:
    """Keep a spec that is no adapter yet, with its report and transcript beside it (X.json, X.report.md and
    X.transcript.jsonl), so that a person can mend it. What is there is replaced. The paths of what there was to keep.
    OutputError where nothing can be written."""
    said = {path: "" if spec is None else pretty(dict(spec)), path.with_suffix(".report.md"): page}
    said[path.with_suffix(".transcript.jsonl")] = transcript or ""
    _put(path.parent, {one.name: text for one, text in said.items()})
    return tuple(one for one, text in said.items() if text)


def _put(folder: Path, texts: Mapping[str, str], samples: tuple[Path, Golden] | None = None) -> None:
    """Write files, and golden samples in the place of a folder, into a folder: all aside first, and then renamed. An
    empty text takes its file away."""
    aside = folder / f".{secrets.token_hex(6)}.tmp"
    old, new = aside / "old", aside / "golden"
    try:
        aside.mkdir(parents=True)
        for file, text in texts.items():
            _write(aside / file, text.encode("utf-8", "backslashreplace"))
        if samples is not None:
            target, golden = samples
            write_files(new / "runs", golden.files)
            if golden.files:
                _write(new / "expected.jsonl", golden.expected)
                target.parent.mkdir(exist_ok=True)
            if target.exists():
                target.rename(old)
            if golden.files:
                new.rename(target)
        for file, text in texts.items():
            if text:
                (aside / file).replace(folder / file)
            else:
                (folder / file).unlink(missing_ok=True)
    except OSError as exc:
        if samples is not None and old.exists() and not samples[0].exists():
            old.rename(samples[0])
        full = exc.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "Make room and try again." if full else "Choose a folder you may write to."
        raise OutputError(f"{folder}: the adapter cannot be written ({exc.strerror}). {remedy}") from exc
    finally:
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
    return laid_out(_in_order(spec), width=112, indent=2) + "\n"


def laid_out(value: Any, *, width: int, indent: int, depth: int = 0, taken: int = 0) -> str:
    """JSON of which every value that fits into the width stands on a line. indent: spaces a level; taken: characters
    before the value on its line."""
    line = on_a_line(value)
    if len(line) + indent * depth + taken <= width or not isinstance(value, dict | list) or not value:
        return line
    below = depth + 1
    if isinstance(value, list):
        inner = [laid_out(one, width=width, indent=indent, depth=below) for one in value]
    else:
        names = {key: f"{on_a_line(str(key))}: " for key in value}
        inner = [
            name + laid_out(value[key], width=width, indent=indent, depth=below, taken=len(name))
            for key, name in names.items()
        ]
    begin, end = "[]" if isinstance(value, list) else "{}"
    lines = ",\n".join(" " * indent * below + one for one in inner)
    return f"{begin}\n{lines}\n{' ' * indent * depth}{end}"


def on_a_line(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value, key=_place)}
    return [_in_order(one) for one in value] if isinstance(value, list) else value


def _place(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER), key)
