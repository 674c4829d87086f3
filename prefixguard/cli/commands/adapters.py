"""`prefixguard adapters`: which formats are read as they are."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from prefixguard.cli.console import people, say, write_json
from prefixguard.stepview import list_adapters, load_adapter


def adapters_command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on standard output.")] = False,
) -> None:
    """List the adapters that are shipped: one for every format of runs that is read as it is.

    Example:

        prefixguard adapters
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
    table = Table("adapter", "reads", show_lines=True)
    for adapter in shipped:
        table.add_row(f"{adapter.name}\n{adapter.version}", adapter.description)
    people().print(table)
    say("Another format: prefixguard induce-adapter SAMPLES makes one; give its path as --adapter.")
