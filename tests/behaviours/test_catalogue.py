"""Every behaviour of the catalogue: runs in whose last step it holds, and near misses in which it never does."""

import json
from dataclasses import replace
from typing import Any

import pytest
from behaving import bash, call, fail, found_in, names_in, say

from prefixguard.behaviours import BY_NAME, CATALOGUE, CONSEQUENCES, pack, start, unpack
from prefixguard.behaviours.catalogue import OF_SIGNALS
from prefixguard.behaviours.spending import spend
from prefixguard.stepview import CUT_MARK, Signals, StepRecord

Run = list[StepRecord]
LONG = "The parcel left the warehouse on Monday and will arrive in two days. " * 8
POLL = '{"job":"j-81"}'
TRACE = "FAILED tests/test_a.py::test_sum - assert 3 == 4\n1 failed, 8 passed"
#: Failures that name no error, and failures that do.
SILENT = (
    "<returncode>1</returncode>\n<output>\n</output>",
    "exit code: 1",
    "Exit status 1\n(no output)",
    '{"returncode": 1, "stdout": "", "stderr": ""}',
    "[exited with code 2]",
    " \n",
)
TOLD = ("<returncode>2</returncode>\n<output>\nno such folder</output>", "exit code: 1\nno such folder", "Error")
OTHER = "FAILED tests/test_b.py::test_mean - assert 3 == 4\n1 failed, 8 passed"


def pages(n: int) -> Run:
    return [call("list_orders", f'{{"page":{i}}}', f"orders {i}0 to {i}9") for i in range(n)]


def chat(n: int) -> Run:
    return [say(f"This is what I found for part {i}.", f"And what about part {i}?") for i in range(n)]


def took(*steps: dict[str, float]) -> Run:
    """Pages, one a step, which took so much."""
    return [replace(one, signals=Signals(**figures)) for one, figures in zip(pages(len(steps)), steps, strict=True)]


