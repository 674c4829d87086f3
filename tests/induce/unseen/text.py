"""Text logs: agents' transcripts as lines."""

from __future__ import annotations

import json
import random
from pathlib import Path

from unseen.truth import Call, Clock, Step, Truth, episodes, hexes, put, steps_of, unseen


@unseen(
    "text",
    ("a run begins at a line with '=== incident ID opened:' and the task", "=== incident (?P<id>\\S+) opened: (?P<task>.*)"),
    ("CALL tool {json}, then RET rc=N result; state=resolved is a success", "agentd[pid]: (THINK|CALL|RET|SAY)"),
)
def syslog_agent(folder: Path, seed: int, runs: int) -> list[Truth]:
    """An operations agent that writes to the system log of its host.

    Traps: several incidents in one file, one after another; lines of other daemons in between (kernel, sshd), which say
    nothing about the run; results of several lines go on with "    | "; the outcome is the closing line
    (state=resolved, state=handed-over); a killed agent has no closing line (unknown); rc other than 0 is an error.
    """
    rng, truths, logs = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "ops", unknown=1):
        clock, pid, run = Clock((seed, episode.number)), rng.randint(900, 32000), f"INC-{rng.randint(10000, 99999)}"
        name = f"agentd.{episode.number // 4}.log"
        log = logs.setdefault(name, [])

        def line(text: str, who: str = "", clock: Clock = clock, pid: int = pid, log: list = log) -> None:
            first, *more = text.split("\n")
            log.append(f"{clock.tick().strftime('%b %d %H:%M:%S')} edge-00 {who or f'agentd[{pid}]'}: {first}")
            log.extend(f"    | {rest}" for rest in more)

        line(f"=== incident {run} opened: {episode.task}")
        for act in episode.turns:
            if act.text:
                line(f"{'THINK' if act.calls else 'SAY'} {act.text}")
            for call in act.calls:
                line(f"CALL {call.tool} {json.dumps(call.args)}")
                if rng.random() < 0.2:
                    line(f"eth0: renamed from veth{hexes(rng, 6)}", "kernel")
                line(f"RET rc={rng.choice([1, 2, 255]) if call.error else 0} {call.result}")
            if rng.random() < 0.1:
                line(f"Accepted publickey for backup port {rng.randint(30000, 60000)}", f"sshd[{rng.randint(900, 9999)}]")
        if episode.outcome == "unknown":
            line("agentd.service: Main process exited, code=killed, status=9/KILL", "systemd[1]")
        else:
            line(f"=== incident {run} closed state={'resolved' if episode.ok else 'handed-over'}")
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    for name, log in logs.items():
        put(folder / name, "\n".join(log) + "\n")
    return truths


@unseen(
    "text",
    ("a run begins at '# chat session', the user's lines begin with ####", "^# chat session (?P<id>\\S+)"),
    ("ci.json has the pipeline of each session: green or red", "ci.json:$.SESSION.pipeline"),
)
def chat_history_md(folder: Path, seed: int, runs: int) -> list[Truth]:
    """The chat history of a pair-programming tool: one Markdown file a repository, sessions appended.

    Traps: several runs in one file; a call is a quoted line with the tool in backticks and JSON; results are fenced
    blocks, whose text may look like Markdown; the exit code follows the block; notices of the tool are quoted lines,
    too; the outcome is in ci.json by session id (green, red, null for unknown); a changelog (README.md) beside.
    """
    rng, truths, files, pipelines = random.Random(seed), [], {}, {}
    for episode in episodes(seed, runs, "coding", dialogue=True, unknown=1):
        clock, run = Clock((seed, episode.number)), f"s-{hexes(rng, 7)}"
        name = f"repo-{'abc'[episode.number % 3]}/chat.history.md"
        text = files.setdefault(name, [])
        text.append(f"# chat session {run} at {clock.tick():%Y-%m-%d %H:%M:%S}\n\n> {rng.randint(3, 90)} files in the map, model any\n\n#### {episode.task}\n")  # fmt: skip
        for act in episode.turns:
            if act.text:
                text.append(f"{'#### ' if act.who == 'user' else ''}{act.text}\n")
            for call in act.calls:
                text.append(f"> `{call.tool}` {json.dumps(call.args)}\n\n```\n{call.result}\n```\n> exit {int(call.error)}\n")
            if rng.random() < 0.2:
                text.append(f"> Tokens: {rng.randint(1, 40)}k sent, {rng.randint(100, 900)} received.\n")
        pipelines[run] = {"pipeline": {"success": "green", "failure": "red", "unknown": None}[episode.outcome], "minutes": rng.randint(1, 20)}  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    for name, text in files.items():
        put(folder / name, "\n".join(text))
    put(folder / "ci.json", pipelines, indent=1)
    put(folder / "README.md", "# Histories\n\n## 0.3\n\n- sessions now have an id\n\n```\npair --resume s-1234567\n```\n")
    return truths


def _python_call(call: Call) -> str:
    return f"{call.tool}({', '.join(f'{key}={value!r}' for key, value in call.args.items())})"


@unseen(
    "text",
    ("each file is a run; user> and agent> are speech, tool> is a call in Python's spelling, => its result",
     "^(user|agent|tool|  =)> "),
    ("the file name ends in _ok, _ko or _err; _err is unknown", "file name"),
)  # fmt: skip
def console_cut(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Transcripts of an internal assistant's console, one text file a session.

    Traps: calls are Python expressions with keyword arguments (True, single quotes, nested lists); long results are cut
    ("... [+17 chars]": the truth is the cut text without that mark) and go on with indented lines; every third file
    lost its beginning, the task, and says so: there the task is unknown ("") and no observe step opens the run; the
    outcome is only in the file name; Spanish; whether a call failed is not marked; a notes.txt beside.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "hr_es", dialogue=True, unknown=1):
        clock, lost, steps = Clock((seed, episode.number)), episode.number % 3 == 2, []
        lines = ["-- console 1.9 --", f"-- {clock.tick():%d/%m/%Y %H:%M} --"]
        lines.append(f"[... {rng.randint(2, 9)} lines lost ...]" if lost else f"user> {episode.task}")
        for step in steps_of(episode, task=not lost, errors=False):
            text = step.text
            if step.kind == "call":
                lines += [f"agent> {step.said}"] * bool(step.said)
                lines.append(f"tool> {_python_call(Call(step.tool, step.arguments or {}, '', False))}")
                mark = f"... [+{len(text) - 40} chars]" if len(text) > 60 else ""
                text = text[:40] if mark else text
                lines.append("  => " + (text + mark).replace("\n", "\n     "))
            elif step.actor == "user" and step.text != episode.task:
                lines.append(f"user> {text}")
            elif step.kind == "say":
                lines.append(f"agent> {text}")
            steps.append(Step(*step[:3], text, *step[4:]))
        run = f"{clock.tick():%Y%m%d}-{hexes(rng, 5)}_{ {'success': 'ok', 'failure': 'ko', 'unknown': 'err'}[episode.outcome]}"  # fmt: skip
        put(folder / f"{run}.txt", "\n".join(lines) + "\n")
        truths.append(Truth(run, f"{run}.txt", "" if lost else episode.task, episode.outcome, steps))
    put(folder / "notes.txt", "ko: the ticket was opened again within a week\nerr: console crashed\n")
    return truths
