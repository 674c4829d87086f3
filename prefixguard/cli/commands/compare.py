"""`prefixguard compare`: several monitors side by side, on runs that none of them was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prefixguard.cli.console import counting, say, write_json_text
from prefixguard.cli.options import GroupBy, Labels, Resamples, Strict, Trusted
from prefixguard.cli.terminal_text import visible


def compare_command(
    monitors: Annotated[
        list[Path], typer.Argument(help="Folders of two or more bundles; the others are compared with the first.")
    ],
    runs: Annotated[
        str, typer.Option(help="File, folder, glob or tar of runs; each monitor reads them through its own adapter.")
    ],
    labels: Labels = None,
    all: Annotated[
        bool, typer.Option("--all", help="Count runs that a monitor was made from too; the result is marked IN SAMPLE.")
    ] = False,
    strict: Strict = False,
    group_by: GroupBy = None,
    resamples: Resamples = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 13,
    trust: Trusted = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole comparison as JSON on standard output.")] = False,
) -> None:
    """Compare monitors on the same runs: figures side by side, each one's lead over the first, and first alerts.

    Runs that any of them was trained or calibrated on are left out for all, and counted. Tables go to standard error,
    with --json the same figures go to standard output instead.

    Examples:

        prefixguard compare monitors/old monitors/new --runs .traces/tau_bench
        prefixguard compare monitors/gru monitors/gbdt monitors/dfa --runs new_runs/ --labels outcomes.csv --json
    """
    from prefixguard.evaluation import compare
    from prefixguard.runtime import load

    with counting("Scoring") as show:
        comparison = compare(
            [load(monitor, trust=trust or None) for monitor in monitors],
            runs,
            labels=labels,
            all=all,
            strict=strict,
            group_by=group_by,
            resamples=resamples,
            seed=seed,
            progress=show,
        )
    if as_json:
        write_json_text(comparison.to_json())
    else:
        say(visible(comparison.to_text()))
