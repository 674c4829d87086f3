"""What ends runs naturally, repeats honestly, or is said in a run's course is no error; what is written behind it is.

What the agent writes, and what a tool answers in the course of a run, a live monitor sees too. Each pattern comes in
several spellings. What an importer puts there when the run is over stays an error.
"""

from __future__ import annotations

import json
import random

import pytest

from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

WORDS = ("river", "stone", "cloud", "paper", "green", "under", "seven", "lamp", "chair", "bread", "rain", "glass")


def prose(dice, n=12):
    return " ".join(dice.choice(WORDS) for _ in range(n))


def step(tool="look", arguments="", result="", action="", *, observation="", status="ok"):
    return StepRecord(1, "agent", "", tool, arguments, observation, action, result, status)


def corpus(make, n=160, seed=3, groups=None):
    """Runs of n / 2 tasks, about half of them failed. make(dice, failed): the records."""
    dice = random.Random(seed)
    runs = []
    for i in range(n):
        failed = dice.random() < 0.5
        records = tuple(make(dice, failed))
        outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
        runs.append(Run(f"r{i}", f"t{i // 2}", outcome, records, "here", groups(dice) if groups else {}))
    return runs


def audited(make, **options):
    return audit_leaks(corpus(make, **options))


def ordinary(dice, failed=False, length=None):
    length = length or dice.randint(5, 9)
    return [step(action=prose(dice), result=prose(dice, 20)) for _ in range(length)]


def browsing(dice):
    return [step("search", json.dumps({"q": prose(dice, 2)}), prose(dice)) for _ in range(dice.randint(2, 5))]


def spoken(dice):
    return step("respond", action=prose(dice))


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_found_in_noise(seed):
    assert audited(ordinary, seed=seed).findings == ()


# ---- honest repeats, names and numbers: no finding of these kinds, or none at all


def shown_again(dice, failed):
    pages = [prose(dice, 40) for _ in range(3)]
    return [step(action=prose(dice), result=pages[i % 3]) for i in range(dice.randint(5, 9))]


def copied(dice, failed):
    """The agent copies what it was shown."""
    records = [step(action=prose(dice), result=prose(dice, 60))]
    for _ in range(dice.randint(4, 8)):
        shown = records[-1].result.split()
        records.append(step(action=prose(dice), arguments=" ".join(shown[:6]), result=prose(dice, 60)))
    return records


def domain(dice, failed):
    return [step(action=f"{dice.choice(('air-travel', 'web-shop'))} {prose(dice)}") for _ in range(dice.randint(5, 9))]


def counter(dice, failed):
    """Which step it is, and what is left of thirty, is known at every step."""
    seen = (f"step {i + 1}, left: {30 - i}, limit: 30" for i in range(dice.randint(5, 9)))
    return [step(observation=one, action=prose(dice)) for one in seen]


def models(dice, failed):
    def name():
        return dice.choice(("gpt-4o", "llama-3.1", "qwen2.5"))

    return [step(result=f"{name()} or {name()}? {prose(dice)}") for _ in range(dice.randint(5, 9))]


def links(dice, n):
    one = dice.randint(0, 10**6)
    return [f"https://shop.example/orders/{one}{k}/track/parcel?carrier=fast&number={7 * k}" for k in range(n)]


def followed(dice, failed):
    """A search lists links, and each is opened: what is passed on was shown."""
    urls = links(dice, dice.randint(5, 9))
    listed = ", ".join(f'{{"title": "{prose(dice, 3)}", "url": "{url}"}}' for url in urls)
    opened = [step("open_page", f'{{"url":"{url}"}}', prose(dice, 20)) for url in urls]
    return [step("search", result=f"[{listed}]"), *opened]


def house_number(dice, failed):
    """It happens to be the length, in one run of eight."""
    first, *records = ordinary(dice)
    seen = f"I live in apt {len(records) + 1}" if dice.random() < 0.12 else ""
    return [step(action=first.action, observation=seen, result=first.result), *records]


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (shown_again, ""),
        (copied, ""),
        (domain, "identifier"),
        (counter, "run_length countdown number"),
        (models, "identifier"),
        (followed, "whole_rest later_text"),
        (house_number, "run_length"),
    ],
)
def test_an_honest_repeat_is_not_found(make, kinds):
    def groups(dice):
        return {"domain": dice.choice(("air-travel", "web-shop"))} if make is domain else {}

    assert not [one.text for one in audited(make, groups=groups).findings if not kinds or one.kind in kinds]


