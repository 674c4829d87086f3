"""Options that several commands have, the options of a training, and values of the form KEY=VALUE."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from prefixguard.errors import ConfigError

Labels = Annotated[
    Path | None, typer.Option(help="Outcomes beside the runs: run_id,outcome[,task_id] as .jsonl or .csv.")
]
MeantAdapter = Annotated[
    str | None, typer.Option(help="The adapter that is meant; refused unless the monitor was trained through it.")
]
ReadAdapter = Annotated[
    str | None, typer.Option(help="How runs are read: a shipped adapter's name, or the path of a .json.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first run that cannot be read.")]
BaseUrl = Annotated[str | None, typer.Option(help="Where the model is: any server that speaks chat completions.")]
Waive = Annotated[
    list[str] | None,
    typer.Option(help="A finding that is harmless, and why: PLACE=REASON, as the finding says. May be repeated."),
]
Mask = Annotated[
    bool, typer.Option("--mask/--no-mask", help="Mask likely secrets (keys, passwords, cards, e-mail) in what is sent.")
]
GroupBy = Annotated[str | None, typer.Option(help="Group within which runs are compared: agent, model, file ...")]
Runs = Annotated[str, typer.Argument(help="File, folder, glob or tar of runs, or - for standard input.")]
MonitorFolder = Annotated[Path, typer.Argument(help="Folder of the monitor's bundle.")]
PriceIn = Annotated[float | None, typer.Option(help="Price of a million tokens that are sent.")]
PriceOut = Annotated[float | None, typer.Option(help="Price of a million tokens that come back.")]
Resamples = Annotated[int, typer.Option(help="Bootstrap resamples over tasks, for the intervals.")]
Made = Annotated[bool, typer.Option("--json", help="What was made, as JSON on standard output.")]
#: Given to `load`, `open_bundle`, `export` or `info` as it is; without the option it is None.
Trusted = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        help="A public key (PEM): the monitor must be signed with it, else nothing of it is opened. May be repeated.",
        show_default=False,
    ),
]

#: The example in the message of a --waive that is none.
WAIVE_EXAMPLE = "result=the tool says so live, too"


def pairs_of(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    """KEY=VALUE, as often as it was said. ConfigError for what is none."""
    pairs = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or not value.strip():
            raise ConfigError(f"{option} {text!r}: KEY=VALUE is needed, such as {option} '{example}'.")
        pairs[key.strip()] = value.strip()
    return pairs


@dataclass(frozen=True, slots=True)
class TrainingOption:
    """An option of a training; the table below says again what `learn.TrainConfig` says, since that is slow to import.

    name: the field. default: the field's. text: what it does, for people. common: shown among the first."""

    name: str
    default: int | float | str
    text: str
    common: bool = False


OPTIONS: tuple[TrainingOption, ...] = (
    TrainingOption("backend", "gru", "The monitor's head: gru, transformer, fsm, gbdt or blend.", common=True),
    TrainingOption("blend", "gbdt,gru", "What the backend blend averages, by comma.", common=True),
    TrainingOption("seed", 13, "Of the split, the initialisation and the batches.", common=True),
    TrainingOption("horizon", 3, "H: a step is imminent when its run fails within so many more steps.", common=True),
    TrainingOption("epochs", 24, "Epochs of each network.", common=True),
    TrainingOption("budget", 0.10, "At most this share of successful runs may raise an alarm.", common=True),
    TrainingOption("confidence", 0.90, "How sure the budget is to hold.", common=True),
    TrainingOption("device", "auto", "auto (CUDA when there is one), cpu or cuda.", common=True),
    TrainingOption("max_features", 4096, "Terms in the vocabulary."),
    TrainingOption("min_tasks", 3, "A term must occur in so many tasks."),
    TrainingOption("symbols", 16, "Size of the learned alphabet."),
    TrainingOption("abstraction_width", 64, "Hidden width before the symbols."),
    TrainingOption("width", 64, "Width of the GRU's state and of the Transformer's stream."),
    TrainingOption("layers", 2, "Layers of the Transformer."),
    TrainingOption("attention_heads", 4, "Query heads of each of its layers."),
    TrainingOption("window", 32, "Steps that each of its layers looks back on."),
    TrainingOption("states", 64, "States of the soft automaton, which has half as many symbols."),
    TrainingOption("bypass", 32, "Width of the channel around the symbols."),
    TrainingOption("bins", 16, "Piecewise-linear bins of every context feature."),
    TrainingOption("members", 2, "Networks of a kind that are averaged in one bundle."),
    TrainingOption("teacher", 0.5, "Weight of the boosted teacher's risks in the targets; 0 trains without one."),
    TrainingOption("validation_share", 0.12, "Share of the training tasks that choose a further member's epoch."),
    TrainingOption("symbol_epochs", 16, "Epochs of the symbols-only network."),
    TrainingOption("batch_runs", 32, "Runs in a batch."),
    TrainingOption("learning_rate", 2e-3, "Highest learning rate."),
    TrainingOption("weight_decay", 1e-2, "Of AdamW."),
    TrainingOption("text_dropout", 0.3, "Share of terms that are dropped while training."),
    TrainingOption("dropout", 0.2, "Dropout inside the network."),
    TrainingOption("balance", 0.1, "Weight of the term that keeps symbols sharp and all in use."),
    TrainingOption("tau_start", 1.0, "Gumbel temperature of the first epoch."),
    TrainingOption("tau_end", 0.25, "Gumbel temperature of the last epoch."),
    TrainingOption("threads", 1, "Threads of torch; 1 gives the same bytes on every machine of a kind."),
)


def with_training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `**options` a flag for every option; a flag that is not given is None."""
    signature = inspect.signature(command, eval_str=True)
    named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    flags = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                type(option.default) | None,
                typer.Option(
                    help=f"{option.text} Default: {option.default}.",
                    show_default=False,
                    rich_help_panel="Training" if option.common else "Training, in detail",
                ),
            ],
        )
        for option in OPTIONS
    ]
    command.__signature__ = signature.replace(parameters=[*named, *flags])  # type: ignore[attr-defined]
    return command
