"""A loop around the plain `openai` client, watched by a guard.

pip install ".[gbdt,llm]"
python examples/openai_client/run.py
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import openai
from practice import find_order, refund
from rehearsal import rehearse

TOOLS = {"find_order": find_order, "refund": refund}


def run_agent(guard, url, run):
    messages = [{"role": "system", "content": "You are the clerk."}, {"role": "user", "content": run.task}]
    with openai.OpenAI(base_url=url, api_key="none") as client, guard.run(run.task, run_id=run.task_id):
        guard.openai(client)
        while True:
            reply = client.chat.completions.create(model="scripted", messages=messages).choices[0].message
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