def test_calls_that_stand_whole_in_an_earlier_result_are_later_text():
    """The same links, but with the calls around them: nobody but the run's own record writes those."""

    def make(dice, failed):
        calls = [f'{{"url":"{url}"}}' for url in links(dice, dice.randint(5, 9))]
        dump = "\n".join(f'{{"name": "open_page", "arguments": {call}}}' for call in calls)
        return [step("search", result=dump), *(step("open_page", call, prose(dice)) for call in calls)]

    assert {one.field for one in audited(make).errors if one.kind == "whole_rest"} == {"result"}


@pytest.mark.parametrize("seed", range(3))
def test_tokens_that_name_the_task_tell_nothing_by_chance(seed):
    """Runs of one task end alike: twenty runs of a lucky task are one piece of evidence, not twenty."""
    dice = random.Random(seed)
    runs = []
    for task in range(24):
        outcome = Outcome.FAILURE if dice.random() < 0.5 else Outcome.SUCCESS
        for i in range(20):
            records = tuple(step(action=prose(dice), result=f"room{task % 6} {prose(dice)}") for _ in range(5))
            runs.append(Run(f"{task}-{i}", str(task), outcome, records, "here"))
    assert [one for one in audit_leaks(runs).findings if one.kind in ("token", "last_step", "number")] == []


# ---- what ends a run: a warning at most


def submits(dice, failed):
    records = ordinary(dice)
    return records if failed else [*records[:-1], step("submit", action=prose(dice))]


def traceback(dice, failed):
    """Failed runs often end with one."""
    records = ordinary(dice)
    for i, record in enumerate(records):
        if dice.random() < (0.7 if failed and i == len(records) - 1 else 0.15):
            records[i] = step(action=record.action, result="Traceback: no such file", status="error")
    return records


def first_success(dice, failed):
    """Tests run all along, for parts of the work; a run ends when they pass for the whole, or at its cap."""
    said = ["fine" if dice.random() < 0.2 else "2 broken" for _ in range(dice.randint(5, 9))]
    said[-1] = said[-1] if failed else "fine"
    return [step(action=prose(dice), result=f"tests: {one} {prose(dice)}") for one in said]


def last_test_run(dice, failed):
    n = dice.randint(1, 9) if failed else 0
    said = f"{20 - n} passed in {dice.randint(1, 9)} s, failed {n}"
    return [*ordinary(dice)[:-1], step("run_tests", result=said)]


@pytest.mark.parametrize(
    ("make", "field", "says"),
    [
        (submits, "tool", ""),
        (traceback, "", ""),
        (first_success, "result", "first success"),
        (last_test_run, "result", ""),
    ],
)
def test_a_natural_end_is_no_error(make, field, says):
    audit = audited(make)
    found = [one for one in audit.errors if make is not submits or one.field in ("tool", "action")]  # it has no result
    assert [one.text for one in found] == []
    assert not field or any(one.field == field and says in one.text for one in audit.warnings)


def test_a_step_cap_is_a_shortcut_and_no_leak():
    def make(dice, failed):
        return ordinary(dice, length=20 if failed and dice.random() < 0.6 else dice.randint(5, 9))

    audit = audited(make)
    assert {one.kind for one in audit.findings} == {"shortcut"} and audit.errors == ()
    cap = next(one for one in audit.findings if one.token == "20 steps")
    assert cap.figures["failed"] == 1.0 and cap.figures["p"] < 0.01
    assert next(one for one in audit.findings if one.token == "number of steps").figures["area"] > 0.7


def test_signs_at_the_end_are_seen():
    """One of four signs for each outcome before the last words: no word, and no single sign, tells it."""

    def make(dice, failed):
        sign = dice.choice("👎💥🚫🔻" if failed else "👍🎉✅🔺")
        return [*ordinary(dice)[:-1], step(action=f"{sign} {prose(dice)}")]

    found = [one for one in audited(make, n=320).findings if one.kind == "last_step"]
    assert [one.field for one in found] == ["action"] and found[0].figures["last"] > 0.95


