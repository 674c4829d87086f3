"""A loop of one's own, with no framework and no client: what happens is told to the guard.

pip install ".[gbdt]"
python examples/by_hand/run.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

from practice import find_order, refund
from rehearsal import rehearse

TOOLS = {"find_order": find_order, "refund": refund}


def run_agent(guard, url, run):
    with guard.run(run.task, run_id=run.task_id) as watched:
        for reply in run.script:  # what a model would answer
            for tool, arguments in reply["calls"]:
                call = watched.called(tool, arguments, text=reply["text"])
                try:
                    watched.returned(call, TOOLS[tool](**arguments))
                except LookupError as exc:
                    watched.returned(call, exc)
            if not reply["calls"]:
                watched.said(reply["text"])
            watched.nudge()  # a text for the model, where there is one


if __name__ == "__main__":
    rehearse(run_agent)
