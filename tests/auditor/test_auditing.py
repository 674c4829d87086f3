"""Audits of many runs: order, resumption, settings, and an endpoint where nobody answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from model_server import model_server, says
from walking_auditor import WalkingScript, steps_of

from prefixguard.auditor import MODES
from prefixguard.auditor.audit_line import AuditLine, spent_on
from prefixguard.auditor.auditing import LINES, audit, audit_async
from prefixguard.auditor.protocols import HypothesisProtocol, Inspection, WalkProtocol
from prefixguard.errors import ConfigError, EndpointError, TraceError, UsageError
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord
from prefixguard.trace import Fault, Mistake, Outcome, Run


def run_of(i: int, n: int = 4) -> Run[StepRecord]:
    return Run(
        f"r{i}", f"t{i // 2}", Outcome.FAILURE, steps_of(n, name=f"run {i}"), "here", {"folder": "x"},
        Mistake(2, "a0"), (Fault("a0", "FM-1.1"),),
    )  # fmt: skip


def script(says: Callable[[int, object], Verdict]) -> WalkingScript:
    return WalkingScript(PromptKind.ONLINE, says)


def alarm_at_two(prefix: int, _: object) -> Verdict:
    return Verdict(VerdictOutcome.ALARM, step=2, agent="a0") if prefix >= 2 else Verdict(VerdictOutcome.SAFE)


def test_lines_come_in_the_order_of_the_runs_and_say_what_was_asked() -> None:
    asked = script(alarm_at_two)
    lines = audit((run_of(i) for i in range(7)), WalkProtocol(asked), workers=3)
    assert [line.run_id for line in lines] == [f"r{i}" for i in range(7)]
    assert all(len(line.calls) == 2 and line.possible_calls == 4 for line in lines)
    assert asked.closed
    line = lines[0]
    assert (line.gold_step, line.gold_agent, line.faults) == (2, "a0", (("a0", "FM-1.1"),))


def test_a_line_is_the_same_after_json() -> None:
    line = audit([run_of(0)], WalkProtocol(script(alarm_at_two)))[0]
    again = AuditLine.from_json(json.loads(json.dumps(line.as_json())), "here")
    assert again.as_json() == line.as_json()


@pytest.mark.parametrize("value", [None, [], {}, {"run_id": "r"}, {"label": {"outcome": "lost"}}])
def test_what_is_no_line_is_refused(value: object) -> None:
    with pytest.raises(TraceError, match=r"file:3: no line of an audit: (no JSON object|'(label|step)' is missing)\."):
        AuditLine.from_json(value, "file:3")


def test_an_audit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    audit([run_of(i) for i in range(3)], WalkProtocol(script(alarm_at_two)), out=tmp_path, settings={"model": "m"})
    (tmp_path / ".audit-1.kept.part").write_text('{"run_id": "r3", "cut')  # as a crash leaves it
    second = script(alarm_at_two)
    lines = audit([run_of(i) for i in range(5)], WalkProtocol(second), out=tmp_path, settings={"model": "m"})
    assert len(lines) == 5 and len(second.prefixes) == 4  # two runs of two questions
    kept = [json.loads(text)["run_id"] for text in (tmp_path / LINES).read_text().splitlines()]
    assert kept == ["r0", "r1", "r2", "r3", "r4"]


def test_runs_with_errors_are_asked_again(tmp_path: Path) -> None:
    failing = WalkProtocol(script(lambda *_: Verdict(VerdictOutcome.ERROR, fault="malformed")))
    assert all(line.has_errors for line in audit([run_of(0), run_of(1)], failing, out=tmp_path))
    again = WalkProtocol(script(alarm_at_two))
    lines = audit([run_of(0), run_of(1)], again, out=tmp_path)
    assert [line.verdict["outcome"] for line in lines] == ["alarm", "alarm"]
    assert len((tmp_path / LINES).read_text().splitlines()) == 2


def broken(*_: object) -> Verdict:
    return Verdict(VerdictOutcome.ERROR, fault="malformed")


def silent(*_: object) -> Verdict:
    return Verdict(VerdictOutcome.ERROR, fault="no-answer", detail="gone.")


def kept_in(folder: Path) -> list[AuditLine]:
    return [AuditLine.from_json(json.loads(text), "here") for text in (folder / LINES).read_text().splitlines()]


def test_a_run_whose_texts_changed_is_asked_about_again(tmp_path: Path) -> None:
    runs = [run_of(0), run_of(1)]
    audit(runs, WalkProtocol(script(alarm_at_two)), out=tmp_path)
    changed = replace(runs[1], records=(*runs[1].records[:3], replace(runs[1].records[3], result="something else")))
    renamed = replace(runs[0], records=(replace(runs[0].records[0], agent="another"), *runs[0].records[1:]))
    for other in ([runs[0], changed], [renamed, changed]):
        asked = script(alarm_at_two)
        audit(other, WalkProtocol(asked), out=tmp_path)
        assert len(asked.prefixes) == 2, "the run that changed, and no other one"


def test_labels_of_kept_lines_are_those_of_now(tmp_path: Path) -> None:
    audit([run_of(0)], WalkProtocol(script(alarm_at_two)), out=tmp_path)
    now = replace(
        run_of(0), outcome=Outcome.SUCCESS, mistake=Mistake(3, "a1"), faults=(Fault("a1", "FM-2.6"),),
        task_id="other", groups={"folder": "y"},
    )  # fmt: skip
    asked = script(alarm_at_two)
    lines = audit([now], WalkProtocol(asked), out=tmp_path)
    assert not asked.prefixes
    for line in (*lines, *kept_in(tmp_path)):
        assert (line.outcome, line.gold_step, line.gold_agent) == (Outcome.SUCCESS, 3, "a1")
        assert (line.faults, line.task_id, line.groups) == ((("a1", "FM-2.6"),), "other", {"folder": "y"})


def test_what_earlier_tries_took_is_not_forgotten(tmp_path: Path) -> None:
    first = audit([run_of(0)], WalkProtocol(script(broken)), out=tmp_path)[0]
    second = audit([run_of(0)], WalkProtocol(script(broken)), out=tmp_path)[0]
    third = audit([run_of(0)], WalkProtocol(script(alarm_at_two)), out=tmp_path)[0]
    assert first.spent == {} and third.verdict["outcome"] == "alarm"
    assert second.spent["questions"] == len(first.calls) and second.spent["tries"] == 1
    assert third.spent == {
        "tries": 2, "questions": 8, "tokens_in": 800, "tokens_out": 80, "cost_unknown": 0,
        "cost": pytest.approx(0.008), "seconds": pytest.approx(0.08),
    }  # fmt: skip
    again = audit([run_of(0)], WalkProtocol(script(broken)), out=tmp_path)[0]
    assert again.spent == third.spent == kept_in(tmp_path)[0].spent, "a line that is kept takes nothing"
    assert spent_on(again)["questions"] == 10


def test_lines_of_runs_that_are_not_asked_about_stay(tmp_path: Path) -> None:
    audit([run_of(i) for i in range(4)], WalkProtocol(script(broken)), out=tmp_path)
    before = {line.run_id: line for line in kept_in(tmp_path)}
    audit([run_of(2)], WalkProtocol(script(alarm_at_two)), out=tmp_path)
    after = {line.run_id: line for line in kept_in(tmp_path)}
    assert [name for name in sorted(before) if before[name] != after[name]] == ["r2"] and len(after) == 4


class Slow:
    """Says nothing about r0 before all others are done."""

    name = "slow"

    def __init__(self, others: int, fails: bool = False) -> None:
        self.left, self.fails, self.under_way, self.most = others, fails, 0, 0
        self.free = asyncio.Event()

    async def inspect(self, run: Run[StepRecord]) -> Inspection:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        if run.records[0].action == "run 0":
            await asyncio.wait_for(self.free.wait(), 30)
            if self.fails:
                raise KeyboardInterrupt
        else:
            await asyncio.sleep(0)
            self.left -= 1
            if not self.left:
                self.free.set()
        self.under_way -= 1
        return Inspection(Verdict(VerdictOutcome.SAFE), None, (), 0)

    async def aclose(self) -> None:
        pass


def test_a_slow_run_holds_up_no_other(tmp_path: Path) -> None:
    told: list[str] = []
    slow = Slow(40)
    runs = [run_of(i) for i in range(41)]
    lines = audit(runs, slow, workers=3, out=tmp_path, listen=lambda line: told.append(line.run_id))
    in_order = [f"r{i}" for i in range(41)]
    assert told == [line.run_id for line in lines] == [line.run_id for line in kept_in(tmp_path)] == in_order
    assert slow.most == 3


def test_what_is_done_is_kept_before_a_slow_run_is(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        audit([run_of(i) for i in range(6)], Slow(5, fails=True), workers=2, out=tmp_path)
    assert {line.run_id for line in kept_in(tmp_path)} >= {"r1", "r2", "r3", "r4"}
    asked = script(alarm_at_two)
    audit([run_of(i) for i in range(6)], WalkProtocol(asked), out=tmp_path)
    assert [line.run_id for line in kept_in(tmp_path)] == [f"r{i}" for i in range(6)]


def test_where_nobody_answers_what_was_left_it_is_said(tmp_path: Path) -> None:
    audit([run_of(i) for i in range(3)], WalkProtocol(script(alarm_at_two)), out=tmp_path)
    runs = [run_of(i) for i in range(4)]
    with pytest.raises(EndpointError, match="nobody answers: gone"):
        audit(runs, WalkProtocol(script(silent)), out=tmp_path)
    assert len(audit(runs[:3], WalkProtocol(script(silent)), out=tmp_path)) == 3, "nothing was left to ask"


def as_0_3_kept_it(folder: Path, lines: list[AuditLine], settings: object) -> None:
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    text = "".join(json.dumps(line.as_json()) + "\n" for line in lines)
    (folder / LINES).write_text(text + '{"run_id": "r9", "cut')  # as a crash left it


def test_an_audit_of_release_0_3_goes_on(tmp_path: Path) -> None:
    runs = [run_of(i) for i in range(3)]
    lines = audit(runs[:2], WalkProtocol(script(alarm_at_two)))
    as_0_3_kept_it(tmp_path / "same", lines, {"model": "m"})
    for settings, asked in (({"model": "m"}, 2), ({"model": "m"}, 0), ({"model": "other"}, 6), ({"model": "m"}, 0)):
        again = script(alarm_at_two)
        audit(runs, WalkProtocol(again), out=tmp_path / "same", settings=settings)
        assert len(again.prefixes) == asked


def test_what_release_0_3_kept_and_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    for name, text in (("a", b"oops\n"), ("b", b"\xff\xfe\n"), ("c", b"[" * 100_000 + b"\n")):
        as_0_3_kept_it(tmp_path / name, [], {})
        (tmp_path / name / LINES).write_bytes(text)
        with pytest.raises(TraceError, match=r"verdicts\.jsonl:1: not JSON\."):
            audit([run_of(0)], WalkProtocol(script(alarm_at_two)), out=tmp_path / name)
        assert (tmp_path / name / LINES).read_bytes() == text
    (tmp_path / "a" / "settings.json").write_text("[")
    with pytest.raises(ConfigError, match=r"cannot be read\. Move it away"):
        audit([run_of(0)], WalkProtocol(script(alarm_at_two)), out=tmp_path / "a")


def test_where_an_event_loop_runs_the_remedy_is_named() -> None:
    async def inside() -> list[AuditLine]:
        with pytest.raises(UsageError, match="Await audit_async"):
            audit([run_of(0)], WalkProtocol(script(alarm_at_two)))
        return await audit_async([run_of(0)], WalkProtocol(script(alarm_at_two)))

    assert [line.verdict["outcome"] for line in asyncio.run(inside())] == ["alarm"]


def test_audits_with_other_settings_lie_side_by_side(tmp_path: Path) -> None:
    for model, asked in (("a", 2), ("b", 2), ("a", 0), ("b", 0)):
        again = script(alarm_at_two)
        audit([run_of(0)], WalkProtocol(again), out=tmp_path, settings={"model": model})
        assert len(again.prefixes) == asked and len(kept_in(tmp_path)) == 1


def test_where_nobody_answers_the_audit_ends_early_and_keeps_what_it_has(tmp_path: Path) -> None:
    dead = script(lambda *_: Verdict(VerdictOutcome.ERROR, fault="no-answer", detail="gone."))
    with pytest.raises(EndpointError, match=r"nobody answers: gone\."):
        audit([run_of(i) for i in range(50)], WalkProtocol(dead), out=tmp_path, workers=2)
    assert len(dead.prefixes) < 40 and dead.closed


def test_workers_are_at_least_one() -> None:
    with pytest.raises(ConfigError, match="workers 0"):
        audit([run_of(0)], WalkProtocol(script(alarm_at_two)), workers=0)


def test_labels_never_reach_who_inspects() -> None:
    class Looking:
        name = "looking"

        async def inspect(self, run: Run[StepRecord]) -> Inspection:
            assert (run.outcome, run.mistake, run.faults) == (Outcome.UNKNOWN, None, ())
            return Inspection(Verdict(VerdictOutcome.SAFE), None, (), 0)

        async def aclose(self) -> None:
            pass

    line = audit([run_of(0)], Looking())[0]
    assert (line.outcome, line.gold_step) == (Outcome.FAILURE, 2)


def test_hypotheses_give_pairs_and_modes_and_what_they_cost() -> None:
    with model_server(says('{"label": "entail", "agents": ["a1"]}')) as server:
        endpoint = Endpoint("m", server.url, price_in=1.0, price_out=1.0)
        line = audit([run_of(0)], HypothesisProtocol(AsyncClient(endpoint)))[0]
    assert line.modes is not None and len(line.modes) == len(MODES) == len(line.calls)
    assert line.pairs is not None and {agent for agent, _ in line.pairs} == {"a1"}
    assert line.verdict["outcome"] == "alarm" and line.verdict["step"] is None
    assert sum(call["tokens_in"] for call in line.calls) == 14 * 1000
    assert sum(call["cost"] for call in line.calls) == pytest.approx(14 * 1100 / 1e6)
