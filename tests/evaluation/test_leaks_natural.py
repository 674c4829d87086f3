"""What ends runs naturally, or repeats honestly, is no error."""

from __future__ import annotations

import random

import pytest

from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

WORDS = ("river", "stone", "cloud", "paper", "green", "under", "seven", "lamp", "chair", "bread", "rain", "glass")


def step(i, *, tool="look", action="", observation="", result="", arguments="", status="ok"):
    return StepRecord(i + 1, "agent", "", tool, arguments, observation, action, result, status)


def corpus(make, n=160, seed=3, groups=None):
    """Runs of n / 2 tasks, half of them failed. make(dice, failed, length): the records."""
    dice = random.Random(seed)
    runs = []
    for i in range(n):
        failed = dice.random() < 0.5
        records = make(dice, failed, dice.randint(5, 9))
        outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
        runs.append(Run(f"r{i}", f"t{i // 2}", outcome, tuple(records), "here", groups(dice) if groups else {}))
    return runs


def prose(dice, n=12):
    return " ".join(dice.choice(WORDS) for _ in range(n))


def ordinary(dice, failed, length):
    return [step(i, action=prose(dice), result=prose(dice, 20)) for i in range(length)]


def test_nothing_is_found_in_noise():
    assert [audit_leaks(corpus(ordinary, seed=seed)).findings for seed in range(5)] == [()] * 5


def test_a_call_that_submits_is_a_warning():
    def make(dice, failed, length):
        records = ordinary(dice, failed, length)
        return records if failed else [*records[:-1], step(length - 1, tool="submit", action=prose(dice))]

    audit = audit_leaks(corpus(make))
    assert {one.field for one in audit.warnings} >= {"tool"}
    assert not [one for one in audit.errors if one.field in ("tool", "action")]


def test_a_traceback_that_failed_runs_often_end_with_is_no_error():
    def make(dice, failed, length):
        records = ordinary(dice, failed, length)
        for i, record in enumerate(records):
            likely = 0.7 if failed and i == length - 1 else 0.15
            if dice.random() < likely:
                records[i] = step(i, action=record.action, result="Traceback: no such file", status="error")
        return records

    assert audit_leaks(corpus(make)).errors == ()


def test_a_harness_that_stops_at_the_first_success_is_no_error():
    """Tests run all along, for parts of the work; a run ends when they pass for the whole, or at its cap."""

    def make(dice, failed, length):
        said = ["fine" if dice.random() < 0.2 else "2 broken" for _ in range(length)]
        said[-1] = said[-1] if failed else "fine"
        return [step(i, action=prose(dice), result=f"tests: {one} {prose(dice)}") for i, one in enumerate(said)]

    audit = audit_leaks(corpus(make))
    assert audit.errors == ()
    assert any(one.field == "result" and "first success" in one.text for one in audit.warnings)


def test_a_page_that_is_shown_again_is_no_later_text():
    def make(dice, failed, length):
        pages = [prose(dice, 40) for _ in range(3)]
        return [step(i, action=prose(dice), result=pages[i % 3]) for i in range(length)]

    assert audit_leaks(corpus(make)).findings == ()


def test_an_agent_that_copies_what_it_was_shown_is_no_later_text():
    def make(dice, failed, length):
        records = [step(0, action=prose(dice), result=prose(dice, 60))]
        for i in range(1, length):
            shown = records[-1].result.split()
            records.append(step(i, action=prose(dice), arguments=" ".join(shown[:6]), result=prose(dice, 60)))
        return records

    assert audit_leaks(corpus(make)).findings == ()


def test_a_domain_that_is_talked_about_is_no_name():
    def make(dice, failed, length):
        return [step(i, action=f"{dice.choice(('air-travel', 'web-shop'))} {prose(dice)}") for i in range(length)]

    runs = corpus(make, groups=lambda dice: {"domain": dice.choice(("air-travel", "web-shop"))})
    assert not [one for one in audit_leaks(runs).findings if one.kind == "identifier"]


def test_a_counter_and_a_budget_are_no_length_of_the_run():
    """Which step it is, and what is left of thirty, is known at every step."""

    def make(dice, failed, length):
        return [
            step(i, observation=f"step {i + 1}, left: {30 - i}, limit: 30", action=prose(dice)) for i in range(length)
        ]

    assert not [one for one in audit_leaks(corpus(make)).findings if one.kind in ("run_length", "countdown", "number")]


def test_a_step_cap_is_a_shortcut_and_no_leak():
    def make(dice, failed, length):
        return ordinary(dice, failed, 20 if failed and dice.random() < 0.6 else length)

    audit = audit_leaks(corpus(make))
    assert {one.kind for one in audit.findings} == {"shortcut"} and audit.errors == ()
    cap = next(one for one in audit.findings if one.token == "20 steps")
    assert cap.figures["failed"] == 1.0 and cap.figures["p"] < 0.01
    assert next(one for one in audit.findings if one.token == "number of steps").figures["area"] > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_tokens_that_name_the_task_tell_nothing_by_chance(seed):
    """Runs of one task end alike: twenty runs of a lucky task are one piece of evidence, not twenty."""
    dice = random.Random(seed)
    runs = []
    for task in range(24):
        failed = dice.random() < 0.5
        runs += [
            Run(
                f"{task}-{i}",
                str(task),
                Outcome.FAILURE if failed else Outcome.SUCCESS,
                tuple(step(j, action=prose(dice), result=f"room{task % 6} {prose(dice)}") for j in range(5)),
                "here",
            )
            for i in range(20)
        ]
    assert [one for one in audit_leaks(runs).findings if one.kind in ("token", "last_step", "number")] == []


