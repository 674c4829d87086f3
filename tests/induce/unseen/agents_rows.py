"""Rows of products: a trajectory under names that count, turns in cells of JSON, traces of parts inside parts."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Step, Truth, as_value, episodes, hexes, put, put_lines, sorted_text, unseen


@unseen("rows", ("each entry of the list is one run; its steps are thought_0, tool_name_0, tool_args_0, observation_0, thought_1 ... in trajectory", "trajectory"),
        ("answer_correctness is a score; from metric_threshold in config.yaml on it counts as passed", "answer_correctness"))  # fmt: skip
def dspy_evaluate(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like dspy.Evaluate(save_as_json=...) of a ReAct program: example and prediction in one object, the metric by its name.

    Traps: the steps are numbered keys of one object (no list), call and result in one step, the last is the tool finish
    (a real call whose observation is "Completed."); the outcome is a score whose threshold (0.7) stands in config.yaml,
    null where the judge broke. Task and answer stand only beside the trajectory. Failed calls are only told by words.
    """
    rng = random.Random(f"dspy_evaluate/{seed}")
    truths: list[Truth] = []
    table: list[dict] = []
    for episode in episodes(seed, runs, "research", unknown=2, failures=0.5):
        trajectory: dict[str, Any] = {}
        steps: list[Step] = []
        answer = ""
        place = 0
        for turn in episode.turns:
            if not turn.calls:
                answer = turn.text
            for call in turn.calls:
                observation = f"Execution error in {call.tool}: {call.result}" if call.error else call.result
                thought = turn.text or f"Let me use {call.tool} next."
                trajectory |= {f"thought_{place}": thought, f"tool_name_{place}": call.tool, f"tool_args_{place}": call.args, f"observation_{place}": observation}
                steps.append(Step("call", call.tool, call.args, observation, None, thought))
                place += 1
        if episode.outcome != "unknown":
            thought = rng.choice(["I have all information to answer the question.", "Nothing more to look up; I finish here."])
            trajectory |= {f"thought_{place}": thought, f"tool_name_{place}": "finish", f"tool_args_{place}": {}, f"observation_{place}": "Completed."}
            steps.append(Step("call", "finish", {}, "Completed.", None, thought))
        row = {"question_id": episode.task_id, "question": episode.task, "level": rng.choice([1, 2, 3]), "example_answer": str(rng.randint(1700, 1990)),
               "trajectory": trajectory, "reasoning": "The trajectory names the source; the answer follows from it.", "pred_answer": answer or "unclear",
               "answer_correctness": None if episode.outcome == "unknown" else episode.score}  # fmt: skip
        if episode.outcome == "unknown":
            row["judge_error"] = "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached"
        table.append(row)
        truths.append(Truth(episode.task_id, "runs/react_dev.json", episode.task, episode.outcome, steps, episode.task_id))
    put(folder / "runs/react_dev.json", table, indent=2)
    put(folder / "config.yaml", "program: react\nlm: openai/gpt-4.1-mini\nmax_iters: 16\nmetric: answer_correctness\nmetric_threshold: 0.7\nnum_threads: 8\ndisplay_progress: true\n")
    put(folder / "program.json", {"react": {"traces": [], "train": [], "demos": [], "signature": {"instructions": "Answer the question with evidence from the documents.", "fields": [{"prefix": "Question:", "description": "${question}"}]}, "lm": None},
                                  "metadata": {"dependency_versions": {"python": "3.12", "dspy": "3.0.4", "cloudpickle": "3.1"}}}, indent=2)  # fmt: skip
    return truths


def _uuid(rng: random.Random) -> str:
    return "-".join(hexes(rng, size) for size in (8, 4, 4, 4, 12))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@unseen("rows", ("one row is one turn: the user's words, what the agent did (tool uses) and what it said, in the response's actions; sort by turn_position", "response.queryResult.generativeInfo.actionTracingInfo.actions"),
        ("the parameter ergebnis of the last turn: erledigt is good, nicht erledigt is bad", "response.queryResult.parameters.ergebnis"))  # fmt: skip
