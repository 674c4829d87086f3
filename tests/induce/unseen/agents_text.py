"""Text of a product: the console of a crew, many runs in one log between boxes and trees."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from unseen.truth import Clock, Truth, episodes, hexes, put, steps_of, unseen


def _box(title: str, lines: list[str], width: int = 100) -> str:
    head = f" {title} " if title else ""
    left = (width - 2 - len(head)) // 2
    out = ["╭" + "─" * left + head + "─" * (width - 2 - len(head) - left) + "╮"]
    out += [f"│  {line}".ljust(width - 1) + "│" for line in ["", *lines, ""]]
    return "\n".join([*out, "╰" + "─" * (width - 2) + "╯"])


@unseen("text", ("each kickoff starts with a box Crew Execution Started that has its ID; then blocks that start with # Agent:", r"^│\s+ID: ([0-9a-f-]{36})"),
        ("quality in scores.csv by kickoff_id, 7.0 or better is accepted", "scores.csv:quality"))  # fmt: skip
def crewai_console(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like the console output of CrewAI (verbose) of many kickoffs of one crew, kept in one log.

    Traps: run ids once per kickoff, in a box; status trees and boxes between the real blocks; the tool's input is JSON in
    a JSON string; the outcome is a mark from 0 to 10 in a companion file whose threshold only README.md states; kickoffs
    that end with the box Crew Failure have no mark: unknown. No sign of failed calls.
    """
    rng, clock = random.Random(f"crewai_console/{seed}"), Clock(f"crewai_console/{seed}")
    truths: list[Truth] = []
    out: list[str] = []
    table: list[str] = []
    role = "Customer Care Specialist"
    for episode in episodes(seed, runs, "retail", unknown=2, failures=0.5):
        run = "-".join(hexes(rng, size) for size in (8, 4, 4, 4, 12))
        work = "-".join(hexes(rng, size) for size in (8, 4, 4, 4, 12))
        out.append(_box("Crew Execution Started", ["Crew Execution Started", "Name: care_crew", f"ID: {run}", "Tool Args:"]))
        tree = f"🚀 Crew: care_crew\n└── 📋 Task: {work}\n       Status: Executing Task...\n    └── 🤖 Agent: {role}\n            Status: In Progress"
        out += [tree, f"# Agent: {role}\n## Task: {episode.task}\n"]
        used: dict[str, int] = {}
        for turn in episode.turns:
            for call in turn.calls:
                thought = f"## Thought: {turn.text}\n" if turn.text else ""
                given = json.dumps(json.dumps(call.args, ensure_ascii=False), ensure_ascii=False)
                out.append(f"\n# Agent: {role}\n{thought}## Using tool: {call.tool}\n## Tool Input: \n{given}\n## Tool Output: \n{call.result}\n")
                used[call.tool] = used.get(call.tool, 0) + 1
                if rng.random() < 0.4:
                    out.append(f"{tree}\n        └── 🔧 Used {call.tool} ({used[call.tool]})\n        └── 🧠 Thinking...")
            if not turn.calls:
                out.append(f"\n# Agent: {role}\n## Final Answer: \n{turn.text}\n")
        if episode.outcome == "unknown":
            out.append(_box("Crew Failure", ["Crew Execution Failed", "Name: care_crew", "Error: litellm.InternalServerError: AnthropicException - Overloaded. Handle with `litellm.InternalServerError`."]))
        else:
            out.append(f"✅ Crew: care_crew\n└── 📋 Task: {work}\n       Assigned to: {role}\n       Status: ✅ Completed")
            out.append(_box("Crew Completion", ["Crew Execution Completed", "Name: care_crew", f"Total time: {rng.randint(9, 200)} s"]))
            table.append(f"{run},{episode.task_id},{round(episode.score * 10, 1)},{round(rng.uniform(4, 10), 1)},{clock.iso()}")
        truths.append(Truth(run, "logs/care_crew.log", episode.task, episode.outcome, steps_of(episode, errors=False), episode.task_id if episode.outcome != "unknown" else ""))
    rng.shuffle(table)
    put(folder / "logs/care_crew.log", "\n\n".join(out) + "\n")
    put(folder / "scores.csv", "\n".join(["kickoff_id,case,quality,style,reviewed_at", *table]) + "\n")
    put(folder / "README.md", "# care_crew\n\nStart with `crewai run | tee -a logs/care_crew.log`. The reviewer marks each kickoff in `scores.csv`:\n`quality` from 0 to 10, where **7.0 or better is accepted**; `style` is for information only.\n")
    put(folder / "config/agents.yaml", f"care:\n  role: >\n    {role}\n  goal: >\n    Solve the customer's case\n  backstory: >\n    You know the shop's rules by heart.\n")
    return truths


