"""Whatever a server sends has an outcome, and only two numbers from 0 to 100 are an answer."""

from __future__ import annotations

import pytest

from prefixguard.escalate import Reply
from prefixguard.evaluation.judge.question import JudgeOutcome, read_answer

GOOD = '{"reason": "it {loops}", "fails": 70, "fails_soon": 12.5}'


def reply(text: str, finish: str = "stop", refusal: str = "") -> Reply:
    return Reply(text, finish, refusal, 10, 10, False, 1.0, 1)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"<think>It may be {{70}} or {GOOD.replace('70', '10')}</think>\n{GOOD}",
        f"It loops, so I say:\n{GOOD}\nThat is all.",
        f"{GOOD}\n{GOOD}",
        GOOD.replace("70", "7e1"),
    ],
)
def test_prose_fences_and_thoughts_do_not_matter(text: str) -> None:
    found = read_answer(reply(text))
    assert (found.outcome, found.fails, found.fails_soon) == (JudgeOutcome.ANSWERED, 0.7, 0.125)


def test_an_answer_counts_though_the_text_after_it_was_cut_off() -> None:
    assert read_answer(reply(f"{GOOD} I say so since", finish="length")).outcome is JudgeOutcome.ANSWERED


@pytest.mark.parametrize("fails", ["null", "40"])
def test_null_abstains(fails: str) -> None:
    found = read_answer(reply(f'{{"reason": "nothing to see", "fails": {fails}, "fails_soon": null}}'))
    assert found.outcome is JudgeOutcome.ABSTAINED and found.fails is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no answer in it"),
        ("I would say 70 %.", "no answer in it"),
        ("<html><body>Welcome</body></html>", "no answer in it"),
        ("[70, 12]", "no answer in it"),
        ('{"probability": 70}', "no answer in it"),
        (GOOD.replace("70", '"70"'), "not a number"),
        (GOOD.replace("70", "true"), "not a number"),
        (GOOD.replace("70", "[70]"), "not a number"),
        ('{"fails": 70}', "not a number"),
        (GOOD.replace("70", "101"), "out of range"),
        (GOOD.replace("70", "-1"), "out of range"),
        (GOOD.replace("70", "1" + "0" * 400), "out of range"),
        (GOOD.replace("70", "1e999"), "out of range"),
        (GOOD.replace("70", "NaN"), "no answer in it"),
        (GOOD.replace('"fails_soon"', '"fails"'), "no answer in it"),
        (GOOD + GOOD.replace("70", "10"), "two answers"),
        ("{" * 100_000, "no answer in it"),
        ('{"a":' * 50_000, "no answer in it"),
        (GOOD[:-4], "no answer in it"),
    ],
)
def test_everything_else_is_unreadable_and_says_why(text: str, fault: str) -> None:
    found = read_answer(reply(text))
    assert (found.outcome, found.fault, found.fails) == (JudgeOutcome.UNREADABLE, fault, None)


def test_cut_off_and_refused_are_told_apart() -> None:
    assert read_answer(reply(GOOD[:-4], finish="length")).fault == "cut off"
    assert read_answer(reply(GOOD, refusal="I must not")).fault == "refused"
    assert read_answer(reply("", finish="content_filter")).fault == "refused"


def test_soon_above_at_all_is_a_contradiction_but_an_answer() -> None:
    found = read_answer(reply('{"reason": "", "fails": 20, "fails_soon": 30}'))
    assert found.outcome is JudgeOutcome.ANSWERED and found.contradicts_itself
