"""The option of every command that opens a monitor: whose signature it must bear."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: Given to `load`, `open_bundle`, `export` or `info` as it is; without the option it is None.
Trusted = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        help="A public key (PEM): the monitor must be signed with it, else nothing of it is opened. May be repeated.",
        show_default=False,
    ),
]
