"""A crew of CrewAI, watched by a guard.

pip install ".[gbdt,crewai]"
python examples/crewai/run.py
"""

import os
import sys
from pathlib import Path

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from rehearsal import rehearse


def run_agent(guard, url, run):
    clerk = Agent(
        role="clerk", goal="Help the customer.", backstory="You are the clerk.", cache=False,
        llm=LLM(model="openai/scripted", base_url=url, api_key="none"),
        tools=[tool("find_order")(practice.find_order), tool("refund")(practice.refund)],
    )  # fmt: skip
    task = Task(description=run.task, expected_output="What was done.", agent=clerk)
    try:
        with guard.crewai(run_id=run.task_id):
            Crew(agents=[clerk], tasks=[task]).kickoff()
    except Exception as exc:  # CrewAI stops an agent that makes the same call five times
        print(exc)


if __name__ == "__main__":
    rehearse(run_agent)
