"""A loop around litellm, watched by a guard.

pip install ".[gbdt,litellm]"
python examples/litellm/run.py
"""

import json
import os
import sys
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # asks nobody for prices
sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import litellm
from practice import find_order, refund
from rehearsal import rehearse

TOOLS = {"find_order": find_order, "refund": refund}


def run_agent(guard, url, run):
    messages = [{"role": "system", "content": "You are the clerk."}, {"role": "user", "content": run.task}]
    completion = guard.litellm(litellm.completion)
    with guard.run(run.task, run_id=run.task_id):
        while True:
            answer = completion(model="openai/scripted", messages=messages, base_url=url, api_key="none")
            reply = answer.choices[0].message
            messages.append(reply)
            if not reply.tool_calls:
                return
            for call in reply.tool_calls:
                try:
                    result = TOOLS[call.function.name](**json.loads(call.function.arguments))
                except LookupError as exc:
                    result = f"Error: {exc}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    rehearse(run_agent)
