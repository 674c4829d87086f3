"""What every example does: record practice runs, train a monitor on them, watch new runs by it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from practice import PracticeRun, practice_runs
from scripted_model import serve

import prefixguard

#: A run, played through a framework that a guard watches: (guard, the model's base URL, the run).
Play = Callable[[prefixguard.Guard, str, PracticeRun], object]


def rehearse(
    play: Play, *, adapted: Callable[[PracticeRun], PracticeRun] = lambda run: run, by_requests: bool = False
) -> None:
    """Record 160 runs, train, and watch eight new ones, with a nudge for those that go wrong.

    adapted, by_requests: for frameworks whose agents end otherwise, or rewrite what was said (`serve`).
    """
    with tempfile.TemporaryDirectory() as work:
        recording = prefixguard.Guard.recording(f"{work}/runs")
        for run in map(adapted, practice_runs(160)):
            with serve({"clerk": run.script}, by_requests=by_requests) as url:
                play(recording, url, run)
            recording.outcome(run.task_id, success=run.success)
        print(f"recorded {len(list(Path(work, 'runs').iterdir()))} runs")

        config = prefixguard.TrainConfig(backend="gbdt", budget=0.2)
        result = prefixguard.train(f"{work}/runs", out=f"{work}/monitor", config=config)
        print(f"trained {result.path.name}")

        guard = prefixguard.Guard(f"{work}/monitor", on_alarm=nudge_and_say)
        for run in map(adapted, practice_runs(8, seed=8)):
            with serve({"clerk": run.script}, by_requests=by_requests) as url:
                play(guard, url, run)
            print(f"{run.task} It {'was done' if run.success else 'failed'}.")
        print(guard.counters)


def nudge_and_say(alarm: prefixguard.Alarm) -> str:
    """Print the alarm, and have the agent nudged."""
    print(f"ALARM at step {alarm.reading.step}: {alarm.reading.outcome_risk:.0%} risk of failure")
    return "nudge"
