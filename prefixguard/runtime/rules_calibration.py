"""How often rules alarm, set on runs whose outcomes nobody knows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from prefixguard.alarm import (
    MOST_SCALE,
    AlarmPolicy,
    Level,
    alarm_scale,
    allowed_exceedances,
    calibrated_scale,
    draw_one_per_task,
    runs_needed,
    smallest_budget,
)
from prefixguard.bundle import replace_file
from prefixguard.errors import DataError, OutputError
from prefixguard.runtime.calibration_runs import task_of
from prefixguard.runtime.monitor import Monitor, load
from prefixguard.runtime.rules_file import SCHEMA, RuleCalibration, RulesFile
from prefixguard.runtime.rules_model import RULES
from prefixguard.stepview import Adapter, ReadReport, StepRecord, read_runs
from prefixguard.trace import Outcome, Run, digest_of


@dataclass(frozen=True, slots=True)
class CalibratedRules:
    """What a calibration of rules made.

    path, id: the file, and what its monitor is known by. scale: what all counts are multiplied by. calibration: what
    the scale rests on. report: what reading the runs counted. notes: sentences for people.
    """

    path: Path
    id: str
    scale: float
    calibration: RuleCalibration
    report: ReadReport
    notes: tuple[str, ...]


def calibrate_rules(
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    *,
    out: str | os.PathLike[str] | None = None,
    alarm_rate: float | None = None,
    confidence: float | None = None,
    adapter: str | Path | Adapter | None = None,
    behaviours: str | Path | None = None,
    strict: bool = False,
    seed: int = 13,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> CalibratedRules:
    """Find the counts at which rules without a model alarm on at most a stated share of runs, and write them to a file.

    All counts are multiplied by one scale: the least at which so few of these runs alarm that the share holds for new
    runs with the stated confidence. It rests on one run a task, whatever its outcome, which nobody has to know. Assumed
    is that new runs are like these; what share of them fails, and so how many alarms are false, it cannot say.

    runs: parsed runs, or a file, folder, glob, tar or `-`.
    out : file for the calibrated rules, which `load` opens. Default: rules-calibrated.json.
    alarm_rate : of rules: at most this share of runs may raise an alarm. Default: 0.05.
    confidence : how sure the rate is to hold. Default: 0.9.
    adapter : how the runs are read; kept in the file. Default: as a guard recorded them.
    behaviours : of rules: a file of behaviours besides those of the catalogue; kept in the file.
    strict: a run that cannot be read is an error, not a skip.
    seed : draws one run of each task.
    overwrite: replace rules that were calibrated before.
    progress: called with the number of runs read so far.
    The same runs and options give the same file. Raises DataError where the runs are too few for the rate, or where no
    scale is enough; ConfigError for a share out of range; OutputError where nothing can be written; and what `load` and
    `read_runs` raise.
    """
    rate, sure = 0.05 if alarm_rate is None else alarm_rate, 0.9 if confidence is None else confidence
    policy = AlarmPolicy(budget=rate, confidence=sure)
    path = Path("rules-calibrated.json" if out is None else out)
    _check_target(path, overwrite)  # before all the reading
    monitor = load(RULES, adapter=adapter, behaviours=behaviours)
    report = ReadReport()
    if isinstance(runs, str | os.PathLike):
        runs = read_runs(os.fspath(runs), monitor.bundle.adapter, strict=strict, report=report)
    scored = []
    for count, run in enumerate(runs, 1):
        if progress is not None:
            progress(count)
        if run.records:
            scored.append(_scored(monitor, run))
    if not scored:
        raise DataError("there is no run to calibrate on. See what the adapter reads with: prefixguard parse RUNS")
    drawn = [scored[i] for i in draw_one_per_task([r.task for r in scored], [r.run_id for r in scored], seed=seed)]
    allowed = allowed_exceedances(len(drawn), rate, policy.delta)
    if allowed is None:
        raise DataError(_too_few(len(drawn), policy))
    scale = calibrated_scale([run.scale for run in drawn], allowed)
    if scale > MOST_SCALE:
        raise DataError(
            f"more than {allowed} of {len(drawn):,} runs do the same wrong thing more than {MOST_SCALE:,.0f} times as "
            f"often as rules allow, so no counts keep alarms to {100 * rate:g} % of runs. Look at what they do "
            "(prefixguard score rules RUNS), or accept a greater --alarm-rate."
        )
    alarmed, before = (sum(run.scale >= at for run in drawn) for at in (scale, 1.0))
    calibration = RuleCalibration(rate, sure, len(scored), len(drawn), allowed, alarmed, before, seed)
    file = RulesFile(monitor.bundle.adapter, monitor.declared, scale, calibration)
    _write(path, file.to_bytes())
    return CalibratedRules(path, load(path).bundle.id, scale, calibration, report, tuple(_notes(scored, drawn, scale)))


@dataclass(frozen=True, slots=True)
class _ScoredRun:
    """scale: the greatest at which the run alarms; 0 where it alarms at none. unjudged: its steps of level UNKNOWN."""

    run_id: str
    task: str
    names_task: bool
    outcome: Outcome
    scale: Fraction
    unjudged: int


def _scored(monitor: Monitor, run: Run[StepRecord]) -> _ScoredRun:
    readings = monitor.score_run(run.records, offer=run.offer)
    judged = [reading for reading in readings if reading.level is not Level.UNKNOWN]
    scale = max((alarm_scale(reading.behaviours) for reading in judged), default=Fraction(0))
    task = task_of(run, digest_of(run))
    return _ScoredRun(run.run_id, task, run.task_id is not None, run.outcome, scale, len(readings) - len(judged))


def _too_few(n: int, policy: AlarmPolicy) -> str:
    needed = runs_needed(policy.budget, policy.delta)
    possible = math.ceil(1000 * smallest_budget(n, policy.delta)) / 10
    instead = f", or accept an --alarm-rate of {possible / 100:g} or more" if possible < 100 else ""
    return (
        f"{n} {'run' if n == 1 else 'runs'} (one a task) cannot support an alarm rate of {100 * policy.budget:g} % at "
        f"{100 * policy.confidence:g} % confidence: that needs at least {needed}. Give runs of {needed - n} more "
        f"{'task' if needed - n == 1 else 'tasks'}{instead}."
    )


def _notes(scored: list[_ScoredRun], drawn: list[_ScoredRun], scale: float) -> list[str]:
    without_task = sum(not run.names_task for run in scored)
    unjudged = sum(run.unjudged > 0 for run in scored)
    known = []
    for outcome in (Outcome.SUCCESS, Outcome.FAILURE):
        of = [run for run in drawn if run.outcome is outcome]
        known.append(f"{sum(run.scale >= scale for run in of)} of {len(of)} that ended in {outcome.value}")
    notes = {
        f"{without_task:,} runs name no task: each counts as a task of its own, those that are word for word the same "
        "as one.": without_task,
        f"In {unjudged:,} runs some steps could not be judged; they count as steps without an alarm.": unjudged,
        f"Outcomes were not used. Of the drawn runs, these alarm: {', '.join(known)}.": any(
            run.outcome is not Outcome.UNKNOWN for run in drawn
        ),
    }
    return [note for note, holds in notes.items() if holds]


def _check_target(path: Path, overwrite: bool) -> None:
    """OutputError where the file must not be written."""
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise OutputError(f"{path}: is no file; calibrated rules are one. Choose another name.")
    try:
        with path.open("rb") as stream:
            is_ours = SCHEMA.rpartition("/")[0].encode() in stream.read(100)
    except OSError as exc:
        raise OutputError(f"{path}: cannot be looked at ({exc.strerror}). Choose another name.") from exc
    if not is_ours:
        raise OutputError(f"{path}: is another file, which would be lost. Choose another name.")
    if not overwrite:
        raise OutputError(f"{path}: holds rules already. Choose another name, or ask for them to be overwritten.")


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as exc:
        raise OutputError(f"{path}: cannot be written ({exc.strerror}). Name a file that can be written.") from exc
