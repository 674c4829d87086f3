"""A report as files: the page, and beside it Markdown and JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from prefixguard.errors import ConfigError
from prefixguard.evaluation.report.report import Report


def write_report(report: Report, path: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """Writes `path` (ending in .html) and the same name with .md and .json; returns the three paths.

    Folders on the way are made; files that stand there are replaced, each in one move.
    Raises ConfigError where the name has another ending or a file cannot be written.
    """
    page = Path(path)
    if page.suffix.lower() != ".html":
        raise ConfigError(f"report {page}: the name must end in .html; .md and .json are written beside it.")
    texts = {
        page: report.to_html(),
        page.with_suffix(".md"): report.to_markdown().encode("utf-8", "backslashreplace"),
        page.with_suffix(".json"): _json(report),
    }
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        for place, data in texts.items():
            part = place.with_name(f".{place.name}.part")
            part.write_bytes(data)
            part.replace(place)
    except OSError as exc:
        raise ConfigError(f"report {page}: cannot be written ({exc.strerror or exc}). Name another place.") from exc
    written = tuple(texts)
    return written[0], written[1], written[2]


def _json(report: Report) -> bytes:
    text = json.dumps(report.as_json(), allow_nan=False, ensure_ascii=True, indent=1)
    return text.encode() + b"\n"
