"""The OpenAI Agents SDK, watched by a guard.

pip install ".[gbdt,openai-agents]"
python examples/openai_agents/run.py
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import openai
from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from practice import find_order, refund
from rehearsal import rehearse

set_tracing_disabled(True)
clerk = Agent(name="clerk", instructions="You are the clerk.", tools=[function_tool(find_order), function_tool(refund)])


async def run_agent(guard, url, run):
    async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
        set_default_openai_client(client)
        hooks = guard.openai_agents(run_id=run.task_id)
        await Runner.run(clerk, run.task, hooks=hooks, max_turns=20)


if __name__ == "__main__":
    rehearse(lambda guard, url, run: asyncio.run(run_agent(guard, url, run)))
