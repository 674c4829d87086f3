"""A signal of the first step that tells the outcome is an error; one that does not is none."""

from __future__ import annotations

import numpy as np
import pytest

from prefixguard.evaluation.leaks.audit import audit_leaks
from prefixguard.stepview import Signals, StepRecord
from prefixguard.trace import Outcome, Run


def runs(known: float, place: int = 0, share: float = 1.0) -> list[Run[StepRecord]]:
    """100 runs of four steps; at `place` failures take longer by so much, and a share of them says it at all."""
    rng, found = np.random.default_rng(3), []
    for i in range(100):
        failed, records = bool(i % 2), []
        for n in range(4):
            slow = known if failed and n == place % 4 else 0.0
            took = Signals(seconds=float(np.exp(rng.normal(slow, 1.0))))
            says = not failed or n != place % 4 or rng.random() < share
            words = f"step {rng.integers(50)}"
            records.append(
                StepRecord(n + 1, "agent", "", "go", "{}", "", words, "", "ok", signals=took if says else None)
            )
        found.append(Run(f"r{i}", f"t{i}", Outcome.FAILURE if failed else Outcome.SUCCESS, tuple(records), "here"))
    return found


def of_signals(given: list[Run[StepRecord]]) -> list[tuple[str, str]]:
    return [(one.field, one.severity) for one in audit_leaks(given).findings if one.field.startswith("signals")]


def test_what_does_not_tell_is_no_finding() -> None:
    assert of_signals(runs(0.0)) == []


def test_the_first_step_is_an_error_and_says_what_to_do() -> None:
    audit = audit_leaks(runs(2.5))
    (found,) = audit.errors
    assert (found.field, found.token) == ("signals.seconds", "first step")
    assert "seconds of the first step alone tells the outcome: more means failure" in found.text
    assert "Do not train with --signals" in found.text and "--waive 'signals.seconds=REASON'" in found.text
    assert not audit_leaks(runs(2.5), waive={"signals.seconds": "machines"}).errors


def test_the_last_step_is_a_warning() -> None:
    assert of_signals(runs(2.5, place=-1)) == [("signals.seconds", "warning")]


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_whether_it_is_there_tells_too(share: float) -> None:
    assert ("signals.seconds", "error") in of_signals(runs(0.0, share=share))
