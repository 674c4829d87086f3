"""tau2-bench: one JSON file a model and domain; `simulations` are the runs. Read by the adapter that is shipped."""

from __future__ import annotations

from pathlib import Path

from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs
from prefixguard.trace import Run, task_key
from reproduce.benchmark import Benchmark, Published, Runs, counted, refuse_large, status_leaked
from reproduce.splits import TaskSplit

_FILES = ("**/*.json",)


def runs(folder: Path, report: ReadReport) -> Runs:
    """Runs of all result files, each step with the status of its own result."""
    refuse_large(folder, _FILES)
    return counted(read_runs(folder, load_adapter("tau2"), report=report), folder)


def leaked(folder: Path, report: ReadReport) -> Runs:
    """The same with the verdict in the status of the last step."""
    return status_leaked(runs(folder, report))


def task(run: Run[StepRecord]) -> str:
    """`tau2-DOMAIN-TASK`, of the adapter's `DOMAIN:TASK`."""
    return f"tau2-{task_key(run).replace(':', '-', 1)}"


BENCHMARK = Benchmark(
    name="tau2",
    title="tau2-bench, final results",
    rows=10_832,
    seeds=(13, 42, 123),
    symbols=16,
    split=TaskSplit(seed=1, validation=0.15, test=0.15),
    published=Published(strongest=0.710, raw_text=0.554, dfa=0.316, dfa_states=20),
    download="""\
Repository sierra-research/tau2-bench, folder data/tau2/results/final: every *.json (some are over 100 MB). The paper
does not say which commit it read; its importer takes the branch main.
    git clone --depth 1 --filter=blob:none --sparse https://github.com/sierra-research/tau2-bench
    git -C tau2-bench sparse-checkout set data/tau2/results/final
    python benchmarks/reproduce/run.py --tau2 tau2-bench/data/tau2/results/final""",
    files=_FILES,
    read=runs,
    read_leaked=leaked,
    leak="the verdict in the status of the last step",
    task=task,
)
