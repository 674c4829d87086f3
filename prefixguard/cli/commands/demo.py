"""`prefixguard demo`: the whole path, on the built-in simulation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.cli.command import command
from prefixguard.cli.console import people, say, visible, write_data, write_json
from prefixguard.cli.progress import Activity
from prefixguard.cli.shown import ReadingLines
from prefixguard.simulation.demonstration import DemoListener, DemoResult, FreshAlarms, demo

if TYPE_CHECKING:
    from prefixguard.evaluation import EvaluationTable
    from prefixguard.learn import LearnListener
    from prefixguard.runtime import Reading

_PACE = 0.12  # seconds a message, for eyes; none where there is no terminal
_WIDTH = 150  # characters of a message that are shown


@command("demo", arguments="", json="Figures and readings as JSON on standard output.")
def show_demo(as_json: bool, **given: Any) -> None:
    """Simulate runs of an agent, train a monitor, evaluate it, and watch a fresh run until its alarm sounds.

    Takes a few minutes. It is a shop with a scripted agent, which shows how everything works and says
    nothing about real agents.

    Example:

        prefixguard demo
    """
    began = time.monotonic()
    teller = _Teller(quiet=as_json)
    try:
        result = demo(listener=teller, **given)
    finally:
        teller.close()
    if as_json:
        write_json(_facts(result))
    else:
        teller.tell_end(result, time.monotonic() - began)


class _Teller(DemoListener):
    """Tells the demo on standard error; the readings of the watched run go to standard output.

    quiet: the readings do not, they are part of the JSON.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._console = people()
        self._quiet, self._lines = quiet, ReadingLines()
        self._work: Activity | None = None
        self._run: Mapping[str, Any] = {}

    def on_runs(self, count: int, fresh: int) -> None:
        self._head(
            1, f"The simulation makes {count:,} runs of a customer-service agent (simulated: demo and test material)"
        )
        self._begin(Activity("Making runs"))

    def learning(self) -> LearnListener:
        self.close()
        self._head(2, "A monitor is trained on them")
        return self._begin(Activity(bar=True, plain=True))

    def on_bundle(self, path: Path, id: str, bytes: int) -> None:
        self.close()
        self._head(3, f"Compiled: {path}  ({bytes / 2**20:.1f} MiB, id {id[:12]})")
        self._head(4, "Evaluated on fresh runs, of tasks it has not seen")
        self._begin(Activity("Scoring"))

    def on_scored(self, count: int) -> None:
        if self._work is not None:
            self._work.on_runs(count)

    def on_evaluation(self, table: EvaluationTable) -> None:
        say(table.to_text())

    def on_choice(self, fresh: FreshAlarms, run: Mapping[str, Any]) -> None:
        self.close()
        self._run = run
        share = 100 * fresh.alarmed / fresh.failed if fresh.failed else 0.0
        lead = "" if fresh.lead_median is None else f", half of them with {fresh.lead_median:g} or more steps left"
        why = "because its fault shows in its trace"
        if fresh.alarmed_showing:
            why += " and its alarm came early"
        self._head(5, "A fresh run, watched while it goes on")
        say(
            f"Of {fresh.failed} fresh runs that failed, {fresh.alarmed} ({share:.0f} %) raised an alarm{lead}; of "
            f"{fresh.succeeded} that succeeded, {fresh.false_alarms} did. {fresh.failed - fresh.showing} of the "
            f"failures show nowhere in their trace before the end, and no monitor can see those.\n"
            f"This one was chosen {why}: {run['run_id']}"
        )

    def on_event(self, message: Mapping[str, Any]) -> None:
        if self._console.is_terminal:
            time.sleep(_PACE)
        for line in _told(message):
            say(f"    {visible(line)}", style="dim")

    def on_reading(self, reading: Reading) -> None:
        if self._quiet:
            return
        write_data(self._lines.line(reading))

    def tell_end(self, result: DemoResult, seconds: float) -> None:
        """The last words."""
        last = result.readings[-1].step
        faults = [
            f"{fault['kind'].replace('_', ' ')} at step {fault['step']}"
            for fault in self._run["metadata"]["faults"]
            if not fault["harmless"] and not fault["repaired"]
        ]
        say(f"The run failed at its end, step {last}. What only the simulation knew: {', '.join(faults)}.")
        if result.lead is None:
            refused = result.evaluation.first_alert and all(row.alerts is None for row in result.evaluation.first_alert)
            why = "so few runs support no threshold" if refused else "its risk stayed below the threshold"
            say(f"No alarm sounded in this run: {why}.", style="bold")
        else:
            alarm = next(reading for reading in result.readings if reading.level == "ALARM")
            why = f" Why: {visible('; '.join(alarm.reasons))}." if alarm.reasons else ""
            say(f"ALARM at step {alarm.step}, {result.lead} steps before the failure.{why}", style="bold red")
        say(
            f"\nDone in {seconds:.0f} s. Next: prefixguard info {result.path}, or with runs of your own: prefixguard "
            "train RUNS --adapter openai_chat"
        )

    def close(self) -> None:
        """Take what moves off the screen."""
        if self._work is not None:
            self._work.__exit__(None, None, None)
            self._work = None

    def _begin(self, work: Activity) -> Activity:
        self._work = work.__enter__()
        return work

    def _head(self, number: int, text: str) -> None:
        say(f"\n[{number}/5] {text}", style="bold")


def _told(message: Mapping[str, Any]) -> list[str]:
    """A chat message in a few words, a line for every call in it."""
    lines = []
    content = message.get("content")
    if message["role"] == "system":
        return []
    if content:
        speaker = {"user": "customer", "assistant": "agent", "tool": "result"}[message["role"]]
        lines.append(f"{speaker}: {content}")
    for call in message.get("tool_calls", ()):
        lines.append(f"agent calls {call['function']['name']} {call['function']['arguments']}")
    return [line if len(line) <= _WIDTH else f"{line[:_WIDTH]}..." for line in lines]


def _facts(result: DemoResult) -> dict[str, Any]:
    fresh = result.fresh
    return {
        "path": str(result.path),
        "id": result.id,
        "evaluation": result.evaluation.as_json(),
        "fresh": {
            "failed": fresh.failed,
            "alarmed": fresh.alarmed,
            "leads": list(fresh.leads),
            "succeeded": fresh.succeeded,
            "false_alarms": fresh.false_alarms,
        },
        "watched": {
            "run_id": result.run_id,
            "lead": result.lead,
            "readings": [reading.to_json() for reading in result.readings],
        },
    }
