"""The reference of the command line, written from the commands themselves.

python -m prefixguard.cli.reference > docs/cli.md
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import typer

from prefixguard.cli.app import COMMANDS, app

_HEAD = """# Command line

Every command is a thin twin of a function of the same name in `prefixguard` (`watch` is `load().start()`, a `-` is a
`_`), with the same options and defaults.

Data goes to standard output, a line at a time; tables, progress and messages go to standard error, progress only to a
terminal. Exit codes: 0 done; 1 the answer is no (an alarm under `--fail-on-alarm`, a check that failed); 2 bad input or
usage, or an error that we did not foresee; 3 interrupted. `--traceback` before the command, or
PREFIXGUARD_TRACEBACK=1, shows where an error arose.

This page is written by `python -m prefixguard.cli.reference > docs/cli.md`, and a test keeps it true.
"""


def reference() -> str:
    """The page, as Markdown."""
    group: Any = typer.main.get_command(app)
    commands = {name: group.get_command(None, name) for name in COMMANDS}
    return "\n".join([_HEAD, *(line for name, command in commands.items() for line in _lines_of(name, command))])


def _lines_of(name: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments)
    yield f"## prefixguard {' '.join(filter(None, (name, usage)))}\n"
    yield inspect.cleandoc(command.help).rstrip() + "\n"
    yield "| | |\n| --- | --- |"
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        shown = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
        yield f"| {f'`{parameter.name.upper()}`' if parameter in arguments else shown} | {_explained(parameter)} |"
    yield ""


def _explained(parameter: Any) -> str:
    text: str = parameter.help
    default = parameter.default
    if parameter.required and parameter.param_type_name == "option":
        return f"{text} Required."
    if default is None or default is False or callable(default) or parameter.required or "efault" in text:
        return text
    return f"{text} Default: {'yes' if default is True else default}."


if __name__ == "__main__":
    sys.stdout.write(reference())
