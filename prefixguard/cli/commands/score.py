"""`prefixguard score`: the reading of every step of whole runs."""

from __future__ import annotations

from prefixguard.cli.console import counting, say, write_json
from prefixguard.cli.notes import notes_of, refuse_empty, unlike_lines
from prefixguard.cli.options import MeantAdapter, MonitorFolder, Runs, Strict, Trusted
from prefixguard.cli.terminal_text import visible


def score_command(
    monitor: MonitorFolder,
    runs: Runs,
    adapter: MeantAdapter = None,
    trust: Trusted = None,
    strict: Strict = False,
) -> None:
    """Score whole runs: one JSON object a step on standard output. Outcomes are not needed and not looked at.

    A line on standard error says when runs of new tasks are no longer like the runs that set the alarm, so that its
    false-alarm budget is not to be relied on.

    Fields: run_id, step, imminent_risk, outcome_risk, level, symbol, state, reasons, unknown_reason.

    Examples:

        prefixguard score monitors/tau .traces/tau_bench > readings.jsonl
        cat run.jsonl | prefixguard score monitors/mine - | grep ALARM
    """
    from prefixguard.cli.notes import DriftLine
    from prefixguard.runtime import load, score
    from prefixguard.stepview import ReadReport

    opened, report = load(monitor, trust=trust or None), ReadReport()
    drift = DriftLine(opened)
    with counting("Scoring") as show:
        for count, scored in enumerate(score(opened, runs, adapter=adapter, strict=strict, report=report), 1):
            for line in scored.to_json():
                write_json(line)
            show(count)
            drift.observe(scored)
    refuse_empty(report, runs)
    for note in (*notes_of(report), *unlike_lines(report, opened, runs)):
        say(visible(note))
