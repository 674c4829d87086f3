"""`prefixguard cross-validate`, `ablate` and `leave-agents-out`: what a training makes of runs, on held-out tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prefixguard.cli.console import say, working, write_json
from prefixguard.cli.options import GroupBy, Labels, ReadAdapter, Resamples, Runs, Strict, Trusted
from prefixguard.cli.training_plan import evaluation_folder, plan_training
from prefixguard.errors import ConfigError, UsageError
from prefixguard.store import Store

if TYPE_CHECKING:
    from prefixguard.learn import TrainConfig

Like = Annotated[Path | None, typer.Option("--monitor", help="Train as this monitor was, and read as it reads.")]
Settings = Annotated[Path | None, typer.Option(help="TOML file; its section [train] says how is trained.")]
Backend = Annotated[str, typer.Option(help="What is trained; gbdt takes seconds a fit.")]
Folds = Annotated[int, typer.Option(min=2, help="Parts that tasks are dealt to; each is held out once.")]
Repeats = Annotated[int, typer.Option(min=1, help="Deal tasks to other folds so often.")]
Seeds = Annotated[str, typer.Option(help="Every fold is fitted once a seed, such as 13,14,15.")]
Out = Annotated[Path | None, typer.Option(help="Folder for fits that are done. Default: beside the monitor.")]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]


def cross_validate_command(
    runs: Runs,
    monitor: Like = None,
    config: Settings = None,
    backend: Annotated[str | None, typer.Option(help="What is trained. Default: as --monitor or --config say.")] = None,
    adapter: ReadAdapter = None,
    labels: Labels = None,
    strict: Strict = False,
    folds: Folds = 5,
    repeats: Repeats = 1,
    seeds: Seeds = "13",
    group_by: GroupBy = None,
    out: Out = None,
    resamples: Resamples = 500,
    trust: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Train and test on task-grouped folds: every run is tested on once a repetition, by a fit that saw no run of its
    task.

    `evaluate` looks at one finished monitor; this says how good is what its training makes of such runs, with the
    spread over seeds. Interrupted, the same command goes on; with more repeats or seeds only what is new is fitted.

    Examples:

        prefixguard cross-validate .traces/tau_bench --monitor monitors/tau --folds 5 --seeds 13,14,15
        prefixguard cross-validate runs.jsonl --adapter openai_chat --backend gbdt --json > folds.json
    """
    from prefixguard.evaluation.retraining import cross_validate

    _tell(
        "Folds", cross_validate, runs, monitor, config, backend, adapter, labels, out, trust, as_json, strict=strict,
        folds=folds, repeats=repeats, seeds=numbers_of(seeds), group_by=group_by, resamples=resamples,
    )  # fmt: skip


def ablate_command(
    runs: Runs,
    monitor: Like = None,
    config: Settings = None,
    backend: Backend = "gbdt",
    adapter: ReadAdapter = None,
    labels: Labels = None,
    strict: Strict = False,
    folds: Folds = 3,
    repeats: Repeats = 1,
    seeds: Seeds = "13",
    group_by: GroupBy = None,
    out: Out = None,
    resamples: Resamples = 500,
    trust: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Train without, and with only, one field of the records or one group of the context, on the very same folds.

    What is lost without a thing says what it alone contributes; what is lost with only a thing, how much it carries by
    itself. 30 fits a fold, repetition and seed. Interrupted, the same command goes on.

    Examples:

        prefixguard ablate .traces/tau_bench --monitor monitors/tau
        prefixguard ablate runs.jsonl --adapter openai_chat --folds 2
    """
    from prefixguard.evaluation.retraining import ablate

    _tell(
        "Ablation", ablate, runs, monitor, config, backend, adapter, labels, out, trust, as_json, strict=strict,
        folds=folds, repeats=repeats, seeds=numbers_of(seeds), group_by=group_by, resamples=resamples,
    )  # fmt: skip


def leave_agents_out_command(
    runs: Runs,
    monitor: Like = None,
    config: Settings = None,
    backend: Backend = "gbdt",
    adapter: ReadAdapter = None,
    labels: Labels = None,
    strict: Strict = False,
    folds: Folds = 3,
    seed: Annotated[int, typer.Option(help="Of the folds and of every fit.")] = 13,
    group_by: Annotated[
        str | None, typer.Option(help="What an agent is: agent, model, file ... Default: the first with two values.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Agents that are left out: those with the most runs.")] = 8,
    out: Out = None,
    resamples: Resamples = 500,
    trust: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Train without each agent in turn and test on that one: does a monitor know failing runs, or who made them?

    Each agent's runs are judged by fits that have seen its other runs, and by fits that have seen none of them.
    Interrupted, the same command goes on.

    Examples:

        prefixguard leave-agents-out .traces/tau_bench --monitor monitors/tau
        prefixguard leave-agents-out runs.jsonl --adapter openai_chat --group-by model --json
    """
    from prefixguard.evaluation.retraining import leave_one_agent_out

    _tell(
        "Agents", leave_one_agent_out, runs, monitor, config, backend, adapter, labels, out, trust, as_json,
        strict=strict, folds=folds, seed=seed, group_by=group_by, most=most, resamples=resamples,
    )  # fmt: skip


def _tell(
    what: str,
    function: Callable[..., Any],
    runs: str,
    monitor: Path | None,
    config: Path | None,
    backend: str | None,
    adapter: str | None,
    labels: Path | None,
    out: Path | None,
    trust: list[Path] | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Train as a monitor was trained, or as a file and options say, and print what comes of it."""
    from prefixguard.evaluation.retraining import training_of
    from prefixguard.runtime import load

    reader: Any = adapter
    if monitor is not None:
        if config is not None:
            raise UsageError("--monitor and --config both say how is trained: give one of them.")
        opened = load(monitor, trust=trust or None)
        opened.refuse_other(adapter, runs)
        training, reader, beside = training_of(opened), opened.bundle.adapter, opened.bundle.path
    elif trust:
        raise UsageError("--trust is for a monitor: name one with --monitor.")
    else:
        plan = plan_training(runs, adapter, labels, None, config, {})
        training, reader, labels, beside = plan.config, plan.adapter, plan.labels, plan.out
    if backend is not None:
        training = dataclasses.replace(training, backend=backend)
    found = fitted(
        what, function, runs, training, evaluation_folder(beside, out), adapter=reader, labels=labels, **options
    )
    if as_json:
        write_json(found.as_json())
    else:
        say(found.to_text())


def fitted(
    what: str, function: Callable[..., Any], runs: Any, config: TrainConfig, folder: Path, **options: Any
) -> Any:
    """Call a function that fits, saying where its fits are kept and showing which is on."""
    if outdated := Store(folder).outdated():
        say(outdated)
    say(f"Fits that are done are kept in {folder}; after an interruption the same command goes on from there.")
    with working(what, "fits") as work:
        return function(runs, config, out=folder, on_stage=work.on_stage, on_progress=work.on_progress, **options)


def numbers_of(text: str) -> tuple[int, ...]:
    """Seeds by comma. ConfigError for what is none."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as exc:
        raise ConfigError(f"--seeds {text!r}: give whole numbers, by comma, such as 13,14,15.") from exc
