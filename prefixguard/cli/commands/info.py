"""`prefixguard info`: what a thing is, without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from prefixguard.cli.command import command
from prefixguard.cli.console import people, say, visible, write_json
from prefixguard.cli.information import CorpusInfo, info
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import notes_of


@command("info", json="The same as JSON on standard output.")
def show_info(as_json: bool, **given: Any) -> None:
    """Say what a bundle, an adapter or a set of runs is. Nothing of it is run.

    Examples:

        prefixguard info monitors/tau
        prefixguard info openai_chat
        prefixguard info runs/ --adapter openai_chat
    """
    with Activity("Reading") as work:
        found = info(progress=work.on_runs, **given)
    facts = {name: value for name, value in asdict(found).items() if name != "report"}
    if as_json:
        write_json(facts)
    else:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in facts.items():
            if value != {} and name != "lost":
                shown = _IN_WORDS.get(name, _shown)(value)
                table.add_row(name.replace("_", " "), Text(visible(shown), overflow="fold"))
        people().print(table)
    if isinstance(found, CorpusInfo) and found.report is not None:
        for note in (*notes_of(found.report), *found.lost):
            say(note)


def _by_group(found: dict[str, Any]) -> str:
    rows = []
    for value, one in found["of"].items():
        if one["alarm"] is None:
            rows.append(f"{value} the common one ({one['runs']:,} of {one['needed']:,} runs needed)")
        else:
            rows.append(f"{value} {one['alarm']:.4g} (on {one['runs']:,} runs)")
    return f"{found['by']}: {', '.join(rows)}"


def _recalibration(found: dict[str, Any]) -> str:
    said = (
        f"thresholds set anew on {found.get('runs', 0):,} runs ({found.get('successful', 0):,} successful, "
        f"{found.get('failed', 0):,} failed), {found['drawn']:,} successful ones drawn, one a task; the monitor before "
        f"was {str(found.get('monitor'))[:12]}"
    )
    return said + (f"; IN SAMPLE: {found['in_sample']:,} runs" if found.get("in_sample") else "")


_IN_WORDS: Mapping[str, Callable[[Any], str]] = {"alarm_by_group": _by_group, "recalibration": _recalibration}


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "unknown" if value is None else str(value)
