"""What the agent writes, and what a tool answers in the course of a run, a live monitor sees too: no leak.

Each pattern comes in several spellings. What an importer puts there when the run is over stays an error.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import pytest

from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

WORDS = ("river", "stone", "cloud", "paper", "green", "under", "seven", "lamp", "chair", "bread", "rain", "glass")


def prose(dice, n=8):
    return " ".join(dice.choice(WORDS) for _ in range(n))


def step(i, tool, arguments="", result="", action="", observation="", actor="agent"):
    return StepRecord(i + 1, actor, "", tool, arguments, observation, action, result, "ok")


def corpus(make, n=160, seed=3):
    """Runs of n / 2 tasks, about half of them failed. make(dice, failed): the steps, as arguments of `step`."""
    dice = random.Random(seed)
    runs = []
    for i in range(n):
        failed = dice.random() < 0.5
        records = tuple(step(k, *parts) for k, parts in enumerate(make(dice, failed)))
        outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
        runs.append(Run(f"r{i}", f"t{i // 2}", outcome, records, "here"))
    return runs


def browsing(dice):
    return [("search", json.dumps({"q": prose(dice, 2)}), prose(dice, 12)) for _ in range(dice.randint(2, 5))]


# ---- the agent follows what a tool showed

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


def following(link, way, spoken_after):
    def make(dice, failed):
        there = LINKS[link].format(n=dice.randint(10, 999)).replace("SIDE", "failed" if failed else "success")
        tool, arguments, action = WAYS[way](there)
        shown = ("list_pages", "{}", f"pages: {prose(dice, 3)} {there}")
        steps = [*browsing(dice), shown, (tool, arguments, prose(dice, 10), action)]
        return [*steps, ("respond", "", "", prose(dice))] if spoken_after else steps

    return make


@pytest.mark.parametrize("spoken_after", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_a_tool_showed_and_the_agent_follows_is_no_error(link, way, spoken_after):
    audit = audit_leaks(corpus(following(link, way, spoken_after)))
    assert [one.text for one in audit.errors if one.field in ("tool", "arguments", "action")] == []


OWN_WORDS = {
    "closing call": lambda side: ("finish", json.dumps({"status": side, "message": "that is all"}), "done"),
    "tool of its own": lambda side: (f"report_{side}", "{}", "done"),
    "says so": lambda side: ("respond", "", "", f"I have {'failed' if side == 'failed' else 'made a success of it'}."),
}


@pytest.mark.parametrize("words", OWN_WORDS)
def test_an_agent_that_says_how_it_went_is_no_error(words):
    def make(dice, failed):
        return [*browsing(dice), OWN_WORDS[words]("failed" if failed else "success")]

    assert [one.text for one in audit_leaks(corpus(make)).errors] == []


@pytest.mark.parametrize("field", ["action", "arguments", "tool"])
@pytest.mark.parametrize("early", [False, True])
def test_a_verdict_that_was_edited_into_what_the_agent_wrote_is_an_error(field, early):
    """A judge's words that nothing before shows: no agent says its reward."""

    def make(dice, failed):
        says = f"reward {0.0 if failed else 1.0}"
        steps = [(tool, arguments, result, prose(dice)) for tool, arguments, result in browsing(dice)]
        at = 0 if early else -1
        tool, arguments, result, action = steps[at]
        edited = {"action": action, "arguments": arguments, "tool": tool}
        edited[field] += f"\n{says}"
        steps[at] = (edited["tool"], edited["arguments"], result, edited["action"])
        return steps

    assert field in {one.field for one in audit_leaks(corpus(make)).errors}


def test_a_score_that_a_tool_showed_and_the_agent_repeats_is_no_error():
    def make(dice, failed):
        said = f"credit score {'poor' if failed else 'excellent'}"
        return [*browsing(dice), ("look_up", "{}", f"{prose(dice, 3)} {said}"), ("decide", json.dumps({"by": said}))]

    assert [one.text for one in audit_leaks(corpus(make)).errors if one.field == "arguments"] == []


# ---- a tool confirms in the last of its answers


@dataclass(frozen=True)
class Answers:
    """What a tool answers while it works, and at last; {p}: some words, {n}: a number."""

    waiting: str
    done: str
    denied: str


