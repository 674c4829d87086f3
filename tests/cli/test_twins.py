"""Every command has the options of its function, with the same defaults."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import prefixguard
from prefixguard.cli.app import app
from prefixguard.cli.older_options import OLDER_NAMES
from prefixguard.cli.options import OPTIONS
from prefixguard.learn import TrainConfig
from prefixguard.runtime import watch

REQUIRED = inspect.Parameter.empty
COMMANDS = {command.name: command.callback for command in app.registered_commands}

#: A command finds the config of a training in a monitor or a file.
TRAINED_LIKE = {"as_json", "trust", "monitor", "backend"}
#: Where a function takes an opened monitor, its command opens it: `--trust` is an option of `load`.
#: Command: its function, names of the command alone, names of the function alone.
TWINS: dict[str, tuple[Callable[..., Any], set[str], set[str]]] = {
    "train": (prefixguard.train, {"as_json"} | {field.name for field in dataclasses.fields(TrainConfig)}, {"listener"}),
    "evaluate": (
        prefixguard.evaluation.evaluate,
        {"as_json", "trust", "controls", "leaks", "waive", "report", *OLDER_NAMES},
        {"progress", "beside"},
    ),
    "cross-validate": (prefixguard.cross_validate, TRAINED_LIKE, {"on_stage", "on_progress"}),
    "ablate": (prefixguard.ablate, TRAINED_LIKE, {"on_stage", "on_progress", "views"}),
    "leave-agents-out": (prefixguard.leave_one_agent_out, TRAINED_LIKE, {"on_stage", "on_progress"}),
    "judge": (
        prefixguard.judge,
        {"as_json", "trust", "model", "base_url", "key_from", "price_in", "price_out", "estimate"},
        {"endpoint", "table", "on_estimate", "on_progress"},
    ),
    "compare": (prefixguard.compare, {"as_json", "trust"}, {"progress"}),
    "calibrate": (prefixguard.calibrate, {"as_json", "trust"}, {"progress"}),
    "check-data": (prefixguard.check_data, {"as_json", "waive"}, {"listener", "report", "audit"}),
    "score": (prefixguard.score, {"trust"}, {"report"}),
    "parse": (prefixguard.parse, {"limit", "as_json"}, {"report"}),
    "watch": (
        watch,
        {"run", "run_id", "fail_on_alarm", "as_json", "escalate", "base_url", "key_from", "mark", "every", "calls"}
        | {"block", "intervention", "rung", "budget_tokens", "price_in", "price_out", "replies", "patience"}
        | {"gap", "calls_a_minute", "reply_tokens", "temperature", "timeout", "trust", "mask"},
        {"stream"},
    ),
    "audit": (
        prefixguard.audit,
        {"adapter", "labels", "monitor", "model", "base_url", "key_from", "protocol", "known_failed", "mark", "every"}
        | {"confirm", "limit", "run_id", "budget_tokens", "reply_tokens", "temperature", "timeout", "price_in"}
        | {"price_out", "published", "events", "full", "as_json", "logprobs", "confidence", "trust", "mask"},
        {"protocol", "settings", "listen"},
    ),
    "info": (prefixguard.info, {"as_json"}, {"progress"}),
    "adapters": (prefixguard.list_adapters, {"as_json"}, set()),
    "induce-adapter": (
        prefixguard.induce_adapter,
        {"yes", "steps", "show_pack", "as_json"},
        {"ask", "offer", "approve", "listen"},
    ),
    "check-adapter": (prefixguard.check_adapter, {"as_json"}, {"listen"}),
    "export": (prefixguard.export, {"as_json"}, {"listener"}),
    "sign": (prefixguard.sign, {"new_key_name", "as_json"}, set()),
    "demo": (prefixguard.demo, {"as_json"}, {"listener"}),
}
#: Where the two cannot have one default: without runs the command finds its own, and names the bundle after them.
OTHER_DEFAULTS = {("train", "runs"), ("train", "adapter"), ("train", "out")}
#: What a command takes as KEY=VALUE, several times, is a mapping of the function.
OTHER_DEFAULTS |= {("induce-adapter", "hints"), ("induce-adapter", "waive"), ("check-adapter", "waive")}
#: The command can make the key, and then needs no bundle.
OTHER_DEFAULTS |= {("sign", "monitor"), ("sign", "key")}
#: Numbers by comma are a sequence of the function.
OTHER_DEFAULTS |= {("cross-validate", "seeds"), ("ablate", "seeds")}


def parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: p.default for name, p in inspect.signature(function).parameters.items()}


def test_every_command_has_a_twin() -> None:
    assert set(COMMANDS) == set(TWINS)


@pytest.mark.parametrize("command", TWINS)
def test_options_and_defaults_are_those_of_the_function(command: str) -> None:
    function, of_command, of_function = TWINS[command]
    theirs = {name: default for name, default in parameters_of(function).items() if name not in of_function}
    ours = {name: default for name, default in parameters_of(COMMANDS[command]).items() if name not in of_command}
    assert set(ours) == set(theirs)
    for name, default in ours.items():
        if (command, name) not in OTHER_DEFAULTS:
            wanted = theirs[name]
            same = str(default) == str(wanted) if isinstance(default, Path) else default == wanted
            assert same, f"{command} --{name}: {default!r}, the function has {wanted!r}"


def test_flags_of_a_training_are_the_fields_of_its_config() -> None:
    assert {(o.name, o.default) for o in OPTIONS} == {(f.name, f.default) for f in dataclasses.fields(TrainConfig)}
    assert all(option.text.endswith(".") for option in OPTIONS)
    for option in OPTIONS:
        field = next(f for f in dataclasses.fields(TrainConfig) if f.name == option.name)
        assert type(option.default).__name__ == field.type, f"{option.name} would be read as another type"


@pytest.mark.parametrize("command", TWINS)
def test_every_option_is_explained(command: str) -> None:
    group = typer.main.get_command(app)
    found = group.commands[command]  # type: ignore[attr-defined]
    assert found.help and "Example" in found.help, "a help text without an example"
    for parameter in found.params:
        assert getattr(parameter, "help", None), f"{command}: {parameter.name} has no help"