def dialogflow_cx(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like Dialogflow CX's (playbooks') conversation history in BigQuery, exported as CSV. German.

    Traps: JSON in the cells; a row holds several steps, a toolUse its own result; the same words stand in the request, the
    response's messages and the actions; rows in no order (turn_position); the outcome is a German word in the session's
    parameters of the last turn (before: in Bearbeitung; technischer Abbruch is no verdict), bot_answer_feedback rates
    single turns only. The run's id is the end of conversation_name. A tool's output is an object by HTTP status.
    """
    rng, clock = random.Random(f"dialogflow_cx/{seed}"), Clock(f"dialogflow_cx/{seed}")
    truths: list[Truth] = []
    rows: list[list[Any]] = []
    agent = "projects/telco-prod/locations/europe-west3/agents/" + _uuid(rng)
    for episode in episodes(seed, runs, "telco_de", dialogue=True, unknown=2):
        run = f"dfMessenger-{hexes(rng, 12)}"
        now = clock.tick(900)
        groups: list[tuple[str, list]] = [(episode.task, [])]
        for turn in episode.turns:
            if turn.who == "user":
                groups.append((turn.text, []))
            else:
                groups[-1][1].append(turn)
        steps: list[Step] = []
        for place, (words, turns) in enumerate(groups):
            now += timedelta(milliseconds=rng.randint(2000, 60_000))
            actions: list[dict] = [{"userUtterance": {"text": words}}]
            steps.append(Step("observe", "", None, words, actor="user"))
            said: list[str] = []
            for turn in turns:
                for call in turn.calls:
                    output = {"500": {"fehler": call.result}} if call.error else {"200": {"antwort": as_value(call.result)}}
                    action: dict = {"toolUse": {"tool": f"{agent}/tools/{hexes(rng, 8)}", "action": call.tool, "inputActionParameters": call.args, "outputActionParameters": output}}
                    if call.error:
                        action["status"] = {"exception": {"errorMessage": "tool call returned HTTP 500"}}
                    actions.append(action)
                    steps.append(Step("call", call.tool, call.args, sorted_text(output), call.error))
                if not turn.calls:
                    actions.append({"agentUtterance": {"text": turn.text}})
                    said.append(turn.text)
                    steps.append(Step("say", "respond", None, turn.text))
            last = place == len(groups) - 1
            verdict = {"success": "erledigt", "failure": "nicht erledigt", "unknown": "technischer Abbruch"}[episode.outcome]
            request = {"session": f"{agent}/sessions/{run}", "queryInput": {"text": {"text": words}, "languageCode": "de"}, "queryParams": {"timeZone": "Europe/Berlin", "channel": "DF_MESSENGER"}}
            response = {"responseId": _uuid(rng), "queryResult": {"text": words, "languageCode": "de", "parameters": {"ticket": episode.task_id, "ergebnis": verdict if last else "in Bearbeitung"},
                        "responseMessages": [{"text": {"text": [text]}, "responseType": "HANDLER_PROMPT"} for text in said], "match": {"matchType": "PLAYBOOK", "confidence": 1.0},
                        "generativeInfo": {"currentPlaybooks": [f"{agent}/playbooks/{'0' * 8}"], "actionTracingInfo": {"actions": actions}}}, "responseType": "FINAL"}  # fmt: skip
            feedback = _dumped({"rating": rng.choice(["THUMBS_UP", "THUMBS_DOWN"])}) if rng.random() < 0.2 else ""
            derived = {"agentUtterances": "\n".join(said), "userUtterances": words, "smalltalkUsed": False}
            rows.append(["telco-prod", agent.rsplit("/", 1)[1], f"{agent}/sessions/{run}", place + 1, f"{now:%Y-%m-%d %H:%M:%S.%f} UTC", "de", _dumped(request), _dumped(response), "[]", _dumped(derived), "", feedback])
        truths.append(Truth(run, "bq-results-000000000000.csv", episode.task, episode.outcome, steps, episode.task_id))
    rng.shuffle(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["project_id", "agent_id", "conversation_name", "turn_position", "request_time", "language_code", "request", "response", "partial_responses", "derived_data", "conversation_signals", "bot_answer_feedback"])
    writer.writerows(rows)
    put(folder / "bq-results-000000000000.csv", out.getvalue())
    put(folder / "export.sql", "EXPORT DATA OPTIONS(uri='gs://telco-exports/bq-results-*.csv', format='CSV', header=true) AS\nSELECT * FROM `telco-prod.dialogflow.conversation_history`;\n")
    return truths


@unseen("rows", ("lines with the same sessionId are one run; calls are invocationInput, results observation, the user's words invocation.inputText", "trace.orchestrationTrace"),
        ("evaluation_results.jsonl: the line of Builtin.GoalSuccessRate for the session, label Yes or No", "evaluation_results.jsonl:label"))  # fmt: skip
def bedrock_agent(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like the trace parts of Amazon Bedrock's InvokeAgent, logged one a line, with AgentCore evaluations beside. Spanish.

    Traps: events of all sessions interleaved, each kind under another key; arguments are a list of name, type and value
    (values always text); the result comes in a later observation; model invocations carry long prompts as JSON in a string
    and repeat the thoughts; the companion file has lines of several evaluators, of which GoalSuccessRate is the verdict;
    a failureTrace ends a run whose evaluation has an errorCode: unknown. No sign of failed calls.
    """
    rng, clock = random.Random(f"bedrock_agent/{seed}"), Clock(f"bedrock_agent/{seed}")
    truths: list[Truth] = []
    lines: list[tuple] = []
    results: list[dict] = []
    who = {"agentId": "".join(rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", k=10)), "agentAliasId": "TSTALIASID"}
    for episode in episodes(seed, runs, "hr_es", dialogue=True, unknown=2):
        run = _uuid(rng)
        now = clock.tick(120)
        said: list[dict] = []

        def log(entry: dict, run=run) -> None:
            nonlocal now
            now += timedelta(milliseconds=rng.randint(50, 9000))
            stamp = now.isoformat(timespec="microseconds").replace("+00:00", "Z")
            head = {"eventTime": stamp, "sessionId": run, **who}
            if "trace" in entry:
                head |= {"agentVersion": "4", "callerChain": [{"agentAliasArn": f"arn:aws:bedrock:eu-west-1:123456789012:agent-alias/{who['agentId']}/TSTALIASID"}]}
            lines.append((now, len(lines), head | entry))

        def trace(key: str, value: dict, log=log) -> None:
            log({"trace": {"orchestrationTrace": {key: value}}})

        def ask(words: str, log=log, said=said, task_id=episode.task_id) -> None:
            log({"invocation": {"inputText": words, "enableTrace": True, "sessionAttributes": {"case": task_id}}})
            said.append({"content": f"[{{text={words}, type=text}}]", "role": "user"})

        ask(episode.task)
        steps = [Step("observe", "", None, episode.task, actor="user")]
        count = 0
        for turn in episode.turns:
            if turn.who == "user":
                ask(turn.text)
                steps.append(Step("observe", "", None, turn.text, actor="user"))
                count = 0
                continue
            key = f"{hexes(rng, 8)}-{hexes(rng, 4)}-{count}"
            count += 1
            prompt = {"system": (f" {episode.system} Usa solo las funciones permitidas y no inventes datos. ") * 10, "messages": list(said)}
            trace("modelInvocationInput", {"inferenceConfiguration": {"maximumLength": 2048, "stopSequences": [], "temperature": 0.0, "topK": 250, "topP": 1.0}, "text": _dumped(prompt), "traceId": key, "type": "ORCHESTRATION"})
            raw = turn.text or "..."
            trace("modelInvocationOutput", {"metadata": {"usage": {"inputTokens": rng.randint(800, 5000), "outputTokens": rng.randint(20, 300)}}, "rawResponse": {"content": _dumped({"stop_reason": "tool_use" if turn.calls else "end_turn", "content": [{"text": raw, "type": "text"}]})}, "traceId": key})
            said.append({"content": f"[{{text={raw}, type=text}}]", "role": "assistant"})
            if not turn.calls:
                last = turn is episode.turns[-1]
                trace("observation", {"finalResponse": {"text": turn.text}, "traceId": key, "type": "FINISH" if last else "ASK_USER"})
                steps.append(Step("say", "respond", None, turn.text))
                continue
            if turn.text:
                trace("rationale", {"text": turn.text, "traceId": key})
            for call in turn.calls:
                kinds = {bool: "boolean", int: "integer", float: "number", list: "array"}
                args = {name: value if isinstance(value, str) else _dumped(value) for name, value in call.args.items()}
                parameters = [{"name": name, "type": kinds.get(type(call.args[name]), "string"), "value": value} for name, value in args.items()]
                trace("invocationInput", {"actionGroupInvocationInput": {"actionGroupName": "RecursosHumanos", "executionType": "LAMBDA", "function": call.tool, "parameters": parameters}, "invocationType": "ACTION_GROUP", "traceId": key})
                trace("observation", {"actionGroupInvocationOutput": {"text": call.result}, "traceId": key, "type": "ACTION_GROUP"})
                steps.append(Step("call", call.tool, args, call.result, None, turn.text))
        context = {"context": {"spanContext": {"sessionId": run}}}
        for name, level in (("Helpfulness", "trace"), ("GoalSuccessRate", "session"), ("InstructionFollowing", "trace")):
            head = {"evaluatorArn": f"arn:aws:bedrock-agentcore:::evaluator/Builtin.{name}", "evaluatorId": f"Builtin.{name}", "evaluatorName": f"Builtin.{name}", "level": level, **context}
            if episode.outcome == "unknown":
                results.append(head | {"errorCode": "ValidationException", "errorMessage": "The session has no final response to evaluate."})
                continue
            if name == "GoalSuccessRate":
                value, label = float(episode.ok), "Yes" if episode.ok else "No"
            elif name == "Helpfulness":
                value, label = rng.choice([(0.33, "Somewhat Unhelpful"), (0.67, "Somewhat Helpful"), (0.83, "Very Helpful")])
            else:
                value, label = rng.choice([(1.0, "Yes"), (1.0, "Yes"), (0.0, "No")])
            results.append(head | {"value": value, "label": label, "explanation": f"The {level} was judged by the rubric of {name}.", "tokenUsage": {"inputTokens": rng.randint(900, 4000), "outputTokens": 120, "totalTokens": 4120}})
        if episode.outcome == "unknown":
            log({"trace": {"failureTrace": {"failureCode": 424, "failureReason": "Dependency resource: received model timeout/error exception from Bedrock. Try the request again later", "traceId": hexes(rng, 12) + "-0"}}})
        truths.append(Truth(run, "agent-traces.jsonl", episode.task, episode.outcome, steps, episode.task_id))
    lines.sort(key=lambda line: line[:2])
    rng.shuffle(results)
    put_lines(folder / "agent-traces.jsonl", (line[2] for line in lines))
    put_lines(folder / "evaluation_results.jsonl", results)
    return truths
