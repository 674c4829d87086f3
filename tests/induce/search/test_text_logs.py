"""Logs of home-made loggers: whatever they look like, runs, calls, results, outcomes and tasks are found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from prefixguard.errors import TraceError
from prefixguard.induce.checks import check_adapter
from prefixguard.induce.proposal import Proposal
from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.beam import search
from prefixguard.induce.search.door import propose_by_search
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.families.text import propose as propose_logs
from prefixguard.stepview import Adapter, load_adapter, read_runs

PLACES = ("Lisbon", "Oslo", "Quito", "Perth", "Turin", "Kyoto", "Dakar", "Lyon")
FACTS = (
    "a harbour town whose old quarter burned in the spring",
    "the seat of a court that moved there from the coast",
    "known for a bridge of iron and for its paper mills",
    "it lies on a plain that floods in most years",
    "its market is held on the steps of the cathedral",
)


@dataclass(frozen=True)
class Step:
    """A thought, a call and what came back."""

    thought: str
    tool: str
    argument: str
    result: str


@dataclass(frozen=True)
class Told:
    """A run as it happened. good: did it reach its goal?"""

    task: str
    steps: tuple[Step, ...]
    good: bool


def tales(n: int = 8) -> list[Told]:
    """Runs of two to five steps with three tools; every third one fails."""
    runs = []
    for i in range(n):
        place = PLACES[i % len(PLACES)]
        steps = []
        for j in range(2 + i % 4):
            other = PLACES[(i + j * 3) % len(PLACES)]
            if j % 3 == 2:
                result = f"Error: no page called {other} {i}{j}"
            else:
                result = f"{other} {i}{j}: {FACTS[(i + j) % 5]}\nIt has {i + 3 * j} gates and a wall."
            tool = ("search", "open_page", "lookup")[j % 3]
            steps.append(
                Step(
                    f"I should see what is known about {other} before I answer, so I look at it next.",
                    tool,
                    f"{other} {i}{j}",
                    result,
                )
            )
        good = i % 3 != 2
        steps.append(
            Step(
                f"That is enough, so I can give the answer for {place} now.",
                "finish",
                f"{place} {i}",
                "The answer was noted.",
            )
        )
        runs.append(Told(f"Which town near {place} was founded first, number {i}?", tuple(steps), good))
    return runs


def colons(runs: list[Told]) -> dict[str, str]:
    out = []
    for i, run in enumerate(runs):
        out.append(f"=== Task {i}: {run.task} ===")
        for step in run.steps:
            out += [f"Thought: {step.thought}", f"Action: {step.tool}[{step.argument}]", f"Observation: {step.result}"]
        out += [f"Reward: {1.0 if run.good else 0.0}", ""]
    return {"all.log": "\n".join(out)}


def clocks(runs: list[Told]) -> dict[str, str]:
    out = []
    clock = 0

    def now() -> str:
        nonlocal clock
        clock += 7
        return f"[{10 + clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}]"

    for i, run in enumerate(runs):
        out.append(f"{now()} ##### episode {i} #####")
        out.append(f"{now()} GOAL > {run.task}")
        for step in run.steps:
            out.append(f'{now()} AGENT > {step.tool}("{step.argument}")')
            out.append(f"{now()} ENV > {step.result}")
        out.append(f"{now()} ##### episode over: {'success' if run.good else 'failure'} #####")
    return {"session.txt": "\n".join(out)}


def letters(runs: list[Told]) -> dict[str, str]:
    """Meaningless heads, a file a run, the outcome in its name."""
    files = {}
    for i, run in enumerate(runs):
        out = []
        for step in run.steps:
            out += [f"A> {step.tool} {step.argument}", f"B> {step.result}"]
        files[f"run_{i}_{'passed' if run.good else 'failed'}.log"] = "\n".join(out) + "\n"
    return files


def markdown(runs: list[Told]) -> dict[str, str]:
    files = {}
    for i, run in enumerate(runs):
        out = [f"# Transcript {i}", "", f"Task: {run.task}", ""]
        for step in run.steps:
            call = json.dumps({"tool": step.tool, "args": {"text": step.argument}})
            out += [
                "### Thought",
                step.thought,
                "",
                "### Action",
                "```json",
                call,
                "```",
                "",
                "### Observation",
                step.result,
                "",
            ]
        out += [f"Final verdict: {'PASS' if run.good else 'FAIL'}", ""]
        files[f"t{i}.txt"] = "\n".join(out)
    return files


def prompts(runs: list[Told]) -> dict[str, str]:
    return {
        f"{'solved' if run.good else 'unsolved'}/{i}.log": "".join(
            f">>> {step.tool} {step.argument}\n{step.result}\n" for step in run.steps
        )
        for i, run in enumerate(runs)
    }


def levels(runs: list[Told]) -> dict[str, str]:
    out = []
    for i, run in enumerate(runs):
        at = f"2024-05-{i + 1:02} 12:00"
        out.append(f"{at}:00,120 INFO runner - starting run {i}")
        out.append(f"{at}:01,010 INFO runner - question: {run.task}")
        for j, step in enumerate(run.steps):
            out.append(f"{at}:{j + 2:02},500 DEBUG agent - thought: {step.thought}")
            out.append(f"{at}:{j + 2:02},700 INFO agent - call: {step.tool}({step.argument})")
            out.append(f"{at}:{j + 2:02},900 INFO tools - returned: {step.result}")
        out.append(f"{at}:59,900 INFO runner - run finished, score {1 if run.good else 0}")
    return {"agent.log": "\n".join(out)}


def counters(runs: list[Told]) -> dict[str, str]:
    """No separators at all: a counter starts again."""
    out = []
    for run in runs:
        for j, step in enumerate(run.steps, 1):
            out += [f"({j}) X: {step.thought}", f"({j}) Y: {step.tool}[{step.argument}]", f"({j}) Z: {step.result}"]
        out.append(f"outcome = {'success' if run.good else 'failure'}")
    return {"log.txt": "\n".join(out)}


def inputs(runs: list[Told]) -> dict[str, str]:
    out = []
    for run in runs:
        out += ["> Entering new chain...", f"Question: {run.task}"]
        for step in run.steps:
            out += [
                f"Thought: {step.thought}",
                f"Action: {step.tool}",
                f"Action Input: {step.argument}",
                f"Observation: {step.result}",
            ]
        out += [f"Final status: {'success' if run.good else 'failed'}", "> Finished chain.", ""]
    return {"chain.log": "\n".join(out)}


def fields(runs: list[Told]) -> dict[str, str]:
    out = []
    for i, run in enumerate(runs):
        out.append(f'ts=2024-05-01T10:{i:02}:00Z level=info event=run_start run={i} task="{run.task}"')
        for j, step in enumerate(run.steps):
            at = f"ts=2024-05-01T10:{i:02}:{j + 1:02}Z level=info"
            out.append(f'{at} event=tool_call run={i} tool={step.tool} args="{step.argument}"')
            text = step.result.replace("\n", " ")
            out.append(f'{at} event=tool_result run={i} tool={step.tool} output="{text}"')
        out.append(
            f"ts=2024-05-01T10:{i:02}:59Z level=info event=run_end run={i} success={'true' if run.good else 'false'}"
        )
    return {"app.log": "\n".join(out)}


def folders(runs: list[Told]) -> dict[str, str]:
    files = {}
    for i, run in enumerate(runs):
        out = ["booting", "loading model ... done"]
        for j, step in enumerate(run.steps):
            out += [
                f"bot [{j}]>",
                step.thought,
                "```sh",
                f"{step.tool} '{step.argument}'",
                "```",
                "",
                "terminal:",
                f"<exit>{1 if step.result.startswith('Error') else 0}</exit>",
                step.result,
                "",
            ]
        files[f"r{i}/console.log"] = "\n".join(out)
        files[f"r{i}/meta.json"] = json.dumps(
            {"task_id": f"town-{i}", "resolved": run.good, "instruction": run.task, "seconds": 3 * i}
        )
    return files


FORMATS: tuple[Callable[[list[Told]], dict[str, str]], ...] = (
    colons,
    clocks,
    letters,
    markdown,
    prompts,
    levels,
    counters,
    inputs,
    fields,
    folders,
)
#: What a format does not tell.
NO_TASK = ("letters", "prompts", "counters")


HEADER = {"schema": "prefixguard/adapter/v1", "name": "log", "version": "1.0.0", "description": "log", "run": {}}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def propose(folder: Path, files: dict[str, str]) -> Proposal:
    write(folder, files)
    return propose_by_search(open_samples(folder), name="homemade")


@pytest.mark.parametrize("render", FORMATS, ids=lambda render: render.__name__)
def test_a_home_made_log_is_read_whole(render: Callable[[list[Told]], dict[str, str]], tmp_path: Path) -> None:
    told = tales()
    proposal = propose(tmp_path, render(told))
    runs = list(read_runs(tmp_path, Adapter(proposal.spec)))
    assert len(runs) == len(told), proposal.spec
    for run, tale in zip(runs, told, strict=True) if render is not prompts else ():
        tools = [record.tool for record in run.records if record.tool not in ("", "respond")]
        assert tools == [step.tool for step in tale.steps], proposal.spec
        results = [record.result for record in run.records if record.tool not in ("", "respond")]
        assert [
            " ".join(step.result.split()) in " ".join(result.split())
            for step, result in zip(tale.steps, results, strict=True)
        ] == [True] * len(tale.steps), (results, proposal.spec)
        wanted_status = ["error" if step.result.startswith("Error") else "ok" for step in tale.steps]
        assert [record.status for record in run.records if record.tool not in ("", "respond")] == wanted_status
        arguments = [record.arguments for record in run.records if record.tool not in ("", "respond")]
        assert all(step.argument in argument for step, argument in zip(tale.steps, arguments, strict=True))
    wanted = sorted("success" if tale.good else "failure" for tale in told)
    assert sorted(run.outcome.value for run in runs) == wanted, proposal.spec["run"]
    if render.__name__ not in NO_TASK and render is not folders:
        assert [run.task_id for run in runs] == [tale.task for tale in told], proposal.spec["run"]
    every = " ".join(
        part for run in runs for record in run.records for part in (record.result, record.action, record.observation)
    )
    for word in ("Reward:", "episode over", "verdict", "score", "outcome =", "Final status", "success=", "run_end"):
        assert word not in every, proposal.spec


def bars(runs: list[Told]) -> dict[str, str]:
    """A table-like log, arrows for who speaks, a summary at the end of the file."""
    out = ["harness 0.3 started", ""]
    for i, run in enumerate(runs):
        out += [f"+------ attempt {i} ------", f"| prompt: {run.task}"]
        for step in run.steps:
            out += [f"-> {json.dumps({'name': step.tool, 'arguments': {'q': step.argument}})}", f"<- {step.result}"]
        out += [f"evaluation: {'correct' if run.good else 'wrong'}", ""]
    out += ["all attempts are over", f"total {len(runs)}"]
    return {"out.log": "\n".join(out)}


def chat(runs: list[Told]) -> dict[str, str]:
    """A dialogue with XML calls in the assistant's turns."""
    files = {}
    for i, run in enumerate(runs):
        out = ["[user]", run.task, ""]
        for step in run.steps:
            out += [
                "[assistant]",
                step.thought,
                f"<{step.tool}>{step.argument}</{step.tool}>",
                "",
                "[tool]",
                step.result,
                "",
            ]
        out += [f"[end] {'solved' if run.good else 'unsolved'}"]
        files[f"{i}.txt"] = "\n".join(out)
    return files


