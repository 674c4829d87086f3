"""Status of a step: flags, exit codes, texts of errors; verdicts on the run are refused."""

from __future__ import annotations

from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.induce.search.status import StatusForm, infer_status
from prefixguard.stepview import Adapter, Parser, Scope

PAGE = "The town lies on a plain, and its market is held on the steps of the cathedral, number {}."


def judge(form: StatusForm, text: str) -> str:
    """What the rules say of a result, flags apart."""
    for rule in form.rules:
        when = rule.get("when")
        if when is None:
            return str(rule["is"])
        test = when.get("result")
        if test is None:
            continue
        if "present" in test:
            if bool(text) is test["present"]:
                return str(rule["is"])
        elif re2.search(test["re"], text):
            return str(rule["is"])
    return "unknown"


def errors(form: StatusForm, path: str, texts: list[str], values: list[Any]) -> float:
    """Share of results that the interpreter calls errors."""
    rule = {"when": "else", "emit": "step", "tool": "@.tool", "result": "@.text", "status": list(form.rules)}
    head = {"schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0", "run": {}, "container": "json"}
    parser = Parser(Adapter({**head, "events": "$[*]", "rules": [rule]}).program, Scope({}, {}), live=False)
    found = []
    for text, value in zip(texts, values, strict=True):
        for name in reversed(path.split(".")[1:]):
            value = {name: value}
        found += parser.observe({**value, "tool": "look", "text": text})
    found += parser.end()
    return sum(record.status == "error" for record in found) / len(found)


def fine(n: int = 20) -> list[str]:
    return [PAGE.format(i) for i in range(n)]


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("@.is_error", False, True),
        ("@.isError", False, True),
        ("@.success", True, False),
        ("@.ok", True, False),
        ("@.status", "completed", "failed"),
        ("@.extra.returncode", 0, 1),
        ("@.exit_code", 0, 127),
        ("@.http_status", 200, 404),
        ("@.error", None, "it broke"),
        ("@.error", "", "it broke"),
    ],
)
def test_flags_by_name(path: str, good: Any, bad: Any) -> None:
    values = [bad if i % 4 == 3 else good for i in range(20)]
    form = infer_status(fine(), {path: values}, [i // 5 for i in range(20)])
    kinds = [rule["is"] for rule in form.rules if path in rule.get("when", {})]
    assert "error" in kinds
    assert form.mapped[0].raw == path and form.mapped[0].field == "status"
    assert errors(form, path, fine(), values) == 0.25


def test_flag_with_a_meaningless_name_is_told_by_the_texts() -> None:
    texts = [f"Error: no such town {i}" if i % 4 == 3 else PAGE.format(i) for i in range(20)]
    form = infer_status(texts, {"@.k7": [i % 4 == 3 for i in range(20)]})
    assert {"when": {"@.k7": True}, "is": "error"} in form.rules


def test_flag_that_says_nothing_of_errors_is_left_alone() -> None:
    form = infer_status(fine(), {"@.cached": [i % 2 == 0 for i in range(20)], "@.n": list(range(20))})
    assert form.mapped == ()
    assert form.rules == ({"is": "ok"},)


def test_verdict_on_the_last_event_is_refused() -> None:
    values = [None if i % 5 != 4 else i % 2 == 0 for i in range(20)]
    form = infer_status(fine(), {"@.success": values}, [i // 5 for i in range(20)])
    assert [one.raw for one in form.left_out] == ["@.success"]
    assert all("@.success" not in rule.get("when", {}) for rule in form.rules)


def test_verdict_on_every_event_of_a_run_is_refused() -> None:
    form = infer_status(fine(), {"@.success": [(i // 5) % 2 == 0 for i in range(20)]}, [i // 5 for i in range(20)])
    assert [one.raw for one in form.left_out] == ["@.success"]


def test_verdict_that_shows_at_the_last_event_is_refused() -> None:
    values = [i % 10 == 9 and i // 10 != 1 for i in range(60)]
    form = infer_status(fine(60), {"@.done_ok": values}, [i // 10 for i in range(60)])
    assert [one.raw for one in form.left_out] == ["@.done_ok"]


@pytest.mark.parametrize(
    "frame",
    [
        "<returncode>{code}</returncode>\n<output>\n{text}\n</output>",
        "exitcode: {code} (execution ended)\nCode output: {text}",
        "{text}\n[Exit code: {code}]",
        "{text}\nProcess finished with exit code {code}",
        "Exit status: {code}\n{text}",
    ],
)
def test_exit_codes_in_the_text(frame: str) -> None:
    texts = [frame.format(code=(i % 5 and 0) or (i % 3), text=PAGE.format(i)) for i in range(30)]
    form = infer_status(texts)
    assert judge(form, frame.format(code=0, text="x")) == "ok"
    assert judge(form, frame.format(code=2, text="x")) == "error"


def test_errors_by_what_they_say() -> None:
    texts = [
        *fine(),
        "Error: no such town",
        "bash: gerp: command not found",
        "Traceback (most recent call last):\n  x\nValueError: 3",
    ]
    form = infer_status(texts)
    for text in texts[20:]:
        assert judge(form, text) == "error"
    assert judge(form, PAGE.format(99)) == "ok"
    assert judge(form, "A page about the error of Parallax") == "ok"


def test_sayings_that_the_samples_lack_are_not_in_the_spec() -> None:
    form = infer_status([*fine(), "Invalid action!"])
    assert "Traceback" not in str(form.rules)
    assert judge(form, "Invalid action!") == "error"


def test_openings_that_repeat_and_deny() -> None:
    texts = [*fine(40), *(f"The page named town{i} was not found here." for i in range(5))]
    form = infer_status(texts)
    assert judge(form, "The page named Oslo was not found here.") == "error"


def test_an_empty_search_is_no_error() -> None:
    texts = [*fine(40), *(f'No matches found for "town{i}" in /src' for i in range(6))]
    assert judge(infer_status(texts), 'No matches found for "x" in /src') == "ok"


def test_nothing_comes_back() -> None:
    assert infer_status([]).rules == ({"is": "unknown"},)


@given(
    st.lists(st.text(max_size=80), max_size=25),
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)), max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_any_values_give_rules(texts: list[str], values: list[Any]) -> None:
    values = (values + [None] * len(texts))[: len(texts)]
    form = infer_status(texts, {"@.x": values}, list(range(len(texts))))
    assert form.rules and "when" not in form.rules[-1]
    assert form == infer_status(texts, {"@.x": values}, list(range(len(texts))))
