"""`prefixguard check-adapter`: does an adapter read runs as it should, and nothing that a live run does not show?"""

from __future__ import annotations

from typing import Annotated

import typer

from prefixguard.cli.console import clock, people, say, write_json
from prefixguard.cli.induction_talk import show_check
from prefixguard.cli.options import WAIVE_EXAMPLE, Labels, Waive, pairs_of


def check_adapter_command(
    adapter: Annotated[str, typer.Argument(help="A shipped adapter's name, or the path of a .json.")],
    runs: Annotated[str, typer.Argument(help="File, folder, glob or tar of runs that it shall read.")],
    labels: Labels = None,
    processes: Annotated[
        bool, typer.Option(help="Read the runs in a second process too, under another hash seed and locale.")
    ] = True,
    waive: Waive = None,
    as_json: Annotated[bool, typer.Option("--json", help="The findings as JSON on standard output.")] = False,
) -> None:
    """Check an adapter on runs: determinism, stream against file, coverage, calls and results, order, time, leaks.

    Exit codes: 0 no error was found; 1 one was (a leak counts until it is waived by name, here or in the spec);
    2 bad input.

    Examples:

        prefixguard check-adapter stepview_adapters/mine.json samples/
        prefixguard check-adapter tau2 .traces/tau2 --json
        prefixguard check-adapter mine.json samples/ --waive "@.name=an agent of the team is called Verifier"
    """
    from prefixguard.induce import check_adapter

    console = people()
    with clock(console) as progress:
        task = progress.add_task("Checking")
        report = check_adapter(
            adapter,
            runs,
            labels=labels,
            waive=pairs_of(waive, "--waive", WAIVE_EXAMPLE),
            processes=processes,
            listen=lambda what: progress.update(task, description=f"Checking: {what}"),
        )
    if as_json:
        write_json(report.to_dict())
    show_check(report)
    errors = sum(finding.severity == "error" for finding in report.findings)
    if errors:
        say(f"{report.adapter_name} {report.sha256[:12]}: {errors} {'error' if errors == 1 else 'errors'}", error=True)
        raise typer.Exit(1)
    say(f"{report.adapter_name} {report.sha256[:12]}: no errors, score {report.score():.3f}", style="bold green")