@pytest.mark.parametrize("render", [bars, chat], ids=lambda render: render.__name__)
def test_more_home_made_logs(render: Callable[[list[Told]], dict[str, str]], tmp_path: Path) -> None:
    told = tales()
    proposal = propose(tmp_path, render(told))
    runs = list(read_runs(tmp_path, Adapter(proposal.spec)))
    assert len(runs) == len(told), proposal.spec
    for run, tale in zip(runs, told, strict=True):
        calls = [record for record in run.records if record.tool not in ("", "respond")]
        assert [record.tool for record in calls] == [step.tool for step in tale.steps], proposal.spec
        for record, step in zip(calls, tale.steps, strict=True):
            assert record.result == step.result and step.argument in record.arguments, proposal.spec
    wanted = ["success" if tale.good else "failure" for tale in told]
    assert [run.outcome.value for run in runs] == wanted, proposal.spec["run"]
    assert all(
        "solved" not in record.result and "evaluation" not in record.result for run in runs for record in run.records
    )


@pytest.mark.parametrize("n", [2, 3, 30])
def test_few_and_many_runs(n: int, tmp_path: Path) -> None:
    told = tales(n)
    proposal = propose(tmp_path, colons(told))
    runs = list(read_runs(tmp_path, Adapter(proposal.spec)))
    assert [len(run.records) for run in runs] == [len(tale.steps) for tale in told]
    assert all("Reward" not in record.result for run in runs for record in run.records)


