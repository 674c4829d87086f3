"""`prefixguard cross-validate`, `ablate` and `leave-agents-out`: what a training makes of runs, on held-out tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.bundle import Trust
from prefixguard.cli.command import READ_ADAPTER, command
from prefixguard.cli.console import say
from prefixguard.cli.progress import Activity
from prefixguard.cli.training_plan import evaluation_folder, plan_training
from prefixguard.errors import UsageError
from prefixguard.runtime import load
from prefixguard.store import Store

if TYPE_CHECKING:
    from prefixguard.learn import TrainConfig


def _fit(
    what: str,
    function: Callable[..., Any],
    *,
    runs: str,
    adapter: str | None,
    labels: Path | None,
    out: Path | None,
    monitor: Path | None = None,
    config: Path | None = None,
    backend: str | None = None,
    trust: Trust | None = None,
    **options: Any,
) -> Any:
    """Train as a monitor was trained, or as a file and options say.

    monitor : train as this monitor was, and read as it reads.
    config : TOML file; its section [train] says how is trained.
    backend : what is trained. Default: as --monitor or --config say.
    """
    from prefixguard.evaluation.retraining import training_of

    reader: Any = adapter
    if monitor is not None:
        if config is not None:
            raise UsageError("--monitor and --config both say how is trained: give one of them.")
        opened = load(monitor, trust=trust)
        opened.refuse_other(adapter, runs)
        training, reader, beside = training_of(opened), opened.bundle.adapter, opened.bundle.path
    elif trust:
        raise UsageError("--trust is for a monitor: name one with --monitor.")
    else:
        plan = plan_training(runs, adapter, labels, None, config, {})
        training, reader, labels, beside = plan.config, plan.adapter, plan.labels, plan.out
    if backend is not None:
        training = dataclasses.replace(training, backend=backend)
    folder = evaluation_folder(beside, out)
    return fitted(what, function, runs, training, folder, adapter=reader, labels=labels, **options)


_SHOWN: dict[str, Any] = {
    "arguments": "runs",
    "words": {"adapter": READ_ADAPTER, "out": "Folder for fits that are done. Default: beside the monitor."},
    "also": _fit,
    "json": "The result as JSON on standard output.",
}


@command("cross_validate", **_SHOWN)
def cross_validate(**given: Any) -> Any:
    """Train and test on task-grouped folds: every run is tested on once a repetition, by a fit that saw no run of its
    task.

    `evaluate` looks at one finished monitor; this says how good is what its training makes of such runs, with the
    spread over seeds. Interrupted, the same command goes on; with more repeats or seeds only what is new is fitted.

    Examples:

        prefixguard cross-validate .traces/tau_bench --monitor monitors/tau --folds 5 --seeds 13,14,15
        prefixguard cross-validate runs.jsonl --adapter openai_chat --backend gbdt --json > folds.json
    """
    from prefixguard.evaluation.retraining import cross_validate

    return _fit("Folds", cross_validate, **given)


@command("ablate", **_SHOWN)
def ablate(backend: str = "gbdt", **given: Any) -> Any:
    """Train without, and with only, one field of the records or one group of the context, on the very same folds.

    What is lost without a thing says what it alone contributes; what is lost with only a thing, how much it carries by
    itself. 30 fits a fold, repetition and seed. Interrupted, the same command goes on.

    Examples:

        prefixguard ablate .traces/tau_bench --monitor monitors/tau
        prefixguard ablate runs.jsonl --adapter openai_chat --folds 2

    backend : what is trained; gbdt takes seconds a fit.
    """
    from prefixguard.evaluation.retraining import ablate

    return _fit("Ablation", ablate, backend=backend, **given)


@command("leave_one_agent_out", **_SHOWN)
def leave_agents_out(backend: str = "gbdt", **given: Any) -> Any:
    """Train without each agent in turn and test on that one: does a monitor know failing runs, or who made them?

    Each agent's runs are judged by fits that have seen its other runs, and by fits that have seen none of them.
    Interrupted, the same command goes on.

    Examples:

        prefixguard leave-agents-out .traces/tau_bench --monitor monitors/tau
        prefixguard leave-agents-out runs.jsonl --adapter openai_chat --group-by model --json

    backend : what is trained; gbdt takes seconds a fit.
    """
    from prefixguard.evaluation.retraining import leave_one_agent_out

    return _fit("Agents", leave_one_agent_out, backend=backend, **given)


def fitted(
    what: str, function: Callable[..., Any], runs: Any, config: TrainConfig, folder: Path, **options: Any
) -> Any:
    """Call a function that fits, saying where its fits are kept and showing which is on."""
    if outdated := Store(folder).outdated():
        say(outdated)
    say(f"Fits that are done are kept in {folder}; after an interruption the same command goes on from there.")
    with Activity(what, "fits") as work:
        return function(runs, config, out=folder, on_stage=work.on_stage, on_progress=work.on_progress, **options)
