"""A LangChain agent, watched by a guard.

pip install ".[gbdt,langchain]" langchain-openai
python examples/langchain/run.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from langchain.agents import create_agent
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from rehearsal import rehearse


@tool
def find_order(id: str) -> str:
    """Find an order by its number."""
    try:
        return practice.find_order(id)
    except LookupError as exc:
        raise ToolException(f"Error: {exc}") from exc


find_order.handle_tool_error = True  # told to the model, not raised


def run_agent(guard, url, run):
    model = ChatOpenAI(base_url=url, api_key="none", model="scripted")
    watched = guard.langchain(run_id=run.task_id)
    agent = create_agent(
        model, [find_order, tool(practice.refund)], system_prompt="You are the clerk.", middleware=[watched]
    )
    agent.invoke({"messages": [("user", run.task)]}, config={"recursion_limit": 100})


if __name__ == "__main__":
    rehearse(run_agent)
