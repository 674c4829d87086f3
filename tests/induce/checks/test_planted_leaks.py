"""Every leak that importers of agent traces were seen to make is planted here, and found."""

from __future__ import annotations

import json
import random

import pytest

#: A rule for every step of a list of steps, as importers write them.
STEPS = {
    "events": "$.steps[*]",
    "rules": [
        {
            "emit": "step",
            "observation": {"text": "@.context"},
            "action": {"text": "@.action"},
            "tool": "@.tool",
            "result": {"text": "@.result"},
        }
    ],
}


def kinds(report, severity="error"):
    return {finding.check for finding in report.findings if finding.severity == severity}


def stepped(runs):
    """The chats as lists of steps."""
    out = []
    for run in runs:
        steps, context = [], run["messages"][1]["content"]
        for call, result in zip(run["messages"][2:-1:2], run["messages"][3:-1:2], strict=True):
            steps.append({"context": context, "action": call["content"], "tool": call["tool_calls"][0]["name"],
                          "result": result["content"], "status": "completed"})  # fmt: skip
            context = ""
        out.append({key: value for key, value in run.items() if key != "messages"} | {"steps": steps})
    return out


def telling(runs, good=" zorp", bad=" blip"):
    """The chats, whose last result says how the run ends."""
    for run in runs:
        run["messages"].pop()
        run["messages"][-1]["content"] += good if run["reward"] else bad
    return runs


def test_an_honest_adapter_has_no_leak(spec, check, make_chats):
    report = check(spec, make_chats(80))
    assert report.ok, report.findings
    assert not report.of("leaks")


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_no_leak(seed, spec, check, make_chats):
    runs = make_chats(60, seed=seed)
    chance = random.Random(seed)
    for run in runs:
        run["reward"] = float(chance.random() < 0.4)
    assert not check(spec, runs).of("leaks")


@pytest.mark.parametrize("n", [6, 40])
def test_a_verdict_as_the_status_of_the_last_step(n, spec, check, make_chats):
    """tau2-bench, TerminalBench, SkillsBench as imported by the reference code."""
    runs = stepped(make_chats(n))
    for run in runs:
        run["steps"][-1]["status"] = "success" if run["reward"] else "failure"
    by_map = {"map": {"success": "ok", "completed": "ok", "failure": "error"}, "of": "@.status"}
    status = [{"when": {"value": by_map, "is": "error"}, "is": "error"}, {"is": "ok"}]
    report = check(spec | STEPS | {"status": status}, runs)
    assert "leaks.last_status" in kinds(report)
    assert ("leaks.last_step" in kinds(report)) == (n == 40)
    assert not report.ok
    assert report.score() == 0


def test_a_status_that_is_the_outcome_at_every_step(spec, check, make_chats):
    status = [{"when": {"$.reward": {"ge": 1}}, "is": "ok"}, {"is": "error"}]
    waived = [{"path": "$.reward", "reason": "we were careless"}]
    report = check(spec | {"status": status, "waived": waived}, make_chats(60))
    assert {"leaks.token", "stream"} <= kinds(report)


@pytest.mark.parametrize(
    "words, leaks", [(True, {"leaks.whole_rest", "leaks.countdown"}), (False, {"leaks.countdown"})]
)
def test_pages_that_hold_all_later_pages(words, leaks, spec, check, make_chats):
    """WebArena: an unclosed element, so that the text of a page goes on to the end of the file. words: of the agent."""
    runs = stepped(make_chats(12, steps=(6, 9)))
    for run in runs:
        pages = [f"{step['result']}\nACTION: {step['action']}" if words else step["result"] for step in run["steps"]]
        for i, step in enumerate(run["steps"]):
            step["result"] = "\n".join(pages[i:])
    assert leaks <= kinds(check(spec | STEPS, runs))


