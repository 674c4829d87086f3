"""Claude Code by its SDK: record practice runs, train a monitor on them, and let it nudge an agent that fails.

    pip install "prefixguard-monitor[gbdt,claude-agent-sdk]"
    python examples/claude_agent/run.py            hooks in this process
    python examples/claude_agent/run.py command    the last runs by `prefixguard hook claude-code`

No key is needed: a scripted model on this machine plays the agent. Takes two minutes: Claude Code begins for every
run.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool
from practice import PracticeRun, find_order, practice_runs, refund
from scripted_messages import serve

import prefixguard


def server() -> Any:
    """The tools of the practice runs, as a server in this process."""

    def made(function: Any) -> Any:
        @tool(function.__name__, function.__doc__, {"id": str})
        async def call(given: dict[str, Any]) -> dict[str, Any]:
            try:
                return {"content": [{"type": "text", "text": function(given["id"])}]}
            except LookupError as exc:
                return {"content": [{"type": "text", "text": str(exc)}], "is_error": True}

        return call

    return create_sdk_mcp_server("orders", tools=[made(find_order), made(refund)])


async def play(run: PracticeRun, home: Path, **watched: Any) -> None:
    script = [
        {**reply, "calls": [(f"mcp__orders__{name}", given) for name, given in reply["calls"]]} for reply in run.script
    ]
    with serve({"clerk": script}) as url:
        options = ClaudeAgentOptions(
            system_prompt="You are the clerk.", cwd=home, setting_sources=[], mcp_servers={"orders": server()},
            allowed_tools=["mcp__orders__find_order", "mcp__orders__refund"], **watched,
            env={
                "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home), "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
        )  # fmt: skip
        async for message in query(prompt=run.task, options=options):
            if isinstance(message, ResultMessage):
                print(f"{run.task} -> {message.result}", flush=True)


async def main(folder: Path, by_command: bool) -> None:
    home = folder / "home"
    home.mkdir()
    guard = prefixguard.Guard.recording(folder / "runs")
    for run in practice_runs(120):
        await play(run, home, hooks=guard.claude_agent(run_id=run.task_id))
        guard.outcome(run.task_id, success=run.success)
    guard.close()
    config = prefixguard.TrainConfig(backend="gbdt", budget=0.2)
    prefixguard.train(folder / "runs", out=folder / "monitor", adapter="events", config=config)

    if by_command:
        settings = prefixguard.hook_settings(monitor=folder / "monitor", record=folder / "more", state=folder / "state")
        (folder / "settings.json").write_text(json.dumps(settings))
        watched: dict[str, Any] = {"settings": str(folder / "settings.json")}
    else:
        guard = prefixguard.Guard(folder / "monitor", on_alarm=lambda alarm: print("ALARM", alarm.reading) or "nudge")
        watched = {"hooks": guard.claude_agent()}
    for run in practice_runs(6, seed=8):
        await play(run, home, **watched)
    if by_command:
        print(*(path.read_text() for path in folder.glob("state/*/counters.json")))
    else:
        print(guard.counters)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        asyncio.run(main(Path(work), "command" in sys.argv))