def test_prose_and_noise_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("\n\n".join(f"{fact.capitalize()}. {fact.capitalize()}." for fact in FACTS * 6))
    (tmp_path / "noise.txt").write_bytes(bytes(range(256)) * 40 + b"\n" + b"x" * 300_000)
    with pytest.raises(TraceError):
        propose_by_search(open_samples(tmp_path), name="x")


HINTED = {"task": "instruction", "outcome": "resolved"}


def test_hints_have_the_last_word(tmp_path: Path) -> None:
    for name, text in folders(tales()).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    beside = {field: {"sibling": "meta.json", "path": f"$.{name}"} for field, name in HINTED.items()}
    hints = {field: json.dumps(value) for field, value in beside.items()}
    proposal = propose_by_search(open_samples(tmp_path), name="x", hints=hints)
    assert proposal.spec["run"]["task"] == beside["task"]
    assert proposal.spec["run"]["outcome"]["of"] == beside["outcome"]


def test_the_same_samples_give_the_same_spec(tmp_path: Path) -> None:
    proposal = propose(tmp_path, clocks(tales()))
    again = propose_by_search(open_samples(tmp_path), name="homemade")
    assert json.dumps(proposal.spec) == json.dumps(again.spec)


def test_what_is_mapped_and_left_out_is_said(tmp_path: Path) -> None:
    proposal = propose(tmp_path, colons(tales()))
    fields_ = {mapped.field for mapped in proposal.mapped}
    assert {"outcome", "task"} <= fields_
    assert proposal.notes
    assert all(0 <= mapped.confidence <= 1 and mapped.why for mapped in proposal.mapped)


