"""SkillsBench: a folder a trial, with an ACP trajectory. Read by adapters/skillsbench.json."""

from __future__ import annotations

from pathlib import Path

from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs
from prefixguard.trace import Run, task_key
from reproduce.benchmark import ADAPTERS, Benchmark, Published, Runs, counted, refuse_large, status_leaked
from reproduce.splits import TaskSplit

_FILES = ("**/result.json",)
_MEMBERS = ("**/result.json", "**/config.json", "**/acp_trajectory.jsonl")
_LARGEST = 1 << 30


def runs(folder: Path, report: ReadReport) -> Runs:
    """Runs of all trials that have a trajectory in the ACP form."""
    refuse_large(folder, _MEMBERS, _LARGEST)
    return counted(read_runs(folder, load_adapter(ADAPTERS / "skillsbench.json"), report=report), folder)


def leaked(folder: Path, report: ReadReport) -> Runs:
    """The same with the verdict in the status of the last step."""
    return status_leaked(runs(folder, report))


def task(run: Run[StepRecord]) -> str:
    """`skillsbench::TASK`."""
    return f"skillsbench::{task_key(run)}"


BENCHMARK = Benchmark(
    name="skillsbench",
    title="SkillsBench, ACP trajectories",
    rows=10_951,
    seeds=(13, 42, 7),
    symbols=16,
    split=TaskSplit(seed=13, validation=0.10, test=0.10),
    published=Published(strongest=0.533, raw_text=0.315, dfa=0.190, dfa_states=151),
    download="""\
Hugging Face data set benchflow/skillsbench-trajectories-apr2026 (about 180 MB, many small files): of every trial its
result.json, config.json and trajectory/acp_trajectory.jsonl.
    hf download benchflow/skillsbench-trajectories-apr2026 --repo-type dataset \\
        --revision 841dfc7d248bb0b1cd35fa65bb993a1eba0d1d2f --local-dir FOLDER
    python benchmarks/reproduce/run.py --skillsbench FOLDER""",
    files=_FILES,
    read=runs,
    read_leaked=leaked,
    leak="the verdict in the status of the last step",
    task=task,
)
