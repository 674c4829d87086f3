"""Boosted trees are trained, evaluated and exported without torch, and are the same bytes as with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prefixguard.distribution import install_command
from prefixguard.simulation import write_runs

WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Gone())
"""


def run(program: str, folder: Path, *, torch: bool = False) -> str:
    """What a program printed, run in a folder. torch: whether it is there."""
    program = program if torch else WITHOUT + program
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "room",
    [
        "learn",
        "learn.train",
        "automata",
        "evaluation",
        "evaluation.controls",
        "evaluation.retraining",
        "evaluation.data_check",
    ],
)
def test_a_room_is_imported_without_torch(room: str, tmp_path: Path) -> None:
    """Where it is installed, too: starting takes less."""
    assert run(f"import sys, prefixguard.{room}; print('torch' in sys.modules)", tmp_path, torch=True) == "False\n"


@pytest.mark.slow
def test_trees_are_the_same_bundle_with_torch_and_without(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.jsonl", 120, seed=1)
    train = (
        "from prefixguard.learn import TrainConfig, train\n"
        "trees = TrainConfig(backend='gbdt', min_tasks=1)\n"
        "made = train('runs.jsonl', out={out!r}, adapter='openai_chat', config=trees)\n"
        "print(made.id, 'torch' in made.manifest['libraries'])\n"
    )
    there = run(f"import torch; torch.set_num_threads(2)\n{train.format(out='with')}", tmp_path, torch=True)
    assert there == run(train.format(out="without"), tmp_path) and there.endswith(" False\n")


def test_what_needs_torch_says_so_before_anything_is_read(tmp_path: Path) -> None:
    program = (
        "from prefixguard.learn import TrainConfig, train\n"
        "from prefixguard.errors import MissingExtraError\n"
        "for backend in ('gru', 'transformer', 'fsm', 'blend'):\n"
        "    try: train('nowhere', out='x', adapter='openai_chat', config=TrainConfig(backend=backend))\n"
        "    except MissingExtraError as exc: print(exc)\n"
    )
    said = run(program, tmp_path).splitlines()
    needs = f"needs torch. Install it with: {install_command('train')}"
    other = "Or: prefixguard train --backend gbdt needs no torch"
    assert said == [f"backend {name} {needs}. {other}" for name in ("gru", "transformer", "fsm", "blend")]


def test_learners_and_controls_that_need_torch_say_so(tmp_path: Path) -> None:
    program = (
        "from prefixguard.automata import LEARNERS\n"
        "from prefixguard.evaluation.controls import CONTROLS\n"
        "from prefixguard.errors import MissingExtraError\n"
        "import prefixguard.learn\n"
        "def ask(name, what):\n"
        "    try: what()\n"
        "    except MissingExtraError as exc: print(exc)\n"
        "for name in ('fsm', 'clusters'): ask(name, lambda: LEARNERS[name](None, max_states=2, seed=0))\n"
        "ask('', lambda: CONTROLS['process mining'].fit(None))\n"
        "ask('', lambda: prefixguard.learn.SoftFsm)\n"
    )
    needs = f"needs torch. Install it with: {install_command('train')}"
    assert run(program, tmp_path).splitlines() == [
        f"{what} {needs}"
        for what in (
            "learner fsm",
            "learner clusters",
            "the control process mining",
            "prefixguard.learn.SoftFsm",
        )
    ]