def test_the_outcome_of_folders_is_what_nearly_all_of_them_say(tmp_path: Path) -> None:
    for name, text in folders(tales(12)).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith(".json"):
            meta = json.loads(text)
            number = int(meta["task_id"].removeprefix("town-"))
            meta["checks"] = {f"check_{number % 6}_passed": number % 2 == 0}
            meta["resolved"] = None if number == 5 else meta["resolved"]
            text = json.dumps(meta)
        path.write_text(text)
    proposal = propose_by_search(open_samples(tmp_path), name="x")
    assert proposal.spec["run"]["outcome"]["of"] == "$.meta.resolved"


@pytest.mark.parametrize("render", [*FORMATS, bars, chat], ids=lambda render: render.__name__)
def test_names_of_heads_help_and_do_not_decide(render: Callable[[list[Told]], dict[str, str]], tmp_path: Path) -> None:
    told = tales()
    write(tmp_path, render(told))
    evidence = Evidence(open_samples(tmp_path), names=False)
    spec = {**HEADER, **search(propose_logs(evidence), evidence)[0].candidate.spec}
    evidence.close()
    runs = [
        [r.tool for r in run.records if r.tool not in ("", "respond")] for run in read_runs(tmp_path, Adapter(spec))
    ]
    assert sorted(runs) == sorted([step.tool for step in tale.steps] for tale in told), spec


