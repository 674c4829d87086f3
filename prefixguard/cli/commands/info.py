"""`prefixguard info`: what a thing is, without running it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from prefixguard.cli.console import counting, people, say, visible, write_json
from prefixguard.cli.information import CorpusInfo, info
from prefixguard.cli.notes import notes_of


def info_command(
    thing: Annotated[str, typer.Argument(help="Folder of a bundle, name or .json of an adapter, or runs.")],
    adapter: Annotated[
        str | None, typer.Option(help="For runs: the adapter that reads them (a name, or the path of a .json).")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="For runs: outcomes beside them: run_id,outcome[,task_id] as .jsonl or .csv.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON on standard output.")] = False,
) -> None:
    """Say what a bundle, an adapter or a set of runs is. Nothing of it is run.

    Examples:

        prefixguard info monitors/tau
        prefixguard info openai_chat
        prefixguard info runs/ --adapter openai_chat
    """
    with counting("Reading") as show:
        found = info(thing, adapter=adapter, labels=labels, progress=show)
    facts = {name: value for name, value in asdict(found).items() if name != "report"}
    if as_json:
        write_json(facts)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), Text(visible(_shown(value)), overflow="fold"))
    people().print(table)
    if isinstance(found, CorpusInfo) and found.report is not None:
        for note in notes_of(found.report):
            say(note)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return "unknown" if value is None else str(value)
