"""Row-like formats: an element (row, line, entry) for every step or event."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path

from unseen.truth import Call, Clock, Step, Truth, episodes, hexes, put, put_lines, steps_of, unseen


@unseen(
    "rows",
    ("rows of one sitzung are a run, art says what a row is", "rows grouped by sitzung"),
    ("the row with art urteil has bestanden or durchgefallen in nutzlast", "row art=urteil: nutzlast"),
)
def semicolon_csv(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A German call centre's table of its agent's moves, semicolons, several sessions a file.

    Traps: German columns and words; several runs in one file; a call and its result are one row; arguments are JSON in
    a cell; the task is a row of its own; the verdict is the session's last row (bestanden, durchgefallen, abgebrochen
    for unknown); a preis.csv of the same shape of file, but another table, beside.
    """
    rng, truths, files = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "telco_de", dialogue=True, unknown=1):
        run, name, clock = f"S{rng.randint(100000, 999999)}", f"protokoll_{episode.number // 4 + 1}.csv", Clock((seed, episode.number))  # fmt: skip
        rows = files.setdefault(name, [["sitzung", "zug", "zeit", "art", "werkzeug", "nutzlast", "text", "ausgabe", "fehler"]])  # fmt: skip
        own: list[tuple] = [("auftrag", "", "", episode.task, "", "")]
        for act in episode.turns:
            if not act.calls:
                own.append(("kunde" if act.who == "user" else "antwort", "", "", act.text, "", ""))
            for call in act.calls:
                own.append(("aktion", call.tool, json.dumps(call.args, ensure_ascii=False), act.text, call.result, "ja" if call.error else "nein"))  # fmt: skip
        verdict = {"success": "bestanden", "failure": "durchgefallen", "unknown": "abgebrochen"}[episode.outcome]
        own.append(("urteil", "", verdict, "", "", ""))
        rows += [[run, number, f"{clock.tick():%d.%m.%Y %H:%M:%S}", *cells] for number, cells in enumerate(own, 1)]
        truths.append(Truth(run, name, episode.task, episode.outcome, steps_of(episode)))
    files["preis.csv"] = [["tarif", "euro"], ["Flat 100", "19,90"], ["Flat 250", "29,90"]]
    for name, rows in files.items():
        out = io.StringIO()
        csv.writer(out, delimiter=";", lineterminator="\r\n").writerows(rows)
        put(folder / name, out.getvalue())
    return truths


@unseen(
    "rows",
    ("lines with n are steps: reason, do.verb and its arguments, saw or err", "@.do.verb"),
    ("the last line has final.score; success from the header's need on", "$.events[*].final.score"),
)
def browser_lines(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A browser agent's recorder, JSON lines, one file a run, with a header and a trailer line.

    Traps: three kinds of lines without a type (header, steps, trailer), told by their keys; the verb stands among its
    arguments; screenshot lines in between that say nothing; a numeric score against a mark in the header; a file
    without trailer was cut by a crash (unknown); the goal is in the header; the trailer repeats the answer.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "browser", unknown=2):
        clock, run, need = Clock((seed, episode.number)), f"rec-{hexes(rng, 8)}", rng.choice([3, 4])
        lines: list[dict] = [{"recorder": "2.1", "job": run, "goal": episode.task, "case": episode.task_id, "need": need}]
        for number, act in enumerate(episode.turns):
            if rng.random() < 0.3:
                lines.append({"at": clock.iso(), "shot": f"{hexes(rng, 6)}.png"})
            line: dict = {"n": number, "at": clock.iso(), "page": {"url": f"https://site.example/{hexes(rng, 4)}"}}
            line |= {"reason": act.text} if act.calls else {"answer": act.text}
            for call in act.calls:
                line |= {"do": {"verb": call.tool, **call.args}, ("err" if call.error else "saw"): call.result}
            lines.append(line)
        if episode.outcome != "unknown":
            score = rng.choice([need, 5]) if episode.ok else rng.randint(0, need - 1)
            lines.append({"final": {"score": score, "of": 5, "answer": episode.turns[-1].text}, "lines": len(lines)})
        put_lines(folder / "recordings" / f"{run}.jsonl", lines)
        truths.append(Truth(run, f"recordings/{run}.jsonl", episode.task, episode.outcome, steps_of(episode, task=False), episode.task_id))  # fmt: skip
    put(folder / "recordings" / "devices.json", {"desktop": {"w": 1280, "h": 800}, "phone": {"w": 390, "h": 844}})
    return truths