TRACES = Path(os.environ.get("PREFIXGUARD_TRACES") or Path(__file__).parents[3] / ".traces")


@pytest.mark.real
@pytest.mark.parametrize(("folder", "adapter"), [("webshop_react", "webshop_react"), ("reflexion", "react_log")])
def test_real_logs_are_read_as_by_hand(folder: str, adapter: str) -> None:
    source = TRACES / folder
    if not source.is_dir():
        pytest.skip(f"{source} is not there: unpack the real runs into .traces or name them by PREFIXGUARD_TRACES")
    proposal = propose_by_search(open_samples(source), name="induced")
    mine = list(read_runs(source, Adapter(proposal.spec)))
    wanted = list(read_runs(source, load_adapter(adapter)))
    assert [run.run_id for run in mine] == [run.run_id for run in wanted]
    assert [run.outcome for run in mine] == [run.outcome for run in wanted]
    tasks = {(one.task_id, two.task_id) for one, two in zip(mine, wanted, strict=True)}
    assert len(tasks) == len({task for task, _ in tasks}) == len({task for _, task in tasks}), "the same runs have one"
    pairs = [pair for one, two in zip(mine, wanted, strict=True) for pair in zip(one.records, two.records, strict=True)]
    assert sum(one.tool == two.tool for one, two in pairs) == len(pairs)
    same = sum(
        (one.arguments, one.observation, one.action, one.result, one.status)
        == (two.arguments, two.observation, two.action, two.result, two.status)
        for one, two in pairs
    )
    assert same >= 0.99 * len(pairs)


def shells(runs: list[Told]) -> dict[str, str]:
    """A shell session a file, with the task in a comment above."""
    return {
        f"s{i}.txt": f"# session {i}\n# task: {run.task}\n\n"
        + "".join(f"$ {step.tool} '{step.argument}'\n{step.result}\n[exit 0]\n\n" for step in run.steps)
        + f"=== RESULT: {'PASS' if run.good else 'FAIL'} ===\n"
        for i, run in enumerate(runs)
    }


@pytest.mark.parametrize("render", [shells, levels, fields, inputs], ids=lambda render: render.__name__)
def test_a_task_said_in_the_text_is_read_live_as_it_is_later(
    render: Callable[[list[Told]], dict[str, str]], tmp_path: Path
) -> None:
    told = tales()
    proposal = propose(tmp_path, render(told))
    adapter = Adapter(proposal.spec)
    runs = list(read_runs(tmp_path, adapter))
    assert [run.task_id for run in runs] == [tale.task for tale in told], proposal.spec["run"]
    if render is shells:
        assert [run.records[0].observation for run in runs] == [f"# task: {tale.task}" for tale in told]
    report = check_adapter(adapter, tmp_path, processes=False)
    assert not [one for one in report.findings if one.severity == "error"], proposal.spec


def react(run: Told) -> str:
    out = []
    for j, step in enumerate(run.steps, 1):
        out += [f"Thought {j}: {step.thought}", f"Action {j}: {step.tool}[{step.argument}]"]
        out.append(f"Observation {j}: {step.result}")
    return "\n".join(out)


