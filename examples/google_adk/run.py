"""An agent of Google's Agent Development Kit, watched by a guard.

pip install ".[gbdt,google-adk,litellm]"
python examples/google_adk/run.py
"""

import asyncio
import os
import sys
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # asks nobody for prices
sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part
from rehearsal import rehearse


def find_order(id: str) -> dict[str, str]:
    """Find an order by its number."""
    try:
        return {"result": practice.find_order(id)}
    except LookupError as exc:
        return {"error": str(exc)}


def run_agent(guard, url, run):
    async def ask():
        model = LiteLlm("openai/scripted", api_base=url, api_key="none")
        agent = LlmAgent(
            name="clerk", model=model, instruction="You are the clerk.", tools=[find_order, practice.refund]
        )
        runner = InMemoryRunner(agent=agent, app_name="orders", plugins=[guard.google_adk(run_id=run.task_id)])
        session = await runner.session_service.create_session(app_name="orders", user_id="customer")
        message = Content(role="user", parts=[Part(text=run.task)])
        async for _ in runner.run_async(user_id="customer", session_id=session.id, new_message=message):
            pass

    asyncio.run(ask())


if __name__ == "__main__":
    rehearse(run_agent)
