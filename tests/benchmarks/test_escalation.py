"""The scripted auditor and its law; the benchmark on a few runs."""

from __future__ import annotations

import gc
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from escalation_audits import MODES, Mode, audited, audits, compared
from escalation_cascades import cascades, risks_of
from escalation_law import Expected, Law, expected_of
from escalation_ledger import Load, ledger
from escalation_material import ALL, EACH, Material
from escalation_text import to_markdown
from scripted_server import Script, Skill, fingerprint, seen_in

from prefixguard.auditor import EscalationTrigger, escalated_above
from prefixguard.escalate import PromptKind, Reply, VerdictOutcome, read_verdict
from prefixguard.escalate.prompting import ask_for_verdict, halves
from prefixguard.runtime import load
from prefixguard.simulation import generate
from prefixguard.stepview import StepRecord

MONITOR = Path(__file__).parents[2] / "monitors" / "lab"


@pytest.fixture(scope="module")
def material() -> Material:
    return Material.made(14, 7)


def steps(n: int, words: int = 3) -> list[StepRecord]:
    return [
        StepRecord(i, "agent", f"a{i % 2}", "look", "{}", f"say {i} " * words, "", f"seen {i}", "ok", i - 1)
        for i in range(1, n + 1)
    ]


@pytest.mark.parametrize("kind", list(PromptKind))
@pytest.mark.parametrize("words", [3, 2000])
def test_an_auditor_reads_its_question_out_of_the_prompt(kind: PromptKind, words: int) -> None:
    """Also where most of the run is cut."""
    records = steps(40, words)
    within = (5, 12) if kind is PromptKind.BINARY_SEARCH else None
    seen = seen_in(ask_for_verdict(kind, records, 8000, within=within).messages)
    assert (seen.kind, seen.last, seen.within) == (kind.value, 40, within)
    short = seen_in(ask_for_verdict(PromptKind.ONLINE, records[:3], 24_000).messages)
    assert short.last == 3
    if words == 3:
        assert seen.run == short.run == fingerprint(records)
        assert fingerprint([replace(records[0], action="else"), *records[1:]]) != seen.run


def test_a_prompt_without_a_run_is_no_question() -> None:
    with pytest.raises(ValueError, match="no transcript"):
        seen_in([{"role": "user", "content": "Hello, step 1 | agent"}])


def test_the_order_of_questions_does_not_matter() -> None:
    script = Script({"r": 4}, Skill(hit=0.5, by_call=True, false_alarm=0.3, lie=0.2), seed=3)
    forth = [script.verdict("online", "r", last) for last in range(1, 30)]
    back = [script.verdict("online", "r", last) for last in range(29, 0, -1)]
    assert forth == back[::-1] and len(set(forth)) > 3
    assert forth != [replace(script, seed=4).verdict("online", "r", last) for last in range(1, 30)]


@pytest.mark.parametrize(
    "skill", [Skill(broken=0.3), Skill(inject=0.6), Skill(beyond=0.2), Skill(broken=0.2, inject=1)]
)
def test_the_share_of_replies_that_are_no_verdict(skill: Skill) -> None:
    """As the product's own parser reads them; the others say what the script says."""
    records = steps(5)
    seen = seen_in(ask_for_verdict(PromptKind.ONLINE, records, 24_000).messages)
    errors = 0
    for seed in range(1500):
        script = Script({seen.run: 3}, skill, seed)
        verdict = read_verdict(Reply(script.reply(seen), "stop", "", 1, 1, False, 0.0, 1), records)
        errors += verdict.outcome is VerdictOutcome.ERROR
        assert verdict.outcome is VerdictOutcome.ERROR or verdict.step == 3
    rate = skill.error_rate()
    assert abs(errors - 1500 * rate) < 4 * math.sqrt(1500 * rate * (1 - rate))


def played(script: Script, kind: PromptKind, n: int, mistake: int | None, error: float, seed: int) -> tuple[bool, ...]:
    """(right, alarm, error) of one walk, by the rules of the walk alone."""
    noise = np.random.default_rng(seed).random(200)
    if kind is PromptKind.BINARY_SEARCH:
        begin, end, turn = 1, n, 0
        while begin < end:
            if noise[turn] < error:
                return False, False, True
            turn += 1
            said = script.verdict("binary_search", "r", n, (begin, end))
            if said == "UNSURE":
                return False, False, False
            first, second = halves((begin, end))
            begin, end = first if said == first[0] else second
        return begin == mistake, True, False
    asked: Sequence[int] = [n] if kind is PromptKind.POST_HOC else range(1, n + 1)
    failed = False
    for step in asked:
        lost = bool(noise[step] < error)
        failed = lost or (failed and kind is PromptKind.STEP_BY_STEP)
        said = "SAFE" if lost else script.verdict(kind.value, "r", step)
        if isinstance(said, int):
            return said == mistake, True, False
    return False, False, failed


LYING = Mode("lies step by step", Skill(hit=0.6, lie=0.1), PromptKind.STEP_BY_STEP)


@pytest.mark.parametrize("mode", (*MODES, LYING), ids=lambda mode: mode.name)
@pytest.mark.parametrize(("n", "mistake"), [(6, None), (9, 2), (7, 7)])
def test_the_law_is_what_the_script_does(mode: Mode, n: int, mistake: int | None) -> None:
    error = mode.skill.error_rate(mode.tries, mode.patient)
    law = expected_of(mode.skill, mode.kind, n, mistake, error)
    many = 1200
    seen = np.array(
        [played(Script({"r": mistake}, mode.skill, s), mode.kind, n, mistake, error, s) for s in range(many)]
    )
    for found, expected in zip(seen.mean(axis=0), (law.right, law.alarm, law.error), strict=True):
        assert abs(found - expected) <= 4.5 * math.sqrt(expected * (1 - expected) / many) + 1e-12