@unseen("text", ("a line with > is the user, ⏺ is Claude's words or a call name(arguments), ⎿ below it is the call's result", r"^⏺ (\w+)\((.*)\)$"),
        ("reports/<same name>.xml is the test report: no failures and no errors is good", "reports/*.xml:testsuite failures"))  # fmt: skip
def claude_exports(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like Claude Code's /export transcripts as plain text, one file for each conversation; its name is the run's id.

    Traps: arguments are no JSON (key: value pairs between the brackets: the truth has them as a bare string), results are
    indented below their call, of which the first line follows the sign; lines of working time beside; outcome only from
    a JUnit report of the same name; a conversation that broke with an API error has no report: unknown.
    """
    rng, clock = random.Random(f"claude_exports/{seed}"), Clock(f"claude_exports/{seed}")
    truths: list[Truth] = []
    for episode in episodes(seed, runs, "coding", dialogue=True, parallel=True, unknown=2):
        day = clock.tick(9000)
        stem = f"{day:%Y-%m-%d-%H%M%S}-{episode.task_id}"
        out = [_box("", ["✻ Welcome to Claude Code!", "", "  /help for help, /status for your current setup", "", "  cwd: /srv/checkout"], 54), f"> {episode.task}"]
        for turn in episode.turns:
            if turn.who == "user":
                out += [f"✻ {rng.choice(['Brewed', 'Churned', 'Cooked', 'Worked'])} for {rng.randint(3, 59)}s", f"> {turn.text}"]
                continue
            if turn.text:
                out.append(f"⏺ {turn.text}")
            for call in turn.calls:
                result = call.result.replace("\n", "\n     ")
                out.append(f"⏺ {call.tool}({_pairs(call.args)})\n  ⎿  {result}")
        if episode.outcome == "unknown":
            out.append("  ⎿  API Error (529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}) · Retrying in 39 seconds… (attempt 10/10)")
        else:
            tests = rng.randint(5, 30)
            failed = 0 if episode.ok else rng.randint(1, 4)
            broken = 0 if episode.ok else rng.randint(0, 1)
            cases = [f'    <testcase classname="tests.test_suite" name="test_{place}" time="{rng.uniform(0, 1):.3f}">' + ('<failure message="AssertionError">' + escape("assert left == right") + "</failure>" if place < failed else "") + "</testcase>" for place in range(tests)]
            suite = f'  <testsuite name="pytest" errors="{broken}" failures="{failed}" skipped="0" tests="{tests}" time="{rng.uniform(1, 60):.3f}" timestamp="{clock.iso()}" hostname={quoteattr("ci-" + hexes(rng, 4))}>'
            put(folder / f"reports/{stem}.xml", "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", suite, *cases, "  </testsuite>", "</testsuites>"]) + "\n")
        put(folder / f"transcripts/{stem}.txt", "\n\n".join(out) + "\n")
        steps = [step._replace(arguments={"": _pairs(step.arguments)}) if step.kind == "call" and step.arguments is not None else step for step in steps_of(episode, errors=False)]
        truths.append(Truth(stem, f"transcripts/{stem}.txt", episode.task, episode.outcome, steps, episode.task_id))
    put(folder / "CLAUDE.md", "# Rules\n\n- Run the tests before you finish.\n- Keep public names.\n")
    return truths


def _pairs(args: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in args.items())