def test_runs_that_talk_about_models_name_no_model_of_theirs():
    def make(dice, failed, length):
        models = ("gpt-4o", "llama-3.1", "qwen2.5")
        return [step(i, result=f"{dice.choice(models)} or {dice.choice(models)}? {prose(dice)}") for i in range(length)]

    assert not [one for one in audit_leaks(corpus(make)).findings if one.kind == "identifier"]


def link(i, k):
    return f"https://shop.example/orders/{i}{k}/track/parcel?carrier=fast&number={7 * i + k}"


def test_an_agent_that_follows_links_is_no_later_text():
    """A search lists links, and each is opened: what is passed on was shown."""

    def make(dice, failed, length):
        one = dice.randint(0, 10**6)
        links = [link(one, k) for k in range(length)]
        listed = ", ".join(f'{{"title": "{prose(dice, 3)}", "url": "{url}"}}' for url in links)
        opened = [
            step(k + 1, tool="open_page", arguments=f'{{"url":"{url}"}}', result=prose(dice, 20))
            for k, url in enumerate(links)
        ]
        return [step(0, tool="search", result=f"[{listed}]"), *opened]

    assert [one for one in audit_leaks(corpus(make)).findings if one.kind in ("whole_rest", "later_text")] == []


def test_calls_that_stand_whole_in_an_earlier_result_are_later_text():
    """The same links, but with the calls around them: nobody but the run's own record writes those."""

    def make(dice, failed, length):
        one = dice.randint(0, 10**6)
        calls = [f'{{"url":"{link(one, k)}"}}' for k in range(length)]
        dump = "\n".join(f'{{"name": "open_page", "arguments": {call}}}' for call in calls)
        opened = [step(k + 1, tool="open_page", arguments=call, result=prose(dice)) for k, call in enumerate(calls)]
        return [step(0, tool="search", result=dump), *opened]

    assert {one.field for one in audit_leaks(corpus(make)).errors if one.kind == "whole_rest"} == {"result"}


@pytest.mark.parametrize("said", ["refunded", "refunded successfully", '{"success": true, "state": "refunded"}'])
@pytest.mark.parametrize("spoken", [False, True])
def test_a_tools_confirmation_is_a_warning(said, spoken):
    """The refund is what the task asks for: its tool says whether it worked, as the last call or the last but one."""

    def make(dice, failed, length):
        denied = said.replace("refunded", "denied").replace("true", "false").replace("successfully", "today")
        last = step(length - 1, tool="refund", result=f"{denied if failed else said} {dice.randint(1, 999)}")
        records = [*ordinary(dice, failed, length)[:-1], last]
        return [*records, step(length, tool="respond", action=prose(dice))] if spoken else records

    audit = audit_leaks(corpus(make))
    assert audit.errors == ()
    found = [one for one in audit.warnings if one.field == "result" and one.kind == "token"]
    assert found and "says so live, too" in found[0].text


def test_a_reward_in_the_result_of_the_last_tool_is_an_error():
    """The tool that ends the run gives the verdict back: its own result, but in a judge's words."""

    def make(dice, failed, length):
        last = step(length - 1, tool="buy", result=f"bought. reward: {0.0 if failed else 1.0}")
        return [*ordinary(dice, failed, length)[:-1], last]

    assert {one.field for one in audit_leaks(corpus(make)).errors} == {"result"}


def test_counts_of_the_last_test_run_are_a_warning():
    def make(dice, failed, length):
        n = dice.randint(1, 9) if failed else 0
        last = step(length - 1, tool="run_tests", result=f"{20 - n} passed in {dice.randint(1, 9)} s, failed {n}")
        return [*ordinary(dice, failed, length)[:-1], last]

    audit = audit_leaks(corpus(make))
    assert audit.errors == () and any(one.field == "result" for one in audit.warnings)


def test_a_number_of_few_runs_is_no_length():
    """A house number that happens to be the length, in one run of eight."""

    def make(dice, failed, length):
        records = ordinary(dice, failed, length)
        if dice.random() < 0.12:
            records[0] = step(0, action=records[0].action, observation=f"I live in apt {length}")
        return records

    assert not [one for one in audit_leaks(corpus(make)).findings if one.kind == "run_length"]


def test_signs_at_the_end_are_seen():
    """One of four signs for each outcome before the last words: no word, and no single sign, tells it."""

    def make(dice, failed, length):
        sign = dice.choice("👎💥🚫🔻" if failed else "👍🎉✅🔺")
        return [*ordinary(dice, failed, length)[:-1], step(length - 1, action=f"{sign} {prose(dice)}")]

    found = [one for one in audit_leaks(corpus(make, n=320)).findings if one.kind == "last_step"]
    assert [one.field for one in found] == ["action"] and found[0].figures["last"] > 0.95
