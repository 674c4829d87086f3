"""What `prefixguard train` is to train on: the command line's, a TOML file's, or else simulated runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.errors import ConfigError, UsageError
from prefixguard.stepview import adapter_for
from prefixguard.trace import is_read_once

if TYPE_CHECKING:
    from prefixguard.learn import LearnListener, TrainConfig
    from prefixguard.runtime import Monitor

#: Read from the current folder when no runs are named.
FILE = Path("prefixguard.toml")
MONITORS = Path("monitors")
SIMULATED_RUNS, LAB_SEED, SIMULATION_ADAPTER = 1200, 13, "openai_chat"
_SECTION = "train"
_PATHS = ("runs", "labels", "out")


@dataclass(frozen=True, slots=True)
class PlannedTraining:
    """runs: None means the simulation's. said: which runs these are and where that was said, a sentence for people."""

    runs: str | None
    adapter: str
    labels: Path | None
    out: Path
    config: TrainConfig
    said: str


def plan_training(
    runs: str | None,
    adapter: str | None,
    labels: Path | None,
    out: Path | None,
    config: Path | None,
    options: Mapping[str, Any],
    scores: Path | None = None,
    begin: Monitor | None = None,
) -> PlannedTraining:
    """Put the command line over the file over the defaults.

    config: a TOML file with a section [train]; None: `prefixguard.toml` here, but only when no runs are named.
    options: fields of TrainConfig from the command line. scores: a table of scores, in the place of runs.
    begin: a monitor whose adapter, seed, horizon, budget and confidence hold where nothing else is said.
    Raises ConfigError, UsageError.
    """
    from prefixguard.learn import SCORES_ADAPTER, TrainConfig

    if scores is not None:
        if runs is not None or adapter is not None:
            raise UsageError("--scores goes without runs and without --adapter: a table of scores is read in one way.")
        runs, adapter, options = str(scores), SCORES_ADAPTER, {"backend": "gbdt", **options}
    file = config or (FILE if runs is None and FILE.exists() else None)
    table = {} if file is None else _section(file)
    where = "the command line" if file is None else str(file)
    told = {name: _path(file, name, table.pop(name)) for name in _PATHS if name in table}
    given_adapter = table.pop("adapter", None)
    if given_adapter is not None and not isinstance(given_adapter, str):
        raise ConfigError(f"{file}: adapter = {given_adapter!r}: a name or a path, in quotes, is needed.")
    settled = TrainConfig.from_mapping({**_begun(begin), **table, **options}, where)
    runs_named = runs if runs is not None else told.get("runs")
    adapter = adapter or given_adapter
    if begin is not None:
        if runs_named is None or is_read_once(runs_named):
            raise UsageError("--from compares both monitors on the runs, which takes runs that can be read again.")
        begin.refuse_other(adapter, runs_named)
        adapter = adapter or str(begin.bundle.path / "adapter.json")
    labels_named = labels or (Path(told["labels"]) if "labels" in told else None)
    out_named = out or (Path(told["out"]) if "out" in told else None)
    if runs_named is None:
        if adapter is not None or labels_named is not None:
            raise UsageError("--adapter and --labels are for runs, and no runs are named. Say: prefixguard train RUNS")
        why = f"{file} names none" if file is not None else f"there is no {FILE} here"
        said = (
            f"No runs are named and {why}: training on {SIMULATED_RUNS:,} runs of the built-in simulation. That is "
            "material for demonstration and tests; a monitor for your agent needs your agent's runs."
        )
        return PlannedTraining(None, SIMULATION_ADAPTER, None, out_named or MONITORS / "lab", settled, said)
    if adapter is None:
        adapter = adapter_for(None, runs_named).name
    source = f"as {file} says" if runs is None else "as asked"
    said = f"Training on {runs_named} through adapter {adapter}, {source}."
    return PlannedTraining(
        runs_named, adapter, labels_named, out_named or MONITORS / _name_of(runs_named), settled, said
    )


def _begun(begin: Monitor | None) -> dict[str, Any]:
    """What a training takes over from a monitor. The same seed keeps its tasks on the sides that they had."""
    if begin is None:
        return {}
    manifest, policy = begin.bundle.manifest, begin.bundle.calibration.policy
    kept = {name: manifest[name] for name in ("seed", "horizon") if isinstance(manifest.get(name), int)}
    return {**kept, "budget": policy.budget, "confidence": policy.confidence}


def evaluation_folder(monitor: Path, named: Path | None) -> Path:
    """Where what takes long is kept, to go on from: the folder named, or one beside the monitor."""
    return named or monitor.parent / f".{monitor.name}.evaluation"


def simulated_runs(folder: Path, listener: LearnListener) -> str:
    """Make the runs of the simulation that are trained on where none are named, in a file of this folder."""
    from prefixguard.simulation import write_runs

    listener.on_stage("making", "the simulation's runs")
    path = folder / "lab.jsonl"
    write_runs(path, SIMULATED_RUNS, LAB_SEED)
    return str(path)


def _section(file: Path) -> dict[str, Any]:
    from prefixguard.learn import read_toml

    document = read_toml(file)
    section = document.get(_SECTION)
    if not isinstance(section, dict):
        raise ConfigError(f"{file}: has no section [{_SECTION}]. Put the options of a training under that heading.")
    return dict(section)


def _path(file: Path | None, name: str, value: object) -> str:
    """A path of the file, which is meant from the file's own folder."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{file}: {name} = {value!r}: a path in quotes is needed.")
    return value if value == "-" or file is None else str(file.parent / value)


def _name_of(runs: str) -> str:
    """A monitor's name from where its runs are.

    >>> _name_of(".traces/tau_bench"), _name_of("runs/week1.jsonl"), _name_of("logs/*/run.json"), _name_of("-")
    ('tau_bench', 'week1', 'logs', 'stdin')
    """
    if is_read_once(runs):
        return "stdin"
    parts = [part for part in Path(runs).parts if part not in ("/", ".", "..")]
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), parts))
    if not fixed:
        return "monitor"
    return fixed[-1] if len(fixed) < len(parts) else fixed[-1].lstrip(".").partition(".")[0] or "monitor"
