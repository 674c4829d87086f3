"""`prefixguard calibrate`, `sign` and `score`: what is done with a monitor that is there."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import typer

from prefixguard.bundle import Trust, new_key
from prefixguard.bundle import sign as sign_bundle
from prefixguard.cli.command import command
from prefixguard.cli.console import say, write_json
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import DriftLine, notes_of, refuse_empty, unlike_lines
from prefixguard.errors import UsageError
from prefixguard.runtime import RULES, CalibrateResult, calibrate_rules, load
from prefixguard.runtime import calibrate as calibrate_monitor
from prefixguard.runtime import score as score_runs
from prefixguard.stepview import ReadReport


@command(
    {"calibrate": "", "calibrate_rules": "alarm_rate behaviours"},
    words={
        "monitor": "Folder of the monitor's bundle; it stays as it is. Or the word rules.",
        "runs": "New runs: a file, folder, glob or tar, read as the monitor reads them; or -.",
        "adapter": "The adapter that is meant; refused unless the monitor was trained through it. Of rules: how runs "
        "are read.",
        "out": "Folder of the new bundle. Default: the monitor's, with -calibrated. Of rules: a file. Default: "
        "rules-calibrated.json.",
        "seed": "Draws one run of each task; of a bundle, a successful one.",
        "all": "Use runs of tasks it was made from too; the bundle is marked IN SAMPLE.",
        "overwrite": "Replace a bundle that is there, were it the monitor itself; of rules, the file.",
    },
    json="What was made, as JSON on standard output.",
)
def calibrate(
    monitor: Path, trust: Trust | None, alarm_rate: float | None, behaviours: Path | None, as_json: bool, **given: Any
) -> None:
    """Set a monitor's alarm threshold anew on new runs, without retraining, and write a new bundle.

    The threshold keeps its bound for runs like the new ones: at most the budgeted share of successful runs raises an
    alarm, with the stated confidence. It rests on one successful run a task; runs of tasks that the monitor was made
    from are left out and counted. The WATCH threshold is set on the steps of all runs that are used, whatever their
    outcome.

    Runs too few for the budget: the bundle is written without an alarm, says how many are needed, and the exit code
    is 1.

    `calibrate rules` needs no monitor and no outcomes: it finds the counts at which rules without a model alarm on at
    most --alarm-rate of the runs, one a task, whatever their outcome, with the stated confidence, and writes a small
    file that is opened like a bundle. Runs too few for the rate are refused.

    Examples:

        prefixguard calibrate monitors/mine runs/november/
        prefixguard calibrate monitors/mine runs/november/ --budget 0.05 --out monitors/mine-5
        prefixguard calibrate monitors/mine runs/ --group-by tier --labels outcomes.csv
        prefixguard calibrate rules runs.jsonl --adapter openai_chat --alarm-rate 0.05 --out monitors/my_rules.json
    """
    if str(monitor) == RULES:
        _calibrate_rules(trust, as_json, {"alarm_rate": alarm_rate, "behaviours": behaviours, **given})
        return
    if alarm_rate is not None or behaviours is not None:
        raise UsageError(
            "--alarm-rate and --behaviours go with calibrate rules: a bundle has a --budget. Leave them out."
        )
    with Activity("Scoring") as work:
        result = calibrate_monitor(load(monitor, trust=trust), progress=work.on_runs, **given)
    for note in (*notes_of(result.report), *result.notes):
        say(note)
    if as_json:
        write_json(_facts(result))
    else:
        _show(result)
    if result.thresholds.reason is not None:
        raise typer.Exit(1)


def _calibrate_rules(trust: Trust | None, as_json: bool, given: dict[str, Any]) -> None:
    of_rules = set(inspect.signature(calibrate_rules).parameters)
    stray = [name for name, value in given.items() if name not in of_rules and value]
    if trust is not None or stray:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in (stray or ["trust"]))
        raise UsageError(f"{words}: goes with a bundle, and rules are none. Leave it out.")
    with Activity("Scoring") as work:
        taken = {name: value for name, value in given.items() if name in of_rules}
        result = calibrate_rules(progress=work.on_runs, **taken)
    for note in (*notes_of(result.report), *result.notes):
        say(note)
    done = result.calibration
    if as_json:
        found = {"path": str(result.path), "id": result.id, "scale": result.scale}
        write_json(found | {"calibration": asdict(done), "notes": list(result.notes)})
        return
    say(
        f"{done.runs:,} runs; {done.drawn:,} drawn, one a task; at the usual counts {done.alarmed_before:,} of them "
        "alarm"
    )
    say(
        f"counts times {result.scale:g}: at most {100 * done.alarm_rate:g} % of runs alarm, with confidence "
        f"{100 * done.confidence:g} %, if new runs are like these ({done.alarmed} of {done.drawn} do, {done.allowed} "
        "may)"
    )
    say(f"{result.path}  {result.id[:12]}", style="bold green")


def _facts(result: CalibrateResult) -> dict[str, object]:
    groups = result.groups
    return {
        "path": str(result.path),
        "id": result.id,
        "policy": asdict(result.policy),
        "thresholds": asdict(result.thresholds),
        "groups": None if groups is None else {groups.by: {value: asdict(one) for value, one in groups.of.items()}},
        "recalibration": result.manifest["recalibration"],
        "notes": list(result.notes),
    }


def _show(result: CalibrateResult) -> None:
    thresholds, policy, facts = result.thresholds, result.policy, result.manifest["recalibration"]
    say(
        f"{facts['runs']:,} runs ({facts['successful']:,} successful, {facts['failed']:,} failed, "
        f"{facts['without_outcome']:,} without outcome); {thresholds.n_runs:,} successful ones drawn, one a task"
    )
    if thresholds.alarm is not None:
        say(
            f"ALARM above {thresholds.alarm:.4f}, WATCH above {thresholds.watch:.4f}: at most {100 * policy.budget:g} "
            f"% of runs that would succeed alarm, with confidence {100 * policy.confidence:g} % "
            f"({thresholds.allowed} of {thresholds.n_runs} may exceed it)"
        )
    if result.groups is not None:
        for value, one in result.groups.of.items():
            if one.alarm is not None:
                say(f"  {result.groups.by} {value}: ALARM above {one.alarm:.4f} ({one.n_runs:,} runs)")
    say(f"{result.path}  {result.id[:12]}", style="bold green")


@command("score")
def score(
    monitor: Path,
    runs: str,
    adapter: str | None,
    trust: Trust | None,
    behaviours: Path | None = None,
    reasons: Literal["behaviours", "features"] = "behaviours",
    **given: Any,
) -> None:
    """Score whole runs: one JSON object a step on standard output. Outcomes are not needed and not looked at.

    A line on standard error says when runs of new tasks are no longer like the runs that set the alarm, so that its
    false-alarm budget is not to be relied on.

    Fields: run_id, step, imminent_risk, outcome_risk, level, symbol, state, reasons, unknown_reason, and
    behaviours: what holds at the step (docs/behaviours.md), each with its kind, since which step, how often, evidence.

    Examples:

        prefixguard score monitors/tau .traces/tau_bench > readings.jsonl
        cat run.jsonl | prefixguard score monitors/mine - | grep ALARM
        prefixguard score rules runs.jsonl --adapter openai_chat      # by behaviours alone, without training
        prefixguard score monitors/mine runs.jsonl --reasons features

    behaviours : with the monitor rules: a file of behaviours besides those of the catalogue.
    reasons : What reasons are made of: behaviours (what the agent does), or features (and words, of the model).
    """
    own = adapter if str(monitor) == RULES else None  # rules read through any; a bundle through its own
    opened = load(monitor, adapter=own, trust=trust, behaviours=behaviours, reasons=reasons)
    report = ReadReport()
    drift = DriftLine(opened)
    with Activity("Scoring") as work:
        for count, scored in enumerate(score_runs(opened, runs, adapter=adapter, report=report, **given), 1):
            for line in scored.to_json():
                write_json(line)
            work.on_runs(count)
            drift.observe(scored)
    refuse_empty(report, runs)
    for note in (*notes_of(report), *unlike_lines(report, opened, runs)):
        say(note)


@command("sign", arguments="monitor", json="What was written, as JSON on standard output.")
def sign(
    monitor: Path | None = None, key: Path | None = None, new_key_name: str | None = None, as_json: bool = False
) -> None:
    """Sign a monitor, so that others can tell that it is from you and nobody changed it since.

    The signature stands in signature.json beside the bundle's files and holds for all of them; a bundle that is
    written again has none. Whoever has your public key asks for it with --trust. Keys are never overwritten or shown.

    Examples:

        prefixguard sign --new-key release
        prefixguard sign monitors/mine --key release.pem
        prefixguard watch monitors/mine - --trust release.pub.pem

    monitor : folder of the bundle to sign.
    key : your private key: Ed25519, in PEM, without a passphrase.
    new_key_name : make a pair of keys first: NAME.pem, which stays secret, and NAME.pub.pem.
    """
    if key is not None and new_key_name is not None:
        raise UsageError("--key and --new-key: give one of them.")
    if new_key_name is None and (monitor is None or key is None):
        raise UsageError(
            "To sign, name a bundle and your key: prefixguard sign MONITOR --key PRIVATE_KEY.pem; to make a pair of "
            "keys: prefixguard sign --new-key NAME"
        )
    facts: dict[str, str] = {}
    if new_key_name is not None:
        made = new_key(new_key_name)
        facts |= {name: str(value) for name, value in asdict(made).items()}
        key = made.private
        say(f"{made.private}: the private key. Keep it secret; whoever has it can sign as you.")
        say(f"{made.public}: the public key. Give it to those who are to trust your monitors.")
    if monitor is not None and key is not None:
        signed = sign_bundle(monitor, key)
        facts |= {name: str(value) for name, value in asdict(signed).items()}
        say(f"{signed.path}: bundle {signed.id[:12]}, signed with key {signed.public_key[:16]}")
    if as_json:
        write_json(facts)