@pytest.mark.parametrize(
    "path",
    [
        "user_scenario", "reward_info", "is_resolved", "parser_results", "final_metrics", "info.exit_status", "score",
        "info.submission", "termination_reason", "review", "scores", "mistake_step", "info.task.expected_actions",
        "ground_truth", "reference_answer", "duration", "agent_cost", "evaluation_criteria.actions", "num_turns",
        "verifier_result.rewards.reward", "info.resolved", "summary.max_reward", "finalStatus", "total_cost",
        "output.faulty_agents", "mast_annotation", "unsafe_source", "gold_answer",
    ],
)  # fmt: skip
def test_names_of_what_only_the_end_or_the_harness_knows(path, spec, check, make_chats):
    runs = make_chats(4)
    for run in runs:
        inner = "some text"
        for name in reversed(path.split(".")):
            inner = {name: inner}
        run.update(inner)
    spec["run"]["preamble"] = {"text": f"$.{path}"}
    report = check(spec, runs)
    assert "leaks.name" in kinds(report)
    assert f"$.{path}" in {finding.where for finding in report.of("leaks.name")}


@pytest.mark.parametrize(("of_step", "severity"), [(True, "warning"), (False, "error")])
def test_how_a_step_went_is_not_how_the_run_ends(of_step, severity, spec, check, make_chats):
    runs = make_chats()
    for run in runs:
        for k, message in enumerate(run["messages"]):
            told = ("found", "empty", "late")[k % 3] if of_step else "won" if run["reward"] else "lost"
            message["outcome"] = {"data": f"{told} {k if of_step else ''}"}
    spec["rules"][-1]["result"] = {"text": {"join": ["@.content", "@.outcome.data"]}}
    assert {finding.severity for finding in check(spec, runs).of("leaks.name")} == {severity}


@pytest.mark.parametrize("path", ["model", "trial_name", "trial_id", "run_id", "model_name"])
def test_who_ran_it_is_no_part_of_a_record(path, spec, check, make_chats):
    """TerminalBench and tau2 as imported by the reference code."""
    runs = make_chats(4)
    for run in runs:
        run[path] = "gpt-4.1"
    spec["run"]["preamble"] = {"join": [f"$.{path}", "$.messages[1].content"], "sep": " "}
    assert "leaks.identity" in kinds(check(spec, runs))


def test_names_that_are_visible_are_not_accused(spec, check, make_chats):
    runs = make_chats(4)
    for run in runs:
        run |= {"question": "What?", "policy": "Be kind.", "problem_statement": "It is broken."}
    for path in ("question", "policy", "problem_statement"):
        spec["run"]["preamble"] = {"text": f"$.{path}"}
        assert not check(spec, runs).of("leaks")


def test_the_whole_of_an_object_that_holds_the_reward(spec, check, make_chats):
    runs = make_chats(4)
    for run in runs:
        run["info"] = {"domain": "shop", "reward_info": {"reward": run["reward"]}}
    spec["run"]["preamble"] = {"text": "$.info"}
    assert "leaks.name" in kinds(check(spec, runs))


def test_what_the_simulated_user_was_told(spec, check, make_chats):
    """tau-bench: info.task.instruction, beside the expected actions."""
    runs = make_chats(10)
    for i, run in enumerate(runs):
        instruction = f"You are customer number {i} and want {run['messages'][3]['content'][::-1]} but will not say so"
        run["info"] = {"task": {"instruction": instruction, "actions": [{"name": "find", "kwargs": {"q": f"x{i}"}}]}}
        run["info"]["reward_info"] = {"reward": run["reward"]}
    spec["run"]["preamble"] = {"text": "$.info.task.instruction"}
    assert "leaks.neighbours" in kinds(check(spec, runs))
    spec["run"]["preamble"] = {"text": "$.info.task.actions"}
    assert "leaks.neighbours" in kinds(check(spec, runs))
    spec["run"]["preamble"] = {"text": "$.info.task.instruction"}
    spec |= {"hidden": ["$.info"], "waived": [{"path": "$.info.task.instruction", "reason": "why not"}]}
    report = check(spec, runs)
    assert {"leaks.hidden", "stream"} <= kinds(report)
    assert any(one.what.startswith("waived (why not)") for one in report.of("leaks.neighbours"))


