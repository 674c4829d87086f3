"""An agent of AutoGen, watched by a guard.

pip install ".[gbdt,autogen]" "autogen-ext[openai]"
python examples/autogen/run.py
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from rehearsal import rehearse

INFO = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)


def run_agent(guard, url, run):
    async def ask():
        model = OpenAIChatCompletionClient(model="scripted", base_url=url, api_key="none", model_info=INFO)
        agent = AssistantAgent(
            "clerk", model, tools=[practice.find_order, practice.refund], system_message="You are the clerk.",
            max_tool_iterations=100,
        )  # fmt: skip
        await guard.autogen(agent, run_id=run.task_id).run(task=run.task)
        await model.close()

    asyncio.run(ask())


if __name__ == "__main__":
    rehearse(run_agent)
