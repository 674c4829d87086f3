"""Every frozen adapter on its real set: runs, outcomes, tasks and records as plain Python counts them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs
from prefixguard.trace import Mistake

RealSet = Callable[[str], Path]
LiveRuns = dict[str, Callable[[Path], Iterator[tuple[dict[str, Any], list[Any]]]]]
#: One run: its task, its outcome, how many records it should give.
Counted = tuple[str, str, int]
REWARD = {1.0: "success", 0.0: "failure"}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def acts(messages: list[dict[str, Any]]) -> int:
    """Calls, and messages that only speak."""
    return sum(len(m.get("tool_calls") or []) or bool(m.get("content")) for m in messages if m["role"] == "assistant")


def count_tau_bench(root: Path) -> Iterator[Counted]:
    for path in root.rglob("*.json"):
        for run in read(path):
            prompt = next((m["content"] for m in run["traj"] if m["role"] == "system"), "")
            domain = "airline" if prompt.startswith("# Airline Agent") else "retail"
            told = prompt.startswith(("# Airline Agent", "# Retail agent")) or "assertions-agent" in path.name
            assert told or not run["traj"]
            yield f"{domain}:{run['task_id']}", REWARD[run["reward"]], acts(run["traj"])


def count_tau2(root: Path) -> Iterator[Counted]:
    for path in root.rglob("*.json"):
        document = read(path)
        domain = document["info"]["environment_info"]["domain_name"]
        for run in document["simulations"]:
            yield f"{domain}:{run['task_id']}", REWARD[run["reward_info"]["reward"]], acts(run["messages"])


def count_sweagent(root: Path) -> Iterator[Counted]:
    for path in root.glob("*/trajs/*.traj"):
        resolved = read(path.parents[1] / "results" / "results.json")["resolved"]
        entries = [entry for entry in read(path)["trajectory"] if entry["action"] != "exit_cost"]
        yield path.stem, "success" if path.stem in resolved else "failure", len(entries)


def count_mini_swe_agent(root: Path) -> Iterator[Counted]:
    resolved = {run["instance_id"]: run["resolved"] for run in read(root / "results_summary.json")["instances"]}
    for path in root.glob("trajs/*.traj.json"):
        run = read(path)
        steps = sum(message["role"] == "assistant" for message in run["messages"])
        yield run["instance_id"], "success" if resolved[run["instance_id"]] else "failure", steps


def count_terminal_log(root: Path) -> Iterator[Counted]:
    for path in root.rglob("results.json"):
        run = read(path)
        log = path.parent / "sessions" / "agent.log"
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", log.read_bytes()) if log.exists() else b""
        outcome = {True: "success", False: "failure", None: "unknown"}[run["is_resolved"]]
        yield run["task_id"], outcome, text.count(b"mini-swe-agent (step ")


def count_webshop_react(root: Path) -> Iterator[Counted]:
    for path in root.glob("*.ipynb"):
        text = "".join(part for output in read(path)["cells"][-1]["outputs"] for part in output["text"])
        for run in re.split(r"(?m)^-{17}\n", text)[1:]:
            bought = "Your score (min 0.0, max 1.0): 1.0" in run
            yield run.split("\n")[0], "success" if bought else "failure", run.count("\nAction: ") - 1  # without reset


def count_online_mind2web(root: Path) -> Iterator[Counted]:
    for path in root.rglob("result.json"):
        run = read(path)
        outcome = {"success": "success", "error_max_turns": "failure"}[run["result_status"]]
        yield run["task_id"], outcome, len(run["action_history"])


def count_intercode(root: Path) -> Iterator[Counted]:
    for path in root.rglob("*.json"):
        for run in read(path).values():
            task = f"{run['environment']}:{run['dataset']}:{run['task_id']}"
            outcome = "success" if run["summary"]["max_reward"] >= 1 else "failure"
            turns = run["turn_history"]
            thoughts = turns.get("thoughts") or [""]
            forced = thoughts[-1].startswith("EXCEEDED MAX TURNS")
            blocked = len(turns["actions"]) > len(turns["observations"])
            yield task, outcome, len(turns["actions"]) - forced - blocked  # without what the harness wrote


def count_react_log(root: Path) -> Iterator[Counted]:
    for path in root.rglob("*.txt"):
        for section in re.split(r"(?m)^-+ BEGIN (?=[A-Z]+ AGENTS)", path.read_text(encoding="utf-8"))[1:]:
            for run in section.split("\n\nQuestion: ")[1:]:
                question = run.split("\n")[0].split("You have attempted")[0].strip()
                outcome = "success" if section.startswith("CORRECT") else "failure"
                yield question, outcome, len(re.findall(r"\nAction \d+: ", run))


def count_whoandwhen(root: Path) -> Iterator[Counted]:
    others = ("human", "ComputerTerminal", "Orchestrator (termination condition)")
    for path in root.rglob("*.json"):
        run = read(path)
        acting = [m for m in run["history"] if m["role"] not in others and m.get("name") != "Computer_terminal"]
        yield run["question_ID"], "failure", len(acting)


def count_whoandwhen_turns(root: Path) -> Iterator[Counted]:
    for path in root.rglob("*.json"):
        run = read(path)
        yield run["question_ID"], "failure", len(run["history"])


def count_sentinel(root: Path) -> Iterator[Counted]:
    for manifest in root.glob("*/manifest.json"):
        for run in read(manifest):
            right = run["graded"] == "healthy" if "graded" in run else run["failure_class"] is None
            lines = (manifest.parent / run["file"]).read_text(encoding="utf-8").splitlines()
            seed = run.get("provenance", {}).get("episode_seed")
            yield str(seed), "success" if right else "failure", len(lines)


SETS: dict[str, tuple[Callable[[Path], Iterator[Counted]], dict[str, int], dict[str, int], int]] = {
    # adapter: how to count, all runs by outcome, those without a record, tasks among the rest
    "tau_bench": (count_tau_bench, {"success": 1147, "failure": 568}, {"failure": 57}, 165),
    "tau2": (count_tau2, {"success": 607, "failure": 234}, {}, 175),
    "sweagent": (count_sweagent, {"success": 23, "failure": 339}, {}, 91),
    "mini_swe_agent": (count_mini_swe_agent, {"success": 371, "failure": 129}, {}, 500),
    "terminal_log": (
        count_terminal_log,
        {"success": 59, "failure": 229, "unknown": 86},
        {"success": 8, "failure": 146, "unknown": 51},
        42,
    ),
    "webshop_react": (count_webshop_react, {"success": 179, "failure": 321}, {}, 500),
    "online_mind2web": (count_online_mind2web, {"success": 263, "failure": 37}, {}, 300),
    "intercode": (count_intercode, {"success": 3059, "failure": 7086}, {"failure": 7}, 1450),
    "react_log": (count_react_log, {"success": 499, "failure": 708}, {"success": 102}, 100),
    "whoandwhen": (count_whoandwhen, {"failure": 184}, {}, 139),
    "whoandwhen_turns": (count_whoandwhen_turns, {"failure": 184}, {}, 139),
    "sentinel": (count_sentinel, {"success": 494, "failure": 734}, {}, 198 + 1),  # and runs without a task
}
SLOW = ("intercode", "mini_swe_agent", "terminal_log", "tau_bench")
#: Every how many runs one is fed event by event.
STRIDE = {
    "intercode": 97, "tau_bench": 11, "tau2": 7, "mini_swe_agent": 23,
    "sweagent": 7, "react_log": 5, "terminal_log": 29,
}  # fmt: skip
EVERY_SET = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SETS]


@dataclass
class Parsed:
    """A real set, read once for all tests: its runs as `Counted`, their records as digests, the report."""

    runs: Counter[Counted] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)
    report: ReadReport = field(default_factory=ReadReport)
    mistakes: list[Mistake] = field(default_factory=list)


def digest(records: Iterable[StepRecord]) -> str:
    return hashlib.sha256(repr(tuple(records)).encode("utf-8", "replace")).hexdigest()


@pytest.fixture(scope="module")
def parsed(real_set: RealSet) -> Callable[[str], Parsed]:
    @functools.cache
    def parse(name: str) -> Parsed:
        found = Parsed()
        for run in read_runs(real_set(name), load_adapter(name), strict=True, report=found.report):
            found.runs[str(run.task_id), run.outcome.value, len(run.records)] += 1
            found.digests.add(digest(run.records))
            if run.mistake is not None:
                found.mistakes.append(run.mistake)
        return found

    return parse


@pytest.mark.real
@pytest.mark.parametrize("name", EVERY_SET)
def test_runs_outcomes_tasks_and_records_are_as_counted_by_hand(
    name: str, real_set: RealSet, parsed: Callable[[str], Parsed]
) -> None:
    count, outcomes, empty, n_tasks = SETS[name]
    counted = list(count(real_set(name)))
    assert Counter(outcome for _, outcome, _ in counted) == outcomes
    found = parsed(name)
    assert found.runs == Counter(run for run in counted if run[2])
    assert len({task for task, _, _ in found.runs}) == n_tasks
    assert {str(outcome): n for outcome, n in found.report.empty.items() if n} == empty
    assert found.report.skipped == []


@pytest.mark.real
@pytest.mark.parametrize("name", EVERY_SET)
def test_a_sample_of_real_runs_is_the_same_event_by_event(
    name: str, real_set: RealSet, parsed: Callable[[str], Parsed], live_runs: LiveRuns
) -> None:
    adapter = load_adapter(name)
    n_live = 0
    for header, events in itertools.islice(live_runs[name](real_set(name)), 0, None, STRIDE.get(name, 3)):
        parser = adapter.parser(header)
        records = [record for event in events for record in parser.observe(event)] + parser.end()
        if records:
            n_live += 1
            assert digest(records) in parsed(name).digests
    assert n_live >= 5


@pytest.mark.real
def test_every_failure_of_the_attribution_set_names_its_mistake(parsed: Callable[[str], Parsed]) -> None:
    """Two labels point at an entry of the terminal, which is the result of a record and not one itself."""
    mistakes = parsed("whoandwhen").mistakes
    assert len(mistakes) == 184
    assert all(mistake.agent for mistake in mistakes)
    assert sum(mistake.step is None for mistake in mistakes) == 2


@pytest.mark.real
def test_every_injected_fault_has_the_step_from_which_it_was_injected(
    real_set: RealSet, parsed: Callable[[str], Parsed]
) -> None:
    entries = [entry for path in real_set("sentinel").glob("*/manifest.json") for entry in read(path)]
    injected = [Mistake(entry["tau"] + 1, None) for entry in entries if entry["tau"] is not None]
    assert len(injected) == 616
    assert Counter(parsed("sentinel").mistakes) == Counter(injected)


@pytest.mark.real
def test_every_entry_is_a_record_and_every_label_is_at_its_entry(real_set: RealSet) -> None:
    """Labels on entries of the terminal, which `whoandwhen` joins to the call, have a record of their own here."""
    root = real_set("whoandwhen_turns")
    entries: Counter[str] = Counter()
    others = []
    for run in read_runs(root, load_adapter("whoandwhen_turns"), strict=True):
        raw = read(root / run.run_id)
        entries[run.groups["folder"]] += len(raw["history"])
        assert [record.event for record in run.records] == list(range(len(raw["history"])))
        assert run.mistake == Mistake(int(raw["mistake_step"]) + 1, raw["mistake_agent"])
        assert raw["mistake_agent"] in {record.agent for record in run.records if record.actor == "agent"}
        if run.records[int(raw["mistake_step"])].agent != raw["mistake_agent"]:
            others.append(run.run_id)
    assert entries == {"Algorithm-Generated": 1099, "Hand-Crafted": 2993}
    names = ("Algorithm-Generated/14", "Algorithm-Generated/15", "Algorithm-Generated/59")
    assert sorted(others) == [f"{name}.json" for name in (*names, *(f"Hand-Crafted/{n}" for n in (20, 22, 49)))]
