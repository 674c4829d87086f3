"""Text logs: agents' transcripts as lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

from unseen.truth import Clock, Step, Truth, episodes, hexes, put, steps_of, unseen


@unseen(
    "text",
    ("a job begins with '##[group] job ID' and its task line", "##\\[group\\] job (?P<id>\\S+)"),
    ("[agent:plan], [agent:call] tool {json}, [agent:out] result; 'Job succeeded' is a success", "\\[agent:(plan|call|out|say)\\]"),
)  # fmt: skip
def ci_job(folder: Path, seed: int, runs: int) -> list[Truth]:
    """The log of a continuous-integration runner in which a coding agent works on tickets.

    Traps: several jobs in one file; every line has a time and a level, so results of several lines repeat the stamp and
    are marked "[agent:out+]"; lines of the runner in between; arguments are printed as JSON over several lines, as well
    with stamps; the outcome is the job's last line (succeeded, failed); a job without one was evicted (unknown); the
    level is ERROR where the call failed.
    """
    rng, truths, logs = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "coding", unknown=1):
        clock, run, name = Clock((seed, episode.number)), f"J{rng.randint(100000, 999999)}", f"runner-{episode.number // 4}.log"  # fmt: skip
        log = logs.setdefault(name, [])

        def line(text: str, level: str = "INFO", clock: Clock = clock, log: list = log) -> None:
            log.append(f"{clock.iso()} {level:5} {text}")

        line(f"##[group] job {run}")
        line(f"[agent:task] {episode.task}")
        for act in episode.turns:
            if act.text:
                line(f"[agent:{'plan' if act.calls else 'say'}] {act.text}")
            for call in act.calls:
                first, *more = f"{call.tool} {json.dumps(call.args, indent=2 if len(call.args) > 2 else None)}".split("\n")  # fmt: skip
                line(f"[agent:call] {first}")
                for rest in more:
                    line(f"[agent:call+] {rest}")
                if rng.random() < 0.2:
                    line(f"cache restored from key deps-{hexes(rng, 8)}", "DEBUG")
                for number, rest in enumerate(call.result.split("\n")):
                    line(f"[agent:out{'+' * bool(number)}] {rest}", "ERROR" if call.error else "INFO")
        if episode.outcome != "unknown":
            line("Job succeeded" if episode.ok else "Job failed: checks did not pass")
        line("##[endgroup]")
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    for name, log in logs.items():
        put(folder / name, "\n".join(log) + "\n")
    return truths


@unseen(
    "text",
    ("a run begins at '# Run ID'; sections are ## Thought, ## Tool: NAME, ## Result, ## Answer", "^# Run (?P<id>\\S+)"),
    ("summary.json has passed true or false per run id", "summary.json:$.runs.ID.passed"),
)
def markdown_headings(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Reports of a data agent in Markdown, several runs a file.

    Traps: sections by heading; arguments in a fenced json block, results in a fenced text block or, where they are JSON,
    in a json block as well; the question is a quotation under the run's heading; a failed result has the heading
    "## Result (failed)"; the outcome is in summary.json by run id (null for unknown); a README.md beside.
    """
    rng, truths, files, passed = random.Random(seed), [], {}, {}
    for episode in episodes(seed, runs, "data", unknown=1):
        run, name = f"DA-{rng.randint(10000, 99999)}", f"reports/batch-{episode.number // 3}.md"
        text = files.setdefault(name, ["Reports of the data agent. Times are UTC.\n"])
        text.append(f"# Run {run}\n\n> {episode.task}\n")
        for act in episode.turns:
            if act.text:
                text.append(f"## {'Thought' if act.calls else 'Answer'}\n\n{act.text}\n")
            for call in act.calls:
                fence = "json" if call.result[:1] in "[{" else "text"
                text.append(f"## Tool: {call.tool}\n\n```json\n{json.dumps(call.args, indent=2)}\n```\n")
                text.append(f"## Result{' (failed)' * call.error}\n\n```{fence}\n{call.result}\n```\n")
        passed[run] = {"passed": {"success": True, "failure": False, "unknown": None}[episode.outcome], "seconds": rng.randint(9, 300)}  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    for name, text in files.items():
        put(folder / name, "\n".join(text))
    put(folder / "summary.json", {"suite": "warehouse", "runs": passed}, indent=1)
    put(folder / "README.md", "# Reports\n\n## How to read\n\nOne section a step.\n")
    return truths


@unseen(
    "text",
    ("each file is a run of tagged steps; <call tool=NAME> has lines key = JSON value", "<step n=\\d+> ... </step>"),
    ("the last line has the verdict: pass, fail or none", "^<verdict (pass|fail|none)/>$"),
)
def tagged_steps(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A research agent's dump with tags that are not XML (nothing is escaped), one text file a run.

    Traps: arguments are lines "key = JSON value"; long results are cut in the middle (" [...] ": the truth is the cut
    text with that mark); every third file lost its beginning and says so: there the task is unknown ("") and no observe
    step opens the run; the verdict is the last line of the file ("none" is unknown); whether a call failed is not
    marked; a notes.txt beside.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "research", dialogue=True, unknown=1):
        clock, lost, steps = Clock((seed, episode.number)), episode.number % 3 == 1, []
        lines = [f"<!-- dump {clock.iso()} -->"]
        lines.append("<!-- beginning lost -->" if lost else f"<question>{episode.task}</question>")
        for number, step in enumerate(steps_of(episode, task=False, errors=False), 1):
            text = step.text
            if step.kind == "observe":
                lines.append(f"<user>{text}</user>")
            elif step.kind == "say":
                lines.append(f"<step n={number}>\n<answer>{text}</answer>\n</step>")
            else:
                text = f"{text[:30]} [...] {text[-20:]}" if len(text) > 70 else text
                lines.append(f"<step n={number}>")
                lines += [f"<think>{step.said}</think>"] * bool(step.said)
                pairs = [f"{key} = {json.dumps(value)}" for key, value in (step.arguments or {}).items()]
                lines += [f'<call tool="{step.tool}">', *pairs, "</call>", f"<output>\n{text}\n</output>", "</step>"]
            steps.append(Step(*step[:3], text, *step[4:]))
        if not lost:
            steps.insert(0, Step("observe", "", None, episode.task, actor="user"))
        lines.append(f"<verdict { {'success': 'pass', 'failure': 'fail', 'unknown': 'none'}[episode.outcome]}/>")
        run = f"dump-{hexes(rng, 8)}"
        put(folder / f"{run}.txt", "\n".join(lines) + "\n")
        truths.append(Truth(run, f"{run}.txt", "" if lost else episode.task, episode.outcome, steps))
    put(folder / "notes.txt", "verdicts are by two judges; none: they did not agree\n")
    return truths
