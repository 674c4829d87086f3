"""A guard by rules alone: no bundle, no training; what it tells is what the agent does wrong."""

from typing import Any

import pytest

import prefixguard
from prefixguard.errors import AgentStopped


def loop(run: Any, n: int) -> None:
    for i in range(n):
        run.called("job_status", {"job": 81}, call_id=f"c{i}")
        run.returned(f"c{i}", "pending")
        run.check()


def test_a_nudge_says_what_to_do() -> None:
    guard = prefixguard.Guard("rules", on_alarm="nudge")
    with guard.run("Wait for job 81.", run_id="r") as run:
        loop(run, 7)
        said = run.nudge()
    assert said is not None and "use that result, or do something else" in said


def test_a_stop_says_why() -> None:
    guard = prefixguard.Guard("rules", on_alarm="stop")
    with (
        pytest.raises(AgentStopped, match=r"stopped at ALARM \(The same call gave the same result again"),
        guard.run("Wait for job 81.", run_id="r") as run,
    ):
        loop(run, 9)