@pytest.mark.parametrize("shape", ["list", "lines", "inner list", "files"])
def test_a_log_that_is_one_text_in_a_json_record(shape: str, tmp_path: Path) -> None:
    told = tales()
    records: list[dict[str, object]] = [
        {"uid": f"u{i}", "question": run.task, "trace": {"log": react(run)}, "judged": "right" if run.good else "wrong"}
        for i, run in enumerate(told)
    ]
    files = {
        "list": {"all.json": json.dumps(records)},
        "lines": {"all.jsonl": "\n".join(map(json.dumps, records))},
        "inner list": {"all.json": json.dumps({"made": "2024-05-01", "rows": records})},
        "files": {f"r{i}.json": json.dumps(record) for i, record in enumerate(records)},
    }[shape]
    proposal = propose(tmp_path, files)
    adapter = Adapter(proposal.spec)
    runs = list(read_runs(tmp_path, adapter))
    assert [run.run_id for run in runs] == [f"u{i}" for i in range(len(told))], proposal.spec
    assert [run.task_id for run in runs] == [tale.task for tale in told], proposal.spec["run"]
    assert [run.outcome.value for run in runs] == ["success" if tale.good else "failure" for tale in told]
    for run, tale in zip(runs, told, strict=True):
        assert [record.tool for record in run.records] == [step.tool for step in tale.steps], proposal.spec
        assert [record.arguments for record in run.records] == [step.argument for step in tale.steps]
        assert [record.result for record in run.records] == [step.result for step in tale.steps]
        assert all("right" not in record.result + record.observation for record in run.records)
    report = check_adapter(adapter, tmp_path, processes=False)
    assert not [one for one in report.findings if one.severity == "error"], report.findings


def test_long_texts_in_json_are_no_logs_for_that(tmp_path: Path) -> None:
    records = [
        {"id": i, "title": fact, "body": "\n".join(f"{fact}." for fact in FACTS)} for i, fact in enumerate(FACTS)
    ]
    (tmp_path / "pages.json").write_text(json.dumps(records))
    with pytest.raises(TraceError):
        propose_by_search(open_samples(tmp_path), name="x")


def notebooks(runs: list[Told]) -> dict[str, str]:
    """Markdown with front matter, calls and results in code fences, errors under a heading of their own."""
    files = {}
    for i, run in enumerate(runs):
        out = [
            "---",
            f"run: {i}",
            f"task: {run.task}",
            "model: some-model",
            f"outcome: {'' if run.good else 'not '}solved",
        ]
        out += ["---", "", f"# {run.task}", ""]
        for j, step in enumerate(run.steps, 1):
            head = "Error" if step.result.startswith("Error") else "Observation"
            call = json.dumps({"q": step.argument}, indent=2)
            out += [f"## Step {j}", "", f"**Thought:** {step.thought}", "", f"**Action:** `{step.tool}`", ""]
            out += ["```json", call, "```", "", f"**{head}:**", "", "```", step.result, "```", ""]
        files[f"n{i}.md"] = "\n".join(out)
    return files


def test_front_matter_is_no_run_and_fences_are_no_part_of_what_they_hold(tmp_path: Path) -> None:
    told = tales()
    proposal = propose(tmp_path, notebooks(told))
    adapter = Adapter(proposal.spec)
    runs = list(read_runs(tmp_path, adapter))
    assert len(runs) == len(told), proposal.spec
    assert [run.task_id for run in runs] == [tale.task for tale in told], proposal.spec["run"]
    assert [run.outcome.value for run in runs] == ["success" if tale.good else "failure" for tale in told]
    for run, tale in zip(runs, told, strict=True):
        calls = [record for record in run.records if record.tool not in ("", "respond")]
        assert [record.tool for record in calls] == [step.tool for step in tale.steps], proposal.spec
        assert [json.loads(record.arguments) for record in calls] == [{"q": step.argument} for step in tale.steps]
        assert [record.result for record in calls] == [step.result for step in tale.steps]
        wanted = ["error" if step.result.startswith("Error") else "ok" for step in tale.steps]
        assert [record.status for record in calls] == wanted
        assert all("solved" not in record.observation for record in run.records)
    report = check_adapter(adapter, tmp_path, processes=False)
    assert not [one for one in report.findings if one.severity == "error"], report.findings