def test_a_task_beside_the_verdict_that_the_agent_was_told(spec, check, make_chats):
    runs = make_chats(10)
    for run in runs:
        run["results"] = {"instruction": run["messages"][1]["content"], "is_resolved": bool(run["reward"])}
    spec["run"]["preamble"] = {"text": "$.results.instruction"}
    spec["hidden"].append("$.results.is_resolved")
    assert not check(spec, runs).of("leaks")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("Answer is CORRECT", "Answer is INCORRECT"),
        ("Your score (min 0.0, max 1.0): 1.0", "Your score (min 0.0, max 1.0): 0.25"),
        ("[Result] (PASS) task 3", "[Result] (FAIL) task 3"),
        ("final reward: 1.0", "final reward: 0.0"),
        ("Correct answer: birch", "Correct answer: cedar"),
        ("Verdict: pass", "Verdict: fail"),
    ],
)
@pytest.mark.parametrize("n", [4, 60])
def test_a_verdict_in_words(good, bad, n, spec, check, make_chats):
    runs = telling(make_chats(n), f"\n{good}", f"\n{bad}")
    assert kinds(check(spec, runs)) & {"leaks.verdict", "leaks.last_step"}


def test_a_weak_word_must_tell_the_outcome(spec, check, make_chats):
    """###STOP### of a simulated user is said in every run that ends well or badly; the agent sees it too."""
    runs = make_chats(60)
    for run in runs:
        run["messages"] += [{"role": "user", "content": "###STOP###"}, {"role": "assistant", "content": "Bye."}]
    report = check(spec, runs)
    assert report.ok
    assert {one.severity for one in report.of("leaks.verdict")} == {"note"}


def test_a_cut_that_leaves_the_score(spec, check, make_chats):
    runs = telling(make_chats(20), "\nmark=1", "\nmark=0")
    read = {"re": "mark=([01])", "of": "$.messages[-1].content"}
    spec["run"]["outcome"] = {"of": read, "success": "1", "failure": "0"}
    content = {"cut": "score=[01]", "of": "@.content"}
    call = {"emit": "call", "each": "@.tool_calls[*]", "call_id": "@.id", "tool": "@.name"}
    spec["rules"] = [
        {"when": {"@.role": "tool"}, "emit": "result", "call_id": "@.call_id", "result": content},
        {"when": {"@.role": "assistant"}, **call},
    ]
    assert "leaks.outcome" in kinds(check(spec, runs))
    content["cut"] = "mark=[01]"
    assert not check(spec, runs).of("leaks")


@pytest.mark.parametrize(
    ("says", "is_leak"),
    [
        ("Step {i} of {n}: {words}", True),
        ("({left} remaining) {words}", True),
        ("Step {i} of 30: {words}", False),
    ],
)
def test_the_length_of_the_run_and_what_remains(says, is_leak, spec, check, make_chats):
    runs = stepped(make_chats(12))
    for run in runs:
        n = len(run["steps"])
        for i, step in enumerate(run["steps"]):
            step["action"] = says.format(i=i + 1, n=n, left=n - i - 1, words=step["action"])
    assert ("leaks.run_length" in kinds(check(spec | STEPS, runs))) == is_leak


def test_an_evaluation_among_the_events(spec, check, make_chats):
    runs = make_chats(6)
    for run in runs:
        text = "the refund was not issued as the policy says" if run["reward"] else "all was done as wanted"
        run["messages"].insert(-1, {"role": "user", "name": "gen_ai.evaluation.result", "content": text})
    assert "leaks.judged_event" in kinds(check(spec, runs))
    spec["waived"] = [{"path": "@.name", "reason": "an agent is called so"}]
    (finding,) = check(spec, runs).of("leaks.judged_event")
    assert finding.severity == "note" and "an agent is called so" in finding.what


