"""The whole path on the built-in simulation: runs, a monitor, its evaluation, and a fresh run watched live."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from prefixguard.errors import ConfigError
from prefixguard.evaluation import EvaluationTable, evaluate
from prefixguard.runtime import Level, Monitor, Reading, load
from prefixguard.simulation.corpus import generate, write_runs

if TYPE_CHECKING:
    from prefixguard.learn import LearnListener

ADAPTER = "openai_chat"
#: What the demo trains with: two small networks, so that all of it takes a few minutes on two slow cores.
SETTINGS: Mapping[str, Any] = {"members": 2, "epochs": 14, "symbol_epochs": 6, "max_features": 2048}
#: Steps left at the alarm that make a run worth showing.
_LEAD = 3


@dataclass(frozen=True, slots=True)
class FreshAlarms:
    """How alarms came on fresh runs that failed.

    failed: fresh runs that failed. showing: those of them lost by a fault that the trace shows at all.
    alarmed, alarmed_showing: of those, with an alarm. leads: steps left at the first alarm, one an alarmed run.
    succeeded, false_alarms: fresh runs that did not fail, and those of them with an alarm.
    """

    failed: int
    showing: int
    alarmed: int
    alarmed_showing: int
    leads: tuple[int, ...]
    succeeded: int
    false_alarms: int

    @property
    def lead_median(self) -> float | None:
        """Median of the leads; None without an alarm."""
        return statistics.median(self.leads) if self.leads else None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """path, id: the bundle. run_id, readings: of the run that was watched. lead: steps left at its alarm, or None."""

    path: Path
    id: str
    evaluation: EvaluationTable
    fresh: FreshAlarms
    run_id: str
    readings: tuple[Reading, ...]
    lead: int | None


class DemoListener:
    """What happens in the demo, as it happens. Empty hooks: override what you want to see."""

    def on_runs(self, count: int, fresh: int) -> None:
        """The simulation is about to make so many runs to learn from, and so many fresh ones."""

    def learning(self) -> LearnListener | None:
        """Who listens to the training."""
        return None

    def on_bundle(self, path: Path, id: str, bytes: int) -> None:
        """The monitor is compiled."""

    def on_scored(self, count: int) -> None:
        """So many fresh runs have been judged."""

    def on_evaluation(self, table: EvaluationTable) -> None:
        """The evaluation on fresh runs is there."""

    def on_choice(self, fresh: FreshAlarms, run: Mapping[str, Any]) -> None:
        """A fresh run is about to be watched. run: as the simulation gives it."""

    def on_event(self, message: Mapping[str, Any]) -> None:
        """The agent's world goes on by one message."""

    def on_reading(self, reading: Reading) -> None:
        """The monitor says what it thinks."""


def demo(
    out: str | os.PathLike[str] = "monitors/demo",
    *,
    runs: int = 1200,
    fresh: int = 300,
    seed: int = 13,
    listener: DemoListener | None = None,
) -> DemoResult:
    """Train a monitor on runs of the simulation, evaluate it on fresh ones, and watch one of those until its alarm.

    out : folder of the bundle; one that is there is replaced.
    runs : runs of the simulation to learn from, 100 or more.
    fresh : fresh runs, of other tasks, to evaluate on and to watch one of, 40 or more.
    seed : of everything; the same seed watches the same run.
    listener: told what happens, as it happens.
    The run that is watched is the first of the fresh failed runs that was lost by a fault its trace shows and whose
    alarm came at or after that fault, with at least three steps left and a behaviour that explains it; failing that,
    one that comes near to it. `fresh` of the result says how it went with all of them.
    Raises ConfigError for numbers too small, MissingExtraError without the packages for training, OutputError.
    """
    from prefixguard.learn import TrainConfig, train

    listener = listener or DemoListener()
    if runs < 100 or fresh < 40:
        raise ConfigError(f"runs = {runs}, fresh = {fresh}: at least 100 runs to learn from and 40 fresh are needed.")
    start = -(-runs // 4) * 4  # the simulation's runs come four a task; a task stands on one side
    listener.on_runs(runs, fresh)
    with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
        material = Path(folder) / "lab.jsonl"
        write_runs(material, runs, seed)
        result = train(
            material,
            out=Path(out),
            adapter=ADAPTER,
            config=TrainConfig(seed=seed, **SETTINGS),
            overwrite=True,
            listener=listener.learning(),
        )
        size = sum(file.stat().st_size for file in result.path.iterdir() if file.is_file())
        listener.on_bundle(result.path, result.id, size)
        monitor = load(result.path)
        new = list(islice(generate(start + fresh, seed), start, None))
        material = Path(folder) / "fresh.jsonl"
        material.write_bytes(b"".join(orjson.dumps(run, option=orjson.OPT_APPEND_NEWLINE) for run in new))
        table = evaluate(monitor, material, progress=listener.on_scored)
    listener.on_evaluation(table)
    judged = [(run, tuple(_live(monitor, run))) for run in new]
    alarms = _alarms(judged)
    chosen, _ = max(judged, key=_worth_showing)  # of equals the first
    listener.on_choice(alarms, chosen)
    readings = tuple(_live(monitor, chosen, listener))
    return DemoResult(result.path, result.id, table, alarms, chosen["run_id"], readings, lead_of(readings))


def lead_of(readings: tuple[Reading, ...]) -> int | None:
    """Steps left at the first alarm; None without one."""
    first = next((reading.step for reading in readings if reading.level is Level.ALARM), None)
    return None if first is None else readings[-1].step - first


def _live(monitor: Monitor, run: Mapping[str, Any], listener: DemoListener | None = None) -> Iterator[Reading]:
    """Feed a run's messages one by one, as its agent would."""
    session = monitor.start()
    for message in run["messages"]:
        if listener is not None:
            listener.on_event(message)
        for reading in session.observe(message):
            if listener is not None:
                listener.on_reading(reading)
            yield reading
    for reading in session.end():
        if listener is not None:
            listener.on_reading(reading)
        yield reading


def _alarms(judged: list[tuple[dict[str, Any], tuple[Reading, ...]]]) -> FreshAlarms:
    failed = [(run, lead_of(readings)) for run, readings in judged if run["outcome"] == "failure"]
    others = [lead_of(readings) for run, readings in judged if run["outcome"] != "failure"]
    showing = [(run, lead) for run, lead in failed if run["metadata"]["observable"]]
    leads = tuple(lead for _, lead in failed if lead is not None)
    return FreshAlarms(
        failed=len(failed),
        showing=len(showing),
        alarmed=len(leads),
        alarmed_showing=sum(lead is not None for _, lead in showing),
        leads=leads,
        succeeded=len(others),
        false_alarms=sum(lead is not None for lead in others),
    )


def _worth_showing(one: tuple[dict[str, Any], tuple[Reading, ...]]) -> int:
    run, readings = one
    if run["outcome"] != "failure":
        return 0
    worth, lead, fault = 1, lead_of(readings), run["metadata"]["mistake_step"]
    if run["metadata"]["observable"]:
        worth += 1
        if lead is not None:
            alarm = next(reading for reading in readings if reading.level is Level.ALARM)
            worth += (
                1 + (lead >= 1) + (lead >= _LEAD) + (fault is not None and alarm.step >= fault) + bool(alarm.faults)
            )
    return worth