def test_rulers_between_runs_are_still_separators(tmp_path: Path) -> None:
    told = tales()
    runs = ["\n".join(["---", *react(tale).split("\n"), ""]) for tale in told]
    proposal = propose(tmp_path, {"all.txt": "\n".join(runs)})
    found = list(read_runs(tmp_path, Adapter(proposal.spec)))
    assert [len(run.records) for run in found] == [len(tale.steps) for tale in told], proposal.spec


BREAK, INDENTED = "\n", "\n    "


def components(runs: list[Told]) -> dict[str, str]:
    """One component for calls and for what comes back; the level tells errors; the run's name in its last line."""
    files = {}
    for i, run in enumerate(runs):
        at = f"2024-05-{i + 1:02} 12:00:00,120"
        out = [f"{at} INFO  [runner] run run_{i} started (agent=towns 1.4)", f"{at} INFO  [runner] task: {run.task}"]
        for step in run.steps:
            out.append(f"{at} DEBUG [planner] {step.thought}")
            out.append(f"{at} INFO  [tools] calling {step.tool} with {json.dumps({'q': step.argument})}")
            bad = step.result.startswith("Error")
            said = "failed after 2.1s" if bad else "returned in 0.3s"
            out.append(
                f"{at} {'ERROR' if bad else 'INFO '} [tools] {step.tool} {said}: {step.result.replace(BREAK, INDENTED)}"
            )
        out.append(f"{at} INFO  [runner] run run_{i} finished: {'SUCCESS' if run.good else 'FAILED'}")
        files[f"run_{i}.log"] = "\n".join(out) + "\n"
    return files


def test_one_component_for_calls_and_returns(tmp_path: Path) -> None:
    told = tales()
    proposal = propose(tmp_path, components(told))
    adapter = Adapter(proposal.spec)
    runs = list(read_runs(tmp_path, adapter))
    assert [run.task_id for run in runs] == [tale.task for tale in told], proposal.spec["run"]
    assert [run.outcome.value for run in runs] == ["success" if tale.good else "failure" for tale in told]
    for run, tale in zip(runs, told, strict=True):
        calls = [record for record in run.records if record.tool not in ("", "respond")]
        assert [record.tool for record in calls] == [step.tool for step in tale.steps], proposal.spec
        assert [json.loads(record.arguments) for record in calls] == [{"q": step.argument} for step in tale.steps]
        for record, step in zip(calls, tale.steps, strict=True):
            assert record.result.endswith(step.result), "without the blanks that lines which go on begin with"
        wanted = ["error" if step.result.startswith("Error") else "ok" for step in tale.steps]
        assert [record.status for record in calls] == wanted
    every = " ".join(record.observation + record.result for run in runs for record in run.records)
    assert "SUCCESS" not in every and "FAILED" not in every
    report = check_adapter(adapter, tmp_path, processes=False)
    assert not [one for one in report.findings if one.severity == "error"], report.findings


@pytest.mark.parametrize("words", [("SUCCESS", "FAILED"), ("passed", "failed")])
def test_the_word_that_changes_is_the_verdict(words: tuple[str, str], tmp_path: Path) -> None:
    """Other words of success in the same line do not vary."""
    told = tales()
    files = {}
    for i, run in enumerate(told):
        end = f"job j{i}x finished ok: {words[0] if run.good else words[1]}"
        files[f"{i}.log"] = f"{react(run)}\n\n{end}\n"
    runs = list(read_runs(tmp_path, Adapter(propose(tmp_path, files).spec)))
    assert [run.outcome.value for run in runs] == ["success" if tale.good else "failure" for tale in told]
    assert all("finished ok" not in record.result for run in runs for record in run.records)
