"""`prefixguard evaluate`: how good a monitor is on runs that it has not seen."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prefixguard.cli.console import counting, say, write_json_text
from prefixguard.cli.further_looks import FurtherLooks
from prefixguard.cli.judging import PATIENCE, TIMEOUT, Judging
from prefixguard.cli.pairs import WAIVE_EXAMPLE, pairs_of
from prefixguard.cli.trust import Trusted
from prefixguard.errors import ConfigError
from prefixguard.trace import is_read_once

if TYPE_CHECKING:
    from prefixguard.evaluation import EvaluationTable
    from prefixguard.stepview import StepRecord
    from prefixguard.trace import Run


def evaluate_command(
    monitor: Annotated[Path, typer.Argument(help="Folder of the monitor's bundle.")],
    runs: Annotated[str, typer.Argument(help="File, folder, glob or tar of runs, or - for standard input.")],
    adapter: Annotated[
        str | None, typer.Option(help="The adapter that is meant; refused unless the monitor was trained through it.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Outcomes beside the runs: run_id,outcome[,task_id] as .jsonl or .csv.")
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Count runs of tasks it was made from too; the result is marked IN SAMPLE.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first run that cannot be read.")] = False,
    group_by: Annotated[
        str | None, typer.Option(help="Group within which runs are compared: agent, model, file ...")
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            "--controls",
            help="Rows that are trained on the monitor's own training runs: boosting, words, activity names, raw text. "
            "Minutes.",
        ),
    ] = False,
    leaks: Annotated[
        bool, typer.Option("--leaks", help="Audit all labelled runs for what tells an outcome no live run would.")
    ] = False,
    waive: Annotated[
        list[str] | None,
        typer.Option(help="With --leaks: a finding that is harmless, and why: PLACE=REASON, as the finding says."),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Train the monitor anew on so many task-grouped folds, and measure those.")
    ] = 0,
    repeats: Annotated[int, typer.Option(min=1, help="Of --folds: other folds each time.")] = 1,
    seeds: Annotated[
        str | None, typer.Option(help="Of --folds: every fold is fitted once a seed, such as 13,14,15. Default: 13.")
    ] = None,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate",
            help="Train variants without, and with only, one field or group of context: 90 fits, of seconds for gbdt.",
        ),
    ] = False,
    leave_agents_out: Annotated[
        bool,
        typer.Option("--leave-agents-out", help="Train without each agent in turn, test on that one."),
    ] = False,
    backend: Annotated[str, typer.Option(help="What --ablate and --leave-agents-out train.")] = "gbdt",
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder for folds and replies that are there, taken up again; default: beside the monitor."),
    ] = None,
    judge_model: Annotated[
        str | None,
        typer.Option(help="Ask this language model how likely a sample of prefixes is to fail. Their text is sent."),
    ] = None,
    judge_base_url: Annotated[
        str | None, typer.Option(help="Where the judge is: any server that speaks chat completions.")
    ] = None,
    judge_key_from: Annotated[
        str, typer.Option(help="Environment variable that holds the key of the judge.")
    ] = "OPENAI_API_KEY",
    judge_sample: Annotated[int, typer.Option(min=1, help="Prefixes that the judge is asked about.")] = 200,
    judge_tokens: Annotated[int, typer.Option(min=800, help="Tokens of a transcript that the judge is shown.")] = 8000,
    mask: Annotated[
        bool,
        typer.Option(
            "--mask/--no-mask", help="Mask likely secrets (keys, passwords, cards, e-mail) in what the judge is sent."
        ),
    ] = True,
    judge_at_once: Annotated[int, typer.Option(min=1, max=64, help="Questions under way at a time.")] = 4,
    judge_price_in: Annotated[
        float | None, typer.Option(help="Price of a million tokens that are sent, for the costs of the judge.")
    ] = None,
    judge_price_out: Annotated[float | None, typer.Option(help="Price of a million tokens that come back.")] = None,
    judge_estimate: Annotated[
        bool, typer.Option("--judge-estimate", help="Say what asking the judge would take, and send nothing.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here: NAME.html, with NAME.md and NAME.json beside it.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples over tasks, for the intervals.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap, and of the judge's sample.")] = 13,
    trust: Trusted = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole evaluation as JSON on standard output.")] = False,
) -> None:
    """Evaluate a monitor: ranking, calibration and first alerts, beside the rows it has to beat.

    Runs of tasks that the monitor was trained or calibrated on are left out and counted. The table goes to standard
    error; with --json the same figures go to standard output instead. Runs are sent nowhere unless --judge-model names
    a model; the key is read from the environment.

    Examples:

        prefixguard evaluate monitors/tau .traces/tau_bench
        prefixguard evaluate monitors/tau .traces/tau_bench --controls --leaks --report tau.html
        prefixguard evaluate monitors/tau .traces/tau_bench --folds 5 --seeds 13,14,15
        prefixguard evaluate monitors/tau .traces/tau_bench --ablate --leave-agents-out
        prefixguard evaluate monitors/tau .traces/tau_bench --judge-model qwen --judge-base-url http://localhost:8000/v1
        prefixguard evaluate monitors/mine new_runs/ --labels outcomes.csv --json > figures.json
    """
    from prefixguard.escalate import Endpoint, shown_url
    from prefixguard.evaluation import evaluate
    from prefixguard.runtime import load
    from prefixguard.stepview import read_runs

    if folds == 0 and (seeds is not None or repeats != 1):
        option = "--seeds" if seeds is not None else "--repeats"
        raise ConfigError(
            f"{option} says how folds are fitted, and without --folds none are: add --folds 5, or leave {option} out."
        )
    if waive and not leaks:
        raise ConfigError(
            "--waive says which leaks are harmless, and none are looked for: add --leaks, or leave it out."
        )
    waived = pairs_of(waive, "--waive", WAIVE_EXAMPLE)
    looks = FurtherLooks(
        leaks, folds, repeats, _numbers(seeds or "13"), ablate, leave_agents_out, backend, keep, waived
    )
    judging = None
    if judge_model is not None:
        judging = Judging(
            Endpoint(
                judge_model,
                judge_base_url,
                judge_key_from,
                timeout=TIMEOUT,
                patience=PATIENCE,
                price_in=judge_price_in,
                price_out=judge_price_out,
            ),
            sample=judge_sample,
            tokens=judge_tokens,
            mask=mask,
            at_once=judge_at_once,
            estimate=judge_estimate,
            resamples=resamples,
            seed=seed,
            keep=keep,
        )
        judging.check()
    elif judge_estimate or any(given is not None for given in (judge_base_url, judge_price_in, judge_price_out)):
        raise ConfigError("the judge has no name, so none is asked: add --judge-model NAME, or leave --judge-... out.")
    once = is_read_once(runs) or (labels is not None and is_read_once(labels))
    if once and (controls or looks.any or judging is not None or report is not None):
        raise ConfigError(
            "a stream can be read once: for a report, controls, leaks, folds or a judge, name files or folders."
        )
    if controls and all:
        raise ConfigError("--controls learn from the runs that --all would count: leave out one of them.")
    if report is not None and report.suffix.lower() != ".html":
        raise ConfigError(f"--report {report}: the name must end in .html; .md and .json are written beside it.")
    opened = load(monitor, trust=trust or None)

    def again() -> Iterable[Run[StepRecord]]:
        return read_runs(runs, opened.bundle.adapter, labels=labels)

    beside = None
    if controls:
        from prefixguard.evaluation.controls import controls_beside

        beside = controls_beside(opened.bundle, again(), on_stage=lambda name: say(f"control: {name}"))
    with counting("Scoring") as show:
        table = evaluate(
            opened,
            runs,
            adapter=adapter,
            labels=labels,
            all=all,
            strict=strict,
            group_by=group_by,
            resamples=resamples,
            seed=seed,
            beside=beside,
            progress=show,
        )
    if controls:
        from prefixguard.evaluation.controls import TrainedControls

        table = table.with_sections({"controls": TrainedControls.of(table)})

    def write(so_far: EvaluationTable) -> None:
        if report is None:
            return
        from prefixguard.evaluation.report import write_report
        from prefixguard.evaluation.reporting import report_of

        given = sys.argv[1:]
        if judge_base_url is not None:  # a password may stand in it, and a report is passed on
            given = [word.replace(judge_base_url, shown_url(judge_base_url)) for word in given]
        command = shlex.join(["prefixguard", *given])
        title = f"{monitor.name} on {Path(runs).name}"
        for path in write_report(report_of(opened, so_far, again(), title=title, command=command), report):
            say(f"wrote {path}")

    if judging is not None or looks.any:
        write(table)  # what is known already: what follows may take hours, or be interrupted
    if judging is not None:
        table = table.with_sections(judging.take(opened, table, again()))
    if looks.any:
        table = table.with_sections(
            looks.take(opened, runs, labels, strict=strict, group_by=group_by, resamples=resamples)
        )
    if as_json:
        write_json_text(table.to_json())
    else:
        say(table.to_text())
    write(table)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as exc:
        raise ConfigError(f"--seeds {text!r}: give whole numbers, by comma, such as 13,14,15.") from exc
