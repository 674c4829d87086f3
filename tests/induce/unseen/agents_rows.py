"""Rows of a product: a trajectory under names that count, whose mark stands in a file of settings."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from unseen.truth import Step, Truth, episodes, put, unseen


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
