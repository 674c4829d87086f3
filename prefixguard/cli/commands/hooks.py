"""`prefixguard hook`: what agents run at their hooks. What it does is in `prefixguard.hook`, which imports little."""

from __future__ import annotations

import json
from typing import Any

import typer

from prefixguard.cli.command import command


@command(
    "hook_settings",
    words={
        "monitor": "Folder of a monitor that was trained on events; without it runs are only recorded.",
        "on_alarm": "What an alarm does: nudge, stop or warn.",
    },
)
def hook(agent: str, settings: bool = False, **given: Any) -> None:
    """Watch Claude Code: its hooks run this command, with a payload on standard input and an answer on standard output.

    A nudge is additional context for Claude; a stop denies the next tool calls and ends the turn. Each sub-agent is
    watched apart. The first hook begins a worker that judges; it leaves after half an hour without a hook. Whatever
    goes wrong, Claude goes on: the exit code is 0, and the reason stands on standard error and in problems.jsonl of the
    state folder.

    Examples:

        prefixguard hook claude-code --record runs/ --settings > .claude/settings.json
        prefixguard hook claude-code --monitor monitors/mine --on-alarm stop --settings

    settings : Print what to put into .claude/settings.json, and leave.
    """
    from prefixguard.hook import hook_settings, main

    if settings:
        typer.echo(json.dumps(hook_settings(agent, **given), indent=2))
    else:
        named = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
        raise typer.Exit(main([agent, *(f"--{name}={value}" for name, value in named.items())]))
