"""Every command's options are the parameters of its public functions, with the same defaults."""

from __future__ import annotations

import inspect
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import typer

import prefixguard
from prefixguard.cli.app import COMMANDS, app, twin_of
from prefixguard.cli.signatures import REQUIRED, parameters_of

#: Parameters that nobody can type: what is told of the work, what is filled by it, and what only a program has.
NOT_TYPED = {"listener", "listen", "progress", "on_stage", "on_progress", "on_estimate", "report", "ask", "offer"}
NOT_TYPED |= {"approve", "audit", "beside", "table", "endpoint", "views", "settings", "stream", "header", "confidence"}
NOT_TYPED |= {"judge", "proposer"}
NOT_TYPED |= {"proposers", "verifiers"}  # endpoints, of which the command makes MODEL or MODEL@URL
#: A training's options come from the command line or a file: TrainConfig's, or --monitor, --config and --backend.
NOT_TYPED |= {"config"}
#: Of `audit`, whose command reads the runs and makes the protocol from its options (`AuditPlan`, `Endpoint`).
LEFT_OUT = {("audit", "audit", "runs"), ("audit", "audit", "protocol")}
#: Where command and function cannot have one default. Without runs the command finds its own and names the bundle
#: after them; options of a training that are not typed leave the word to the file; `sign` can make its key first; an
#: audit asks for the same answer twice.
OTHER_DEFAULTS = {("train", "runs"), ("train", "adapter"), ("train", "out"), ("sign", "monitor"), ("sign", "key")}
OTHER_DEFAULTS |= {("audit", "temperature")} | {("train", name) for name in parameters_of("TrainConfig")}

SOURCES = [(name, function) for name in COMMANDS for function in twin_of(name).functions]


@pytest.mark.parametrize("function", sorted({function for _, function in SOURCES}))
def test_what_is_read_from_the_source_is_what_the_function_has(function: str) -> None:
    """`parameters_of` imports nothing, and is right all the same."""
    assert function.partition(".")[0] in prefixguard.__all__, "what a command does is public"
    read = parameters_of(function)
    true = inspect.signature(attrgetter(function)(prefixguard)).parameters
    assert list(read) == [name for name in true if name in read] and set(true) - set(read) <= {"rung", "mark"}
    for name, parameter in read.items():
        wanted = REQUIRED if true[name].default is inspect.Parameter.empty else true[name].default
        if not callable(wanted):
            assert parameter.default == wanted or (not parameter.default and not wanted), name


@pytest.mark.parametrize(("command", "function"), SOURCES)
def test_options_and_defaults_are_those_of_the_function(command: str, function: str) -> None:
    twin = twin_of(command)
    options = inspect.signature(twin.callback).parameters
    taken = twin.functions[function] or tuple(parameters_of(function))
    for name in taken:
        if name not in NOT_TYPED and (command, function, name) not in LEFT_OUT:
            assert name in options, f"prefixguard {command} has no option for {name} of {function}"
        if name in options and (command, name) not in OTHER_DEFAULTS:
            default, wanted = options[name].default, parameters_of(function)[name].default
            if wanted is REQUIRED:
                wanted = inspect.Parameter.empty
            elif isinstance(wanted, tuple):
                wanted = ",".join(map(str, wanted))
            elif isinstance(default, Path):
                wanted = Path(wanted)
            assert default == wanted, f"{command} --{name}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    group: Any = typer.main.get_command(app)
    found = group.get_command(None, command)
    assert found.help and "Example" in found.help, "a help text without an example"
    for parameter in found.params:
        assert getattr(parameter, "help", None), f"{command}: {parameter.name} has no help"
        assert parameter.help.endswith((".", "...")), f"{command}: {parameter.name}: {parameter.help}"


@pytest.mark.parametrize(
    ("command", "older", "value", "now"),
    [
        ("watch", "--mark", 0.4, "--threshold"),
        ("watch", "--rung", "stop", "--intervention"),
        ("audit", "--mark", 0.4, "--threshold"),
    ],
)
def test_older_names_of_options_do_the_same_and_warn(cli, command: str, older: str, value: object, now: str) -> None:
    said = [cli(command, "nowhere", "--no-mask", option, value) for option in (older, now)]
    warning = f"warning: {older} works in this release only; now: {now} "
    assert said[0].told == warning + said[1].told and said[0].code == said[1].code == 2