# ---- the agent follows what a tool showed, and says how it went

#: How a link, or a name, that says how things stand is written; SIDE is success or failed.
LINKS = {
    "query": "https://shop.example/orders/{n}/receipt?state=SIDE",
    "path": "https://shop.example/SIDE/orders/{n}",
    "file": "logs/{n}/build-SIDE.txt",
    "branch": "refs/heads/ci/SIDE/{n}",
    "page title": "order {n}: payment SIDE",
}
#: How the agent passes it on: tool, arguments, action.
WAYS = {
    "json": lambda link: ("open_page", json.dumps({"url": link}), ""),
    "command": lambda link: ("bash", f"cat '{link}'", ""),
    "spoken": lambda link: ("", "", f"I open {link} now."),
}


@pytest.mark.parametrize("spoken_after", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_a_tool_showed_and_the_agent_follows_is_no_error(link, way, spoken_after):
    def make(dice, failed):
        there = LINKS[link].format(n=dice.randint(10, 999)).replace("SIDE", "failed" if failed else "success")
        tool, arguments, action = WAYS[way](there)
        shown = step("list_pages", "{}", f"pages: {prose(dice, 3)} {there}")
        steps = [*browsing(dice), shown, step(tool, arguments, prose(dice, 10), action)]
        return [*steps, spoken(dice)] if spoken_after else steps

    assert [one.text for one in audited(make).errors if one.field in ("tool", "arguments", "action")] == []


OWN_WORDS = {
    "closing call": lambda side: step("finish", json.dumps({"status": side, "message": "that is all"}), "done"),
    "tool of its own": lambda side: step(f"report_{side}", "{}", "done"),
    "says so": lambda side: step(
        "respond", action=f"I have {'failed' if side == 'failed' else 'made a success of it'}."
    ),
}


@pytest.mark.parametrize("words", OWN_WORDS)
def test_an_agent_that_says_how_it_went_is_no_error(words):
    audit = audited(lambda dice, failed: [*browsing(dice), OWN_WORDS[words]("failed" if failed else "success")])
    assert [one.text for one in audit.errors] == []


@pytest.mark.parametrize("field", ["action", "arguments", "tool"])
@pytest.mark.parametrize("at", [0, -1])
def test_a_verdict_that_was_edited_into_what_the_agent_wrote_is_an_error(field, at):
    """A judge's words that nothing before shows: no agent says its reward."""

    def make(dice, failed):
        records = [step(one.tool, one.arguments, one.result, prose(dice, 8)) for one in browsing(dice)]
        edited = {name: getattr(records[at], name) for name in ("tool", "arguments", "result", "action")}
        edited[field] += f"\nreward {0.0 if failed else 1.0}"
        records[at] = step(**edited)
        return records

    assert field in {one.field for one in audited(make).errors}


def test_a_score_that_a_tool_showed_and_the_agent_repeats_is_no_error():
    def make(dice, failed):
        said = f"credit score {'poor' if failed else 'excellent'}"
        shown = step("look_up", "{}", f"{prose(dice, 3)} {said}")
        return [*browsing(dice), shown, step("decide", json.dumps({"by": said}))]

    assert [one.text for one in audited(make).errors if one.field == "arguments"] == []


# ---- a tool confirms; a harness writes a verdict


@pytest.mark.parametrize("said", ["refunded", "refunded successfully", '{"success": true, "state": "refunded"}'])
@pytest.mark.parametrize("spoken_after", [False, True])
def test_a_tools_confirmation_is_a_warning(said, spoken_after):
    """The refund is what the task asks for: its tool says whether it worked, as the last call or the last but one."""

    def make(dice, failed):
        denied = said.replace("refunded", "denied").replace("true", "false").replace("successfully", "today")
        last = step("refund", result=f"{denied if failed else said} {dice.randint(1, 999)}")
        return [*ordinary(dice)[:-1], last, *([spoken(dice)] if spoken_after else [])]

    audit = audited(make)
    assert audit.errors == ()
    found = [one for one in audit.warnings if one.field == "result" and one.kind == "token"]
    assert found and "says so live, too" in found[0].text


def test_a_reward_in_the_result_of_the_last_tool_is_an_error():
    """The tool that ends the run gives the verdict back: its own result, but in a judge's words."""

    def make(dice, failed):
        return [*ordinary(dice)[:-1], step("buy", result=f"bought. reward: {0.0 if failed else 1.0}")]

    assert {one.field for one in audited(make).errors} == {"result"}


#: What a tool answers while it works, at last where it did, and where it did not; {p}: some words, {n}: a number.
ANSWERS = {
    "bare": ("pending", "refunded", "not refundable"),
    "prose": ("{p} is being looked at", "{p} has been refunded", "{p} is not refundable"),
    "sentence": ("Order {n} was found.", "Order {n} was refunded successfully.", "Order {n}: refund failed."),
    "json": tuple(f'{{{{"ok": true, "state": "{state}"}}}}' for state in ("open", "refunded", "denied")),
    "json flag": (
        '{{"refunded": false, "n": {n}}}', '{{"refunded": true, "n": {n}}}', '{{"error": "not refundable", "n": {n}}}',
    ),
    "lines": tuple(f"order: {{n}}\nstate: {state}" for state in ("open", "refunded", "not refundable")),
    "amount": (
        '{{"state": "open", "amount": {n}}}', '{{"state": "refunded", "amount": {n}}}',
        '{{"state": "denied", "amount": 0.0}}',
    ),
    "pretty": tuple(f'{{{{\n "ok": true,\n "state": "{state}"\n}}}}' for state in ("open", "success", "failed")),
    "new shape": ('{{"eta": {n}}}', '{{"success": true, "by": "card"}}', '{{"success": false, "by": "card"}}'),
    "accepted": ("We look at {p}", "Accepted: {p}", "Rejected: {p}"),
}  # fmt: skip


@pytest.mark.parametrize("spoken_after", [False, True])
@pytest.mark.parametrize("one_tool", [False, True])
@pytest.mark.parametrize("words", ANSWERS)
def test_a_word_that_only_the_last_of_several_answers_has_is_no_error(words, one_tool, spoken_after):
    """The tool is asked five to nine times; only its last answer says what became of it."""
    waiting, done, denied = ANSWERS[words]

    def make(dice, failed):
        said = [waiting] * dice.randint(5, 9) + [denied if failed else done]
        asked = [step("refund", "{}", one.format(p=prose(dice, 3), n=dice.randint(10, 99))) for one in said]
        return [*([] if one_tool else browsing(dice)), *asked, *([spoken(dice)] if spoken_after else [])]

    assert [one.text for one in audited(make).errors] == []


HARNESS = {
    "bare number": ("0.0", "1.0"),
    "bare flag": ("False", "True"),
    "named reward": ('{"reward": 0.0}', '{"reward": 1.0}'),
    "line": ("[Result] (FAIL)", "[Result] (PASS)"),
    "word": ("failed", "passed"),
    "sentence": ("The answer is incorrect.", "The answer is correct."),
    "sign": ("❌", "✅"),
    "table of scores": tuple(
        f"Your score (min 0.0, max 1.0): {score}\n\n4 {score} {other} {score}\n-----"
        for score, other in (("0.0", "0.5"), ("1.0", "1.0"))
    ),
}


@pytest.mark.parametrize("one_tool", [False, True])
@pytest.mark.parametrize("verdict", HARNESS)
def test_a_verdict_behind_the_last_of_many_results_is_an_error(verdict, one_tool):
    """Behind whatever came back last: the tool of the last step is one that is called all along."""

    def make(dice, failed):
        tools = ["bash"] if one_tool else ["bash", "read", "write"]
        results = ["\n".join(prose(dice, 4) for _ in range(3)) for _ in range(dice.randint(6, 12))]
        results[-1] += f"\n{HARNESS[verdict][not failed]}"
        return [step(dice.choice(tools), "{}", result) for result in results]

    assert "result" in {one.field for one in audited(make).errors}


@pytest.mark.parametrize("verdict", sorted(set(HARNESS) - {"word"}))
def test_a_verdict_instead_of_the_last_result_is_an_error(verdict):
    def make(dice, failed):
        steps = [step("bash", "{}", prose(dice, 8)) for _ in range(dice.randint(6, 12))]
        return [*steps, step("bash", "{}", HARNESS[verdict][not failed])]

    assert "result" in {one.field for one in audited(make).errors}