@unseen(
    "rows",
    ("thoughts, actions and observations are lists side by side", "$.items[*].rollout.actions[*]"),
    ("em 1 is a success, 0 a failure", "$.items[*].em"),
)
def columns_lists(folder: Path, seed: int, runs: int) -> list[Truth]:
    """A question answering harness's predictions: lists side by side for each item.

    Traps: lists joined by position, no names of tools apart from the action's text, tool({json}); several runs in one
    file; the last action finish({"answer": ...}) has no observation (that list is one shorter); f1 beside em is no
    verdict; with an even seed ALL runs succeeded (with an odd one 40 % failed): show even ones, ask about odd ones;
    harness.json beside; the question is no event.
    """
    rng, truths, files = random.Random(seed), [], {}
    for episode in episodes(seed, runs, "research", failures=0.4 if seed % 2 else 0.0):
        calls = [(act.text, act.calls[0]) for act in episode.turns if act.calls]
        calls.append(("", Call("finish", {"answer": episode.turns[-1].text}, "", False)))
        rollout = {
            "thoughts": [thought for thought, _ in calls],
            "actions": [f"{call.tool}({json.dumps(call.args)})" for _, call in calls],
            "observations": [call.result for _, call in calls[:-1]],
        }
        steps = [Step("call", call.tool, call.args, call.result, None, thought) for thought, call in calls]
        run, name = f"q{rng.randint(10000, 99999)}", f"dev_preds_{episode.number // 5}.json"
        f1 = 1.0 if episode.ok else round(rng.uniform(0, 0.9), 2)
        files.setdefault(name, []).append({"qid": run, "question": episode.task, "rollout": rollout, "em": int(episode.ok), "f1": f1})  # fmt: skip
        truths.append(Truth(run, name, episode.task, episode.outcome, steps))
    for name, items in files.items():
        put(folder / name, {"split": "dev", "items": items})
    put(folder / "harness.json", {"max_steps": 16, "tools": ["search_docs", "open_doc", "calculate", "note"]}, indent=2)
    return truths


@unseen(
    "rows",
    ("runData has a list of executions for each node; take all by executionIndex",
     "$.execution.data.resultData.runData.*[*]"),
    ("the outcome is review: ok or not ok; status is not", "$.execution.customData.review"),
)  # fmt: skip
def workflow_nodes(folder: Path, seed: int, runs: int) -> list[Truth]:
    """An automation platform's execution records with an agent among the nodes, one JSON an execution.

    Traps: steps are grouped by node (the tool's name is a key) and must be ordered by executionIndex; the agent's
    speech is the node "Assistant", and its text before a call is the thought; status "success" stands in every
    execution and is no verdict; a failed node has `error` and no data; the review is "ok", "not ok" or null (unknown);
    the order is in the node "Webhook", whose item is the user's message.
    """
    rng, truths = random.Random(seed), []
    for episode in episodes(seed, runs, "retail", unknown=1):
        clock, run, nodes = Clock((seed, episode.number)), str(rng.randint(1000, 99999)), {}

        def ran(node: str, items: dict | None, inputs: dict | None = None, error: str = "", clock: Clock = clock,
                nodes: dict = nodes) -> None:  # fmt: skip
            entry: dict = {"startTime": clock.ms(), "executionIndex": sum(map(len, nodes.values())), "executionTime": rng.randint(3, 900)}  # fmt: skip
            entry |= {"inputOverride": {"ai_tool": [[{"json": inputs}]]}} if inputs is not None else {}
            entry |= {"error": {"message": error, "name": "NodeError"}} if error else {"data": {"main": [[{"json": items}]]}}  # fmt: skip
            nodes.setdefault(node, []).append(entry)

        ran("Webhook", {"message": episode.task})
        for act in episode.turns:
            if act.text:
                ran("Assistant", {"output": act.text})
            for call in act.calls:
                ran(call.tool, {"response": call.result}, call.args, call.result if call.error else "")
        keys = sorted(nodes, key=lambda node: (node != "Assistant", node))
        review = {"success": "ok", "failure": "not ok", "unknown": None}[episode.outcome]
        execution = {"id": run, "status": "success", "mode": "webhook", "customData": {"review": review, "case": episode.task_id}, "data": {"resultData": {"runData": {key: nodes[key] for key in keys}, "lastNodeExecuted": "Assistant"}}}  # fmt: skip
        put(folder / f"execution-{run}.json", {"execution": execution, "workflow": {"name": "Returns desk"}}, indent=1)
        truths.append(Truth(run, f"execution-{run}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))  # fmt: skip
    return truths
