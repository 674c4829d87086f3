"""`prefixguard adapters`: which formats are read as they are."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from prefixguard.cli.console import say, write_json
from prefixguard.stepview import list_adapters, load_adapter


def adapters_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line on standard output, with the whole description.")
    ] = False,
) -> None:
    """List the adapters that are shipped, one a line: its name and the format of runs that it reads.

    What an adapter expects in full, and whether it can watch a live run: `prefixguard info NAME`.

    Examples:

        prefixguard adapters
        prefixguard info openai_chat
    """
    shipped = [load_adapter(name) for name in list_adapters()]
    if as_json:
        for adapter in shipped:
            write_json(
                {
                    "name": adapter.name,
                    "version": adapter.version,
                    "sha256": adapter.sha256,
                    "description": adapter.description,
                }
            )
        return
    width = max(len(adapter.name) for adapter in shipped)
    for adapter in shipped:
        say(f"{adapter.name:<{width}}  {first_clause(adapter.description)}")
    say("The whole description of one: prefixguard info NAME.")
    say("Another format: prefixguard induce-adapter SAMPLES makes one; give its path as --adapter.")


def first_clause(description: str) -> str:
    """What a description begins with, up to the first colon, semicolon or full stop that ends a clause.

    >>> first_clause("Runs of tau-bench (v1.0): a JSON array. Task: the domain.")
    'Runs of tau-bench (v1.0)'
    """
    return re.split(r"[:;.](?=\s|$)", description, maxsplit=1)[0]