#: Name: runs in whose last step it holds; runs in which it holds nowhere.
CASES: dict[str, tuple[list[Run], list[Run]]] = {
    "same_call_same_result": (
        [
            [call("get_order", '{"id":1}', "open")] * 2,
            [
                call("get_order", '{"id":1}', "open"),
                call("get_user", '{"id":2}', "Ann"),
                call("get_order", '{"id":1}', "open"),
            ],
            [call("status", POLL, "pending"), call("sleep", '{"s":60}', "")] * 19 + [call("status", POLL, "pending")],
            [fail("refund", '{"id":1}')] * 25,
            [call("", "", "a b c", action="ls -la")] * 2,
        ],
        [
            [call("status", POLL, f"{i} % done") for i in range(40)],
            [call("status", POLL, "pending"), call("sleep", '{"s":60}', "")] * 19,
            pages(40),
            [
                call("read", '{"f":"a"}', "x = 1"),
                call("edit", '{"f":"a","x":2}', "ok"),
                call("read", '{"f":"a"}', "x = 1"),
            ],
            [
                call("get_order", '{"id":1}', "open", observation="Look!"),
                call("get_order", '{"id":1}', "open", observation="Again!"),
            ],
            [step for i in range(9) for step in (call("type", f'"row {i}"', "ok"), call("click", '"Save"', "Saved."))],
            [call("click", '"next"', "", "unknown")] * 5,
            [call("", "", "a b c", action=f"ls dir{i}") for i in range(5)],
        ],
    ),
    "same_call_other_result": (
        [[call("status", POLL, "1 %"), call("status", POLL, "2 %")]],
        [[call("status", POLL, "1 %")] * 2, pages(5)],
    ),
    "alternating_calls": (
        [[call("open", '"a"', "A"), call("open", '"b"', "B")] * 2],
        [
            [call("open", '"a"', "A"), call("open", '"b"', "B"), call("open", '"a"', "A")],
            [step for i in range(9) for step in (call("open", '"a"', f"A{i}"), call("open", '"b"', f"B{i}"))],
            [call("open", '"a"', "A")] * 8,
            [step for i in range(9) for step in (call("sleep", "5", ""), call("status", POLL, f"{i}"))],
        ],
    ),
    "same_message": (
        [[say("Which order do you mean?"), say("Which order do you mean?", "The last one.")]],
        [[say("Yes."), say("Yes.", "Is it red?")], chat(4)],
    ),
    "messages_in_a_row": (
        [[say("Let me look at that."), say("I am on it right now."), say("One moment please.")]],
        [
            chat(6),
            [say("a first word", agent="A"), say("a second word", agent="B"), say("a third word", agent="A")] * 3,
        ],
    ),
    "no_call": ([chat(5)], [[*chat(4), call("get_order"), *chat(4)]]),
    "call_failed": ([[fail("get_order")]], [[call("get_order")]]),
    "errors_in_a_row": (
        [[fail("a"), fail("b"), fail("c")], [fail("a"), fail("b"), call("think", "hm", ""), fail("c")]],
        [[fail("a"), fail("b"), call("c"), fail("d"), fail("e")]],
    ),
    "same_error_again": (
        [
            [
                fail("pay", '{"card":"a"}', "Error 42: no such card"),
                fail("pay", '{"card":"b"}', "Error 43: no such card"),
            ],
            *([fail("bash", "ls a", told), fail("bash", "ls b", told)] for told in TOLD),
            [s for i in range(2) for s in (call("edit_file", f"{i}"), fail("bash", "make", "no such package"))],
        ],
        [
            [fail("pay", '{"card":"a"}', "Error: no such card"), fail("pay", '{"card":"b"}', "Error: no money left")],
            [fail("pay", '{"card":"a"}', "Error: no such card")] * 3,
            [fail("pay", '{"card":"a"}', "")] * 2 + [fail("pay", '{"card":"b"}', "")],
            *([fail("bash", "grep a .", silent), fail("bash", "grep b .", silent)] for silent in SILENT),
            [call("edit_file"), *[fail("bash", "make", "no such package")] * 3],
            [s for i in range(2) for s in (call("edit_file", f"{i}"), fail("click", '"Build"', "no such button"))],
        ],
    ),
    "prose_as_command": (
        [
            [bash("The file has two lines.", "bash: line 1: The: command not found", "error")],
            [bash("I'll look\nfor more files", "/bin/sh: 1: I: not found", "unknown")],
            [fail("python", "Let me count them first.", "SyntaxError: invalid syntax")],
            [fail("execute_sql", '{"query":"The answer is three."}', 'near "The": syntax error')],
            [fail("bash", '{"command":"Die Datei hat zwei Zeilen."}', "Die: command not found")],
        ],
        [
            [bash("foo --bar", "bash: line 1: foo: command not found", "error")],
            [bash("Rscript make table now", "made")],
            [fail("execute_sql", "SELECT name FROM users", "no such table: users")],
            [fail("execute_sql", "Show tables from shop", "denied")],
            [fail("search", "The file has two lines.", "nothing found")],
            [bash("# The file has two lines\nfoo", "foo: command not found", "error")],
        ],
    ),
    "missing_tool": (
        [
            [fail("refund", "{}", "Error: refund is not a valid tool, try one of [pay, ship].")],
            [fail("refund", "{}", "Unknown tool: refund")],
            [bash("foo --bar", "bash: line 1: foo: command not found", "error")],
            [fail("x", "{}", '{"code":-32601,"message":"Method not found"}')],
            [fail("tools/call", '{"name":"x"}', '{"error": {"code": -32602, "message": "Unknown tool: x"}}')],
            [fail("buche", "{}", "Fehler: Ein Werkzeug namens buche gibt es nicht.")],
            [fail("查询", "{}", "错误：没有名为查询的工具。")],
        ],
        [
            [fail("pay", "{}", "Error: payment method not found")],
            [fail("get_tool", '{"id":"drill"}', "Error: tool drill not found in the shed")],
            [
                fail(
                    "tools/call",
                    '{"name":"x"}',
                    '{"error": {"code": -32602, "message": "Invalid input of x"}}',
                )
            ],
            [bash("cat foo", "cat: foo: No such file or directory", "error")],
        ],
    ),
    "reply_refused": (
        [[bash("ls"), call("", "", "Please give exactly one action.", "error", action="I think so.")]],
        [[say("I think so.")], [fail("pay")]],
    ),
    "growing_retry": (
        [[fail("run_sql", "a" * 10), fail("run_sql", "a" * 20), fail("run_sql", "a" * 40)]],
        [
            [fail("run_sql", "a" * 40), fail("run_sql", "a" * 20), fail("run_sql", "a" * 10)],
            [call("run_sql", "a" * 10), call("run_sql", "a" * 20), call("run_sql", "a" * 40)],
            [fail("get", '{"wait":1}'), fail("get", '{"wait":2}'), fail("get", '{"wait":4}')],
        ],
    ),
    "failed_tool_again": ([[fail("pay"), call("pay", "{2}")]], [[fail("pay"), call("ship")]]),
    "recovered": ([[fail("pay"), call("pay", "{2}")]], [[call("pay"), call("ship")]]),
    "call_as_text": (
        [
            [call("get_order"), say("order = get_order(order_id='#W1')")],
            [say('<tool_call>{"name": "get_order"}</tool_call>')],
            [say("I need it.\nAction: get_order\nAction Input: 7")],
            [call("get_order"), say('```json\n{"name": "get_order", "arguments": {"id": 7}}\n```')],
            [say('cancel_order({"id": 7})')],
            [say('I need your order.\n{"name": "get_order", "arguments": {"id": 7}}')],
            [say('```json\n[{"name": "get_order", "parameters": {"id": 7}}]\n```')],
            [say('{"action": "get_order", "action_input": "7"}\n{"action": "get_user", "action_input": "8"}')],
            [call("respond", json.dumps({"content": '{"name": "get_order", "arguments": {"id": 7}}'}))],
            [call("send_message", json.dumps({"to": "user", "text": "I look.\n<tool_call>get_order</tool_call>"}))],
            [call("final_answer", 'cancel_order({"id": 7})')],
            [say('I look.\n<function-call>\n{"name": "get_order", "arguments": {"id": 7}}\n</function-call>')],
            [say('I look: <Tool-Use>[{"tool": "get_order", "args": {}}]</Tool-Use> One moment, please.')],
            [say('<xml> {"name": "get_order", "arguments": {"id": 7}} </xml>')],
            [call("get_order"), call("final_answer", json.dumps({"answer": ["order = get_order(order_id='#W1')"]}))],
        ],
        [
            [call("get_order"), say("I looked it up with `get_order(order_id)` and found it.")],
            [call("get_order"), say("Use this function:\n```python\nprint(total)\n```")],
            [call("get_order"), say("The order (a red shirt) is on its way.")],
            [say('Our shop offers cancel_order({"id": 7}) to developers.')],
            [say('A tool is {"name": "get_order", "arguments": {"id": "a number"}}, for example.')],
            [say('{"name": "get_order", "arguments": {"id": 7}}\nis how others call it.')],
            [say('Here it is:\n{"name": "Ann", "age": 40}')],
            [say("A <function-call> holds what a <tool> is called with: {id}.")],
            [say('<p>Your <b>call</b> is booked.</p> <note>{"name": "Ann", "age": 40}</note>')],
            [say('A <toolbox>{"name": "hammer", "price": 4}</toolbox> is in stock.')],
            [say('<callback>Monday</callback> for {"name": "Ann"}')],
            [say('`<function-call>{"name": "get_order", "args": {}}</function-call>` is how others do it.')],
            [say('Others write <xml>{"name": "get_order", "arguments": {"id": 7}}</xml> here.')],
            [say('Here it is:\n{"name": "Ann Lee", "arguments": {"age": 40}}')],
            [call("send_message", json.dumps({"to": "user", "text": "Your order is on its way."}))],
            [call("create_ticket", json.dumps({"text": '{"name": "get_order", "arguments": {"id": 7}}'}))],
        ],
    ),
    "claim_over_failure": (
        [
            [fail("cancel_order"), say("Your order has been cancelled.")],
            [fail("cancel_order"), say("Ihre Bestellung wurde erfolgreich storniert.")],
            [fail("cancel_order"), say("Su pedido ha sido cancelado.")],
            [fail("cancel_order"), say("您的订单已取消。")],
            [fail("write_file"), call("finish", '"All tests were fixed."')],
        ],
        [
            [fail("cancel_order"), say("I could not cancel your order.")],
            [fail("cancel_order"), say("Ihre Bestellung wurde leider nicht storniert.")],
            [fail("cancel_order"), call("cancel_order", "{2}"), say("Your order has been cancelled.")],
            [fail("cancel_order"), say("Which order is it?")],
            [call("cancel_order"), say("Your order has been cancelled.")],
            [fail("get_order"), call("cancel_order"), say("Your order has been cancelled.")],
            [fail("cancel_order"), call("transfer_to_human_agents"), say("You have been transferred.")],
            [bash("python a.py", "Traceback", "error"), bash("pytest", "9 passed"), say("The bug is fixed.")],
        ],
    ),
    "answer_without_call": (
        [[say(LONG)], [say("I have completed the report.")]],
        [[call("get_order"), say(LONG)], [say("Hello! How can I help you?")], [say(LONG + "Which one is it?")]],
    ),
    "result_ignored": (
        [[bash("pytest", TRACE, "error"), bash("submit")], [fail("save"), call("finish")]],
        [[bash("pytest", TRACE, "error"), bash("pytest", "9 passed"), bash("submit")], [call("save"), call("finish")]],
    ),
    "identifier_from_nowhere": (
        [
            [call("get_order", '{"id":"W71234"}')],
            [say("Hi!", "My order is W71234"), call("get_order", '{"id":"W71235"}')],
            [call("get_user", '{"id":"90812345"}')],
            [call("find_user", '{"user_id":"u908123"}')],
            [call("get_cases", "{}", "CS-55120, CS-55133"), call("close_case", '{"case":"CS-55102"}')],
            [call("get_user", '{"user_id":90812345}')],
        ],
        [
            [call("get_order", '{"id":"W71234"}', observation="My order is #W71234.")],
            [call("get_user", "{}", "555-123-4567"), call("call_number", '{"n":"5551234567"}')],
            [call("get_user", "{}", "order 71234"), call("get_order", '{"id":"order_71234"}')],
            [call("search", '{"q":"iphone15pro 256gb"}')],
            [call("navigate", '"https://example.org/items/908123"')],
            [call("get_orders", '{"limit":100,"year":"2024"}')],
            [call("upload_part", f'{{"offset":{i * 10485760},"part":{i}}}') for i in range(9)],
            [call("get_cases", "{}", "CS-55120"), call("close_case", '{"case":"CS-55120"}')],
            [bash("sed -n 71234,71299p a.py")],
            [call("get_orders", "{}", f"W1{CUT_MARK}W9"), call("get_order", '{"id":"W71234"}')],
        ],
    ),
    "write_after_failed_read": (
        [
            [fail("get_order"), call("update_order")],
            [call("get_order", "{}", "[]"), call("think", "hm", ""), call("update_order")],
        ],
        [
            [fail("get_order"), call("get_order", "{2}", "open"), call("update_order")],
            [bash("cat a.py", "cat: a.py: No such file or directory", "error"), bash("echo 1 > a.py")],
            [fail("get_order"), say("Which is it?"), call("update_order", observation="It is 7.")],
        ],
    ),
    "empty_result_again": (
        [[call("search", '"a"', "[]"), call("search", '"b"', '{"items": []}')], [bash("grep a ."), bash("grep b .")]],
        [
            [call("search", '"a"', "[]"), call("search", '"b"', "b1"), call("search", '"c"', "[]")],
            [bash("mkdir a"), bash("touch a/b"), bash("rm c")],
        ],
    ),
    "result_seen": (
        [[call("get_a", "{}", "the very same long result"), call("get_b", "{}", "the very same long result")]],
        [[call("get_a", "{}", "ok"), call("get_b", "{}", "ok")]],
    ),
    "long_result": ([[call("cat", "{}", "x " * 1000)]], [[call("cat", "{}", "x " * 100)]]),
    "edits_without_test": (
        [
            [call("edit_file", f'"{i}"', "ok") for i in range(3)],
            [bash("sed -i s/a/b/ x.py"), bash("submit")],
            [bash("sed -i s/a/b/ x.py && git diff && submit")],
            [bash("for f in a b; do sed -i s/a/b/ $f; done")] * 3,
            [bash("# python a.py\nsed -i s/a/b/ x.py")] * 3,
            [bash("cat a.py b.py"), *[bash(f"cat > {f} <<'EOF'\nx\nEOF\nls") for f in ("a.py", "b.py", "a.py")]],
            [bash("sed -i s/a/b/ x.py"), bash("pytest", "pytest: command not found", "error"), bash("submit")],
            [bash(f"echo 1 > src/new{i}.py") for i in range(3)],
            [call("edit_file", f'{{"path": "new{i}.py"}}', "ok") for i in range(3)],
            [bash("echo 1 > new.py")] * 4,
        ],
        [
            [bash(f"sed -i s/a/b/ x.py && cd docs && {run}") for run in ("make html", "./a.sh", "python a.py")] * 2,
            [bash("cat > x.py <<'EOF'\n" + "y = 1\n" * 400 + "EOF\npython x.py")] * 4,
            [bash("cd out; rm -rf _build; sphinx-build . _build")] * 4,
            [*[bash(f"sed -i s/a/b/ x.py && python {i}.py", "Traceback", "error") for i in range(4)], bash("submit")],
            [*[s for i in range(4) for s in (bash("sed -i s/a/b/ x.py"), fail("bash", f"python {i}.py"))]],
            [bash("mkdir a"), bash("touch a/b"), bash("rm c"), bash("git add -A"), bash("submit")],
            [bash("mkdir -p try/it"), *[bash(f"cat a > try/it/{f}") for f in ("a", "b", "c", "d")], bash("submit")],
            [bash("cat a > x.py"), bash("mkdir out; cd out; cat b > x.py"), bash("cd out && echo 1 > b")],
            [bash(f"cat > try{i}.py <<EOF\nx\nEOF") for i in range(4)],
            [bash(f"cat > /{folder}/try{i}.py <<EOF\nx\nEOF") for i in range(4) for folder in ("app", "tmp/a")],
            [bash("echo 1 > /tmp/a.txt")] * 4,
            [call("str_replace_editor", f'{{"command":"create","path":"/app/try{i}.py"}}') for i in range(4)],
            [call("edit_file", f'"{i // 2}"') if i % 2 == 0 else bash("pytest", f"{i} passed") for i in range(12)],
            [bash("sed -i s/a/b/ x.py"), bash("python -m pytest"), bash("submit")],
            [bash("sed -i s/a/b/ x.py"), bash("git checkout -f"), bash("submit")],
        ],
    ),
    "same_tests_fail": (
        [
            [bash("pytest", TRACE, "error"), bash("sed -i s/a/b/ x.py"), bash("pytest", TRACE, "error")],
            [bash("pytest -q", TRACE, "error"), bash("pytest -x", "....\n" + TRACE, "error")],
        ],
        [
            [bash("pytest", TRACE, "error"), bash("sed -i s/a/b/ x.py"), bash("pytest", OTHER, "error")],
            [bash("pytest", TRACE, "error"), bash("pytest", "9 passed"), bash("pytest", TRACE, "error")],
        ],
    ),
    "tests_pass": ([[bash("pytest", "9 passed in 1.2s")]], [[bash("pytest", TRACE)], [bash("python a.py", "passed")]]),
    "new_tool": ([[call("a"), call("b")], [bash("ls"), bash("cat a")]], [[say("Hello there, this is me.")]]),
    "same_tool_many": (
        [pages(4), [*pages(2), call("think", '{"thought":"More."}'), say("So far so good."), *pages(2)]],
        [[*pages(3), call("pay"), *pages(3)]],
    ),
    "near_step_cap": ([], [[call(f"t{i}") for i in range(60)]]),
    "runaway_cost": (
        [
            took(*[{"tokens_in": 2000.0, "tokens_out": 50.0}] * 5, *[{"tokens_in": 20_000.0}] * 3),
            took(*[{"dollars": 0.002}] * 6, {}, *[{"dollars": 0.02}] * 3),
        ],
        [
            took(*[{"tokens_in": 2000.0}] * 5, *[{"tokens_in": 20_000.0}] * 2),
            took(*[{"tokens_in": 1000.0 * n, "tokens_out": 90.0} for n in range(1, 80)]),
            took(*[{"tokens_in": 20.0}] * 5, *[{"tokens_in": 400.0}] * 9),
            took(*[{"dollars": 0.0}] * 9, *[{"dollars": 0.02}] * 9),
            took(*[{"tokens_in": 5.0, "dollars": 0.5}] * 5, *[{"dollars": 50.0}] * 9),
            pages(40),
        ],
    ),
    "slowing_steps": (
        [
            took(*[{"seconds": 2.0}] * 5, *[{"seconds": 30.0}] * 3),
            took(*[{"seconds": 20.0}] * 9, *[{"seconds": 200.0}] * 4),
        ],
        [
            took(*[{"seconds": 2.0}] * 5, *[{"seconds": 30.0}, {"seconds": 2.0}] * 9),
            took(*[{"seconds": 0.1}] * 9, *[{"seconds": 9.0}] * 9),
            took(*[{"seconds": 0.5 * n} for n in range(1, 80)]),
            took(*[{"seconds": 2.0}] * 4, *[{"seconds": 30.0}] * 3),
            took(*[{}] * 40),
        ],
    ),
    "reads": (
        [[call("get_order")], [bash("ls -la")], [bash("cd a && sed -n 1,9p b.py")]],
        [[call("pay")], [bash("rm a")]],
    ),
    "searches": ([[call("search_products")], [bash("grep -rn x . | head")]], [[call("get_order")], [bash("cat a")]]),
    "writes": (
        [
            [call("cancelOrder")],
            [bash("pip install x")],
            [call("execute", "UPDATE a SET b = 1")],
            [call("click", "Buy Now")],
            [call("browser_click", '{"element":"Delete account button","ref":"e12"}')],
        ],
        [[bash("ls")], [call("click", "Back to Search")], [call("click", "buy one, get one free: red mug")]],
    ),
    "edits": (
        [
            [bash("cat <<'EOF' > a.py\nx\nEOF")],
            [call("str_replace_editor", '{"command":"create","path":"a"}')],
            [bash("rm a")],
        ],
        [
            [call("str_replace_editor", '{"command":"view","path":"a"}')],
            [bash("ls 2>/dev/null")],
            [bash('python -c "1 > 0"')],
        ],
    ),
    "tests": (
        [
            [bash("cd /x && python -m pytest -q")],
            [bash("./gradlew test")],
            [call("run_tests")],
            [bash("python test_a.py")],
        ],
        [[bash("python a.py")], [bash("cat tests/test_a.py")]],
    ),
    "acts": (
        [[call("frobnicate")], [call("click", '"Red"')], [call("press", "Delete")], [bash("python a.py")]],
        [[call("get_order")]],
    ),
    "submits": ([[call("finish")], [bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")]], [[call("submit_form")]]),
    "waits": ([[call("wait")], [bash("sleep 30")]], [[bash("sleep 30; rm a")]]),
    "thinks": ([[call("think")]], [[say("I think that it works.")]]),
    "speaks": ([[say("Good morning to you.")], [call("send_message_to_user")]], [[call("think")]]),
    "escalates": (
        [[call("transfer_to_human_agents")]],
        [[call("transfer_funds")], [call("transfer_to_billing_agent")]],
    ),
}


def test_every_behaviour_has_its_cases() -> None:
    assert set(CASES) == set(BY_NAME)
    assert [behaviour.name for behaviour in CATALOGUE[-len(CONSEQUENCES) :]] == list(CONSEQUENCES)


@pytest.mark.parametrize(("name", "run"), [(name, run) for name, (runs, _) in CASES.items() for run in runs])
def test_it_fires(name: str, run: Run) -> None:
    assert name in names_in(run)[-1]


@pytest.mark.parametrize(("name", "run"), [(name, run) for name, (_, runs) in CASES.items() for run in runs])
def test_a_near_miss_is_none(name: str, run: Run) -> None:
    assert not [step for step, names in enumerate(names_in(run), 1) if name in names]


def test_the_limit_of_steps_is_known_or_absent() -> None:
    run = [call(f"t{i}") for i in range(60)]
    fired = [step for step, names in enumerate(names_in(run, cap=60), 1) if "near_step_cap" in names]
    assert fired == list(range(54, 61))
    assert BY_NAME["near_step_cap"].kind == "artefact"


def test_a_tool_that_was_not_offered() -> None:
    run = [call("get_order"), call("refund")]
    assert ["missing_tool" in names for names in names_in(run, tools=["get_order", "pay"])] == [False, True]
    assert "missing_tool" not in names_in(run, tools=[f"t{i}" for i in range(65)])[1], "too many are as good as none"
    assert "call_as_text" in names_in([say("pay(amount=3)")], tools=["pay"])[0]


@pytest.mark.parametrize(
    ("name", "run", "since", "count", "evidence"),
    [
        ("same_call_same_result", [say("I look it up."), *[call("get", '{"id":1}', "open")] * 4], 2, 4, 'get {"id":1}'),
        ("alternating_calls", [call("think", "ok", ""), *[call("a", "1"), call("b", "2")] * 3], 2, 6, "b 2"),
        ("errors_in_a_row", [call("a"), *[fail(f"t{i}", "{}", "down") for i in range(4)]], 2, 4, "down"),
        ("same_tests_fail", [bash("pytest", TRACE, "error"), bash("rm a"), bash("pytest", TRACE, "error")], 1, 2,
         "tests/test_a.py::test_sum"),
        ("claim_over_failure", [call("a"), fail("cancel_order"), say("It has been cancelled.")], 2, 1, "cancel_order"),
        ("identifier_from_nowhere", [call("get_order", '{"id":"w71234"}')], 1, 1, "w71234"),
        ("same_message", [say("Which order is it?"), call("a"), say("Which order is it?")], 1, 2, "Which order is it?"),
    ],
)  # fmt: skip
def test_evidence(name: str, run: Run, since: int, count: int, evidence: str) -> None:
    (finding,) = [finding for finding in found_in(run)[-1] if finding.behaviour.name == name]
    assert (finding.since, finding.count, finding.evidence) == (since, count, evidence)


def test_evidence_is_harmless_and_short() -> None:
    run = [call("get\x1b[31m", "\u202e" + "x" * 500, "y\n" * 2000)] * 2
    for finding in found_in(run)[-1]:
        assert len(finding.evidence) <= 100 and finding.evidence.isprintable()


def test_each_step_is_one_thing() -> None:
    everything: list[Any] = [run for fires, misses in CASES.values() for run in (*fires, *misses)]
    for run in everything:
        assert all(len(names & set(CONSEQUENCES)) == 1 for names in names_in(run))


@pytest.mark.parametrize("behaviour", CATALOGUE, ids=lambda behaviour: behaviour.name)
def test_words_are_short_sentences(behaviour: Any) -> None:
    for text in filter(None, (behaviour.sentence, behaviour.nudge, behaviour.advice)):
        assert text.endswith(".") and len(text) <= 140 and text[0].isupper()
    assert behaviour.actionable == bool(behaviour.advice)
    if behaviour.kind == "fault":
        assert behaviour.actionable and behaviour.watch
    elif behaviour.watch or behaviour.alarm:
        pytest.fail("only a fault can alarm")


def test_what_steps_take_raises_no_level_and_changes_no_other_behaviour() -> None:
    slow = took(*[{"seconds": 2.0, "tokens_in": 2000.0}] * 5, *[{"seconds": 300.0, "tokens_in": 90_000.0}] * 4)
    plain = names_in([replace(one, signals=None) for one in slow])
    assert [names - OF_SIGNALS for names in names_in(slow)] == plain and names_in(slow)[-1] > OF_SIGNALS
    assert not any(BY_NAME[name].watch or BY_NAME[name].alarm for name in OF_SIGNALS)
    evidence = {one.behaviour.name: (one.since, one.count, one.evidence) for one in found_in(slow)[-1]}
    assert evidence["slowing_steps"] == (6, 4, "300 s, usually 15.9 s")
    assert evidence["runaway_cost"][:2] == (6, 4) and evidence["runaway_cost"][2].startswith("90,000 tokens, usually")


def test_sums_that_are_full_stop() -> None:
    tracker = start()
    tracker.time_n, tracker.time_sum = 1 << 20, (1 << 32) - 2
    spend(tracker, took({"seconds": 900.0})[0])
    assert (tracker.time_n, tracker.time_sum) == (1 << 20, (1 << 32) - 2)
    assert unpack(pack(start())).time_sum == 0