def test_false_alarms_of_calls_add_up() -> None:
    law = expected_of(Skill(false_alarm=0.024), PromptKind.ONLINE, 12, None, 0.0)
    assert law.alarm == pytest.approx(1 - 0.976**12) and law.right == law.error == 0.0


def test_figures_of_a_law() -> None:
    laws = [Law(0.5, 0.6, 0.1), Law(1.0, 1.0, 0.0), Law(0.0, 0.2, 0.3)]
    found = Expected.of(laws, np.array([True, True, False]), seed=1).figures
    assert found["step_accuracy"] == pytest.approx((0.75, 0.25))
    assert found["false_alarm_rate"] == pytest.approx((0.2, 0.4))
    assert found["errors"][0] == pytest.approx(0.4 / 3)
    # 2 TP / (U + D + FA), by hand over what may happen: TP 1 or 2, alarms besides
    by_hand = 0.0
    for exact, alarms, chance in ((2, 2, 0.5), (1, 2, 0.1), (1, 1, 0.4)):
        by_hand += chance * (0.8 * 2 * exact / (2 + alarms) + 0.2 * 2 * exact / (3 + alarms))
    assert found["exact_f1"][0] == pytest.approx(by_hand, abs=0.02)


@pytest.mark.slow
def test_an_audit_over_http_measures_what_the_script_gives(material: Material) -> None:
    failed = sum(step is not None for step in material.truth.values())
    assert 0 < failed < 14
    found = compared(MODES[0], material, *audited(MODES[0], material, 1), 1)
    assert all(figure["measured"] == figure["expected"] for figure in found["figures"].values())
    assert found["requests"] == found["calls"] and found["failed_runs"] == failed
    failing = Mode("failing", Skill(fail=0.5, false_alarm=0.1), tries=2)
    found = compared(failing, material, *audited(failing, material, 1), 1)
    assert found["requests"] > found["calls"]
    assert all(abs(figure["z"]) < 4 for figure in found["figures"].values())
    assert found["differing_rows"] == 0


@pytest.mark.parametrize("kind", list(PromptKind))
def test_every_run_ends_as_the_coins_say(kind: PromptKind, material: Material) -> None:
    """Whatever goes wrong with replies: what is read over HTTP is what was scripted, run by run."""
    skill = Skill(hit=0.7, by_call=True, wrong=0.5, false_alarm=0.05, broken=0.1, beyond=0.1, inject=0.5, lie=0.05)
    mode = Mode("all at once", skill, kind)
    found = compared(mode, material, *audited(mode, material, 5), 5)
    assert found["differing_rows"] == 0 and found["requests"] == found["calls"]
    assert compared(mode, material, *audited(mode, material, 6), 5)["differing_rows"] > 0, "other coins, other ends"


def test_every_step_above_the_mark_passes_the_gate(material: Material) -> None:
    monitor = load(MONITOR)
    risks = risks_of(monitor, material.runs)
    for mark in (1e-9, 0.2, 0.4, 0.6):
        gate, above = EscalationTrigger(monitor, replace(EACH, mark=mark)), escalated_above(risks, mark)
        assert all(list(gate.steps(run)) == above[run.run_id] for run in material.runs)


@pytest.mark.parametrize(
    "load_",
    [
        Load("failing", Skill(fail=0.6)),
        Load("closed", Skill(slow=0.5, slow_seconds=0.5), drain=False),
        Load("again", Skill(broken=0.3), again=True),
        Load("small queue", Skill(slow=0.5, slow_seconds=0.01), replace(ALL, queue=1), 1),
        Load("out of order", Skill(fail=1.0), breaker=True),
        Load("dead", Skill(), breaker=True, dead=True),
    ],
    ids=lambda load_: load_.name,
)
def test_no_question_is_lost_or_counted_twice(load_: Load, material: Material) -> None:
    events = [run["messages"] for run in generate(6, 7, trials=1)]
    counts = ledger(load_, load(MONITOR), material, events)  # which looks itself
    steps_of_all = sum(len(run.records) for run in material.runs[:6])
    assert counts["offered"] == steps_of_all * (2 if load_.again else 1)
    assert counts["failed"] or counts["dropped"]
    gc.collect()


@pytest.mark.slow
def test_curves_and_tables(material: Material) -> None:
    found = cascades(load(MONITOR), material, 10, 7, 20)
    assert [one["differing_rows"] for one in found["over_http"]] == [0, 0]
    perfect = [point for point in found["curves"] if (point["hit"], point["false_alarm"]) == (1.0, 0.0)]
    assert perfect[-1]["exact_f1"] == 1.0 and perfect[-1]["escalated_share"] == 1.0
    assert [one["calls_a_run"] for one in perfect] == sorted(one["calls_a_run"] for one in perfect)
    worst = [point for point in found["curves"] if (point["hit"], point["false_alarm"]) == (0.5, 0.024)]
    assert worst[-1]["false_alarm_rate"] >= worst[0]["false_alarm_rate"]
    prices = {"in_per_million": 1, "out_per_million": 1, "gpu_hour": 1, "gpu_reads_a_second": 1}
    told = {
        "seed": 7,
        "seconds": 1.0,
        "audits": audits(material, 7, MODES[:1]),
        "ledger": [],
        "cascades": found,
        "prices": {**prices, "gpu_writes_a_second": 1, "reply_tokens": 1},
    }
    text = to_markdown({**told, "audits": [*told["audits"], *audits(material, 7, MODES[3:4])]})
    assert "| always right |" in text and "0 of 14 rows differ" in text and "nan" not in text
