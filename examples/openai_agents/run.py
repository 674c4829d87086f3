"""The OpenAI Agents SDK: record practice runs, train a monitor on them, and let it nudge an agent that fails.

    pip install "prefixguard-monitor[gbdt,openai-agents]"
    python examples/openai_agents/run.py

No key is needed: a scripted model on this machine plays the agent. Takes about a minute.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import openai
from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from practice import PracticeRun, find_order, practice_runs, refund
from scripted_model import serve

import prefixguard

clerk = Agent(name="clerk", instructions="You are the clerk.", tools=[function_tool(find_order), function_tool(refund)])


async def play(guard: prefixguard.Guard, run: PracticeRun) -> None:
    with serve({"clerk": run.script}) as url:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            set_default_openai_client(client)
            hooks = guard.openai_agents(run_id=run.task_id)
            result = await Runner.run(clerk, run.task, hooks=hooks, max_turns=20)
    print(f"{run.task} -> {result.final_output}")


async def main(folder: Path) -> None:
    set_tracing_disabled(True)
    guard = prefixguard.Guard.recording(folder / "runs")
    for run in practice_runs(160):
        await play(guard, run)
        guard.outcome(run.task_id, success=run.success)
    config = prefixguard.TrainConfig(backend="gbdt", budget=0.2)
    prefixguard.train(folder / "runs", out=folder / "monitor", adapter="events", config=config)

    guard = prefixguard.Guard(folder / "monitor", on_alarm=lambda alarm: print("ALARM", alarm.reading) or "nudge")
    for run in practice_runs(6, seed=8):
        await play(guard, run)
    print(guard.counters)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        asyncio.run(main(Path(work)))
