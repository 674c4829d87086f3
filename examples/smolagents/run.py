"""An agent of smolagents, watched by a guard.

pip install ".[gbdt,smolagents]" "smolagents[openai]"
python examples/smolagents/run.py
"""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from rehearsal import rehearse
from scripted_model import calls
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def find_order(id: str) -> str:
    """Find an order by its number.

    Args:
        id: of the order
    """
    return practice.find_order(id)


@tool
def refund(id: str) -> str:
    """Pay an order back.

    Args:
        id: of the order
    """
    return practice.refund(id)


def run_agent(guard, url, run):
    model = OpenAIServerModel("scripted", api_base=url, api_key="none")
    agent = ToolCallingAgent([find_order, refund], model, name="clerk", description="Helps.", verbosity_level=0)
    agent.prompt_templates["system_prompt"] = "You are the clerk."
    guard.smolagents(agent, run_id=run.task_id).run(run.task, max_steps=20)


def ends_by_a_call(run):
    """Agents of smolagents give their answer by a call."""
    *script, last = run.script
    return replace(run, script=[*script, calls(("final_answer", {"answer": last["text"]}))])


if __name__ == "__main__":
    rehearse(run_agent, adapted=ends_by_a_call, by_requests=True)