def test_a_reward_under_a_meaningless_name(spec, check, make_chats):
    """Names help; where they say nothing, the numbers do."""
    runs = make_chats(60)
    for run in runs:
        run["q7"] = 3 + run["reward"]
        run["messages"][-2]["w"] = run["reward"]
        for message in run["messages"][:-2]:
            message["w"] = 0.5
    spec["run"]["preamble"] = {"join": ["$.q7", "$.messages[1].content"], "sep": " "}
    result = {"join": ["@.w", "@.content"], "sep": " "}
    spec["rules"][-1]["result"] = result
    report = check(spec, runs)
    found = {(one.check, one.where) for one in report.findings if one.severity == "error"}
    assert {("leaks.token", "observation"), ("leaks.raw_value", "$.q7"), ("leaks.raw_value", "@.w")} <= found


def test_a_word_of_the_last_result_that_tells(spec, check, make_chats):
    runs = telling(make_chats(60))
    report = check(spec, runs)
    for kind, told in (("leaks.token", "separates"), ("leaks.last_step", "last")):
        (found,) = report.of(kind)
        assert (found.severity, found.where) == ("error", "result")
        assert found.numbers[told] > 0.95
        assert found.numbers["before"] < 0.7


def test_what_the_agent_itself_says_last_is_a_warning(spec, check, make_chats):
    runs = make_chats(60)
    for run in runs:
        run["messages"][-1]["content"] = "I could not do it." if not run["reward"] else "All is done."
    report = check(spec, runs)
    assert report.ok
    assert {(one.severity, one.where) for one in report.of("leaks.last_step")} == {("warning", "action")}


def test_a_waiver_names_what_it_waives(spec, check, make_chats):
    runs = telling(make_chats(60))
    spec["waived"] = [{"path": "status", "reason": "another"}]
    assert not check(spec, runs).ok
    spec["waived"] = [{"path": "result", "reason": "the agent sees it"}]
    report = check(spec, runs)
    assert report.ok
    assert all("waived (the agent sees it)" in one.what for one in report.of("leaks") if one.where == "result")


def test_file_names_in_the_text(spec, check, make_chats):
    runs = make_chats(20)
    for i, run in enumerate(runs):
        run["id"] = f"gpt-4o_run-{i}"
        run["messages"][1]["content"] += f" (log {run['id']})"
    (found,) = check(spec, runs).of("leaks.identifier")
    assert (found.severity, found.where) == ("error", "observation")


def test_a_harness_that_stops_at_the_first_success(spec, check, make_chats):
    """Honest, if of little use: what comes back last is good in runs that succeed, because they end there."""
    chance = random.Random(3)
    runs = make_chats(80, steps=(4, 8))
    for run in runs:
        run["messages"].pop()
        results = [message for message in run["messages"] if message["role"] == "tool"]
        for result in results:
            good = run["reward"] if result is results[-1] else chance.random() < 0.1
            result["content"] = ("rows: " if good else "Error: ") + result["content"].removeprefix("Error: ")
    report = check(spec, runs)
    assert report.ok
    assert {one.where for one in report.of("leaks.last_step")} == {"result", "status"}


def test_the_raw_view_has_its_verdict_found(spec, check, make_chats):
    runs = telling(make_chats(60))
    report = check(spec | {"view": "raw"}, runs)
    assert ("error", "action") in {(one.severity, one.where) for one in report.of("leaks.last_step")}


def test_what_should_be_hidden_and_is_not_named(spec, check, make_chats):
    runs = make_chats(4)
    for run in runs:
        run |= {"termination_reason": "stop", "info": {"reward_info": 1.0}, "domain": "shop"}
    (note,) = check(spec, runs).of("leaks.unnamed")
    assert note.severity == "note"
    assert "$.info.reward_info, $.termination_reason" in note.what
    assert not check(spec | {"hidden": ["$.info", "$.termination_reason"]}, runs).of("leaks.unnamed")


