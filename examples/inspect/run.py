"""An agent in Inspect, watched by a guard: a sample is a run, and its score the outcome.

pip install ".[gbdt,inspect]" openai
python examples/inspect/run.py
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import practice
from inspect_ai import Task, eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import includes
from inspect_ai.tool import ToolError, tool
from rehearsal import rehearse


@tool
def find_order():
    async def execute(id: str) -> str:
        """Find an order by its number.

        Args:
            id: The number of the order.
        """
        try:
            return practice.find_order(id)
        except LookupError as exc:
            raise ToolError(str(exc)) from exc

    return execute


@tool
def refund():
    async def execute(id: str) -> str:
        """Pay an order back.

        Args:
            id: The number of the order.
        """
        return practice.refund(id)

    return execute


def run_agent(guard, url, run):
    model = get_model("openai/scripted", base_url=url, api_key="none", responses_api=False)
    agent = react(name="clerk", prompt="You are the clerk.", tools=[find_order(), refund()], submit=False)
    sample = Sample(id=run.task_id, input=run.task, target="was paid back")
    with tempfile.TemporaryDirectory() as logs, guard.inspect(run_id=run.task_id):
        eval(Task([sample], solver=agent, scorer=includes()), model=model, log_dir=logs, display="none")


if __name__ == "__main__":
    rehearse(run_agent)
