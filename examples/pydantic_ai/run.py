"""An agent of pydantic-ai, watched by a guard.

pip install ".[gbdt,pydantic-ai]" openai
python examples/pydantic_ai/run.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from rehearsal import rehearse


def find_order(id: str) -> str:
    """Find an order by its number."""
    try:
        return practice.find_order(id)
    except LookupError as exc:
        raise ModelRetry(str(exc)) from exc


def run_agent(guard, url, run):
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="none"))
    watched = guard.pydantic_ai(run_id=run.task_id)
    agent = Agent(
        model, name="clerk", instructions="You are the clerk.", tools=[find_order, practice.refund], retries=20,
        capabilities=[watched],
    )  # fmt: skip
    agent.run_sync(run.task)


if __name__ == "__main__":
    rehearse(run_agent)
