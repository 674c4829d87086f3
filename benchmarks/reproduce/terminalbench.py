"""TerminalBench trajectories: parquet, a row a run, `steps` a JSON text. Read by adapters/terminalbench.json."""

from __future__ import annotations

from pathlib import Path

from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs
from prefixguard.trace import Run, task_key
from reproduce.benchmark import ADAPTERS, Benchmark, Published, Runs, counted, refuse_large, status_leaked
from reproduce.splits import TrajectorySplit

_FILES = ("**/*.parquet",)


def runs(folder: Path, report: ReadReport) -> Runs:
    """Runs of all rows whose `steps` are there and hold a message of the agent."""
    refuse_large(folder, _FILES)
    return counted(read_runs(folder, load_adapter(ADAPTERS / "terminalbench.json"), report=report), folder)


def leaked(folder: Path, report: ReadReport) -> Runs:
    """The same with the verdict in the status of the last step."""
    return status_leaked(runs(folder, report))


def task(run: Run[StepRecord]) -> str:
    """`terminalbench::TASK`."""
    return f"terminalbench::{task_key(run)}"


BENCHMARK = Benchmark(
    name="terminalbench",
    title="TerminalBench trajectories",
    rows=34_397,
    seeds=(7, 42, 123),
    symbols=32,
    split=TrajectorySplit(seed=1, calibration=0.10, validation=0.10, test=0.10),
    published=Published(strongest=0.557, raw_text=0.370, dfa=0.184, dfa_states=187),
    download="""\
Hugging Face data set yoonholee/terminalbench-trajectories: data/*.parquet (about 1 GB). Revisions differ in their
number of rows, many of them without steps, and the paper does not say which it read: look for the one that gives
34,397 runs.
    hf download yoonholee/terminalbench-trajectories --repo-type dataset --include "data/*.parquet" --local-dir FOLDER
    python benchmarks/reproduce/run.py --terminalbench FOLDER""",
    files=_FILES,
    read=runs,
    read_leaked=leaked,
    leak="the verdict in the status of the last step",
    task=task,
)
