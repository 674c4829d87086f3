"""`prefixguard evaluate` and `compare`: how good monitors are on runs that they have not seen."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixguard.bundle import Trust
from prefixguard.cli.command import Older, command, show
from prefixguard.cli.commands.judging import KEY_FROM
from prefixguard.cli.console import say
from prefixguard.cli.older_looks import OlderLooks
from prefixguard.cli.progress import Activity
from prefixguard.errors import ConfigError
from prefixguard.runtime import load

#: Options whose work has commands of its own now.
_OLDER = {
    "folds": Older("prefixguard cross-validate --folds", "int", 0),
    "repeats": Older("prefixguard cross-validate --repeats", "int", 1, warns=False),
    "seeds": Older("prefixguard cross-validate --seeds", warns=False),
    "ablate": Older("prefixguard ablate", "bool", False),
    "leave_agents_out": Older("prefixguard leave-agents-out", "bool", False),
    "backend": Older("prefixguard ablate --backend", "str", "gbdt", warns=False),
    "keep": Older("prefixguard cross-validate --out, judge --out", "Path | None", warns=False),
    "judge_model": Older("prefixguard judge --model"),
    "judge_base_url": Older("prefixguard judge --base-url", warns=False),
    "judge_key_from": Older("prefixguard judge --key-from", "str", KEY_FROM, warns=False),
    "judge_sample": Older("prefixguard judge --sample", "int", 200, warns=False),
    "judge_tokens": Older("prefixguard judge --budget-tokens", "int", 8000, warns=False),
    "judge_at_once": Older("prefixguard judge --at-once", "int", 4, warns=False),
    "judge_price_in": Older("prefixguard judge --price-in", "float | None", warns=False),
    "judge_price_out": Older("prefixguard judge --price-out", "float | None", warns=False),
    "judge_estimate": Older("prefixguard judge --estimate", "bool", False, warns=False),
    "mask": Older("prefixguard judge --mask", "bool", True, warns=False),
}


@command("evaluate", json="The whole evaluation as JSON on standard output.", older=_OLDER)
def evaluate(
    monitor: Path,
    runs: str,
    trust: Trust | None,
    as_json: bool,
    controls: bool = False,
    leaks: bool = False,
    waive: Mapping[str, str] | None = None,
    report: Path | None = None,
    **given: Any,
) -> None:
    """Evaluate a monitor: ranking, calibration and first alerts, beside the rows it has to beat.

    Runs of tasks that the monitor was trained or calibrated on are left out and counted. The table goes to standard
    error; with --json the same figures go to standard output instead. Runs are parsed once, whatever is looked at.
    What trains or asks a model anew has commands of its own: cross-validate, ablate, leave-agents-out and judge.

    Examples:

        prefixguard evaluate monitors/tau .traces/tau_bench
        prefixguard evaluate monitors/tau .traces/tau_bench --controls --leaks --report tau.html
        prefixguard evaluate monitors/mine new_runs/ --labels outcomes.csv --json > figures.json
        prefixguard evaluate monitors/mine faults/ --onset mistake_step

    controls : rows that are trained on the monitor's own training runs: boosting, words, activity names, raw text.
        Minutes.
    leaks : audit all labelled runs for what tells an outcome no live run would.
    waive : with --leaks: a finding that is harmless, and why: PLACE=REASON, as the finding says.
    report : write the report here: NAME.html, with NAME.md and NAME.json beside it.
    """
    from prefixguard.evaluation import EvaluationTable, evaluate
    from prefixguard.stepview import SpooledRuns

    if waive and not leaks:
        raise ConfigError(
            "--waive says which leaks are harmless, and none are looked for: add --leaks, or leave it out."
        )
    if controls and given["all"]:
        raise ConfigError("--controls learn from the runs that --all would count: leave out one of them.")
    if report is not None and report.suffix.lower() != ".html":
        raise ConfigError(f"--report {report}: the name must end in .html; .md and .json are written beside it.")
    looks = OlderLooks({name: given.pop(name) for name in _OLDER})
    opened = load(monitor, trust=trust)
    if looks.trains:
        from prefixguard.evaluation.retraining import training_of

        training_of(opened)  # before anything is read
    source: Any = runs
    if controls or leaks or report is not None or looks.any:
        opened.refuse_other(given["adapter"], runs)
        with Activity("Reading") as work:
            how = {name: given[name] for name in ("labels", "strict")}
            source = SpooledRuns.read(runs, opened.bundle.adapter, progress=work.on_runs, **how)
    beside = None
    if controls:
        from prefixguard.evaluation.controls import TrainedControls, controls_beside

        beside = controls_beside(opened.bundle, source, on_stage=lambda name: say(f"control: {name}"))
    with Activity("Scoring") as work:
        table = evaluate(opened, source, beside=beside, progress=work.on_runs, **given)
    if controls:
        table = table.with_sections({"controls": TrainedControls.of(table)})
    if leaks:
        from prefixguard.evaluation.leaks import audit_leaks, waivers_of

        with Activity("Leak audit", "stages") as work:
            waivers = waivers_of(opened.bundle.adapter, waive or {})
            table = table.with_sections({"leaks": audit_leaks(source, on_stage=work.on_stage, waive=waivers)})

    def write(so_far: EvaluationTable) -> None:
        if report is None:
            return
        from prefixguard.evaluation.report import report_of, write_report

        title, typed = f"{monitor.name} on {Path(runs).name}", shlex.join(["prefixguard", *looks.shown(sys.argv[1:])])
        for path in write_report(report_of(opened, so_far, source, title=title, command=typed), report):
            say(f"wrote {path}")

    if looks.any:
        write(table)  # what is known already: what follows may take hours, or be interrupted
        how = {name: given[name] for name in ("group_by", "resamples", "seed")}
        table = table.with_sections(looks.take(opened, table, source, **how))
    show(table, as_json=as_json)
    write(table)


@command(
    "compare",
    arguments="monitors",
    words={
        "monitors": "Folders of two or more bundles; the others are compared with the first.",
        "runs": "File, folder, glob or tar of runs; each monitor reads them through its own adapter.",
    },
    json="The whole comparison as JSON on standard output.",
)
def compare(monitors: list[Path], runs: str, trust: Trust | None, **given: Any) -> Any:
    """Compare monitors on the same runs: figures side by side, each one's lead over the first, and first alerts.

    Runs that any of them was trained or calibrated on are left out for all, and counted. Tables go to standard error,
    with --json the same figures go to standard output instead.

    Examples:

        prefixguard compare monitors/old monitors/new --runs .traces/tau_bench
        prefixguard compare monitors/gru monitors/gbdt monitors/dfa --runs new_runs/ --labels outcomes.csv --json
    """
    from prefixguard.evaluation import compare

    with Activity("Scoring") as work:
        return compare([load(monitor, trust=trust) for monitor in monitors], runs, progress=work.on_runs, **given)
