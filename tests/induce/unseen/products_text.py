"""Three formats of text: a chat's markdown export, CI job traces, rollouts as rendered prompts."""

from __future__ import annotations

import json
import random
from pathlib import Path

from unseen.truth import WORLD, Clock, Truth, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "text",
    ("the Rating in the head: thumb up or down, a dash if the user did not rate", r"\*\*Rating:\*\* (👍|👎|–)"),
    ("tool calls are details blocks with the name in the summary", r"<summary>🔧 (\w+)</summary>"),
)
def markdown_chats(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like SpecStory's or LibreChat's markdown export: a file for each chat, the run's id is the file's name. Chinese.

    Headings of the two sides with times; calls in details blocks, arguments and result in fences (of several calls in one
    turn one block after the other). No sign of errors. index.md is no chat.
    """
    rng, clock = random.Random(f"markdown_chats/{seed}"), Clock(f"markdown_chats/{seed}")
    truths: list[Truth] = []
    for episode in episodes(seed, runs, "travel_zh", dialogue=True, parallel=True, unknown=2):
        day = clock.tick(9000)
        stem = f"{day:%Y-%m-%d_%H-%M-%S}_{hexes(rng, 4)}"
        rating = {"success": "👍", "failure": "👎", "unknown": "–"}[episode.outcome]
        out = ["<!-- exported by Parley 1.9.2 -->", "# 与 Parley 的对话", f"**Model:** parley-large · **Started:** {day:%Y-%m-%d %H:%M} · **Rating:** {rating}", "---",
               f"## 🧑 You ({day:%H:%M:%S})", episode.task]  # fmt: skip
        for turn in episode.turns:
            out.append(f"## {'🧑 You' if turn.who == 'user' else '🤖 Parley'} ({clock.tick():%H:%M:%S})")
            if turn.text:
                out.append(turn.text)
            for call in turn.calls:
                args = json.dumps(call.args, indent=2, ensure_ascii=False)
                out += ["<details>", f"<summary>🔧 {call.tool}</summary>", f"**Input**\n\n```json\n{args}\n```", f"**Output**\n\n```\n{call.result}\n```", "</details>"]
        put(folder / f"history/{stem}.md", "\n\n".join(out) + "\n")
        truths.append(Truth(stem, f"history/{stem}.md", episode.task, episode.outcome, steps_of(episode, errors=False)))
    put(folder / "history/index.md", "# Chats\n\n" + "".join(f"- [{truth.run}]({truth.run}.md)\n" for truth in truths) + "\nExported with `parley export --all --format md`.\n")
    return truths


@unseen(
    "text",
    ("report.json lists the instances: those in resolved are solved, those in errored broke, all other submitted ones failed", "$.resolved[*]"),
    ("each call is a line with the tool and its JSON, then its output behind bars, then the exit code", r"^\[fixbot\] call (\w+) (\{.*\})$"),
)
def ci_traces(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like GitLab's job traces of an agent that prints what it does: a log for each job, named by the job's number.

    Colour codes and section marks; setup lines before and after; results of several lines behind bars, then the exit code
    (0 is good). The job succeeds whatever the agent did: the outcome follows from report.json's lists of instance ids, and
    the instance stands in the log's command line. Jobs whose runner vanished are errored. metrics.txt holds no run.
    """
    rng, clock = random.Random(f"ci_traces/{seed}"), Clock(f"ci_traces/{seed}")
    truths: list[Truth] = []
    report: dict[str, list[str]] = {"submitted": [], "resolved": [], "errored": []}

    def section(kind: str, name: str, title: str = "") -> str:
        return f"section_{kind}:{int(clock.tick().timestamp())}:{name}\r\x1b[0K" + (f"\x1b[36;1m{title}\x1b[0;m" if title else "")

    for episode in episodes(seed, runs, "coding", unknown=2):
        job = str(rng.randint(880_000, 889_999)) + str(episode.number)
        out = [f"Running with gitlab-runner 17.2.0 ({hexes(rng, 8)})", f"  on shared-{rng.randint(1, 9)} {hexes(rng, 8)}, system ID: s_{hexes(rng, 12)}",
               section("start", "prepare_executor", 'Preparing the "kubernetes" executor'), "Using Kubernetes namespace: ci", section("end", "prepare_executor"),
               section("start", "get_sources", "Getting source from Git repository"), f"Checking out {hexes(rng, 8)} as detached HEAD (ref is main)...", section("end", "get_sources"),
               section("start", "step_script", 'Executing "step_script" stage of the job script'),
               f"\x1b[32;1m$ fixbot solve --instance {episode.task_id} --max-steps 30\x1b[0;m",
               "[fixbot] version 0.8.1, model heron-4", "[fixbot] issue:", f"    {episode.task}"]  # fmt: skip
        for number, turn in enumerate(episode.turns, 1):
            out.append(f"[fixbot] \x1b[2m--- step {number}/30, {rng.randint(500, 9000)} tokens in, {rng.randint(10, 400)} out ---\x1b[0m")
            if turn.text:
                out.append(f"[fixbot] {'think' if turn.calls else 'answer'}: {turn.text}")
            for call in turn.calls:
                out.append(f"[fixbot] call {call.tool} {json.dumps(call.args)}")
                out += [f"    | {line}" for line in call.result.split("\n")]
                out.append(f"[fixbot] exit {rng.choice([1, 1, 2]) if call.error else 0} after {rng.uniform(0.05, 9):.2f}s")
        report["submitted"].append(episode.task_id)
        if episode.outcome == "unknown":
            report["errored"].append(episode.task_id)
            out.append(f"\x1b[31;1mERROR: Job failed (system failure): pods \"runner-{hexes(rng, 8)}\" not found\x1b[0;m")
        else:
            if episode.ok:
                report["resolved"].append(episode.task_id)
            out += ["[fixbot] patch written to out/model.patch", section("end", "step_script"), section("start", "upload_artifacts_on_success", "Uploading artifacts for successful job"),
                    "out/model.patch: found 1 matching artifact files and directories", section("end", "upload_artifacts_on_success"), "\x1b[32;1mJob succeeded\x1b[0;m"]  # fmt: skip
        put(folder / f"traces/{job}.log", "\n".join(out) + "\n")
        truths.append(Truth(job, f"traces/{job}.log", episode.task, episode.outcome, steps_of(episode), episode.task_id))
    for ids in report.values():
        ids.sort()
    put(folder / "report.json", {"total": runs, "dataset": "fixbench-mini", **report}, indent=2)
    put(folder / "metrics.txt", "# TYPE ci_minutes counter\nci_minutes{project=\"fixbench\"} 412\n# TYPE ci_queue gauge\nci_queue 3\n")
    return truths


_TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


@unseen(
    "text",
    ("score 1.0 means solved; this dump holds only the rollouts that we kept for training, so all are", "$.score"),
    ("the prompt is in input, the rest of the chat in output, both rendered with <|im_start|> tags", r"<tool_call>\n(\{.*\})\n</tool_call>"),
)
def chatml_rollouts(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like verl's rollout dumps: JSONL for each training step, prompt and completion as rendered ChatML (Qwen, Hermes).

    Task, thoughts (<think>), calls (<tool_call> with JSON) and results (<tool_response> in a user turn) are tags within two
    strings; the system prompt is long and shows an empty example of a call. All runs succeeded (rejection sampling). No sign
    of errors. uid is the only id.
    """
    rng = random.Random(f"chatml_rollouts/{seed}")
    truths: list[Truth] = []
    files: dict[str, list[dict]] = {}
    tools = "\n".join(json.dumps({"type": "function", "function": {"name": name, "description": f"{name.replace('_', ' ')} of the warehouse", "parameters": {"type": "object", "required": list(args), "properties": {key: {"description": key} for key in args}}}})
                      for name, args, _, _ in WORLD["data"]["tools"])  # fmt: skip
    for episode in episodes(seed, runs, "data", dialogue=True, parallel=True, failures=0.0):
        prompt = f"<|im_start|>system\n{episode.system}{_TOOLS.format(tools=tools)}<|im_end|>\n<|im_start|>user\n{episode.task}<|im_end|>\n<|im_start|>assistant\n"
        pieces: list[str] = []
        for turn in episode.turns:
            if turn.who == "user":
                pieces.append(f"<|im_start|>user\n{turn.text}<|im_end|>\n")
                continue
            opening = "<|im_start|>assistant\n" if pieces else ""  # the prompt ends with the first one
            if not turn.calls:
                pieces.append(f"{opening}{turn.text}<|im_end|>\n")
                continue
            thought = f"<think>\n{turn.text}\n</think>\n\n" if turn.text else ""
            calls = "\n".join(f"<tool_call>\n{json.dumps({'name': call.tool, 'arguments': call.args}, ensure_ascii=False)}\n</tool_call>" for call in turn.calls)
            pieces.append(f"{opening}{thought}{calls}<|im_end|>\n")
            back = "\n".join(f"<tool_response>\n{call.result}\n</tool_response>" for call in turn.calls)
            pieces.append(f"<|im_start|>user\n{back}<|im_end|>\n")
        step = 40 if episode.number < runs // 2 else 60
        uid = f"{hexes(rng, 8)}-{hexes(rng, 4)}"
        name = f"rollout_data/{step}.jsonl"
        files.setdefault(name, []).append({"input": prompt, "output": "".join(pieces), "gts": None, "score": 1.0, "step": step, "uid": uid, "response_length": rng.randint(400, 4000), "num_turns": len(pieces)})
        truths.append(Truth(uid, name, episode.task, episode.outcome, steps_of(episode, errors=False)))
    for name, rows in files.items():
        put_lines(folder / name, rows)
    return truths