def test_an_error_flag_of_a_harness_that_stops_at_success(spec, check, make_chats):
    chance = random.Random(5)
    runs = make_chats(80, steps=(4, 8))
    for run in runs:
        run["messages"].pop()
        results = [message for message in run["messages"] if message["role"] == "tool"]
        for result in results:
            result["is_error"] = not run["reward"] if result is results[-1] else chance.random() < 0.7
            result["content"] = result["content"].removeprefix("Error: ")
    spec["rules"][-1]["result"] = {"join": ["@.is_error", "@.content"], "sep": " "}
    report = check(spec, runs)
    assert ("warning", "@.is_error") in {(one.severity, one.where) for one in report.of("leaks.raw_value")}


@pytest.mark.parametrize(("role", "severity"), [("assistant", "warning"), ("user", "error")])
def test_an_agent_that_is_called_verifier(role, severity, spec, check, make_chats):
    """As one of a team it is part of the run; what is written behind the run is not, whoever is named there."""
    runs = make_chats(6)
    for run in runs:
        said = {"role": role, "name": "Verifier", "content": f"I checked it: {run['messages'][1]['content'][::-1]}"}
        run["messages"].append(said)
        if role == "user":
            run["messages"].append({"role": "assistant", "content": ""})
            run["messages"][-2:] = [run["messages"][-1], said]
    spec["rules"][1]["emit"] = "observe"
    spec["rules"].insert(0, {"when": {"@.name": "Verifier"}, "emit": "say", "action": {"text": "@.content"}})
    (finding,) = check(spec, runs).of("leaks.judged_event")
    assert finding.severity == severity


def test_a_verifier_in_mid_run_is_part_of_it(spec, check, make_chats):
    runs = make_chats(6)
    for run in runs:
        run["messages"].insert(
            -1, {"role": "user", "name": "Answer_Verifier", "content": "Please look at it once more."}
        )
    (finding,) = check(spec, runs).of("leaks.judged_event")
    assert finding.severity == "warning"


def test_what_a_tool_confirms_is_a_warning(spec, check, make_chats):
    """The refund is the last call of most runs, and says whether it was done."""
    runs = make_chats(80)
    for i, run in enumerate(runs):
        run["messages"].pop()
        call = {"id": "last", "name": "refund", "arguments": {"id": i}}
        said = {"success": bool(run["reward"]), "state": "refunded" if run["reward"] else "denied"}
        run["messages"] += [
            {"role": "assistant", "content": "I refund it.", "tool_calls": [call]},
            {"role": "tool", "call_id": "last", "content": json.dumps(said)},
        ]
    report = check(spec, runs)
    assert report.ok, report.findings
    assert {one.where for one in report.findings if one.severity == "warning"} == {"result"}


def test_an_agent_that_follows_links_is_no_future(spec, check, make_chats):
    runs = make_chats(20)
    for i, run in enumerate(runs):
        links = [f"https://shop.example/o/{i}{k}/track/parcel?carrier=fast&number={7 * i + k}" for k in range(6)]
        listed = json.dumps([{"title": "parcel", "url": url} for url in links])
        pages = []
        for k, url in enumerate(links):
            call = {"id": f"l{k}", "name": "open_page", "arguments": {"url": url}}
            pages += [
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "call_id": f"l{k}", "content": f"parcel {k} of {i} is under way"},
            ]
        find = {"id": "f", "name": "search", "arguments": {"q": str(i)}}
        run["messages"][2:] = [
            {"role": "assistant", "content": "", "tool_calls": [find]},
            {"role": "tool", "call_id": "f", "content": listed},
            *pages,
        ]
    assert not check(spec, runs).of("leaks.whole_rest")
