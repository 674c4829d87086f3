"""Levels without a model: healthy work raises no alarm, what any person would stop does."""

import pytest
from behaving import bash, call, fail, found_in, say

from prefixguard.alarm import Level, rule_level
from prefixguard.stepview import StepRecord

Run = list[StepRecord]
TRACE = "FAILED tests/test_a.py::test_sum - assert 3 == 4\n1 failed, 8 passed"
POLL = '{"job":"j-81"}'

HEALTHY: dict[str, Run] = {
    "a long poll whose result changes": [call("job_status", POLL, f"{i} % done") for i in range(60)],
    "a slow build, waited for": [call("wait", '{"s":60}', ""), call("build_status", POLL, "running")] * 5
    + [call("build_status", POLL, "succeeded")],
    "pages of a list": [call("list_orders", f'{{"page":{i}}}', f"orders {i}0 to {i}9") for i in range(40)],
    "retries with back-off": [
        *[
            fail("fetch", f'{{"url":"u","wait":{2**i}}}', f"503 {text}")
            for i, text in enumerate(("busy", "queue is full"))
        ],
        call("fetch", '{"url":"u","wait":8}', "the page"),
        say("The page says that it is open."),
    ],
    "the same retry, waited for": [
        s for i in range(6) for s in (fail("fetch", '{"url":"u"}', "503 busy"), call("sleep", f'{{"s":{2**i}}}', ""))
    ]
    + [call("fetch", '{"url":"u"}', "the page")],
    "edits of many files": [bash(f"sed -i s/a/b/ f{i}.py") for i in range(30)] + [bash("pytest", "30 passed")],
    "row after row": [
        s for i in range(30) for s in (call("type", f'"row {i}"', "ok"), call("click", '"Save"', "Saved."))
    ],
    "test, edit, test": [
        s
        for i in range(8)
        for s in (bash("pytest", TRACE.replace("sum", f"sum{i}"), "error"), bash(f"sed -i s/{i}/b/ x.py"))
    ],
    "a conversation": [say(f"Your parcel number {i} is on its way.", f"And parcel {i}?") for i in range(20)],
}
BROKEN: dict[str, Run] = {
    "a missing tool, again and again": [
        fail("refund", '{"id":1}', "Error: refund is not a valid tool, try one of [pay].")
    ]
    * 25,
    "equal polls with equal results": [call("job_status", POLL, "pending")] * 40,
    "equal polls, waited for, without end": [call("wait", '{"s":60}', ""), call("job_status", POLL, "pending")] * 40,
    "two pages, to and fro": [call("open", '"a"', "A"), call("open", '"b"', "B")] * 10,
    "reports without a call": [say(f"I have completed part {i} of the report.") for i in range(6)],
    "success over a failure": [fail("cancel_order"), say("Your order has been cancelled.")],
    "the same tests": [s for i in range(8) for s in (bash("pytest", TRACE, "error"), bash(f"sed -i s/{i}/b/ x.py"))],
    "one error after another": [fail(f"tool{i}", "{}", f"Error: {'x' * i}") for i in range(12)],
    "calls as text": [call("pay"), *[say(f"pay(amount={i})", "Well?") for i in range(6)]],
}


def levels(run: Run) -> list[Level]:
    return [rule_level(findings) for findings in found_in(run)]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_work_raises_no_alarm(name: str) -> None:
    assert Level.ALARM not in levels(HEALTHY[name])


@pytest.mark.parametrize("name", BROKEN)
def test_what_anybody_would_stop_does(name: str) -> None:
    assert Level.ALARM in levels(BROKEN[name])


def test_levels_rise_with_counts() -> None:
    assert levels([call("get", '{"id":1}', "open")] * 7) == [Level.OK] * 2 + [Level.WATCH] * 3 + [Level.ALARM] * 2


def test_a_scale_of_two_needs_twice_as_many() -> None:
    run = [call("get", '{"id":1}', "open")] * 13
    assert [rule_level(findings, 2.0) for findings in found_in(run)].index(Level.ALARM) == 11
