"""An agent of LlamaIndex, watched by a guard.

pip install ".[gbdt,llama-index]" llama-index-llms-openai
python examples/llama_index/run.py
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import httpx
import practice
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from rehearsal import rehearse


def run_agent(guard, url, run):
    async def ask():
        async with httpx.AsyncClient() as client:
            llm = OpenAI("gpt-4o", api_base=url, api_key="none", async_http_client=client)
            agent = FunctionAgent(
                name="clerk", system_prompt="You are the clerk.", tools=[practice.find_order, practice.refund], llm=llm
            )
            await guard.llama_index(agent, run_id=run.task_id).run(user_msg=run.task, max_iterations=100)

    asyncio.run(ask())


if __name__ == "__main__":
    rehearse(run_agent)