ANSWERS = {
    "bare": Answers("pending", "refunded", "not refundable"),
    "prose": Answers("{p} is being looked at", "{p} has been refunded", "{p} is not refundable"),
    "sentence": Answers("Order {n} was found.", "Order {n} was refunded successfully.", "Order {n}: refund failed."),
    "json": Answers(
        '{{"ok": true, "state": "open"}}', '{{"ok": true, "state": "refunded"}}', '{{"ok": true, "state": "denied"}}'
    ),
    "json flag": Answers(
        '{{"refunded": false, "n": {n}}}', '{{"refunded": true, "n": {n}}}', '{{"error": "not refundable", "n": {n}}}'
    ),
    "lines": Answers("order: {n}\nstate: open", "order: {n}\nstate: refunded", "order: {n}\nstate: not refundable"),
    "amount": Answers(
        '{{"state": "open", "amount": {n}}}',
        '{{"state": "refunded", "amount": {n}}}',
        '{{"state": "denied", "amount": 0.0}}',
    ),
    "pretty": Answers(
        '{{\n "ok": true,\n "state": "open"\n}}',
        '{{\n "ok": true,\n "state": "success"\n}}',
        '{{\n "ok": true,\n "state": "failed"\n}}',
    ),
    "new shape": Answers('{{"eta": {n}}}', '{{"success": true, "by": "card"}}', '{{"success": false, "by": "card"}}'),
    "accepted": Answers("We look at {p}", "Accepted: {p}", "Rejected: {p}"),
}


@pytest.mark.parametrize("spoken_after", [False, True])
@pytest.mark.parametrize("one_tool", [False, True])
@pytest.mark.parametrize("words", ANSWERS)
def test_a_word_that_only_the_last_of_several_answers_has_is_no_error(words, one_tool, spoken_after):
    """The tool is asked five to nine times; only its last answer says what became of it."""
    said = ANSWERS[words]

    def make(dice, failed):
        def answer(template):
            return ("refund", "{}", template.format(p=prose(dice, 3), n=dice.randint(10, 99)))

        asked = [answer(said.waiting) for _ in range(dice.randint(5, 9))]
        steps = [*([] if one_tool else browsing(dice)), *asked, answer(said.denied if failed else said.done)]
        return [*steps, ("respond", "", "", prose(dice))] if spoken_after else steps

    assert [one.text for one in audit_leaks(corpus(make)).errors] == []


HARNESS = {
    "bare number": ("0.0", "1.0"),
    "bare flag": ("False", "True"),
    "named reward": ('{"reward": 0.0}', '{"reward": 1.0}'),
    "line": ("[Result] (FAIL)", "[Result] (PASS)"),
    "word": ("failed", "passed"),
    "sentence": ("The answer is incorrect.", "The answer is correct."),
    "sign": ("❌", "✅"),
    "table of scores": (
        "Your score (min 0.0, max 1.0): 0.0\n\n4 0.0 0.5 0.0\n-----",
        "Your score (min 0.0, max 1.0): 1.0\n\n4 1.0 1.0 1.0\n-----",
    ),
}


@pytest.mark.parametrize("one_tool", [False, True])
@pytest.mark.parametrize("verdict", HARNESS)
def test_a_verdict_behind_the_last_of_many_results_is_an_error(verdict, one_tool):
    """Behind whatever came back last: the tool of the last step is one that is called all along."""

    def make(dice, failed):
        tools = ["bash"] if one_tool else ["bash", "read", "write"]
        n = dice.randint(6, 12)
        steps = [(dice.choice(tools), "{}", "\n".join(prose(dice, 4) for _ in range(3))) for _ in range(n)]
        tool, arguments, result = steps[-1]
        return [*steps[:-1], (tool, arguments, f"{result}\n{HARNESS[verdict][not failed]}")]

    assert "result" in {one.field for one in audit_leaks(corpus(make)).errors}


@pytest.mark.parametrize("verdict", sorted(set(HARNESS) - {"word"}))
def test_a_verdict_instead_of_the_last_result_is_an_error(verdict):
    def make(dice, failed):
        steps = [("bash", "{}", prose(dice, 8)) for _ in range(dice.randint(6, 12))]
        return [*steps, ("bash", "{}", HARNESS[verdict][not failed])]

    assert "result" in {one.field for one in audit_leaks(corpus(make)).errors}
